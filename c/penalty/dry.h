/* dry.h - the window of the DRY penalty. */
#ifndef LZS_DRY_H
#define LZS_DRY_H

#include "../include/lzsampler.h"

/* The number of last tokens that DRY looks at; 0 when DRY is off. */
static inline int32_t lzs_dry_window(const lzs_params *p) {
    if (p->dry_multiplier == 0.0f || p->dry_penalty_last_n == 0) return 0;
    return p->dry_penalty_last_n < 0 ? LZS_MAX_WINDOW : p->dry_penalty_last_n;
}

#endif
