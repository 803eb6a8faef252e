/* ranges.h - the valid ranges of settings. */
#ifndef LZS_RANGES_H
#define LZS_RANGES_H

#include <float.h>
#include <stdbool.h>

#include "../include/lzsampler.h"

/* As lzs_params_invalid, but checks only the temperature and the truncation. */
const char *lzs_sampling_invalid(const lzs_params *params);

/* Whether all items of a list are tokens of the vocabulary. */
bool lzs_tokens_valid(const int32_t *list, size_t n, int32_t n_vocab);
/* Whether `words` is a bit set of the vocabulary, or empty. */
bool lzs_token_set_valid(const uint32_t *words, size_t n, int32_t n_vocab);

static inline bool lzs_within(float x, float low, float high) {
    return x >= low && x <= high; /* false if x is NaN */
}

static inline bool lzs_choice(int32_t x, int32_t last) {
    return x >= 0 && x <= last;
}

#endif
