/* test_llama_grammar.c - picking before the grammar, with a host of a few lines in the place of libllama: a chain of our
 * penalties, top-k and greedy, and a "grammar" that is a set of tokens. The slow order, as common_sampler has it, is the
 * oracle. The real libllama is in tests/test_dropin_grammar.py. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "llama/abi.h"
#include "lzsampler_llama.h"

enum { N_VOCAB = 3000, MEMBERS = 3 };

/* ---- the host ---- */

static float logits[N_VOCAB];
static bool in_grammar[N_VOCAB];
static float before[N_VOCAB]; /* the row as the host made it */
static int32_t top_k, n_accepted, grammar_asked, n_last_applied;
static bool selects_nothing;

static lzs_llama_sampler *host_init(const lzs_llama_sampler_i *iface, void *ctx) {
    lzs_llama_sampler *member = malloc(sizeof *member);
    CHECK(member);
    *member = (lzs_llama_sampler){iface, ctx};
    return member;
}

static void host_free(lzs_llama_sampler *member) {
    member->iface->free(member);
    free(member);
}

static float *get_logits(void *context, int32_t index) {
    CHECK(context == logits);
    return index == -1 ? logits : NULL;
}

static void apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    sampler->iface->apply(sampler, candidates);
}

static void accept(lzs_llama_sampler *sampler, int32_t token) {
    sampler->iface->accept(sampler, token);
}

static void nothing_accept(lzs_llama_sampler *sampler, int32_t token) {
    (void)sampler;
    (void)token;
    n_accepted++;
}

static int better(const void *a, const void *b) {
    const lzs_llama_token_data *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static void top_k_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    (void)sampler;
    qsort(candidates->data, candidates->size, sizeof *candidates->data, better);
    if (top_k > 0 && (size_t)top_k < candidates->size) candidates->size = (size_t)top_k;
}

/* Not greedy but the worst that truncation left, so that what it left matters. */
static void last_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    (void)sampler;
    int64_t last = -1;
    n_last_applied++;
    if (selects_nothing) return;
    for (size_t i = 0; i < candidates->size; i++) {
        if (candidates->data[i].logit > -INFINITY) last = (int64_t)i;
    }
    candidates->selected = last;
}

static void grammar_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    (void)sampler;
    /* The grammar may throw: the row must be whole meanwhile. A look at every 16th call is enough. */
    if (grammar_asked % 16 == 0) CHECK(!memcmp(before, logits, sizeof logits));
    for (size_t i = 0; i < candidates->size; i++) {
        grammar_asked++;
        if (!in_grammar[candidates->data[i].id]) candidates->data[i].logit = -INFINITY;
    }
}

static const lzs_llama_sampler_i top_k_interface = {.accept = nothing_accept, .apply = top_k_apply};
static const lzs_llama_sampler_i last_interface = {.accept = nothing_accept, .apply = last_apply};
static const lzs_llama_sampler_i grammar_interface = {.accept = nothing_accept, .apply = grammar_apply};
static lzs_llama_sampler top_k_member = {&top_k_interface, NULL}, last_member = {&last_interface, NULL};
static lzs_llama_sampler grammar = {&grammar_interface, NULL};
static lzs_llama_sampler *members[MEMBERS];

static void chain_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    (void)sampler;
    for (int i = 0; i < MEMBERS; i++) apply(members[i], candidates);
}

static void chain_accept(lzs_llama_sampler *sampler, int32_t token) {
    (void)sampler;
    for (int i = 0; i < MEMBERS; i++) accept(members[i], token);
}

static const lzs_llama_sampler_i chain_interface = {.accept = chain_accept, .apply = chain_apply};
static lzs_llama_sampler chain = {&chain_interface, NULL};

static lzs_llama_sampler *chain_get(lzs_llama_sampler *sampler, int32_t index) {
    CHECK(sampler == &chain && index >= 0 && index < MEMBERS);
    return members[index];
}

static int chain_n(const lzs_llama_sampler *sampler) {
    CHECK(sampler == &chain);
    return MEMBERS;
}

static lzs_llama_functions functions(void) {
    lzs_llama_functions f = {.size = sizeof f};
    float *(*a)(void *, int32_t) = get_logits;
    void (*b)(lzs_llama_sampler *, lzs_llama_token_data_array *) = apply;
    void (*c)(lzs_llama_sampler *, int32_t) = accept;
    lzs_llama_sampler *(*d)(lzs_llama_sampler *, int32_t) = chain_get;
    int (*e)(const lzs_llama_sampler *) = chain_n;
    memcpy(&f.get_logits_ith, &a, sizeof a);
    memcpy(&f.sampler_apply, &b, sizeof b);
    memcpy(&f.sampler_accept, &c, sizeof c);
    memcpy(&f.chain_get, &d, sizeof d);
    memcpy(&f.chain_n, &e, sizeof e);
    return f;
}

/* ---- the oracle: common_sampler_sample ---- */

static int32_t slow_pick(bool *refused) {
    static lzs_llama_token_data data[N_VOCAB];
    int32_t token = -1;
    *refused = false;
    for (int under_grammar = 0; under_grammar < 2; under_grammar++) {
        for (int32_t t = 0; t < N_VOCAB; t++) {
            bool out = under_grammar && !in_grammar[t];
            data[t] = (lzs_llama_token_data){t, out ? -INFINITY : logits[t], 0.0f};
        }
        lzs_llama_token_data_array candidates = {data, N_VOCAB, -1, false};
        chain_apply(&chain, &candidates);
        token = candidates.selected < 0 ? -1 : candidates.data[candidates.selected].id;
        if (token < 0 || in_grammar[token]) return token;
        *refused = true;
    }
    return -1;
}

/* ---- tests ---- */

static void *new_penalties(float strength) {
    lzs_params params;
    lzs_params_init(&params);
    params.lz_penalty = strength;
    lzs_sampler *s;
    void *member, *init;
    lzs_llama_sampler *(*f)(const lzs_llama_sampler_i *, void *) = host_init;
    memcpy(&init, &f, sizeof init);
    CHECK(lzs_sampler_new(N_VOCAB, &params, &s) == LZS_OK);
    CHECK(lzs_chain_sampler_new(s, LZS_CHAIN_PENALTIES, init, &member) == LZS_OK);
    lzs_sampler_free(s);
    return member;
}

static void random_logits(uint64_t *state, int kind) {
    for (int32_t t = 0; t < N_VOCAB; t++) {
        logits[t] = kind == 2 ? 1.0f : (float)(random_unit(state) * 20.0 - 10.0);
        if (kind == 1 && random_below(state, 50)) logits[t] = -INFINITY;
    }
}

/* Every pick is the oracle's, along a text; `alone` says whether the host says that only our penalties come first. */
static void test_picks(int32_t k, int allowed_of_1000, bool alone, int kind) {
    uint64_t state = (uint64_t)(k * 1000 + allowed_of_1000 * 4 + kind);
    void *penalties = new_penalties(0.5f);
    members[0] = penalties;
    members[1] = &top_k_member;
    members[2] = &last_member;
    top_k = k;
    lzs_llama_functions f = functions();
    lzs_llama_grammar *g;
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, alone ? penalties : NULL, 1, k, &g) == LZS_OK);
    uint64_t refused = 0;
    for (int step = 0; step < 25; step++) {
        random_logits(&state, kind);
        for (int32_t t = 0; t < N_VOCAB; t++) in_grammar[t] = random_below(&state, 1000) < allowed_of_1000;
        memcpy(before, logits, sizeof logits);
        bool was_refused;
        int32_t token, expected = slow_pick(&was_refused);
        CHECK(!memcmp(before, logits, sizeof logits));
        refused += was_refused;
        n_accepted = 0;
        lzs_status status = lzs_llama_grammar_sample(g, logits, -1, &token);
        CHECK(!memcmp(before, logits, sizeof logits)); /* left as they were */
        CHECK(token == expected);
        CHECK(status == (expected < 0 ? LZS_EMASKED : LZS_OK));
        CHECK(n_accepted == (expected < 0 ? 0 : MEMBERS)); /* top-k, last and the grammar; the penalties count by themselves */
        CHECK(lzs_llama_grammar_refused(g) == refused);
    }
    lzs_llama_grammar_free(g);
    host_free(penalties);
}

static void test_the_best_are_asked_in_order(void) {
    void *penalties = new_penalties(0.0f);
    members[0] = penalties;
    members[1] = &top_k_member;
    members[2] = &last_member;
    top_k = 1;
    for (int32_t t = 0; t < N_VOCAB; t++) {
        logits[t] = -(float)t;
        in_grammar[t] = t == 5;
    }
    lzs_llama_functions f = functions();
    lzs_llama_grammar *g;
    int32_t token;
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, penalties, 1, 1, &g) == LZS_OK);
    grammar_asked = 0;
    memcpy(before, logits, sizeof logits);
    CHECK(lzs_llama_grammar_sample(g, logits, -1, &token) == LZS_OK && token == 5);
    CHECK(grammar_asked == 1 + 6 + 1); /* the pick, tokens 0 to 5, the new pick: not the vocabulary */
    CHECK(lzs_llama_grammar_sample(g, logits, 0, &token) == LZS_EINVAL && token == -1); /* no logits there */
    lzs_llama_grammar_free(g);
    host_free(penalties);
}

/* Where the later samplers select nothing, the chain is not applied a second time to the same candidates: a random sampler
 * would draw twice. */
static void test_nothing_selected(void) {
    void *penalties = new_penalties(0.5f);
    lzs_llama_functions f = functions();
    lzs_llama_grammar *g;
    int32_t token;
    members[0] = penalties;
    members[1] = &top_k_member;
    members[2] = &last_member;
    top_k = 3;
    for (int32_t t = 0; t < N_VOCAB; t++) {
        logits[t] = -(float)t;
        in_grammar[t] = true;
    }
    memcpy(before, logits, sizeof logits);
    for (int alone = 0; alone < 2; alone++) {
        CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, alone ? penalties : NULL, 1, 3, &g) == LZS_OK);
        selects_nothing = true;
        n_last_applied = n_accepted = 0;
        CHECK(lzs_llama_grammar_sample(g, logits, -1, &token) == LZS_EINVAL && token == -1);
        CHECK(n_last_applied == 1 && n_accepted == 0);
        selects_nothing = false;
        CHECK(lzs_llama_grammar_sample(g, logits, -1, &token) == LZS_OK && token == 2);
        lzs_llama_grammar_free(g);
    }
    host_free(penalties);
}

/* What a grammar or a mask of the penalties' own forbids is not picked, whether the chain's truncation is known or not. */
static void test_a_grammar_inside(bool masked) {
    static uint8_t bytes[N_VOCAB], kinds[N_VOCAB] = {LZS_TOKEN_END};
    static uint64_t ends[N_VOCAB];
    static uint32_t mask[(N_VOCAB + 31) / 32];
    for (uint32_t i = 0; i < N_VOCAB; i++) {
        bytes[i] = (uint8_t)('a' + i % 5);
        ends[i] = i + 1;
        if (i % 3) mask[i / 32] |= 1u << i % 32;
        in_grammar[i] = i % 7 > 0;
    }
    lzs_vocabulary *v;
    lzs_grammar *own;
    CHECK(lzs_vocabulary_new(N_VOCAB, bytes, ends, kinds, &v) == LZS_OK);
    CHECK(lzs_grammar_new_regex("b*", 2, v, 0, NULL, &own) == LZS_OK);
    void *penalties = new_penalties(0.5f);
    lzs_sampler *inner = lzs_chain_sampler_inner(penalties);
    if (masked) {
        CHECK(lzs_set_mask(inner, LZS_MASK_USER, mask, sizeof mask / sizeof *mask) == LZS_OK);
    } else {
        CHECK(lzs_sampler_set_grammar(inner, own) == LZS_OK);
    }
    members[0] = penalties;
    members[1] = &top_k_member;
    members[2] = &last_member;
    lzs_llama_functions f = functions();
    uint64_t state = 4;
    for (int step = 0; step < 20; step++) {
        lzs_llama_grammar *g;
        top_k = step % 2 ? 1 : 20;
        CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, penalties, 1, top_k, &g) == LZS_OK);
        random_logits(&state, 0);
        memcpy(before, logits, sizeof logits);
        bool was_refused;
        int32_t token, expected = slow_pick(&was_refused);
        CHECK(expected >= 0 && (masked ? expected % 3 > 0 : expected % 5 == 1));
        CHECK(lzs_llama_grammar_sample(g, logits, -1, &token) == LZS_OK && token == expected);
        CHECK(lzs_chain_sampler_status(penalties) == LZS_OK);
        lzs_llama_grammar_free(g);
    }
    host_free(penalties);
    lzs_grammar_free(own);
    lzs_vocabulary_free(v);
}

static void test_arguments(void) {
    lzs_llama_functions f = functions(), missing = f, other = f;
    lzs_llama_grammar *g = (lzs_llama_grammar *)&f;
    missing.chain_n = NULL;
    other.size--;
    CHECK(lzs_llama_grammar_new(N_VOCAB, &other, &chain, &grammar, NULL, 1, 1, &g) == LZS_EINVAL && !g);
    g = (lzs_llama_grammar *)&f;
    CHECK(lzs_llama_grammar_new(N_VOCAB, &missing, &chain, &grammar, NULL, 1, 1, &g) == LZS_EINVAL && !g);
    CHECK(lzs_llama_grammar_new(0, &f, &chain, &grammar, NULL, 1, 1, &g) == LZS_EINVAL);
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, NULL, &grammar, NULL, 1, 1, &g) == LZS_EINVAL);
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, NULL, NULL, 1, 1, &g) == LZS_EINVAL);
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, NULL, -1, 1, &g) == LZS_EINVAL);
    g = (lzs_llama_grammar *)&f; /* a chain that is shorter than its head */
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, NULL, MEMBERS + 1, 1, &g) == LZS_EINVAL && !g);
    CHECK(lzs_llama_grammar_new(N_VOCAB, &f, &chain, &grammar, NULL, MEMBERS, 1, &g) == LZS_OK);
    lzs_llama_grammar_free(g);
    lzs_llama_grammar_free(NULL);
}

int main(void) {
    test_arguments();
    test_the_best_are_asked_in_order();
    test_nothing_selected();
    test_a_grammar_inside(false);
    test_a_grammar_inside(true);
    const int32_t ks[] = {0, 1, 3, 40, 1000, 1100, 5000};
    const int allowed[] = {0, 1, 30, 500, 1000};
    for (size_t k = 0; k < sizeof ks / sizeof *ks; k++) {
        for (size_t a = 0; a < sizeof allowed / sizeof *allowed; a++) {
            for (int kind = 0; kind < 3; kind++) {
                test_picks(ks[k], allowed[a], true, kind);
                test_picks(ks[k], allowed[a], false, kind);
            }
        }
    }
    return 0;
}
