/* fuzz_case.h - where the fuzzer's decisions come from: bytes that libFuzzer mutates, or random numbers of a seed; and the
 * parameters and rows that are made of them. */
#ifndef LZS_TESTS_FUZZ_CASE_H
#define LZS_TESTS_FUZZ_CASE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "lzsampler.h"

enum { MAX_VOCAB = 5000, MAX_WORDS = (MAX_VOCAB + 31) / 32, MAX_LISTED = 8 };

typedef struct source {
    const uint8_t *bytes; /* (n) decisions; NULL when they are random */
    size_t n, at;
    uint64_t state; /* of the random numbers; with bytes, of what is not worth a decision */
} source;

/* 0..n - 1, for n up to 2^31 - 1 */
static inline int32_t choose(source *s, int32_t n) {
    if (!s->bytes) return random_below(&s->state, n);
    uint32_t value = 0;
    for (int32_t range = n - 1; range > 0; range >>= 8) value = value << 8 | (s->at < s->n ? s->bytes[s->at++] : 0);
    return (int32_t)(value % (uint32_t)n);
}

static inline bool one_in(source *s, int32_t n) {
    return choose(s, n) == 0;
}

static inline bool exhausted(const source *s) {
    return s->bytes && s->at >= s->n;
}

static inline float choose_float(source *s, const float *values, int32_t n) {
    return values[choose(s, n)];
}
#define ONE_OF(source, ...) \
    choose_float(source, (const float[]){__VA_ARGS__}, (int32_t)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)))

/* The lists and sets of tokens that parameters point to. */
typedef struct lists {
    int32_t exempt[MAX_LISTED], breakers[MAX_LISTED];
    uint32_t separators[MAX_WORDS], commas[MAX_WORDS];
    lzs_logit_bias bias[MAX_LISTED];
} lists;

/* A bit set of the vocabulary, or none: returns the number of its words. It has an eighth to a half of the tokens, or a few of the first
 * ones; the bits after the last token are no tokens. */
static inline size_t choose_set(source *s, uint32_t *words, int32_t n_vocab) {
    const size_t n_words = ((size_t)n_vocab + 31) / 32;
    const int32_t kind = choose(s, 6);
    if (kind < 2) return 0;
    if (s->bytes) s->state = (uint64_t)(uint32_t)choose(s, 1 << 16);
    for (size_t i = 0; i < n_words; i++) {
        words[i] = i && kind == 5 ? 0 : (uint32_t)random_bits(&s->state);
        for (int32_t k = kind % 3; k > 0; k--) words[i] &= (uint32_t)random_bits(&s->state);
    }
    return n_words;
}

/* What may change between steps. */
static inline void choose_step_params(source *s, lzs_params *p, int32_t n_vocab) {
    p->temperature = ONE_OF(s, 0.0f, 1e-6f, 0.1f, 0.7f, 1.0f, 1.0f, 2.0f, 30.0f, 1e6f);
    p->temperature_last = choose(s, 2);
    p->top_k = one_in(s, 2) ? 0 : one_in(s, 3) ? 1 + choose(s, 5) : one_in(s, 8) ? INT32_MAX : 1 + choose(s, n_vocab);
    p->top_p = one_in(s, 2) ? 1.0f : one_in(s, 5) ? ONE_OF(s, 0.0f, 0.99999994f) : (float)choose(s, 10000) / 10000.0f;
    p->min_p = one_in(s, 3) ? ONE_OF(s, 1.0f, 0.05f, 1e-40f, 0.3f) : 0.0f;
    p->ties = choose(s, 2);
    p->sign_aware = choose(s, 2);
    p->seed = (uint64_t)(uint32_t)choose(s, INT32_MAX) << choose(s, 34);
    p->lz_formula = choose(s, 3);
    p->lz_run_allowance = one_in(s, 3) ? 0 : choose(s, one_in(s, 4) ? LZS_MAX_WINDOW + 1 : 30);
    p->dry_base = ONE_OF(s, 1.0f, 1.75f, 2.0f, FLT_MAX);
    p->dry_allowed_length = choose(s, 5);
}

/* The LZ penalty by either rule, or none. */
static inline void choose_lz(source *s, lzs_params *p, int32_t n_vocab, lists *l) {
    p->lz_rule = one_in(s, 3) ? LZS_RULE_PAPER : LZS_RULE_DEFAULT;
    if (one_in(s, 2)) p->lz_penalty = ONE_OF(s, 0.15f, 1.0f, FLT_MAX, 1e-30f);
    p->lz_window = 2 + choose(s, one_in(s, 4) ? 3000 : 40);
    p->lz_buffer = 1 + choose(s, p->lz_window - 1);
    if (p->lz_rule == LZS_RULE_PAPER) return;
    p->lz_min_match = 1 + choose(s, one_in(s, 4) || p->lz_window < 8 ? p->lz_window : 8);
    if (one_in(s, 2)) p->lz_run_penalty = ONE_OF(s, 0.05f, 1.0f, FLT_MAX, 1e-30f);
    p->n_lz_separators = choose_set(s, l->separators, n_vocab);
    p->n_lz_commas = choose_set(s, l->commas, n_vocab);
    p->lz_separators = l->separators;
    p->lz_commas = l->commas;
}

static inline void choose_params(source *s, lzs_params *p, int32_t n_vocab, lists *l) {
    lzs_params_init(p);
    choose_step_params(s, p, n_vocab);
    choose_lz(s, p, n_vocab, l);
    if (one_in(s, 2)) p->repetition_penalty = ONE_OF(s, 1.1f, 0.5f, FLT_MAX, FLT_MIN, 2.0f, -1.0f);
    if (one_in(s, 2)) p->frequency_penalty = ONE_OF(s, 1.1f, 0.5f, FLT_MAX, FLT_MIN, 2.0f, -1.0f);
    if (one_in(s, 2)) p->presence_penalty = ONE_OF(s, 1.1f, 0.5f, FLT_MAX, FLT_MIN, 2.0f, -1.0f);
    p->repetition_method = p->repetition_penalty < 0.0f ? LZS_SUBTRACTIVE : LZS_MULTIPLICATIVE;
    p->frequency_method = p->frequency_penalty < 0.0f ? LZS_SUBTRACTIVE : choose(s, 2);
    p->presence_method = p->presence_penalty < 0.0f ? LZS_SUBTRACTIVE : choose(s, 2);
    p->penalty_window = one_in(s, 3) ? one_in(s, 2) ? INT32_MAX : 0 : choose(s, 60);
    p->history = choose(s, 2);
    if (one_in(s, 3)) {
        p->loop_max_pattern = 1 + choose(s, 20);
        p->loop_min_pattern = 1 + choose(s, p->loop_max_pattern);
        p->loop_min_count = 2 + choose(s, 5);
    }
    if (one_in(s, 2)) {
        p->dry_multiplier = ONE_OF(s, 0.8f, 1e-30f, FLT_MAX);
        p->dry_penalty_last_n = one_in(s, 4) ? -1 : choose(s, 200);
    }
    if (one_in(s, 3)) p->n_exempt = (size_t)choose(s, MAX_LISTED);
    if (one_in(s, 3)) p->n_dry_breakers = (size_t)choose(s, MAX_LISTED);
    if (one_in(s, 3)) p->n_logit_bias = (size_t)choose(s, MAX_LISTED);
    for (size_t i = 0; i < p->n_exempt; i++) l->exempt[i] = choose(s, n_vocab);
    for (size_t i = 0; i < p->n_dry_breakers; i++) l->breakers[i] = choose(s, n_vocab < 30 ? n_vocab : 30);
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        l->bias[i] = (lzs_logit_bias){choose(s, n_vocab), ONE_OF(s, 1.0f, -INFINITY, -2.5f, FLT_MAX, -FLT_MAX, -0.0f)};
        for (size_t k = 0; k < i; k++) {
            if (l->bias[k].token == l->bias[i].token) p->n_logit_bias = i; /* a token has one bias */
        }
    }
    p->exempt = l->exempt;
    p->dry_breakers = l->breakers;
    p->logit_bias = l->bias;
    if (one_in(s, 3)) {
        p->stuck_threshold = 1 + choose(s, 40);
        p->stuck_ngram = 1 + choose(s, 5);
        p->stuck_min_count = 2 + choose(s, 3);
        p->stuck_weight = choose(s, 5);
        p->stuck_window = 1 + choose(s, 300);
    }
    CHECK(lzs_params_invalid(p, n_vocab) == NULL);
}

static inline void choose_row(source *s, float *row, int32_t n) {
    static const float special[] = {0.0f,  -0.0f,   1.0f,  -1.0f,   INFINITY, -INFINITY, FLT_MAX, -FLT_MAX,
                                    1e-45f, -1e-45f, FLT_MIN, 1e30f, -1e30f,   88.0f,     NAN};
    int kind = choose(s, 6), n_special = one_in(s, 8) ? 15 : 14; /* NaN seldom: it ends the call */
    if (s->bytes) s->state = (uint64_t)(uint32_t)choose(s, 1 << 16);
    for (int32_t i = 0; i < n; i++) {
        float x = (float)(20.0 * random_unit(&s->state) - 10.0);
        if (kind == 0 || (kind == 4 && random_below(&s->state, 10) == 0)) x = special[random_below(&s->state, n_special)];
        if (kind == 1) x = (float)random_below(&s->state, 3);
        if (kind == 2) x = -INFINITY;
        row[i] = x;
    }
}

#endif
