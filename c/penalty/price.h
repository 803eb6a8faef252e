/* price.h - the price of one match: what the LZ penalty subtracts from a logit. Steps, explanations and the CUDA
 * kernels use it. */
#ifndef LZS_PRICE_H
#define LZS_PRICE_H

#include <stdbool.h>

#include "paper_price.h"

/* A match of a token is an earlier position of the same token. Its price depends on how many tokens before this
 * position equal the end of the text. */
typedef struct lzs_lz_match {
    int32_t suffix;   /* number of tokens before the position that equal the last tokens of the text (U) */
    int32_t unbroken; /* number of tokens of the text since its last separator */
    int32_t distance; /* 1 for the last token of the text (D) */
} lzs_lz_match;

/* The length of the repetition (L) after the last separator, the next token included. */
LZS_DEVICE static inline int32_t lzs_said_again(lzs_lz_match m) {
    return (m.suffix < m.unbroken ? m.suffix : m.unbroken) + 1;
}

/* The number of tokens by which a run exceeds lz_run_allowance (see lzs_params); 0 or less if there is no excess. */
LZS_DEVICE static inline int32_t lzs_run_beyond(const lzs_params *p, lzs_lz_match m) {
    return m.suffix + 1 - m.distance - p->lz_run_allowance;
}

/* The number of bits that a match saves; 0 if the match is too short. */
LZS_DEVICE static inline float lzs_match_bits(const lzs_params *p, float log2_vocab, lzs_lz_match m) {
    const int32_t length = lzs_said_again(m);
    if (length < p->lz_min_match) return 0.0f;
    const float cost = lzs_rate_cost(length, m.distance);
    return cost < log2_vocab ? log2_vocab - cost : 0.0f;
}

/* The price in logits, >= 0: the price of the match or the price of the run, whichever is higher. */
LZS_DEVICE static inline float lzs_price(const lzs_params *p, float log2_vocab, lzs_lz_match m) {
    const float said = p->lz_penalty * lzs_match_bits(p, log2_vocab, m);
    const int32_t beyond = lzs_run_beyond(p, m);
    const float run = beyond > 0 ? p->lz_run_penalty * (float)beyond : 0.0f;
    return lzs_finite(run > said ? run : said);
}

/* The greatest value of U; longer suffixes count as this value. */
LZS_DEVICE static inline int32_t lzs_most_suffix(const lzs_params *p) {
    return p->lz_window < UINT16_MAX ? p->lz_window : UINT16_MAX;
}

/* The least U of a match whose price is above 0. INT32_MAX: no match has such a price. */
LZS_DEVICE static inline int32_t lzs_least_suffix(const lzs_params *p, int32_t unbroken) {
    const int32_t said = unbroken >= p->lz_min_match - 1 ? p->lz_min_match - 1 : INT32_MAX;
    const int32_t run = p->lz_run_penalty > 0.0f ? p->lz_run_allowance + 1 : INT32_MAX;
    return said < run ? said : run;
}

#endif
