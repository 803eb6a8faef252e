/* test_alloc.c - the promises about memory: what never allocates, what a failed allocation leaves behind, and that
 * nothing leaks. The linker's --wrap sends the library's malloc family through the counters here, under ASan too. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "allocations.h"
#include "check.h"
#include "llama/abi.h"
#include "lzsampler_explain.h"
#include "lzsampler_llama.h"

enum { N_VOCAB = 300, N_WORDS = (N_VOCAB + 31) / 32 };

static float logits[N_VOCAB];
static bool by_the_paper; /* the LZ penalty, or by the default rule */

static lzs_params everything_on(void) {
    static const int32_t exempt[] = {3, 1, 2};
    static const uint32_t separators[N_WORDS] = {0x0e}, commas[N_WORDS] = {0x30};
    static const lzs_logit_bias bias[] = {{7, 1.0f}, {200, -2.0f}};
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.15f;
    p.lz_window = 64;
    p.lz_buffer = 8;
    if (by_the_paper) {
        p.lz_rule = LZS_RULE_PAPER;
    } else {
        p.lz_min_match = 3;
        p.lz_run_penalty = 0.1f;
        p.lz_run_allowance = 5;
        p.lz_separators = separators;
        p.lz_commas = commas;
        p.n_lz_separators = p.n_lz_commas = N_WORDS;
    }
    p.repetition_penalty = 1.1f;
    p.frequency_penalty = 0.1f;
    p.history = LZS_HISTORY_ALL;
    p.loop_max_pattern = 9;
    p.loop_min_pattern = 1;
    p.loop_min_count = 2;
    p.stuck_threshold = 40;
    p.stuck_ngram = 2;
    p.stuck_window = 200;
    p.top_k = 100;
    p.top_p = 0.95f;
    p.min_p = 0.01f;
    p.exempt = exempt;
    p.n_exempt = 3;
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    p.dry_multiplier = 0.5f;
    p.dry_penalty_last_n = 2000;
    p.dry_breakers = exempt;
    p.n_dry_breakers = 2;
    return p;
}

/* What a sampler would do next, as one number. */
static uint64_t fingerprint(lzs_sampler *s) {
    int32_t ids[N_VOCAB];
    float probabilities[N_VOCAB];
    size_t n, n_edits;
    const lzs_edit *edits = lzs_edits(s, &n_edits);
    lzs_loop loop = {0, 0, 0};
    uint64_t sum = lzs_position(s) * 31 + n_edits;
    if (lzs_loop_found(s, &loop)) sum += (loop.start * 1000003u + (uint64_t)loop.period) * 1000003u + (uint64_t)loop.count;
    lzs_stuck stuck = {0, 0};
    if (lzs_stuck_found(s, &stuck)) sum += stuck.start * 1000003u + stuck.end;
    for (size_t i = 0; i < n_edits; i++) { /* in no particular order */
        uint32_t bias, repeat;
        memcpy(&bias, &edits[i].bias, 4);
        memcpy(&repeat, &edits[i].repeat, 4);
        sum += ((uint64_t)edits[i].token * 1000003u + bias) * 1000003u + repeat;
    }
    CHECK(lzs_distribution(s, logits, ids, probabilities, N_VOCAB, &n) == LZS_OK);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &probabilities[i], 4);
        sum = (sum * 1000003u + (uint32_t)ids[i]) * 1000003u + bits;
    }
    return sum;
}

static void test_sample_never_allocates(void) {
    lzs_params p = everything_on();
    lzs_sampler *s;
    uint32_t mask[(N_VOCAB + 31) / 32];
    int32_t ids[N_VOCAB], token;
    float probabilities[N_VOCAB], row[N_VOCAB];
    uint64_t bytes[1024];
    lzs_plan plan;
    size_t n;
    memset(mask, 0xf7, sizeof mask);
    long at_start = n_allocations;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK && lzs_set_mask(s, LZS_MASK_USER, mask, sizeof mask / 4) == LZS_OK);
    CHECK(lzs_borrow_mask(s, LZS_MASK_GRAMMAR, mask, sizeof mask / 4) == LZS_OK);
    CHECK(n_allocations > at_start + 3); /* the counter counts */
    uint64_t state = 1;
    for (int i = 0; i < 400; i++) {
        CHECK(lzs_accept(s, random_below(&state, N_VOCAB)) == LZS_OK);
        long before = n_allocations;
        if (i % 7 == 0 && i) CHECK(lzs_rewind(s, (size_t)random_below(&state, 3)) == LZS_OK);
        memcpy(row, logits, sizeof row);
        CHECK(lzs_sample(s, row, &token) == LZS_OK && lzs_process(s, row, row) == LZS_OK);
        CHECK(lzs_distribution(s, logits, ids, probabilities, N_VOCAB, &n) == LZS_OK);
        CHECK(lzs_edits(s, &n) && lzs_rewind(s, 0) == LZS_OK);
        p.temperature = 1.0f + (float)(i % 3);
        p.seed = (uint64_t)i;
        CHECK(lzs_sampler_set_params(s, &p) == LZS_OK && lzs_sampler_plan(s, &plan) == LZS_OK);
        CHECK(lzs_plan_size(&plan) <= sizeof bytes && lzs_plan_write(&plan, bytes, sizeof bytes) == LZS_OK);
        CHECK(lzs_plan_read(bytes, lzs_plan_size(&plan), &plan) == LZS_OK);
        CHECK(n_allocations == before);
    }
    lzs_sampler_free(s);
    CHECK(n_live == 0);
}

/* In the steady state of a window, accept does not allocate either but for the text itself and what two watches keep of each token,
 * which double. */
static void test_accept_is_amortised(void) {
    lzs_params p = everything_on();
    p.penalty_window = 64;
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    uint64_t state = 2;
    for (int i = 0; i < 1000; i++) CHECK(lzs_accept(s, random_below(&state, N_VOCAB)) == LZS_OK);
    long before = n_allocations;
    for (int i = 0; i < 100000; i++) CHECK(lzs_accept(s, random_below(&state, N_VOCAB)) == LZS_OK);
    CHECK(n_allocations - before < 3 * 10);
    lzs_sampler_free(s);
    CHECK(n_live == 0);
}

static lzs_llama_sampler *fake_init(const lzs_llama_sampler_i *iface, void *ctx) {
    lzs_llama_sampler *member = malloc(sizeof *member);
    if (member) *member = (lzs_llama_sampler){iface, ctx};
    return member;
}

static void *fake_init_address(void) {
    lzs_llama_sampler *(*init)(const lzs_llama_sampler_i *, void *) = fake_init;
    void *address;
    memcpy(&address, &init, sizeof address);
    return address;
}

static void free_member(lzs_llama_sampler *member) {
    member->iface->free(member);
    free(member);
}

typedef enum operation {
    NEW,
    CLONE,
    ACCEPT,
    PRIME,
    SET_MASK,
    LZ_BITS,
    CODE_LENGTH,
    CHAIN_PENALTIES,
    CHAIN_SAMPLER,
    GRAPH_SAMPLER,
    N_OPERATIONS
} operation;

/* The graph sampler: none of these functions but the first is called where it is made. */
static lzs_status new_graph_sampler(lzs_sampler *s, void **made) {
    lzs_graph_functions functions;
    void *address = fake_init_address();
    for (size_t at = 0; at < sizeof functions; at += sizeof address) memcpy((char *)&functions + at, &address, sizeof address);
    functions.size = sizeof functions;
    return lzs_graph_sampler_new(s, &functions, LZS_GRAPH_CHAIN, 100, 1, made);
}

static lzs_status run(operation op, lzs_sampler *s, void **made) {
    static int32_t prompt[700], tokens[700];
    static float bits[700];
    uint32_t mask[(N_VOCAB + 31) / 32];
    size_t n;
    double length;
    memset(mask, 0xfe, sizeof mask);
    for (int32_t i = 0; i < 700; i++) prompt[i] = i * 17 % N_VOCAB;
    switch (op) {
    case NEW: {
        lzs_params p = everything_on();
        return lzs_sampler_new(N_VOCAB, &p, (lzs_sampler **)made);
    }
    case CLONE: return lzs_sampler_clone(s, (lzs_sampler **)made);
    case ACCEPT: return lzs_accept(s, 299);
    case PRIME: return lzs_prime(s, prompt, 700);
    case SET_MASK: return lzs_set_mask(s, LZS_MASK_USER, mask, sizeof mask / 4);
    case LZ_BITS: return lzs_lz_bits(prompt, 700, N_VOCAB, 512, 3, LZS_LZ_RATE, tokens, bits, 700, &n);
    case CODE_LENGTH: return lzs_code_length(prompt, 700, N_VOCAB, 512, 32, &length);
    case CHAIN_PENALTIES: return lzs_chain_sampler_new(s, LZS_CHAIN_PENALTIES, fake_init_address(), made);
    case CHAIN_SAMPLER: return lzs_chain_sampler_new(s, LZS_CHAIN_SAMPLER, fake_init_address(), made);
    default: return new_graph_sampler(s, made);
    }
}

/* A sampler with a text before it; for ACCEPT one at whose next token every list must grow: the text with what is known of each
 * token, the token table with its slots, what penalties find, and the edits. It accepts 299 again, which completes a loop. */
static lzs_sampler *full_sampler(operation op) {
    enum { ROOM = 65, SLOTS = 8 }; /* tokens of the first text, and distinct ones of a table that is full */
    const int32_t n = op == PRIME ? 0 : op == ACCEPT ? ROOM : 100;
    lzs_params p = everything_on();
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    uint32_t mask[(N_VOCAB + 31) / 32];
    memset(mask, 0xbf, sizeof mask);
    if (op == CLONE) CHECK(lzs_set_mask(s, LZS_MASK_USER, mask, sizeof mask / 4) == LZS_OK);
    for (int32_t t = 0; t < n; t++) {
        const int32_t token = op != ACCEPT ? t : t == n - 1 ? 299 : t % (SLOTS - 1);
        CHECK(lzs_accept(s, token) == LZS_OK);
    }
    return s;
}

/* Fails each allocation of an operation in turn; returns how many there were. */
static int test_failures(operation op) {
    for (int fail = 0;; fail++) {
        lzs_sampler *s = full_sampler(op);
        uint64_t before = fingerprint(s);
        long live = n_live;
        void *made = &made;
        fail_after = fail;
        lzs_status status = run(op, s, &made);
        bool failed = fail_after < 0;
        fail_after = -1;
        CHECK(status == (failed ? LZS_ENOMEM : LZS_OK));
        if (failed) {
            bool makes = op == NEW || op == CLONE || op >= CHAIN_PENALTIES;
            CHECK(!makes || (made == NULL && n_live == live));
            CHECK(fingerprint(s) == before);
            CHECK(run(op, s, &made) == LZS_OK); /* and once there is memory it works as if nothing had been */
        }
        lzs_sampler *untroubled = full_sampler(op);
        void *made_untroubled = NULL;
        CHECK(run(op, untroubled, &made_untroubled) == LZS_OK);
        CHECK(fingerprint(s) == fingerprint(untroubled));
        if (op == NEW || op == CLONE) {
            CHECK(fingerprint(made) == fingerprint(made_untroubled));
            lzs_sampler_free(made);
            lzs_sampler_free(made_untroubled);
        } else if (op >= CHAIN_PENALTIES) {
            free_member(made);
            free_member(made_untroubled);
        }
        lzs_sampler_free(s);
        lzs_sampler_free(untroubled);
        CHECK(n_live == 0);
        if (!failed) return fail;
    }
}

/* A copy that finds no memory leaves the target as after a reset, and the origin as it was. */
static void test_copy_failures(void) {
    for (int fail = 0;; fail++) {
        lzs_sampler *from = full_sampler(CLONE), *to = full_sampler(NEW), *empty;
        lzs_params p = everything_on();
        CHECK(lzs_sampler_new(N_VOCAB, &p, &empty) == LZS_OK);
        for (int32_t i = 0; i < 3000; i++) CHECK(lzs_accept(from, i % 299) == LZS_OK);
        uint64_t origin = fingerprint(from);
        fail_after = fail;
        lzs_status status = lzs_sampler_copy(to, from);
        bool failed = fail_after < 0;
        fail_after = -1;
        CHECK(status == (failed ? LZS_ENOMEM : LZS_OK) && fingerprint(from) == origin);
        CHECK(fingerprint(to) == (failed ? fingerprint(empty) : origin));
        CHECK(lzs_sampler_copy(to, from) == LZS_OK && fingerprint(to) == origin);
        lzs_sampler_free(from);
        lzs_sampler_free(to);
        lzs_sampler_free(empty);
        CHECK(n_live == 0);
        if (failed) continue;
        CHECK(fail >= 7);
        return;
    }
}

static void test_backend_failures(void) {
    lzs_backend *b = NULL;
    for (int fail = 0; !b; fail++) {
        fail_after = fail;
        lzs_status status = lzs_backend_new(N_VOCAB, 10, &b);
        fail_after = -1;
        CHECK(status == (b ? LZS_OK : LZS_ENOMEM) && (b || n_live == 0) && fail < 20);
    }
    CHECK(lzs_backend_memory(b) == live_bytes);
    lzs_backend_free(b);
    CHECK(n_live == 0);
}

/* An explanation asks for one row of memory, gives it back, and is refused without it; nothing changes. */
static void test_explain_failure(void) {
    lzs_sampler *s = full_sampler(CLONE);
    lzs_explanation made;
    int32_t token = 3;
    long live = n_live;
    fail_after = 0;
    CHECK(lzs_explain(s, logits, &token, 1, &made) == LZS_ENOMEM);
    fail_after = -1;
    long before = n_allocations;
    CHECK(lzs_explain(s, logits, &token, 1, &made) == LZS_OK && n_allocations == before + 1 && n_live == live);
    lzs_sampler_free(s);
    CHECK(n_live == 0);
}

/* lzs_memory is what was allocated, to the byte, at every moment of a text. */
static void test_memory(void) {
    lzs_params p = everything_on();
    lzs_sampler *s;
    uint32_t mask[(N_VOCAB + 31) / 32];
    int32_t prompt[100] = {0};
    uint64_t state = 5;
    memset(mask, 0xef, sizeof mask);
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK && lzs_memory(s) == live_bytes);
    CHECK(lzs_prime(s, prompt, 100) == LZS_OK && lzs_memory(s) == live_bytes);
    for (int i = 0; i < 3000; i++) {
        CHECK(lzs_accept(s, random_below(&state, N_VOCAB)) == LZS_OK && lzs_memory(s) == live_bytes);
        if (i % 100 == 50) CHECK(lzs_set_mask(s, i % 200 == 50, mask, sizeof mask / 4) == LZS_OK);
        if (i % 100 == 60) CHECK(lzs_borrow_mask(s, i % 200 == 60, mask, sizeof mask / 4) == LZS_OK);
        if (i % 100 == 90) CHECK(lzs_rewind(s, 55) == LZS_OK);
        CHECK(lzs_memory(s) == live_bytes);
    }
    lzs_sampler_reset(s);
    CHECK(lzs_memory(s) == live_bytes);
    lzs_sampler_free(s);
    CHECK(n_live == 0);
}

/* A clone takes no memory for lists and sets, whatever their length, and what they say outlives the origin. */
static void test_clone_shares_lists(void) {
    static int32_t many[N_VOCAB];
    static uint32_t all[N_WORDS];
    memset(all, 0xdb, sizeof all);
    for (int32_t t = 0; t < N_VOCAB; t++) many[t] = N_VOCAB - 1 - t;
    size_t taken[2];
    by_the_paper = false;
    for (int lists = 0; lists < 2; lists++) {
        lzs_params p = everything_on();
        p.exempt = p.dry_breakers = many;
        p.lz_separators = p.lz_commas = all;
        p.n_exempt = p.n_dry_breakers = lists ? N_VOCAB : 0;
        p.n_lz_separators = p.n_lz_commas = lists ? N_WORDS : 0;
        lzs_sampler *s, *clone, *again;
        CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
        for (int32_t i = 0; i < 500; i++) CHECK(lzs_accept(s, i * i % 90) == LZS_OK);
        size_t before = live_bytes;
        CHECK(lzs_sampler_clone(s, &clone) == LZS_OK);
        taken[lists] = live_bytes - before;
        CHECK(lzs_sampler_clone(clone, &again) == LZS_OK && live_bytes - before == 2 * taken[lists]);
        CHECK(lzs_sampler_copy(clone, s) == LZS_OK && live_bytes - before == 2 * taken[lists]);
        uint64_t expected = fingerprint(s);
        lzs_sampler_free(s);
        CHECK(fingerprint(clone) == expected);
        lzs_sampler_free(clone);
        CHECK(fingerprint(again) == expected);
        lzs_sampler_free(again);
        CHECK(n_live == 0);
    }
    CHECK(taken[0] == taken[1]);
}

/* A clone of a member of a chain that finds no memory is NULL and leaks nothing. */
static void test_member_clone_failures(int32_t kind) {
    lzs_sampler *s = full_sampler(CLONE);
    void *member;
    CHECK(lzs_chain_sampler_new(s, kind, fake_init_address(), &member) == LZS_OK);
    lzs_sampler_free(s);
    lzs_llama_sampler *original = member, *clone = NULL;
    for (int fail = 0; !clone; fail++) {
        long live = n_live;
        fail_after = fail;
        clone = original->iface->clone(original);
        fail_after = -1;
        CHECK(clone || n_live == live);
        CHECK(fail < 100);
    }
    free_member(clone);
    free_member(original);
    CHECK(n_live == 0);
}

/* Penalties in a chain need no memory, also for an array that is not in the order of ids. */
static void test_member_apply_never_allocates(void) {
    lzs_sampler *s = full_sampler(CLONE);
    void *member;
    CHECK(lzs_chain_sampler_new(s, LZS_CHAIN_PENALTIES, fake_init_address(), &member) == LZS_OK);
    lzs_sampler_free(s);
    lzs_llama_sampler *penalties = member;
    lzs_llama_token_data data[2] = {{60, 1.0f, 0.0f}, {5, 2.0f, 0.0f}};
    lzs_llama_token_data_array candidates = {data, 2, -1, false};
    long before = n_allocations;
    penalties->iface->apply(penalties, &candidates);
    CHECK(n_allocations == before && data[0].logit < 1.0f && data[1].logit < 2.0f);
    CHECK(lzs_chain_sampler_status(member) == LZS_OK);
    free_member(penalties);
    CHECK(n_live == 0);
}

static void test_all(void) {
    test_sample_never_allocates();
    test_accept_is_amortised();
    static const int at_least[N_OPERATIONS] = {7, 15, 7, 7, 1, 16, 1, 16, 17, 22};
    for (int op = 0; op < N_OPERATIONS; op++) {
        int n = test_failures((operation)op);
        if (n < at_least[op]) fprintf(stderr, "operation %d asked for memory %d times\n", op, n);
        CHECK(n >= at_least[op]);
    }
    test_copy_failures();
    test_backend_failures();
    test_explain_failure();
    test_memory();
    test_member_clone_failures(LZS_CHAIN_PENALTIES);
    test_member_clone_failures(LZS_CHAIN_SAMPLER);
    test_member_apply_never_allocates();
}

/* ---- speculation: memory at creation, and none for a block but the text's own ---- */

static lzs_speculation *speculation(lzs_sampler *s, int32_t mode) {
    static const int32_t ends[] = {4, 2};
    lzs_speculation *spec;
    CHECK(lzs_speculation_new(s, mode, 6, N_VOCAB, ends, 2, &spec) == LZS_OK);
    return spec;
}

static void test_speculation_memory(int32_t mode) {
    lzs_params p = everything_on();
    p.penalty_window = 64;
    lzs_sampler *s;
    lzs_verified v;
    const float *rows[] = {logits, logits, logits, logits, logits, logits, logits};
    int32_t token;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    for (int32_t i = 0; i < 1000; i++) CHECK(lzs_accept(s, i * 7 % N_VOCAB) == LZS_OK);
    lzs_speculation *none = NULL;
    for (int fail = 0; !none; fail++) {
        long live = n_live;
        fail_after = fail;
        lzs_status status = lzs_speculation_new(s, mode, 6, N_VOCAB, NULL, 0, &none);
        fail_after = -1;
        CHECK(status == (none ? LZS_OK : LZS_ENOMEM) && (none || n_live == live) && fail < 20);
    }
    lzs_speculation_free(none);
    size_t before_it = live_bytes;
    lzs_speculation *spec = speculation(s, mode);
    CHECK(lzs_speculation_memory(spec) == live_bytes - before_it);
    long before = n_allocations;
    for (int i = 0; i < 5000; i++) {
        for (int k = 0; k < i % 7; k++) CHECK(lzs_draft(spec, logits, 0.0f, &token) == LZS_OK);
        CHECK(lzs_verify(spec, rows, (size_t)(i % 7) + 1, &v) == LZS_OK);
    }
    CHECK(n_allocations - before < 3 * 10);
    lzs_speculation_free(spec);
    lzs_sampler_free(s);
    CHECK(n_live == 0);
}

/* A text that cannot grow: the draft is refused, and the block is as it was. */
static void test_draft_failures(int32_t mode) {
    lzs_params p = everything_on();
    const float *row = logits;
    lzs_verified v;
    int32_t token;
    int refused = 0;
    p.loop_max_pattern = p.stuck_threshold = 0;
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    lzs_speculation *spec = speculation(s, mode);
    for (int i = 0; i < 3000; i++) {
        uint64_t before = fingerprint(s);
        bool drafts = i % 3;
        fail_after = 0;
        lzs_status status = drafts ? lzs_draft(spec, logits, 0.0f, &token) : lzs_verify(spec, &row, 1, &v);
        bool failed = fail_after < 0;
        fail_after = -1;
        CHECK(status == (failed ? LZS_ENOMEM : LZS_OK));
        if (failed) CHECK(fingerprint(s) == before && (drafts ? token : v.token) == -1);
        refused += failed;
        if (failed && drafts) CHECK(lzs_draft(spec, logits, 0.0f, &token) == LZS_OK);
        if (failed && !drafts) CHECK(lzs_verify(spec, &row, 1, &v) == LZS_OK);
        if (drafts) { /* it stands, so that the text grows by drafts, too */
            const float *rows[] = {logits, logits};
            CHECK(lzs_verify(spec, rows, 2, &v) == LZS_OK);
        }
    }
    CHECK(refused > 5);
    lzs_speculation_free(spec);
    lzs_sampler_free(s);
    CHECK(n_live == 0);
}

/* A lookup that cannot grow finds what it found before. */
static void test_lookup_failures(void) {
    lzs_lookup *lookup = NULL;
    int32_t tokens[200], found[2];
    int refused = 0;
    for (int i = 0; i < 200; i++) tokens[i] = i % 7;
    fail_after = 0;
    CHECK(lzs_lookup_new(100, &lookup) == LZS_ENOMEM && lookup == NULL);
    fail_after = -1;
    CHECK(lzs_lookup_new(100, &lookup) == LZS_OK);
    CHECK(lzs_lookup_append(lookup, tokens, 20) == LZS_OK);
    for (int32_t at = 20, fail = 0; at < 200;) {
        fail_after = fail;
        lzs_status status = lzs_lookup_append(lookup, tokens + at, 1);
        fail_after = -1;
        refused += status == LZS_ENOMEM;
        at += status == LZS_OK;
        fail = status == LZS_OK ? 0 : fail + 1;
        CHECK(status == LZS_OK || status == LZS_ENOMEM);
        CHECK(lzs_lookup_find(lookup, 1, found, 2) == at - 7);
        CHECK(found[0] == at % 7 && found[1] == (at + 1) % 7);
    }
    CHECK(refused >= 2);
    lzs_lookup_free(lookup);
    CHECK(n_live == 0);
}

int main(void) {
    uint64_t state = 3;
    for (int i = 0; i < N_VOCAB; i++) logits[i] = (float)(8.0 * random_unit(&state) - 4.0);
    for (int rule = 0; rule < 2; rule++) {
        by_the_paper = rule;
        test_all();
    }
    test_clone_shares_lists();
    for (int32_t mode = LZS_SPEC_GUMBEL; mode <= LZS_SPEC_MATCH; mode++) {
        test_speculation_memory(mode);
        test_draft_failures(mode);
    }
    test_lookup_failures();
    return 0;
}
