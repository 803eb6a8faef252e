/* rows.h - random rows of logits, masks, edits and plans, chosen to be difficult: ties, infinities, denormals, signed
 * zeros, logits far apart and nearly flat rows. */
#ifndef LZS_TESTS_ROWS_H
#define LZS_TESTS_ROWS_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "plan/plan.h"

typedef enum row_kind {
    ROW_NORMAL,
    ROW_TIED,
    ROW_FLAT,
    ROW_HUGE_RANGE,
    ROW_HOLES,
    ROW_PEAKED,
    ROW_SIGNED_ZEROS,
    ROW_INFINITE,
    ROW_DENORMAL,
    ROW_NEARLY_FLAT,
    ROW_LONE, /* one finite logit among -inf */
    ROW_KINDS
} row_kind;

/* A sum of four uniforms: close enough to a normal distribution. */
static inline float random_normal(uint64_t *state) {
    uint64_t bits = random_bits(state), sum = 0;
    for (int i = 0; i < 4; i++) sum += bits >> (16 * i) & 0xffff;
    return ((float)sum - 131070.0f) * (1.0f / 16384.0f);
}

static inline void fill_row(float *x, int32_t n, row_kind kind, uint64_t *state) {
    for (int32_t i = 0; i < n; i++) {
        float u = random_normal(state);
        switch (kind) {
        case ROW_TIED: u = (float)random_below(state, 5) * 0.5f; break;
        case ROW_FLAT: u = -3.25f; break;
        case ROW_HUGE_RANGE: u = ldexpf(u, random_below(state, 250) - 125); break;
        case ROW_HOLES: u = random_below(state, 3) ? u : -INFINITY; break;
        case ROW_PEAKED: u = i == n / 2 ? 40.0f : u; break;
        case ROW_SIGNED_ZEROS: u = random_below(state, 2) ? 0.0f : random_below(state, 2) ? -0.0f : -1e-45f; break;
        case ROW_INFINITE: u = random_below(state, 4) ? u : INFINITY; break;
        case ROW_DENORMAL: u *= 1e-41f; break;
        case ROW_NEARLY_FLAT: u = 1.0f + u * 1e-6f; break;
        case ROW_LONE: u = -INFINITY; break;
        default: break;
        }
        x[i] = u;
    }
    if (kind == ROW_HUGE_RANGE) {
        x[random_below(state, n)] = FLT_MAX;
        x[random_below(state, n)] = -FLT_MAX;
    }
    if (kind == ROW_LONE) x[random_below(state, n)] = -1.0f;
}

/* A quarter, a half or almost all of the tokens are allowed. Bits past the vocabulary are random, too. */
static inline void fill_mask(uint32_t *mask, int32_t n, uint64_t *state) {
    int density = random_below(state, 3);
    for (int32_t w = 0; w < (n + 31) / 32; w++) {
        mask[w] = (uint32_t)random_bits(state);
        if (density == 0) mask[w] &= (uint32_t)random_bits(state);
        if (density == 2) mask[w] = ~(mask[w] & (uint32_t)random_bits(state) & (uint32_t)random_bits(state));
    }
}

/* Fills up to `most` edits of different tokens, in an order that is not that of the ids; returns their number. */
static inline size_t fill_edits(lzs_edit *edits, size_t most, int32_t n_vocab, uint64_t *state) {
    static const float repeats[] = {1.0f, 1.0f, 1.1f, 2.0f, 0.5f, FLT_MIN, FLT_MAX};
    static const float biases[] = {0.0f, -0.5f, -3.0f, 2.0f, -INFINITY, -FLT_MAX, FLT_MAX};
    size_t n = (size_t)random_below(state, (int32_t)(most < (size_t)n_vocab ? most : (size_t)n_vocab) + 1);
    if (random_below(state, 4)) n = n < 20 ? n : n % 20;
    int32_t stride = 1 + 2 * random_below(state, 50), first = random_below(state, n_vocab);
    while (n_vocab % stride == 0 && stride > 1) stride -= 2; /* mostly prime to n_vocab; repeats are left out below */
    size_t made = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t token = (int32_t)(((int64_t)first + (int64_t)i * stride) % n_vocab);
        if (i && token == first) break;
        edits[made++] = (lzs_edit){token, repeats[random_below(state, 7)],
                                   random_below(state, 3) ? random_normal(state) : biases[random_below(state, 7)]};
    }
    return made;
}

/* A plan without edits and mask, whose draw is the race. */
static inline lzs_plan random_plan(int32_t n_vocab, uint64_t *state) {
    static const float top_p[] = {0.0f, 1e-10f, 0.1f, 0.25f, 0.5f, 0.8f, 0.9f, 0.95f, 0.999f, 0.99999994f, 1.0f};
    static const float min_p[] = {0.0f, 1e-45f, 1e-10f, 0.01f, 0.05f, 0.25f, 0.5f, 0.999f, 1.0f};
    static const float temperature[] = {0.0f, 1e-6f, 0.1f, 0.7f, 1.0f, 1.0f, 1.3f, 5.0f, 1e6f};
    lzs_params p;
    lzs_params_init(&p);
    p.sign_aware = random_below(state, 2);
    if (random_below(state, 2)) p.top_k = random_below(state, 3) ? 1 + random_below(state, n_vocab) : 1 + n_vocab / 50;
    if (random_below(state, 40) == 0) p.top_k = INT32_MAX;
    if (random_below(state, 2)) p.top_p = top_p[random_below(state, 11)];
    if (random_below(state, 4) == 0) p.top_p = (float)random_unit(state);
    if (random_below(state, 2)) p.min_p = min_p[random_below(state, 9)];
    if (random_below(state, 4) == 0) p.min_p = (float)random_unit(state);
    p.temperature = temperature[random_below(state, 9)];
    p.temperature_last = random_below(state, 2);
    p.ties = random_below(state, 2);
    p.seed = random_bits(state);
    lzs_plan plan;
    lzs_plan_settings(&plan, n_vocab, &p);
    plan.position = random_below(state, 2) ? random_bits(state) : (uint64_t)random_below(state, 1000);
    return plan;
}

#endif
