/* test_dry.c - DRY against a direct comparison of the end of the text with everything before it: all short texts over small
 * alphabets, longer random ones, rewinds, and what it makes together with the other penalties and with logit_bias. */
#include "dry_direct.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "all_texts.h"
#include "check.h"
#include "penalty/dry.h"
#include "penalty/penalty.h"
#include "sampler.h"

enum { MAX_VOCAB = 64, MAX_LENGTH = 2000 };

static lzs_params dry_params(int32_t window, int32_t allowed_length) {
    lzs_params p;
    lzs_params_init(&p);
    p.dry_multiplier = 0.75f;
    p.dry_base = 1.5f;
    p.dry_allowed_length = allowed_length;
    p.dry_penalty_last_n = window;
    return p;
}

/* The edits of DRY alone, at this very history. */
static void check_edits(lzs_sampler *s, const int32_t *tokens, int32_t n, int32_t n_vocab) {
    const lzs_params *p = &s->params;
    int32_t lengths[MAX_VOCAB], seen[MAX_VOCAB] = {0};
    size_t n_edits;
    dry_lengths(p, tokens, n, n_vocab, lengths);
    const lzs_edit *edits = lzs_edits(s, &n_edits);
    for (size_t i = 0; i < n_edits; i++) {
        int32_t token = edits[i].token;
        CHECK(token >= 0 && token < n_vocab && !seen[token]++ && lengths[token] > 0 && edits[i].repeat == 1.0f);
        double expected = p->dry_multiplier * pow(p->dry_base, lengths[token] - p->dry_allowed_length);
        CHECK(fabs(edits[i].bias + fmin(expected, FLT_MAX)) <= 1e-5 * fmin(expected, FLT_MAX));
    }
    for (int32_t t = 0; t < n_vocab; t++) CHECK((lengths[t] > 0) == (seen[t] > 0));
}

static void test_all_texts(int32_t n_letters, int32_t length, int32_t window, int32_t allowed_length, size_t n_breakers) {
    static const int32_t breakers[] = {1};
    lzs_params p = dry_params(window, allowed_length);
    p.dry_breakers = breakers;
    p.n_dry_breakers = n_breakers;
    lzs_sampler *s;
    CHECK(lzs_sampler_new(n_letters, &p, &s) == LZS_OK);
    walk_all_texts(s, n_letters, length, check_edits);
    lzs_sampler_free(s);
}

/* Longer texts with repetitions of all lengths, prompts, rewinds and changed settings, on every table of kernels. */
static void test_random(uint64_t seed) {
    static int32_t text[MAX_LENGTH];
    uint64_t state = seed;
    int32_t n_vocab = 2 + random_below(&state, 6), breakers[2] = {random_below(&state, n_vocab), random_below(&state, n_vocab)};
    lzs_params p = dry_params(1 + random_below(&state, random_below(&state, 2) ? 60 : 1500), random_below(&state, 5));
    if (random_below(&state, 8) == 0) p.dry_penalty_last_n = -1;
    if (random_below(&state, 3) == 0) p.history = LZS_HISTORY_ALL;
    p.dry_breakers = breakers;
    p.n_dry_breakers = (size_t)random_below(&state, 3);
    lzs_sampler *s;
    CHECK(lzs_sampler_new(n_vocab, &p, &s) == LZS_OK);
    int32_t n = 0, n_prompt = 0, period = 1;
    for (int i = 0; i < 2; i++) {
        int32_t more = random_below(&state, 100);
        for (int32_t k = 0; k < more; k++) text[n + k] = random_below(&state, n_vocab);
        CHECK(lzs_prime(s, text + n, (size_t)more) == LZS_OK);
        if (p.history == LZS_HISTORY_ALL) n += more;
    }
    n_prompt = n;
    for (int step = 0; step < 700; step++) {
        int action = random_below(&state, 100);
        if (action < 85 && n < MAX_LENGTH) {
            if (random_below(&state, 40) == 0) period = 1 + random_below(&state, 50);
            text[n] = n > period && random_below(&state, 12) ? text[n - period] : random_below(&state, n_vocab);
            CHECK(lzs_accept(s, text[n++]) == LZS_OK);
        } else if (action < 95) {
            int32_t back = random_below(&state, action < 90 ? 4 : 200);
            if (back > n - n_prompt) back = n - n_prompt;
            CHECK(lzs_rewind(s, (size_t)back) == LZS_OK);
            n -= back;
        } else {
            lzs_params changed = s->params;
            changed.dry_allowed_length = random_below(&state, 5);
            changed.dry_base = 1.0f + (float)random_unit(&state);
            CHECK(lzs_sampler_set_params(s, &changed) == LZS_OK);
        }
        if (step % 3 == 0) check_edits(s, text, n, n_vocab);
    }
    lzs_sampler_free(s);
}

/* There is no length at which DRY stops telling matches apart, and no length at which it gives NaN or -inf. */
static void test_long_repetitions(void) {
    enum { LENGTH = 70000 };
    lzs_params p = dry_params(-1, 2);
    lzs_sampler *s;
    size_t n;
    p.dry_base = 1.0001f;
    CHECK(lzs_sampler_new(3, &p, &s) == LZS_OK);
    for (int32_t i = 0; i < LENGTH; i++) CHECK(lzs_accept(s, 0) == LZS_OK);
    const lzs_edit *edits = lzs_edits(s, &n);
    CHECK(n == 1 && edits[0].token == 0); /* the longest length that is told apart is 65,535 */
    CHECK(fabs(edits[0].bias / (0.75 * pow(1.0001f, 65535 - 2)) + 1.0) < 1e-2);
    p.dry_base = 2.0f;
    p.dry_multiplier = FLT_MAX;
    CHECK(lzs_sampler_set_params(s, &p) == LZS_OK);
    edits = lzs_edits(s, &n);
    CHECK(n == 1 && edits[0].bias == -FLT_MAX);
    lzs_sampler_free(s);
}

static const lzs_edit *edit_of(lzs_sampler *s, int32_t token) {
    size_t n;
    const lzs_edit *edits = lzs_edits(s, &n), *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (edits[i].token != token) continue;
        CHECK(!found);
        found = &edits[i];
    }
    return found;
}

/* All penalties add up, exempt tokens lose them all, and logit_bias comes on top. */
static void test_together(int32_t lz_rule) {
    static const int32_t exempt[] = {4}, history[] = {3, 4, 5, 6, 3, 4, 5, 3, 4};
    static const lzs_logit_bias biases[] = {{5, 0.5f}, {6, -INFINITY}, {4, -2.0f}, {9, 3.0f}, {0, -1.0f}};
    lzs_params p = dry_params(50, 1), lz = p, dry = p;
    p.lz_penalty = lz.lz_penalty = 0.5f;
    p.lz_rule = lz.lz_rule = lz_rule;
    p.lz_buffer = lz.lz_buffer = 2;
    p.lz_min_match = lz.lz_min_match = 2;
    lz.dry_multiplier = 0.0f;
    p.presence_penalty = 0.25f;
    p.penalty_window = 3; /* so that some of DRY's tokens are counted and some are not */
    p.exempt = exempt;
    p.n_exempt = 1;
    p.logit_bias = biases;
    p.n_logit_bias = 5;
    lzs_sampler *all, *only_lz, *only_dry;
    CHECK(lzs_sampler_new(10, &p, &all) == LZS_OK && lzs_sampler_new(10, &lz, &only_lz) == LZS_OK);
    CHECK(lzs_sampler_new(10, &dry, &only_dry) == LZS_OK);
    for (size_t i = 0; i < sizeof history / sizeof *history; i++) {
        CHECK(lzs_accept(all, history[i]) == LZS_OK && lzs_accept(only_lz, history[i]) == LZS_OK);
        CHECK(lzs_accept(only_dry, history[i]) == LZS_OK);
        for (int32_t t = 0; t < 10; t++) {
            const lzs_edit *a = edit_of(all, t), *l = edit_of(only_lz, t), *d = edit_of(only_dry, t);
            bool counted = false;
            for (size_t k = i >= 2 ? i - 2 : 0; k <= i; k++) counted |= history[k] == t;
            double expected = (l ? l->bias : 0.0) + (d ? d->bias : 0.0) - (counted ? 0.25 : 0.0);
            if (t == 4) expected = 0.0;
            for (size_t k = 0; k < 5; k++) expected += biases[k].token == t ? biases[k].bias : 0.0;
            CHECK(a ? a->bias == expected || fabs(a->bias - expected) < 1e-5 : expected == 0.0);
        }
    }
    lzs_sampler_free(all);
    lzs_sampler_free(only_lz);
    lzs_sampler_free(only_dry);
}

/* A bias of -inf forbids its token for good; when all are forbidden, nothing is left to pick. */
static void test_forbidden(void) {
    static const lzs_logit_bias biases[] = {{0, -INFINITY}, {2, -INFINITY}, {1, -INFINITY}};
    float row[3] = {5.0f, INFINITY, 3.0f}, probabilities[3], out[3];
    int32_t ids[3], token;
    size_t n;
    for (int sampling = 0; sampling < 2; sampling++) {
        lzs_params p = dry_params(20, 1);
        p.repetition_penalty = 1.5f;
        p.logit_bias = biases;
        p.temperature = sampling ? 1.0f : 0.0f;
        for (p.n_logit_bias = 2; p.n_logit_bias <= 3; p.n_logit_bias++) {
            bool none = p.n_logit_bias == 3;
            lzs_sampler *s;
            CHECK(lzs_sampler_new(3, &p, &s) == LZS_OK);
            for (int i = 0; i < 30; i++) {
                CHECK(lzs_sample(s, row, &token) == (none ? LZS_EMASKED : LZS_OK) && token == (none ? -1 : 1));
                CHECK(lzs_distribution(s, row, ids, probabilities, 3, &n) == (none ? LZS_EMASKED : LZS_OK));
                CHECK(n == !none && (none || (ids[0] == 1 && probabilities[0] == 1.0f)));
                CHECK(lzs_process(s, row, out) == (none ? LZS_EMASKED : LZS_OK));
                if (!none) CHECK(out[0] == -INFINITY && out[1] == INFINITY && out[2] == -INFINITY);
                CHECK(lzs_accept(s, i % 3) == LZS_OK);
            }
            lzs_sampler_free(s);
        }
    }
}

int main(int argc, char **argv) {
    int32_t longest = argc > 1 ? atoi(argv[1]) : 9;
    for (int32_t window = 1; window <= 10; window++) {
        for (size_t n_breakers = 0; n_breakers <= 1; n_breakers++) {
            test_all_texts(2, longest, window, 1 + window % 3, n_breakers);
            test_all_texts(3, longest, window, 1 + window % 2, n_breakers);
        }
    }
    test_all_texts(2, 9, -1, 0, 1);
    for (uint64_t seed = 1; seed <= 60; seed++) test_random(seed);
    test_long_repetitions();
    test_together(LZS_RULE_DEFAULT);
    test_together(LZS_RULE_PAPER);
    test_forbidden();
    return 0;
}
