/* test_chain_sampler.c - our samplers in a chain, as llama.cpp would call them: a host of thirty lines stands in for
 * libllama. The real one is compared in Python. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "llama/abi.h"
#include "lzsampler_llama.h"

enum { N_VOCAB = 50 };

/* ---- the host: what llama_sampler_init and llama_sampler_free do ---- */

static bool host_is_out_of_memory;

static lzs_llama_sampler *host_init(const lzs_llama_sampler_i *iface, void *ctx) {
    if (host_is_out_of_memory) return NULL;
    lzs_llama_sampler *member = malloc(sizeof *member);
    if (member) *member = (lzs_llama_sampler){iface, ctx};
    return member;
}

static void host_free(lzs_llama_sampler *member) {
    member->iface->free(member);
    free(member);
}

/* llama_sampler_copy. */
static void host_copy(const lzs_llama_sampler *from, lzs_llama_sampler *to) {
    CHECK(from->iface == to->iface);
    if (to->iface->copy_state) {
        to->iface->copy_state(from, to);
        return;
    }
    lzs_llama_sampler *clone = from->iface->clone(from);
    to->iface->free(to);
    to->ctx = clone->ctx;
    free(clone);
}

static void *host_init_address(void) {
    lzs_llama_sampler *(*init)(const lzs_llama_sampler_i *, void *) = host_init;
    void *address;
    memcpy(&address, &init, sizeof address);
    return address;
}

static lzs_llama_sampler *new_member(const lzs_params *params, int32_t kind) {
    lzs_sampler *s;
    void *member;
    CHECK(lzs_sampler_new(N_VOCAB, params, &s) == LZS_OK);
    CHECK(lzs_chain_sampler_new(s, kind, host_init_address(), &member) == LZS_OK && member);
    lzs_sampler_free(s); /* the member has its own */
    return member;
}

/* ---- candidates ---- */

typedef enum shape { FULL, TRUNCATED, REORDERED, REVERSED, ONE, N_SHAPES } shape;

static lzs_llama_token_data *data; /* exactly as long as the array, so that ASan sees a step past its end */

static lzs_llama_token_data_array new_array(size_t n, bool sorted) {
    free(data);
    data = malloc(n ? n * sizeof *data : 1);
    CHECK(data);
    return (lzs_llama_token_data_array){data, n, -1, sorted};
}

static lzs_llama_token_data_array candidates_of(const float *row, shape shape, uint64_t seed) {
    int32_t ids[N_VOCAB];
    size_t n = shape == TRUNCATED ? 17 : shape == ONE ? 1 : N_VOCAB;
    uint64_t state = seed;
    for (int32_t i = 0; i < N_VOCAB; i++) ids[i] = shape == REVERSED ? N_VOCAB - 1 - i : i;
    for (int32_t i = N_VOCAB - 1; i > 0 && shape != FULL && shape != REVERSED; i--) {
        int32_t j = random_below(&state, i + 1), id = ids[i];
        ids[i] = ids[j];
        ids[j] = id;
    }
    lzs_llama_token_data_array c = new_array(n, shape == FULL);
    for (size_t i = 0; i < n; i++) data[i] = (lzs_llama_token_data){ids[i], row[ids[i]], 0.25f};
    return c;
}

static void random_row(float *row, uint64_t *state) {
    for (int32_t i = 0; i < N_VOCAB; i++) row[i] = (float)(10.0 * random_unit(state) - 5.0);
}

static lzs_params some_params(void) {
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.5f;
    p.lz_min_match = 2;
    p.repetition_penalty = 1.3f;
    p.presence_penalty = 0.2f;
    p.temperature = 0.8f;
    p.top_k = 20;
    p.top_p = 0.95f;
    p.min_p = 0.01f;
    p.seed = 4;
    return p;
}

static void accept_some(lzs_llama_sampler *member, lzs_sampler *twin, int n, uint64_t seed) {
    uint64_t state = seed;
    for (int i = 0; i < n; i++) {
        int32_t token = random_below(&state, 6);
        member->iface->accept(member, token);
        if (twin) CHECK(lzs_accept(twin, token) == LZS_OK);
    }
}

/* ---- tests ---- */

static void test_interface(void) {
    lzs_params p = some_params();
    lzs_sampler *s;
    void *member = &p;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    CHECK(lzs_chain_sampler_new(s, LZS_CHAIN_SAMPLER, NULL, &member) == LZS_EINVAL && member == NULL);
    CHECK(lzs_chain_sampler_new(s, 2, host_init_address(), &member) == LZS_EINVAL && member == NULL);
    CHECK(lzs_chain_sampler_new(s, -1, host_init_address(), &member) == LZS_EINVAL && member == NULL);
    host_is_out_of_memory = true;
    CHECK(lzs_chain_sampler_new(s, LZS_CHAIN_SAMPLER, host_init_address(), &member) == LZS_ENOMEM && member == NULL);
    host_is_out_of_memory = false;
    lzs_sampler_free(s);

    const char *names[2];
    for (int32_t kind = 0; kind < 2; kind++) {
        lzs_llama_sampler *l = new_member(&p, kind);
        const lzs_llama_sampler_i *i = l->iface;
        CHECK(i->name && i->accept && i->apply && i->reset && i->clone && i->free);
        CHECK(!i->backend_init && !i->backend_accept && !i->backend_apply && !i->backend_set_input && !i->backend_reset);
        CHECK(i->copy_state);
        for (int m = 0; m < LZS_LLAMA_MEMBERS - 12; m++) CHECK(i->spare[m] == NULL);
        CHECK(sizeof *i == LZS_LLAMA_MEMBERS * sizeof(void *));
        names[kind] = i->name(l);
        CHECK(names[kind] && *names[kind]);

        host_is_out_of_memory = true;
        CHECK(i->clone(l) == NULL); /* without a leak */
        host_is_out_of_memory = false;
        host_free(l);
    }
    CHECK(strcmp(names[0], names[1]) != 0);
}

/* Each candidate gets exactly the edit of its token, wherever it stands; nothing else changes. */
static void test_penalties(void) {
    lzs_params p = some_params();
    uint64_t state = 1;
    for (int r = 0; r < 20 * N_SHAPES; r++) {
        lzs_llama_sampler *member = new_member(&p, LZS_CHAIN_PENALTIES);
        accept_some(member, NULL, r, 7);
        lzs_sampler *s = lzs_chain_sampler_inner(member);
        CHECK(lzs_position(s) == (uint64_t)r);
        float row[N_VOCAB], edited[N_VOCAB];
        random_row(row, &state);
        memcpy(edited, row, sizeof row);
        size_t n;
        const lzs_edit *edits = lzs_edits(s, &n);
        for (size_t i = 0; i < n; i++) {
            float *x = &edited[edits[i].token];
            *x = (*x > 0 ? *x / edits[i].repeat : *x * edits[i].repeat) + edits[i].bias;
        }
        for (int twice = 0; twice < 2; twice++) { /* apply does not change the state */
            lzs_llama_token_data_array c = candidates_of(row, (shape)(r % N_SHAPES), state);
            lzs_llama_token_data before[N_VOCAB];
            size_t size = c.size;
            memcpy(before, data, size * sizeof *data);
            member->iface->apply(member, &c);
            CHECK(c.size == size && c.data == data && c.selected == -1 && (n == 0 || !c.sorted));
            for (size_t i = 0; i < size; i++) {
                CHECK(data[i].id == before[i].id && data[i].p == before[i].p && data[i].logit == edited[data[i].id]);
            }
        }
        CHECK(lzs_chain_sampler_status(member) == LZS_OK);
        host_free(member);
    }
}

/* The sampler selects what lzs_sample picks from the same row with -inf where a token is no candidate. */
static void test_sampler(void) {
    uint64_t state = 2;
    for (int r = 0; r < 40 * N_SHAPES; r++) {
        lzs_params p = some_params();
        if (r % 3 == 0) p.temperature = 0.0f;
        lzs_llama_sampler *member = new_member(&p, LZS_CHAIN_SAMPLER);
        lzs_sampler *twin;
        CHECK(lzs_sampler_new(N_VOCAB, &p, &twin) == LZS_OK);
        accept_some(member, twin, r % 60, 8);
        float row[N_VOCAB], dense[N_VOCAB], probabilities[N_VOCAB];
        int32_t ids[N_VOCAB], token;
        size_t n;
        random_row(row, &state);
        if (r % 5 == 0) row[random_below(&state, N_VOCAB)] = -INFINITY;
        for (int twice = 0; twice < 2; twice++) {
            lzs_llama_token_data_array c = candidates_of(row, (shape)(r % N_SHAPES), state);
            for (int32_t t = 0; t < N_VOCAB; t++) dense[t] = -INFINITY;
            for (size_t i = 0; i < c.size; i++) dense[data[i].id] = data[i].logit;
            if (r % N_SHAPES == ONE && dense[data[0].id] == -INFINITY) continue;
            CHECK(lzs_sample(twin, dense, &token) == LZS_OK);
            CHECK(lzs_distribution(twin, dense, ids, probabilities, N_VOCAB, &n) == LZS_OK);
            member->iface->apply(member, &c);
            CHECK(c.size == n && c.selected >= 0 && (size_t)c.selected < n && data[c.selected].id == token);
            for (size_t i = 0; i < n; i++) {
                size_t at = 0;
                while (at < n && ids[at] != data[i].id) at++;
                CHECK(at < n && fabsf(data[i].p - probabilities[at]) < 1e-5f && data[i].logit > -INFINITY);
            }
        }
        CHECK(lzs_chain_sampler_status(member) == LZS_OK);
        lzs_sampler_free(twin);
        host_free(member);
    }
}

static void test_clone_and_reset(void) {
    lzs_params p = some_params();
    for (int32_t kind = 0; kind < 2; kind++) {
        lzs_llama_sampler *member = new_member(&p, kind);
        accept_some(member, NULL, 30, 9);
        lzs_llama_sampler *clone = member->iface->clone(member);
        CHECK(clone && clone != member && clone->ctx != member->ctx && clone->iface == member->iface);
        accept_some(clone, NULL, 2, 10);
        member->iface->reset(member);
        CHECK(lzs_position(lzs_chain_sampler_inner(clone)) == 32 && lzs_position(lzs_chain_sampler_inner(member)) == 0);
        size_t n;
        lzs_edits(lzs_chain_sampler_inner(member), &n);
        CHECK(n == 0);
        lzs_edits(lzs_chain_sampler_inner(clone), &n);
        CHECK(n == 6);
        host_free(member);
        lzs_llama_sampler *again = clone->iface->clone(clone); /* a clone of a clone, after its origin is gone */
        host_free(clone);
        CHECK(lzs_position(lzs_chain_sampler_inner(again)) == 32);
        host_free(again);
    }
}

/* A copy takes over text, settings and status, and the sampler inside stays the same object. */
static void test_copy(void) {
    lzs_params p = some_params(), other = p, fixed = p;
    other.temperature = 0.3f;
    other.seed = 9;
    fixed.lz_window = 100;
    for (int32_t kind = 0; kind < 2; kind++) {
        lzs_llama_sampler *from = new_member(&other, kind), *to = new_member(&p, kind), *differs = new_member(&fixed, kind);
        lzs_sampler *inner = lzs_chain_sampler_inner(to), *source = lzs_chain_sampler_inner(from);
        accept_some(from, NULL, 40, 12);
        accept_some(to, NULL, 25, 13);
        from->iface->accept(from, N_VOCAB);
        host_copy(from, to);
        CHECK(lzs_chain_sampler_inner(to) == inner && lzs_position(inner) == 40);
        CHECK(lzs_chain_sampler_status(to) == LZS_EINVAL && lzs_chain_sampler_status(to) == LZS_OK);
        uint64_t state = 14;
        for (int i = 0; i < 40; i++) {
            float row[N_VOCAB];
            int32_t token, expected;
            random_row(row, &state);
            CHECK(lzs_step(inner, row, &token, NULL) == LZS_OK && lzs_step(source, row, &expected, NULL) == LZS_OK);
            CHECK(token == expected);
        }
        accept_some(differs, NULL, 3, 15);
        host_copy(from, differs);
        CHECK(lzs_chain_sampler_status(differs) == LZS_EINVAL && lzs_position(lzs_chain_sampler_inner(differs)) == 3);
        host_free(from); /* the copy needs nothing of it */
        CHECK(lzs_accept(inner, 1) == LZS_OK && lzs_position(inner) == 81);
        host_free(to);
        host_free(differs);
    }
}

static lzs_llama_token_data_array array_of(size_t n, const int32_t *ids, const float *logits) {
    lzs_llama_token_data_array c = new_array(n, false);
    for (size_t i = 0; i < n; i++) data[i] = (lzs_llama_token_data){ids[i], logits[i], 0.0f};
    return c;
}

/* Whatever comes, the array that leaves has a selected candidate, and not every logit is -inf unless all were. */
static void test_adversaries(void) {
    static const struct {
        size_t n;
        int32_t ids[3];
        float logits[3];
        lzs_status status; /* of LZS_CHAIN_SAMPLER */
        int32_t token;     /* -1 = any */
    } cases[] = {
        {3, {0, 1, 2}, {-INFINITY, -INFINITY, -INFINITY}, LZS_EMASKED, -1},
        {3, {0, 1, 2}, {NAN, NAN, NAN}, LZS_ENAN, -1},
        {3, {0, 1, 2}, {NAN, 1.0f, -INFINITY}, LZS_ENAN, 1},
        {2, {2, 1}, {-INFINITY, NAN}, LZS_ENAN, -1},
        {3, {7, 1, 2}, {1.0f, INFINITY, 2.0f}, LZS_OK, 1},
        {3, {7, 3, 9}, {-FLT_MAX, -INFINITY, -INFINITY}, LZS_OK, 7},
        {3, {0, N_VOCAB, 2}, {1.0f, 3.0f, 2.0f}, LZS_EINVAL, N_VOCAB},
        {3, {0, 1, -1}, {1.0f, 3.0f, 2.0f}, LZS_EINVAL, 1},
        {3, {0, 1, INT32_MAX}, {1.0f, NAN, 2.0f}, LZS_EINVAL, INT32_MAX},
        {2, {INT32_MIN, INT32_MAX}, {NAN, 0.0f}, LZS_EINVAL, INT32_MAX},
        {3, {5, 6, 7}, {NAN, -INFINITY, -INFINITY}, LZS_ENAN, 6},
    };
    lzs_params p = some_params();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int32_t kind = 0; kind < 2; kind++) {
            lzs_llama_sampler *member = new_member(&p, kind);
            accept_some(member, NULL, 40, 11);
            lzs_llama_token_data_array c = array_of(cases[i].n, cases[i].ids, cases[i].logits);
            member->iface->apply(member, &c);
            if (kind == LZS_CHAIN_PENALTIES) {
                CHECK(c.size == cases[i].n && lzs_chain_sampler_status(member) == LZS_OK);
                for (size_t j = 0; j < c.size; j++) {
                    bool was_empty = cases[i].logits[j] == -INFINITY;
                    CHECK(data[j].id == cases[i].ids[j] && was_empty == (data[j].logit == -INFINITY));
                }
            } else {
                CHECK(c.size > 0 && c.selected >= 0 && (size_t)c.selected < c.size);
                CHECK(cases[i].token == -1 || data[c.selected].id == cases[i].token);
                lzs_status status = lzs_chain_sampler_status(member);
                CHECK(status == cases[i].status || (status == LZS_ENAN && cases[i].status == LZS_EINVAL));
                CHECK(lzs_chain_sampler_status(member) == LZS_OK); /* reported once */
                if (status != LZS_OK && cases[i].token != 1) CHECK(c.size == cases[i].n);
            }
            host_free(member);
        }
    }
    lzs_llama_sampler *member = new_member(&p, LZS_CHAIN_SAMPLER);
    lzs_llama_token_data_array none = new_array(0, false);
    member->iface->apply(member, &none);
    CHECK(none.size == 0 && none.selected == -1);
    member->iface->accept(member, N_VOCAB); /* not a token: the status says so, and the history is as it was */
    CHECK(lzs_chain_sampler_status(member) == LZS_EINVAL && lzs_position(lzs_chain_sampler_inner(member)) == 0);
    member->iface->accept(member, -1);
    member->iface->reset(member); /* forgets errors, too */
    CHECK(lzs_chain_sampler_status(member) == LZS_OK);
    host_free(member);
}

/* Penalties so strong that logits leave the float range make candidates unlikely, never impossible. */
static void test_strong_penalties(void) {
    lzs_params p = some_params();
    p.lz_penalty = FLT_MAX;
    p.presence_penalty = FLT_MAX;
    p.repetition_penalty = FLT_MAX;
    for (int32_t kind = 0; kind < 2; kind++) {
        lzs_llama_sampler *member = new_member(&p, kind);
        accept_some(member, NULL, 200, 12);
        static const int32_t ids[] = {0, 1, 2, 3, 4, 5};
        static const float logits[] = {5.0f, -5.0f, 0.0f, FLT_MAX, -FLT_MAX, 1.0f};
        lzs_llama_token_data_array c = array_of(6, ids, logits);
        member->iface->apply(member, &c);
        CHECK(c.size > 0);
        for (size_t i = 0; i < c.size; i++) CHECK(fabsf(data[i].logit) <= FLT_MAX);
        if (kind == LZS_CHAIN_SAMPLER) CHECK(c.selected >= 0 && (size_t)c.selected < c.size);
        CHECK(lzs_chain_sampler_status(member) == LZS_OK);
        host_free(member);
    }
}

/* A grammar forbids in the place of the penalties, follows what is accepted, and is shared by clones. */
static void test_grammar(void) {
    uint8_t bytes[N_VOCAB], kinds[N_VOCAB] = {LZS_TOKEN_END};
    uint64_t ends[N_VOCAB];
    for (size_t i = 0; i < N_VOCAB; i++) {
        bytes[i] = (uint8_t)('A' + i);
        ends[i] = i + 1;
    }
    lzs_vocabulary *v;
    lzs_grammar *g;
    lzs_sampler *s;
    void *made;
    CHECK(lzs_vocabulary_new(N_VOCAB, bytes, ends, kinds, &v) == LZS_OK);
    CHECK(lzs_grammar_new_regex("B(C|D)", 6, v, 0, NULL, &g) == LZS_OK);
    lzs_params p = some_params();
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK && lzs_sampler_set_grammar(s, g) == LZS_OK);
    CHECK(lzs_chain_sampler_new(s, LZS_CHAIN_PENALTIES, host_init_address(), &made) == LZS_OK);
    lzs_sampler_free(s);
    lzs_llama_sampler *member = made;
    static const int32_t ids[] = {4, 3, 2, 1, 0, N_VOCAB, -1};
    static const float logits[] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 9.0f, 9.0f};
    static const uint32_t allowed[] = {1 << 1, 1 << 2 | 1 << 3, 1 << 0, 1 << 0}; /* behind 0, 1, 2 and 3 tokens */
    static const int32_t accepted[] = {1, 3, 0};
    for (size_t step = 0; step < 4; step++) {
        for (size_t again = 0; again < 2; again++) { /* apply changes no state */
            lzs_llama_sampler *clone = member->iface->clone(member);
            lzs_llama_token_data_array c = array_of(7, ids, logits);
            clone->iface->apply(clone, &c);
            for (size_t i = 0; i < 7; i++) CHECK((data[i].logit > -INFINITY) == (i < 5 && allowed[step] >> ids[i] & 1));
            CHECK(lzs_chain_sampler_status(clone) == LZS_OK);
            host_free(clone);
        }
        if (step < 3) member->iface->accept(member, accepted[step]);
    }
    lzs_llama_token_data_array none = array_of(2, ids, logits); /* tokens 4 and 3, and only the end is allowed */
    member->iface->apply(member, &none);
    CHECK(lzs_chain_sampler_status(member) == LZS_EMASKED);
    member->iface->reset(member);
    none = array_of(5, ids, logits);
    member->iface->apply(member, &none);
    CHECK(data[3].logit > -INFINITY && data[2].logit == -INFINITY && lzs_chain_sampler_status(member) == LZS_OK);
    host_free(member);
    lzs_grammar_free(g);
    lzs_vocabulary_free(v);
}

/* Penalties forbid what a mask of the user forbids, with a grammar and without. */
static void test_mask(void) {
    static const int32_t ids[] = {4, 3, 2, 1};
    static const float logits[] = {1.0f, 1.0f, 1.0f, 1.0f};
    static const uint32_t mask[] = {1 << 2 | 1 << 4, 0}, none[] = {0, 1};
    lzs_params p = some_params();
    lzs_llama_sampler *member = new_member(&p, LZS_CHAIN_PENALTIES);
    lzs_sampler *inner = lzs_chain_sampler_inner(member);
    CHECK(lzs_set_mask(inner, LZS_MASK_USER, mask, 2) == LZS_OK);
    lzs_llama_token_data_array c = array_of(4, ids, logits);
    member->iface->apply(member, &c);
    for (size_t i = 0; i < 4; i++) CHECK((data[i].logit > -INFINITY) == (ids[i] == 2 || ids[i] == 4));
    CHECK(lzs_chain_sampler_status(member) == LZS_OK);
    CHECK(lzs_set_mask(inner, LZS_MASK_USER, none, 2) == LZS_OK);
    c = array_of(4, ids, logits);
    member->iface->apply(member, &c);
    CHECK(lzs_chain_sampler_status(member) == LZS_EMASKED);
    host_free(member);
}

int main(void) {
    test_interface();
    test_penalties();
    test_sampler();
    test_clone_and_reset();
    test_copy();
    test_adversaries();
    test_strong_penalties();
    test_grammar();
    test_mask();
    free(data);
    return 0;
}
