/* speculation.h - judging a block by rows that somebody else has edited already. */
#ifndef LZS_SPECULATION_H
#define LZS_SPECULATION_H

#include <stdbool.h>

#include "../include/lzsampler_verify.h"

/* What a target says of a block: a row of logits for each position, or the picked tokens. */
typedef struct lzs_target {
    const float *const *rows;   /* not looked at if there are tokens */
    const int32_t *tokens;      /* NULL, or what was picked from each row by its plan */
    const lzs_status *statuses; /* of these picks */
    bool is_edited;             /* the edits of the plans are applied to the rows, */
    bool is_masked;             /* and their masks */
} lzs_target;

/* A plan without what was applied to a row already. */
static inline lzs_plan lzs_plan_left(const lzs_plan *plan, bool is_edited, bool is_masked) {
    lzs_plan left = *plan;
    if (is_edited) left.n_edits = 0;
    if (is_masked) left.mask = NULL;
    return left;
}

/* lzs_verify, for a target of n positions. */
lzs_status lzs_verify_target(lzs_speculation *s, const lzs_target *target, size_t n, lzs_verified *verified);

#endif
