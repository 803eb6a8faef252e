/* price.h - what LZ subtracts from a logit for a match, on the CPU and on a GPU. The formulas are in docs/penalties.md. */
#ifndef LZS_PRICE_H
#define LZS_PRICE_H

#include <stdbool.h>

#include "../backend/arithmetic.h"
#include "../include/lzsampler.h"
#include "../state/sorted_tokens.h"

/* Where lz_min_match is above 1, the price of a token is multiplied by its matches at distances up to LZS_LZ_NEAR divided by
 * LZS_LZ_OFTEN, or by the copies in a row of its best loop divided by LZS_LZ_COPIES, by the larger of them, though by 1 at
 * least and by LZS_LZ_TIMES at most. */
enum { LZS_LZ_NEAR = 512, LZS_LZ_OFTEN = 12, LZS_LZ_COPIES = 4, LZS_LZ_TIMES = 8 };

/* Plain text, where less than LZS_LZ_PLAIN of the last LZS_LZ_CLOSE tokens are breakers, pays more for going round in circles than
 * tables, records and code, of which it is the form: there the first of these factors is at least the square of its matches
 * divided by LZS_LZ_STEEP, copies of at least LZS_LZ_WORDS tokens that are no breakers are divided by LZS_LZ_PHRASES, and a match
 * may be one token shorter than lz_min_match where its token has LZS_LZ_MANY of that length or more at distances up to LZS_LZ_NEAR. In any text matches of all lengths count of a token
 * that makes up LZS_LZ_DENSE of the last LZS_LZ_CLOSE and is no mark. */
enum { LZS_LZ_CLOSE = 64, LZS_LZ_PLAIN = 20, LZS_LZ_STEEP = 20, LZS_LZ_WORDS = 3, LZS_LZ_PHRASES = 2, LZS_LZ_MANY = 5, LZS_LZ_DENSE = 16 };

/* The length from which matches are counted to see whether they are many; a match of one token has nothing before it. */
LZS_DEVICE static inline int32_t lzs_short_length(const lzs_params *p) {
    return p->lz_min_match > 2 ? p->lz_min_match - 1 : p->lz_min_match;
}

/* What the copies of a match that covers its own distance count for; `words`: a copy has LZS_LZ_WORDS tokens that are no breakers,
 * and the text is plain. */
LZS_DEVICE static inline float lzs_copies(int32_t length, int32_t distance, bool words) {
    return lzs_quotient((float)length, (float)distance) * (words ? (float)LZS_LZ_COPIES / (float)LZS_LZ_PHRASES : 1.0f);
}

/* The matches of a token are counted in one number: one for each of those nearby, of which there are LZS_LZ_NEAR at most, and this
 * for each of the others. */
enum { LZS_LZ_FAR_MATCH = 2 * LZS_LZ_NEAR };

LZS_DEVICE static inline uint32_t lzs_counted_match(int32_t distance) {
    return distance <= LZS_LZ_NEAR ? 1u : (uint32_t)LZS_LZ_FAR_MATCH;
}

LZS_DEVICE static inline uint32_t lzs_near_matches(uint32_t matches) {
    return matches % LZS_LZ_FAR_MATCH;
}

LZS_DEVICE static inline bool lzs_one_match(uint32_t matches) {
    return matches == 1 || matches == LZS_LZ_FAR_MATCH;
}

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

/* What the price of a token is multiplied by: for coming again and again, with these matches and so many copies in a row; 0 where it
 * is a number that has come once. */
LZS_DEVICE static inline float lzs_times(const lzs_params *p, int32_t token, uint32_t matches, float copies, bool plain) {
    if (lzs_one_match(matches) && copies == 0.0f && lzs_listed(p->lz_numbers, p->n_lz_numbers, token)) return 0.0f;
    const float near = (float)lzs_near_matches(matches), many = lzs_quotient(near, (float)LZS_LZ_OFTEN);
    const float steep = plain ? lzs_quotient(near, (float)LZS_LZ_STEEP) * lzs_quotient(near, (float)LZS_LZ_STEEP) : 0.0f;
    const float often = steep > many ? steep : many, loop = lzs_quotient(copies, (float)LZS_LZ_COPIES);
    const float times = often > loop ? often : loop;
    return times < 1.0f ? 1.0f : times > (float)LZS_LZ_TIMES ? (float)LZS_LZ_TIMES : times;
}

#endif
