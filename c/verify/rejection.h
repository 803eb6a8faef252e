/* rejection.h - modified rejection sampling, which turns a token drawn from distribution q into a token of distribution
 * p. */
#ifndef LZS_REJECTION_H
#define LZS_REJECTION_H

#include <stddef.h>

#include "../backend/noise.h"

/* A distribution. Tokens not in `ids` have probability 0. */
typedef struct lzs_sparse {
    const int32_t *ids; /* (n) tokens, ascending */
    const float *probabilities;
    size_t n;
} lzs_sparse;

/* Gives the token at one position, from the token `drafted` that was drawn from q. With probability min(1, p / q) the
 * result is `drafted`. Otherwise the result is drawn from the normalised excess of p over q. The result has the
 * distribution p. Only the noise of this position (`key`) decides. */
int32_t lzs_mrs_token(const lzs_sparse *p, const lzs_sparse *q, int32_t drafted, lzs_noise_key key);

#endif
