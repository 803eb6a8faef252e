/* dry.h - the DRY penalty: history -> a bias for each token that would extend a repetition. */
#ifndef LZS_DRY_H
#define LZS_DRY_H

#include "../state/history.h"

/* The tokens that DRY looks at, 0 when it is off. */
static inline int32_t lzs_dry_window(const lzs_params *p) {
    if (p->dry_multiplier == 0.0f || p->dry_penalty_last_n == 0) return 0;
    return p->dry_penalty_last_n < 0 ? LZS_MAX_WINDOW : p->dry_penalty_last_n;
}

/* Finds the tokens that would extend a repetition of dry_allowed_length tokens or more. The `count` of their entries, which
 * was 0, becomes the length of the longest one. */
void lzs_dry_match_all(lzs_token_table *longest, const lzs_history *h, const lzs_params *params);

/* The length of the longest repetition that a token would extend and its distance, found anew by a walk through the
 * window; 0 where there is none of dry_allowed_length tokens. */
int32_t lzs_dry_explain(const lzs_history *h, const lzs_params *params, int32_t token, int32_t *distance);

/* What such a token's logit loses. */
float lzs_dry_penalty(const lzs_params *params, int32_t length);

#endif
