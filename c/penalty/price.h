/* price.h - what LZ subtracts from a logit for a match, on the CPU and on a GPU. The formulas are in docs/penalties.md. */
#ifndef LZS_PRICE_H
#define LZS_PRICE_H

#include "../backend/arithmetic.h"
#include "../include/lzsampler.h"

/* Where lz_min_match is above 1, the price of a token is multiplied by its matches at distances up to LZS_LZ_NEAR divided by
 * LZS_LZ_OFTEN, or by the copies in a row of its best loop divided by LZS_LZ_COPIES, by the larger of them, though by 1 at
 * least and by LZS_LZ_TIMES at most. */
enum { LZS_LZ_NEAR = 512, LZS_LZ_OFTEN = 12, LZS_LZ_COPIES = 4, LZS_LZ_TIMES = 8 };

/* The cost in bits of a match by the formula `rate`, which is the least of all matches of a token. */
LZS_DEVICE static inline float lzs_rate_cost(int32_t length, int32_t distance) {
    return lzs_quotient(lzs_log2((float)(distance + 1)) + lzs_log2((float)length), (float)length);
}

/* By `codelength`, of a token that makes the longest match (longest, at) one longer. */
LZS_DEVICE static inline float lzs_joint_cost(int32_t length, int32_t distance, int32_t longest, int32_t at) {
    const float after = (float)length * (float)distance, before = (float)longest * (float)at;
    return lzs_log2(lzs_quotient(after, before)) - 1.0f;
}

LZS_DEVICE static inline float lzs_bits_of_cost(const lzs_params *p, float cost, float log2_vocab) {
    if (cost > log2_vocab) cost = log2_vocab;
    if (cost < 0.0f && p->lz_formula != LZS_LZ_CODELENGTH) cost = 0.0f;
    return log2_vocab - cost;
}

LZS_DEVICE static inline float lzs_bias_of_cost(const lzs_params *p, float cost, float log2_vocab) {
    return lzs_finite(-(p->lz_penalty * lzs_bits_of_cost(p, cost, log2_vocab)));
}

/* What the price of a token is multiplied by for coming again and again: `count` matches nearby, `copies` in a row. */
LZS_DEVICE static inline float lzs_times(int32_t count, float copies) {
    const float often = lzs_quotient((float)count, (float)LZS_LZ_OFTEN), loop = lzs_quotient(copies, (float)LZS_LZ_COPIES);
    const float times = often > loop ? often : loop;
    return times < 1.0f ? 1.0f : times > (float)LZS_LZ_TIMES ? (float)LZS_LZ_TIMES : times;
}

#endif
