/* paper_price.h - what the paper's rule subtracts from a logit for a match, on the CPU and on a GPU. The formulas are
 * in docs/penalties.md.
 */
#ifndef LZS_PAPER_PRICE_H
#define LZS_PAPER_PRICE_H

#include "../backend/arithmetic.h"
#include "../include/lzsampler.h"

/* The cost in bits of one match by LZS_LZ_RATE. The cost of a token is the least cost of its matches. */
LZS_DEVICE static inline float lzs_rate_cost(int32_t length, int32_t distance) {
    return lzs_quotient(lzs_log2((float)(distance + 1)) + lzs_log2((float)length), (float)length);
}

/* The cost in bits by LZS_LZ_CODELENGTH of a token that extends the longest match of the buffer. That match has the
 * length `longest` and the distance `at`. */
LZS_DEVICE static inline float lzs_joint_cost(int32_t length, int32_t distance, int32_t longest, int32_t at) {
    const float after = (float)length * (float)distance, before = (float)longest * (float)at;
    return lzs_log2(lzs_quotient(after, before)) - 1.0f;
}

LZS_DEVICE static inline float lzs_paper_bits(const lzs_params *p, float cost, float log2_vocab) {
    if (cost > log2_vocab) cost = log2_vocab;
    if (cost < 0.0f && p->lz_formula != LZS_LZ_CODELENGTH) cost = 0.0f;
    return log2_vocab - cost;
}

LZS_DEVICE static inline float lzs_paper_bias(const lzs_params *p, float cost, float log2_vocab) {
    return lzs_finite(-(p->lz_penalty * lzs_paper_bits(p, cost, log2_vocab)));
}

#endif
