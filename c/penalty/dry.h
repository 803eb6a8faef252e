/* dry.h - the DRY penalty: history -> a bias for each token that would extend a repetition. */
#ifndef LZS_DRY_H
#define LZS_DRY_H

#include "../state/history.h"

typedef struct lzs_dry {
    lzs_token_table longest; /* tokens that would extend a repetition; `count` is the longest one's length */
} lzs_dry;

/* Makes room for all tokens that a history of n tokens can have in DRY's window. */
lzs_status lzs_dry_reserve(lzs_dry *dry, const lzs_history *h, size_t n);

/* Finds the tokens that would extend a repetition of dry_allowed_length tokens or more. */
void lzs_dry_match_all(lzs_dry *dry, const lzs_history *h, const lzs_params *params);

/* The length of the longest repetition that a token would extend and its distance, found anew by a walk through the
 * window; 0 where there is none of dry_allowed_length tokens. */
int32_t lzs_dry_explain(const lzs_history *h, const lzs_params *params, int32_t token, int32_t *distance);

/* What such a token's logit loses. */
float lzs_dry_penalty(const lzs_params *params, int32_t length);

#endif
