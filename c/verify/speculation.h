/* speculation.h - verifying a block with rows that were edited already, for example by the device. */
#ifndef LZS_SPECULATION_H
#define LZS_SPECULATION_H

#include <stdbool.h>

#include "../include/lzsampler_verify.h"

/* The target's results for a block: a row of logits for each position, or the tokens picked from such rows. */
typedef struct lzs_target {
    const float *const *rows;   /* rows of logits; ignored if `tokens` is not NULL */
    const int32_t *tokens;      /* NULL, or the token picked from each row by the plan of its position */
    const lzs_status *statuses; /* statuses of these picks */
    bool is_edited;             /* whether the edits of the plans are already applied to the rows */
    bool is_masked;             /* whether the masks of the plans are already applied to the rows */
} lzs_target;

/* Returns a plan without the parts that were already applied to a row. */
static inline lzs_plan lzs_plan_left(const lzs_plan *plan, bool is_edited, bool is_masked) {
    lzs_plan left = *plan;
    if (is_edited) left.n_edits = 0;
    if (is_masked) left.mask = NULL;
    return left;
}

/* As lzs_verify, for a target of n positions. */
lzs_status lzs_verify_target(lzs_speculation *s, const lzs_target *target, size_t n, lzs_verified *verified);

#endif
