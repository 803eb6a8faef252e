/* oracle.h - what a plan makes of a row, by sorting the whole row and by drawing noise for every token that stays: slow,
 * and short enough to be believed. It shares the arithmetic of backend/arithmetic.h and the noise of backend/noise.h with
 * the library, so that results are compared bit by bit. */
#ifndef LZS_TESTS_ORACLE_H
#define LZS_TESTS_ORACLE_H

#include <float.h>
#include <math.h>

#include "backend/backend.h"
#include "check.h"

enum { ORACLE_MAX = 152064 };

typedef struct oracle {
    lzs_status status;
    float x[ORACLE_MAX];       /* (n_vocab) logits after edits and mask; -inf where a token is not allowed */
    int32_t order[ORACLE_MAX]; /* the allowed tokens above -inf, best first; the first n_kept stay */
    int32_t n_allowed, n_kept;
    bool stays[ORACLE_MAX];
    int32_t token; /* what the race picks */
} oracle;

static const float *oracle_logits; /* what by_order compares */

static inline int by_order(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (oracle_logits[i] != oracle_logits[j]) return oracle_logits[i] > oracle_logits[j] ? -1 : 1;
    return (i > j) - (i < j);
}

static inline int32_t with_ties(const oracle *o, const lzs_plan *plan, int32_t kept, int32_t n) {
    if (plan->ties != LZS_TIES_KEEP) return kept;
    while (kept > 0 && kept < n && o->x[o->order[kept]] == o->x[o->order[kept - 1]]) kept++;
    return kept;
}

/* ceil(p * total / 2^32) for total < 2^49 and p <= 2^32, split at another place than truncate.c splits it. */
static inline uint64_t scaled(uint64_t p, uint64_t total) {
    uint64_t high = p * (total >> 20), low = p * (total & 0xfffff);
    return (high >> 12) + (((high & 0xfff) << 20) + low + 0xffffffffu) / 4294967296u;
}

static inline int32_t oracle_kept(const oracle *o, const lzs_plan *plan) {
    if (plan->temperature == 0.0f) return 1;
    int32_t n = o->n_allowed, kept = n;
    lzs_softmax_scale scale = {o->x[o->order[0]], lzs_temperature_scale(plan->temperature_last ? 1.0f : plan->temperature)};
    if (plan->top_k > 0 && plan->top_k < kept) kept = with_ties(o, plan, plan->top_k, n);
    if (plan->top_p < 1.0f) {
        uint64_t total = 0, run = 0;
        for (int32_t i = 0; i < kept; i++) total += lzs_weight(lzs_gap_bits(scale, o->x[o->order[i]]));
        uint64_t target = scaled((uint64_t)floor((double)plan->top_p * 0x1p32 + 0.5), total);
        int32_t at = 0;
        do run += lzs_weight(lzs_gap_bits(scale, o->x[o->order[at++]]));
        while (run < target);
        kept = with_ties(o, plan, at, kept);
    }
    if (plan->min_p > 0.0f) {
        float limit = -lzs_log2(fmaxf(plan->min_p, FLT_MIN));
        while (!(lzs_gap_bits(scale, o->x[o->order[kept - 1]]) <= limit)) kept--;
    }
    return kept;
}

static inline lzs_softmax_scale oracle_scale(const oracle *o, const lzs_plan *plan) {
    float t = plan->temperature > 0.0f ? plan->temperature : 1.0f;
    return (lzs_softmax_scale){o->x[o->order[0]], lzs_temperature_scale(t)};
}

/* The race with the noise of each token that stays, in the order of their ids. */
static inline int32_t oracle_race(const oracle *o, const lzs_plan *plan) {
    lzs_softmax_scale scale = oracle_scale(o, plan);
    lzs_noise_key key = lzs_noise_key_of(plan->seed, plan->position);
    float best = INFINITY;
    int32_t token = -1;
    for (int32_t id = 0; id < plan->n_vocab; id++) {
        if (!o->stays[id]) continue;
        float score = lzs_gap_bits(scale, o->x[id]) + lzs_log2(lzs_token_noise(key, id));
        if (token < 0 || score < best) {
            best = score;
            token = id;
        }
    }
    return token;
}

static inline void ask_oracle(oracle *o, const float *row, const lzs_plan *plan) {
    bool nan = false;
    o->n_allowed = o->n_kept = 0;
    o->token = -1;
    memcpy(o->x, row, (size_t)plan->n_vocab * sizeof *row);
    for (size_t i = 0; i < plan->n_edits; i++) {
        int32_t token = plan->edits[i].token;
        o->x[token] = lzs_apply_edit(&plan->edits[i], row[token], plan->sign_aware);
    }
    for (int32_t id = 0; id < plan->n_vocab; id++) {
        o->stays[id] = false;
        if (!lzs_allowed(plan->mask, id)) o->x[id] = -INFINITY;
        if (o->x[id] != o->x[id]) nan = true;
        if (o->x[id] > -INFINITY) o->order[o->n_allowed++] = id;
    }
    o->status = nan ? LZS_ENAN : o->n_allowed ? LZS_OK : LZS_EMASKED;
    if (o->status != LZS_OK) return;
    oracle_logits = o->x;
    qsort(o->order, (size_t)o->n_allowed, sizeof *o->order, by_order);
    o->n_kept = oracle_kept(o, plan);
    for (int32_t i = 0; i < o->n_kept; i++) o->stays[o->order[i]] = true;
    o->token = plan->temperature == 0.0f ? o->order[0] : oracle_race(o, plan);
}

/* Fills what lzs_backend_distribution should give; returns the number of entries. */
static inline size_t oracle_distribution(const oracle *o, const lzs_plan *plan, int32_t *ids, float *probabilities) {
    lzs_softmax_scale scale = oracle_scale(o, plan);
    double sum = 0.0;
    size_t n = 0;
    for (int32_t id = 0; id < plan->n_vocab; id++) {
        if (o->stays[id]) sum += lzs_exp2_neg(lzs_gap_bits(scale, o->x[id]));
    }
    for (int32_t id = 0; id < plan->n_vocab; id++) {
        if (!o->stays[id]) continue;
        ids[n] = id;
        probabilities[n++] = (float)(lzs_exp2_neg(lzs_gap_bits(scale, o->x[id])) / sum);
    }
    return n;
}

/* What lzs_backend_process should make of one token's logit. */
static inline float oracle_processed(const oracle *o, const lzs_plan *plan, int32_t id) {
    if (!o->stays[id]) return -INFINITY;
    float t = plan->temperature > 0.0f ? plan->temperature : 1.0f;
    return o->x[id] <= FLT_MAX ? lzs_finite(o->x[id] / t) : o->x[id];
}

#endif
