/* test_graph.c - the graph sampler in a small ggml of its own, which runs the operations as llama.cpp's CPU backend does, with what
 * ggml leaves open at its worst: argmax takes the last of equals, and set_rows wants each row once. The real one runs in
 * tests/test_graph.py. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "llama/abi.h"
#include "lzsampler_llama.h"
#include "backend/kernels.h"
#include "sampler.h"

enum { N_VOCAB = 70, MOST = 4096, MOST_ROWS = 6 };

/* ---- a small ggml ---- */

typedef enum op { LEAF, RESHAPE, GET_ROWS, SET_ROWS, ADD, SUB, MUL, DIV, STEP, ARGMAX, SUM, SCALE_BIAS, ARANGE, N_OPS } op;

typedef union cell {
    float f;
    int32_t i;
} cell;

typedef struct tensor {
    op op;
    int64_t n, n0; /* elements; n0: of a row */
    struct tensor *a, *b, *c;
    float scale, bias;
    cell *data; /* of a view: that of what it views */
    bool owns, is_input, is_set, is_done;
} tensor;

static tensor *tensors[MOST];
static int n_tensors, n_contexts;
static op refused = N_OPS; /* by the device */
static bool is_out_of_memory;
static int a_device;

static tensor *new_tensor(op op, int64_t n, tensor *a, tensor *b) {
    tensor *t = calloc(1, sizeof *t);
    CHECK(t && n_tensors < MOST);
    *t = (tensor){.op = op, .n = n, .n0 = n, .a = a, .b = b};
    bool is_view = op == RESHAPE || op == SET_ROWS;
    t->data = is_view ? a->data : calloc((size_t)n, sizeof *t->data);
    t->owns = !is_view;
    tensors[n_tensors++] = t;
    return t;
}

static void free_tensors(void) {
    while (n_tensors) {
        tensor *t = tensors[--n_tensors];
        if (t->owns) free(t->data);
        free(t);
    }
}

static void *host_begin(lzs_ggml_init_params params) {
    if (is_out_of_memory) return NULL;
    CHECK(params.no_alloc && !params.mem_buffer && params.mem_size >= 40 * sizeof(tensor));
    n_contexts++;
    return &n_contexts;
}
static void host_end(void *context) {
    CHECK(context == &n_contexts);
    n_contexts--;
    free_tensors();
}
static size_t overhead(void) {
    return sizeof(tensor);
}
static int64_t n_elements(const void *t) {
    return ((const tensor *)t)->n;
}
static void *new_1d(void *context, int type, int64_t n) {
    (void)context;
    CHECK(type == LZS_GGML_TYPE_F32 || type == LZS_GGML_TYPE_I32);
    return new_tensor(LEAF, n, NULL, NULL);
}
static void *reshape_1d(void *context, void *a, int64_t n) {
    (void)context;
    CHECK(((tensor *)a)->n == n);
    return new_tensor(RESHAPE, n, a, NULL);
}
static void *reshape_2d(void *context, void *a, int64_t n0, int64_t n1) {
    tensor *t = reshape_1d(context, a, n0 * n1);
    t->n0 = n0;
    return t;
}
static void *get_rows(void *context, void *a, void *ids) {
    (void)context;
    CHECK(((tensor *)a)->n0 == 1);
    return new_tensor(GET_ROWS, ((tensor *)ids)->n, a, ids);
}
static void *set_rows(void *context, void *a, void *rows, void *ids) {
    (void)context;
    CHECK(((tensor *)a)->n0 == 1 && ((tensor *)rows)->n0 == 1 && ((tensor *)rows)->n == ((tensor *)ids)->n);
    tensor *t = new_tensor(SET_ROWS, ((tensor *)a)->n, a, rows);
    t->n0 = 1;
    t->c = ids;
    return t;
}
static void *two(op op, tensor *a, tensor *b) {
    CHECK(b->n == a->n || (b->n == 1 && op == SUB));
    return new_tensor(op, a->n, a, b);
}
static void *add(void *context, void *a, void *b) {
    (void)context;
    return two(ADD, a, b);
}
static void *sub(void *context, void *a, void *b) {
    (void)context;
    return two(SUB, a, b);
}
static void *mul(void *context, void *a, void *b) {
    (void)context;
    return two(MUL, a, b);
}
static void *divide(void *context, void *a, void *b) {
    (void)context;
    return two(DIV, a, b);
}
static void *step(void *context, void *a) {
    (void)context;
    return new_tensor(STEP, ((tensor *)a)->n, a, NULL);
}
static void *argmax(void *context, void *a) {
    (void)context;
    return new_tensor(ARGMAX, 1, a, NULL);
}
static void *sum(void *context, void *a) {
    (void)context;
    return new_tensor(SUM, 1, a, NULL);
}
static void *scale_bias(void *context, void *a, float scale, float bias) {
    (void)context;
    tensor *t = new_tensor(SCALE_BIAS, ((tensor *)a)->n, a, NULL);
    t->scale = scale;
    t->bias = bias;
    return t;
}
static void *arange(void *context, float start, float stop, float by) {
    (void)context;
    CHECK(start == 0.0f && by == 1.0f);
    return new_tensor(ARANGE, (int64_t)stop, NULL, NULL);
}
static void set_input(void *t) {
    ((tensor *)t)->is_input = true;
}
static void tensor_set(void *to, const void *data, size_t offset, size_t size) {
    tensor *t = to;
    CHECK(t->is_input && offset == 0 && size == (size_t)t->n * sizeof *t->data);
    memcpy(t->data, data, size);
    t->is_set = true;
}
static void *device_of(void *buffer_type) {
    return buffer_type;
}
static bool supports(void *device, const void *t) {
    CHECK(device == &a_device);
    return ((const tensor *)t)->op != refused;
}

static cell at(const tensor *t, int64_t i) {
    return t->data[t->n == 1 ? 0 : i];
}

static void put_rows(tensor *t) {
    for (int64_t i = 0; i < t->c->n; i++) {
        for (int64_t j = 0; j < i; j++) CHECK(t->c->data[i].i != t->c->data[j].i);
        CHECK(t->c->data[i].i >= 0 && t->c->data[i].i < t->n);
        t->data[t->c->data[i].i] = t->b->data[i];
    }
}

static void run(tensor *t) {
    if (!t || t->is_done) return;
    t->is_done = true;
    CHECK(!t->is_input || t->is_set);
    run(t->a);
    run(t->b);
    run(t->c);
    if (t->op == SET_ROWS) put_rows(t);
    if (t->op == LEAF || t->op == RESHAPE || t->op == SET_ROWS) return;
    double total = 0.0;
    float max = -INFINITY;
    if (t->op == ARGMAX) t->data->i = 0;
    for (int64_t i = 0; i < (t->a && t->n == 1 ? t->a->n : t->n); i++) {
        float x = t->a && t->op != GET_ROWS ? at(t->a, i).f : 0.0f, y = t->b ? at(t->b, i).f : 0.0f;
        switch (t->op) {
        case GET_ROWS:
            if (i >= t->b->n) break;
            CHECK(t->b->data[i].i >= 0 && t->b->data[i].i < t->a->n);
            t->data[i] = t->a->data[t->b->data[i].i];
            break;
        case ADD: t->data[i].f = x + y; break;
        case SUB: t->data[i].f = x - y; break;
        case MUL: t->data[i].f = x * y; break;
        case DIV: t->data[i].f = x / y; break;
        case STEP: t->data[i].f = x > 0.0f ? 1.0f : 0.0f; break;
        case SCALE_BIAS: t->data[i].f = x * t->scale + t->bias; break;
        case ARANGE: t->data[i].f = (float)i; break;
        case SUM: total += x; break;
        case ARGMAX:
            max = max > x ? max : x;
            if (max == x) t->data->i = (int32_t)i;
            break;
        default: break;
        }
    }
    if (t->op == SUM) t->data->f = (float)total;
}

/* ---- a small llama.cpp ---- */

typedef struct context {
    int32_t n_rows;
    lzs_llama_sampler_data rows[MOST_ROWS];
} context;

static const lzs_llama_sampler_data *output(const context *c, int32_t index) {
    return &c->rows[index < 0 ? c->n_rows + index : index];
}
static int32_t sampled_token(void *c, int32_t index) {
    const tensor *t = output(c, index)->sampled;
    return t ? t->data->i : -1;
}
static float *sampled_logits(void *c, int32_t index) {
    return &((tensor *)output(c, index)->logits)->data->f;
}
static float *sampled_probs(void *c, int32_t index) {
    const tensor *t = output(c, index)->probs;
    return t ? &t->data->f : NULL;
}
static lzs_llama_sampler *sampler_init(const lzs_llama_sampler_i *iface, void *ctx) {
    lzs_llama_sampler *member = malloc(sizeof *member);
    if (member) *member = (lzs_llama_sampler){iface, ctx};
    return member;
}
static void sampler_free(lzs_llama_sampler *member) {
    member->iface->free(member);
    free(member);
}

#define ADDRESS(to, function) memcpy(&f.to, &(void (*[1])(void)){(void (*)(void))(function)}, sizeof f.to)

static lzs_graph_functions functions(void) {
    lzs_graph_functions f = {.size = sizeof f};
    ADDRESS(llama_sampler_init, sampler_init);
    ADDRESS(llama_get_sampled_token_ith, sampled_token);
    ADDRESS(llama_get_sampled_logits_ith, sampled_logits);
    ADDRESS(llama_get_sampled_probs_ith, sampled_probs);
    ADDRESS(ggml_init, host_begin);
    ADDRESS(ggml_free, host_end);
    ADDRESS(ggml_tensor_overhead, overhead);
    ADDRESS(ggml_nelements, n_elements);
    ADDRESS(ggml_new_tensor_1d, new_1d);
    ADDRESS(ggml_reshape_1d, reshape_1d);
    ADDRESS(ggml_reshape_2d, reshape_2d);
    ADDRESS(ggml_get_rows, get_rows);
    ADDRESS(ggml_set_rows, set_rows);
    ADDRESS(ggml_add, add);
    ADDRESS(ggml_sub, sub);
    ADDRESS(ggml_mul, mul);
    ADDRESS(ggml_div, divide);
    ADDRESS(ggml_step, step);
    ADDRESS(ggml_argmax, argmax);
    ADDRESS(ggml_sum, sum);
    ADDRESS(ggml_scale_bias, scale_bias);
    ADDRESS(ggml_arange, arange);
    ADDRESS(ggml_set_input, set_input);
    ADDRESS(ggml_backend_tensor_set, tensor_set);
    ADDRESS(ggml_backend_buft_get_device, device_of);
    ADDRESS(ggml_backend_dev_supports_op, supports);
    return f;
}

/* A member that was set in a context, as llama_set_sampler does. */
static lzs_llama_sampler *new_member(lzs_sampler *s, int32_t kind, int32_t max_history, bool has_mask) {
    lzs_graph_functions f = functions();
    void *member;
    CHECK(lzs_graph_sampler_new(s, &f, kind, max_history, has_mask, &member) == LZS_OK);
    CHECK(!lzs_graph_supported(member));
    lzs_llama_sampler *m = member;
    CHECK(m->iface->backend_init(m, NULL, MOST_ROWS) && lzs_graph_supported(member));
    m->iface->backend_reset(m);
    lzs_llama_sampler_data wide = {.logits = new_1d(NULL, LZS_GGML_TYPE_F32, 1000)}; /* llama.cpp's look at the size of the graph */
    m->iface->backend_apply(m, NULL, NULL, &wide);
    m->iface->backend_reset(m);
    free_tensors();
    return m;
}

/* llama_decode: a graph with an output for each row. */
static void decode(context *c, lzs_llama_sampler *m, const float *rows, int32_t n) {
    free_tensors();
    c->n_rows = n;
    m->iface->backend_reset(m);
    for (int32_t i = 0; i < n; i++) {
        tensor *logits = new_1d(NULL, LZS_GGML_TYPE_F32, N_VOCAB);
        for (int32_t t = 0; t < N_VOCAB; t++) logits->data[t].f = rows[i * N_VOCAB + t];
        c->rows[i] = (lzs_llama_sampler_data){.logits = logits};
        m->iface->backend_apply(m, NULL, NULL, &c->rows[i]);
    }
    m->iface->backend_set_input(m);
    for (int32_t i = 0; i < n; i++) {
        run(c->rows[i].logits);
        run(c->rows[i].sampled);
        run(c->rows[i].probs);
    }
}

/* ---- tests ---- */

static const lzs_logit_bias biases[] = {{3, 0.7f}, {9, -INFINITY}, {64, -2.0f}};

static lzs_params params_of(int i) {
    lzs_params p;
    lzs_params_init(&p);
    p.seed = 7;
    p.history = LZS_HISTORY_ALL;
    p.lz_penalty = 0.25f;
    p.lz_min_match = 2;
    if (i == 2) p.lz_rule = LZS_RULE_PAPER;
    if (i == 1) p.temperature = 0.7f, p.top_k = 20, p.top_p = 0.9f, p.dry_multiplier = 0.8f, p.dry_base = 1.75f;
    if (i == 1) p.dry_allowed_length = 1, p.dry_penalty_last_n = 64;
    if (i >= 2) p.repetition_penalty = 1.3f, p.presence_penalty = 0.4f, p.penalty_window = 40;
    if (i == 3) p.frequency_method = LZS_MULTIPLICATIVE, p.frequency_penalty = 1.1f, p.sign_aware = 0;
    if (i == 4) p.lz_penalty = 0.0f;
    if (i >= 3) p.logit_bias = biases, p.n_logit_bias = 3;
    if (i == 5) p.lz_penalty = 0.0f, p.repetition_penalty = 1.0f, p.presence_penalty = 0.0f, p.n_logit_bias = 0;
    return p;
}
enum { N_PARAMS = 6 };

/* Coarse, so that there are ties; with infinities, and both signs. */
static void make_rows(float *rows, int32_t n, uint64_t *seed) {
    for (int32_t i = 0; i < n * N_VOCAB; i++) {
        double u = random_unit(seed);
        rows[i] = u < 0.02 ? -INFINITY : (float)floor(24.0 * u - 14.0) / 3.0f;
    }
}

static void make_mask(uint32_t *mask, uint64_t *seed) {
    for (int32_t w = 0; w < 3; w++) mask[w] = (uint32_t)(random_unit(seed) * 4294967295.0) | 1u;
}

/* A text picked by the graph is that of lzs_step, mask or not, and an edited row is that of lzs_apply_edit. */
static void test_texts(int i, int32_t kind, bool has_mask) {
    lzs_params p = params_of(i);
    if (kind == LZS_GRAPH_BEST) p.temperature = 0.0f;
    lzs_sampler *a, *b;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &a) == LZS_OK && lzs_sampler_new(N_VOCAB, &p, &b) == LZS_OK);
    lzs_llama_sampler *m = new_member(a, kind, 400, has_mask);
    uint64_t seed = (uint64_t)(1000 + 100 * i + 10 * kind + has_mask);
    context c;
    int32_t token, expected, looping;
    for (int32_t n = 0; n < 300; n++) {
        float row[N_VOCAB];
        uint32_t mask[3];
        make_rows(row, 1, &seed);
        make_mask(mask, &seed);
        bool is_masked = (has_mask || kind == LZS_GRAPH_ROWS) && n % 3 == 0;
        CHECK(lzs_set_mask(a, LZS_MASK_USER, is_masked ? mask : NULL, 3) == LZS_OK);
        CHECK(lzs_set_mask(b, LZS_MASK_USER, is_masked ? mask : NULL, 3) == LZS_OK);
        decode(&c, m, row, 1);
        lzs_plan plan;
        CHECK(lzs_sampler_plan(b, &plan) == LZS_OK);
        for (size_t e = 0; e < plan.n_edits && kind == LZS_GRAPH_ROWS; e++) {
            int32_t at = plan.edits[e].token;
            float x = lzs_apply_edit(&plan.edits[e], row[at], plan.sign_aware);
            if (has_mask && !lzs_allowed(plan.mask, at)) x = -INFINITY;
            CHECK(sampled_logits(&c, -1)[at] == x);
        }
        lzs_status status = lzs_step(b, row, &expected, NULL);
        CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == status && token == expected);
    }
    CHECK(lzs_position(a) > 250 && lzs_chain_sampler_status(m) == LZS_OK);
    sampler_free(m);
    lzs_sampler_free(a);
    lzs_sampler_free(b);
}

/* Settings that divide come after a beginning without them, as where penalties are for a part of a text only. */
static void test_settings(void) {
    lzs_params p = params_of(2), other = p;
    other.repetition_penalty = 1.0f;
    lzs_sampler *a, *b;
    CHECK(lzs_sampler_new(N_VOCAB, &other, &a) == LZS_OK && lzs_sampler_new(N_VOCAB, &other, &b) == LZS_OK);
    lzs_llama_sampler *m = new_member(a, LZS_GRAPH_ROWS, 100, false);
    uint64_t seed = 11;
    context c;
    int32_t token, expected, looping;
    for (int32_t n = 0; n < 90; n++) {
        float row[N_VOCAB];
        make_rows(row, 1, &seed);
        const lzs_params *now = n / 10 % 2 ? &p : &other;
        CHECK(lzs_sampler_set_params(a, now) == LZS_OK && lzs_sampler_set_params(b, now) == LZS_OK);
        decode(&c, m, row, 1);
        CHECK(lzs_step(b, row, &expected, NULL) == LZS_OK);
        CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_OK && token == expected);
    }
    sampler_free(m);
    lzs_sampler_free(a);
    lzs_sampler_free(b);
}

/* Whether factors divide negative logits, too, is in the graph: a step that needs it otherwise fails, and others do not. */
static void test_sign_aware(int32_t kind) {
    lzs_params p = params_of(2), other;
    p.temperature = 0.0f;
    other = p;
    other.sign_aware = 0;
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    lzs_llama_sampler *m = new_member(s, kind, 100, false);
    CHECK(lzs_accept(s, 5) == LZS_OK);
    float row[N_VOCAB];
    int32_t token, looping;
    context c;
    for (int32_t t = 0; t < N_VOCAB; t++) row[t] = -9.0f;
    row[5] = -1.9f; /* -2.87 or, divided, -1.86, each with the presence penalty */
    row[6] = -2.0f;
    CHECK(lzs_sampler_set_params(s, &other) == LZS_OK);
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_EINVAL && token == -1 && lzs_position(s) == 1);
    CHECK(lzs_sampler_set_params(s, &p) == LZS_OK);
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_OK && token == 6);
    CHECK(lzs_rewind(s, 1) == LZS_OK);
    other.repetition_penalty = 1.0f; /* nothing divides: there is no difference */
    CHECK(lzs_sampler_set_params(s, &other) == LZS_OK);
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_OK && token == 6);
    sampler_free(m);
    lzs_sampler_free(s);
}

/* Blocks are judged as lzs_verify judges them. */
static void test_blocks(int i, int32_t kind, int32_t mode) {
    lzs_params p = params_of(i);
    if (kind == LZS_GRAPH_BEST) p.temperature = 0.0f;
    lzs_sampler *a, *b;
    lzs_speculation *sa, *sb;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &a) == LZS_OK && lzs_sampler_new(N_VOCAB, &p, &b) == LZS_OK);
    CHECK(lzs_speculation_new(a, mode, MOST_ROWS - 1, N_VOCAB, NULL, 0, &sa) == LZS_OK);
    CHECK(lzs_speculation_new(b, mode, MOST_ROWS - 1, N_VOCAB, NULL, 0, &sb) == LZS_OK);
    lzs_llama_sampler *m = new_member(a, kind, 800, false);
    uint64_t seed = (uint64_t)(77 + 100 * i + 10 * kind + mode);
    context c;
    int32_t stood = 0;
    for (int32_t n = 0; n < 100; n++) {
        float rows[MOST_ROWS * N_VOCAB];
        const float *pointers[MOST_ROWS];
        int32_t n_draft = (int32_t)(random_unit(&seed) * MOST_ROWS);
        for (int32_t d = 0; d < n_draft; d++) {
            int32_t drafted = (int32_t)(random_unit(&seed) * N_VOCAB);
            CHECK(lzs_draft_token(sa, drafted) == LZS_OK && lzs_draft_token(sb, drafted) == LZS_OK);
        }
        make_rows(rows, n_draft + 1, &seed);
        size_t n_drafted;
        for (int32_t d = 0; d <= n_draft; d++) pointers[d] = rows + d * N_VOCAB;
        for (int32_t d = 0; d < n_draft && n % 2; d++) rows[d * N_VOCAB + lzs_drafted(sa, &n_drafted)[d]] = 30.0f; /* most stand */
        lzs_graph_set_block(m, sa);
        decode(&c, m, rows, n_draft + 1);
        lzs_graph_set_block(m, NULL);
        lzs_verified va, vb;
        lzs_status status = lzs_verify(sb, pointers, (size_t)n_draft + 1, &vb);
        CHECK(lzs_graph_verify(m, sa, &c, (size_t)n_draft + 1, &va) == status && status == LZS_OK);
        CHECK(va.n_accepted == vb.n_accepted && va.token == vb.token && va.looping == vb.looping && va.ended == vb.ended);
        stood += va.n_accepted;
    }
    CHECK(stood > 50 && lzs_position(a) == lzs_position(b));
    sampler_free(m);
    lzs_speculation_free(sa);
    lzs_speculation_free(sb);
    lzs_sampler_free(a);
    lzs_sampler_free(b);
}

/* The plans of a block, and when there are none. */
static void test_drafted_plan(void) {
    lzs_params p = params_of(1);
    lzs_sampler *s;
    lzs_speculation *spec;
    lzs_plan plan;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    CHECK(lzs_speculation_new(s, LZS_SPEC_GUMBEL, 3, N_VOCAB, NULL, 0, &spec) == LZS_OK);
    CHECK(lzs_drafted_plan(spec, 0, &plan) == LZS_OK && plan.position == 0 && lzs_drafted_plan(spec, 1, &plan) == LZS_EINVAL);
    CHECK(lzs_draft_token(spec, 5) == LZS_OK && lzs_draft_token(spec, 6) == LZS_OK);
    for (size_t i = 0; i < 3; i++) CHECK(lzs_drafted_plan(spec, i, &plan) == LZS_OK && plan.position == i);
    CHECK(lzs_drafted_plan(spec, 3, &plan) == LZS_EINVAL);
    CHECK(lzs_accept(s, 1) == LZS_OK && lzs_drafted_plan(spec, 0, &plan) == LZS_EINVAL);
    lzs_speculation_free(spec);
    lzs_sampler_free(s);
}

static void test_errors(void) {
    lzs_params p = params_of(3);
    p.temperature = 0.0f;
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    lzs_graph_functions f = functions(), without = f, other = f;
    without.ggml_arange = NULL;
    other.size += sizeof(void *);
    void *member;
    CHECK(lzs_graph_sampler_new(s, &without, LZS_GRAPH_BEST, 100, 0, &member) == LZS_EINVAL && !member);
    CHECK(lzs_graph_sampler_new(s, &other, LZS_GRAPH_BEST, 100, 0, &member) == LZS_EINVAL && !member);
    CHECK(lzs_graph_sampler_new(s, &f, 3, 100, 0, &member) == LZS_EINVAL && !member);
    CHECK(lzs_graph_sampler_new(s, &f, -1, 100, 0, &member) == LZS_EINVAL && !member);
    CHECK(lzs_graph_sampler_new(s, &f, LZS_GRAPH_ROWS, -1, 0, &member) == LZS_EINVAL && !member);
    for (op o = GET_ROWS; o <= N_OPS; o++) { /* a device that lacks one operation */
        refused = o;
        CHECK(lzs_graph_sampler_new(s, &f, LZS_GRAPH_BEST, 100, 1, &member) == LZS_OK);
        lzs_llama_sampler *m = member;
        bool has_all = o == N_OPS;
        CHECK(m->iface->backend_init(m, &a_device, 1) == has_all && lzs_graph_supported(m) == has_all);
        CHECK(n_tensors == 0 && n_contexts == 0);
        sampler_free(m);
    }
    refused = N_OPS;
    CHECK(lzs_graph_sampler_new(s, &f, LZS_GRAPH_BEST, 100, 1, &member) == LZS_OK);
    lzs_llama_sampler *unlucky = member;
    for (int i = 0; i < 3; i++) { /* ggml has no memory, at first and after it had */
        is_out_of_memory = i != 1;
        CHECK(unlucky->iface->backend_init(unlucky, &a_device, 1) == (i == 1));
        CHECK(lzs_graph_supported(unlucky) == (i == 1));
    }
    is_out_of_memory = false;
    sampler_free(unlucky);
    lzs_llama_sampler *m = new_member(s, LZS_GRAPH_BEST, 100, false);
    context c;
    float row[2 * N_VOCAB];
    uint64_t seed = 5;
    int32_t token, looping;
    make_rows(row, 2, &seed);
    decode(&c, m, row, 2); /* two rows, and no block */
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_EINVAL && token == -1);
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_OK && token >= 0); /* an error is told once */
    uint32_t mask[3] = {1, 0, 0};
    CHECK(lzs_set_mask(s, LZS_MASK_USER, mask, 3) == LZS_OK);
    decode(&c, m, row, 1); /* a mask, and no row for it */
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_EINVAL && token == -1);
    CHECK(lzs_set_mask(s, LZS_MASK_USER, NULL, 0) == LZS_OK);
    row[40] = NAN;
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_ENAN && token == -1);
    for (int32_t t = 0; t < N_VOCAB; t++) row[t] = -INFINITY;
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_EMASKED && token == -1);
    c.rows[0].sampled = NULL; /* llama.cpp has picked nothing */
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_EINVAL && token == -1);
    lzs_llama_sampler_data late = {.logits = new_1d(NULL, LZS_GGML_TYPE_F32, 9)};
    late.candidates = late.logits;
    m->iface->backend_apply(m, NULL, NULL, &late); /* behind a truncation */
    CHECK(lzs_chain_sampler_status(m) == LZS_EINVAL);
    late.candidates = NULL;
    for (int32_t i = 0; i < MOST_ROWS; i++) m->iface->backend_apply(m, NULL, NULL, &late);
    CHECK(lzs_chain_sampler_status(m) == LZS_ESPACE);
    sampler_free(m);
    m = new_member(s, LZS_GRAPH_ROWS, 2, false); /* fewer places than the text has tokens */
    for (int32_t t = 0; t < 30; t++) CHECK(lzs_accept(s, t) == LZS_OK);
    make_rows(row, 1, &seed);
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_ESPACE && token == -1);
    sampler_free(m);
    p.temperature = 0.5f;
    CHECK(lzs_sampler_set_params(s, &p) == LZS_OK);
    m = new_member(s, LZS_GRAPH_BEST, 100, false); /* for another temperature */
    decode(&c, m, row, 1);
    CHECK(lzs_graph_step(m, &c, -1, &token, &looping) == LZS_EINVAL && token == -1);
    sampler_free(m);
    lzs_sampler_free(s);
}

/* The kind for llama.cpp's chains owns a clone, which takes what the chain accepts; its own clone works on the CPU. */
static void test_chain(void) {
    lzs_params p = params_of(3);
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    lzs_llama_sampler *m = new_member(s, LZS_GRAPH_CHAIN, 100, false), *other = new_member(s, LZS_GRAPH_CHAIN, 100, false);
    lzs_sampler *inner = lzs_chain_sampler_inner(m);
    CHECK(inner != s);
    for (int32_t t = 0; t < 20; t++) m->iface->accept(m, t % 7);
    CHECK(lzs_position(inner) == 20 && lzs_position(s) == 0);
    float row[N_VOCAB];
    uint64_t seed = 3;
    make_rows(row, 1, &seed);
    context c;
    decode(&c, m, row, 1);
    lzs_llama_token_data candidates[N_VOCAB];
    for (int32_t t = 0; t < N_VOCAB; t++) candidates[t] = (lzs_llama_token_data){t, row[t], 0.0f};
    lzs_llama_token_data_array array = {candidates, N_VOCAB, -1, false};
    lzs_llama_sampler *clone = m->iface->clone(m);
    CHECK(clone && clone->iface != m->iface && !clone->iface->backend_init);
    clone->iface->apply(clone, &array);
    for (int32_t t = 0; t < N_VOCAB; t++) CHECK(sampled_logits(&c, 0)[t] == candidates[t].logit);
    m->iface->copy_state(m, other);
    float expected[N_VOCAB];
    memcpy(expected, sampled_logits(&c, 0), sizeof row);
    decode(&c, other, row, 1); /* it has its graph still */
    CHECK(memcmp(expected, sampled_logits(&c, 0), sizeof row) == 0 && lzs_position(lzs_chain_sampler_inner(other)) == 20);
    sampler_free(other);
    m->iface->reset(m);
    CHECK(lzs_position(inner) == 0 && lzs_chain_sampler_status(m) == LZS_OK);
    sampler_free(clone);
    sampler_free(m);
    lzs_sampler_free(s);
}

int main(void) {
    for (int i = 0; i < N_PARAMS; i++) {
        for (int32_t kind = LZS_GRAPH_ROWS; kind <= LZS_GRAPH_BEST; kind++) {
            test_texts(i, kind, false);
            test_texts(i, kind, true);
            for (int32_t mode = LZS_SPEC_GUMBEL; mode <= LZS_SPEC_MATCH; mode++) test_blocks(i, kind, mode);
        }
    }
    test_settings();
    test_sign_aware(LZS_GRAPH_ROWS);
    test_sign_aware(LZS_GRAPH_BEST);
    test_drafted_plan();
    test_errors();
    test_chain();
    free_tensors();
    return 0;
}
