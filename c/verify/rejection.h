/* rejection.h - modified rejection sampling: a token of the distribution p, out of one that was drawn from q. */
#ifndef LZS_REJECTION_H
#define LZS_REJECTION_H

#include <stddef.h>

#include "../backend/noise.h"

/* A distribution; tokens that it does not list have probability 0. */
typedef struct lzs_sparse {
    const int32_t *ids; /* (n) ascending */
    const float *probabilities;
    size_t n;
} lzs_sparse;

/* The token at one position, given one that was drawn from q: itself with probability min(1, p / q), and else one drawn
 * from the normalised excess of p over q. It has the distribution p. The noise of the position decides, and no
 * other. */
int32_t lzs_mrs_token(const lzs_sparse *p, const lzs_sparse *q, int32_t drafted, lzs_noise_key key);

#endif
