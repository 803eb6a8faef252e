/* lzs_kernels.h - the inner loops over a row of logits, as a table, so that a faster instruction set can replace them
 * all. lzs_kernels_scalar.c is the definition: every other table gives the same bits.
 *
 * Kernels know floats, bits and counts only. All truncation is a prefix of one order (logit descending, token id
 * ascending), so one cut says what stays: keys above `key`, and those equal to it up to token `id`.
 */
#ifndef LZS_KERNELS_H
#define LZS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "lzs_math.h"

#define LZS_RADIX_BINS 2048

typedef struct lzs_row {
    const float *x;       /* (n) logits */
    int32_t n;            /* vocabulary size */
    const uint32_t *mask; /* ((n + 31) / 32) words, 1 = allowed; NULL allows all */
} lzs_row;

typedef struct lzs_cut {
    uint32_t key; /* above that of -inf, so a token at -inf never stays */
    int32_t id;
} lzs_cut;

typedef struct lzs_top {
    float max;      /* -inf when no token is allowed */
    int32_t argmax; /* lowest id on ties; -1 when no token is allowed */
    bool nan;       /* an allowed logit is NaN */
} lzs_top;

/* One digit of the radix descent: keys whose bits above shift + bits equal `prefix` are binned by the next `bits`. */
typedef struct lzs_digit {
    uint32_t prefix;
    int32_t shift;
    int32_t bits;
} lzs_digit;

/* Scale from logit to y = (max - x) * scale, in bits below the maximum. */
typedef struct lzs_scale {
    float max;
    float scale; /* log2(e) / temperature */
} lzs_scale;

typedef struct lzs_race {
    uint32_t seed[2];
    uint64_t position;
    float score; /* smallest so far; +inf before the first token */
    int32_t token;
} lzs_race;

typedef struct lzs_kernels {
    const char *name;
    void (*max)(const lzs_row *row, lzs_top *top);
    /* bins[d] += number, or sum of weights, of the tokens inside the cut whose digit is d */
    void (*count)(const lzs_row *row, lzs_cut cut, lzs_digit digit, uint64_t bins[LZS_RADIX_BINS]);
    void (*weigh)(const lzs_row *row, lzs_cut cut, lzs_digit digit, lzs_scale scale,
                  uint64_t bins[LZS_RADIX_BINS]);
    /* id of the nth (from 1) allowed token, in order of ids, whose key is `key`; INT32_MAX when there are fewer */
    int32_t (*nth_equal)(const lzs_row *row, uint32_t key, uint64_t nth);
    /* the token inside the cut with the smallest score y + noise; the lowest id on ties */
    void (*race)(const lzs_row *row, lzs_cut cut, lzs_scale scale, lzs_race *race);
    /* len[d - 1] = newest == before[-d] ? min(len[d - 1] + 1, cap) : 0, for d = 1..n; `before` is where newest is */
    void (*extend)(uint16_t *len, const int32_t *newest, int32_t n, uint16_t cap);
} lzs_kernels;

extern const lzs_kernels lzs_kernels_scalar;

static inline bool lzs_allowed(const uint32_t *mask, int32_t id) {
    return mask == NULL || ((mask[id >> 5] >> (id & 31)) & 1u);
}

static inline bool lzs_inside(lzs_cut cut, uint32_t key, int32_t id) {
    return key > cut.key || (key == cut.key && id <= cut.id);
}

static inline float lzs_y(lzs_scale s, float x) {
    return x == s.max ? 0.0f : (s.max - x) * s.scale; /* equality first: inf - inf is NaN */
}

#endif
