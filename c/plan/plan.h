/* plan.h - one sampling step as plain data, and how an edit changes a logit. */
#ifndef LZS_PLAN_H
#define LZS_PLAN_H

#include <math.h>
#include <stdbool.h>

#include "../backend/arithmetic.h"
#include "../include/lzsampler_plan.h"

/* The number of 32-bit words of a mask. */
LZS_DEVICE static inline size_t lzs_mask_words(int32_t n_vocab) {
    return ((size_t)n_vocab + 31) / 32;
}

/* A bias of -inf forbids the token, even if its logit is +inf or NaN. Any other edit makes a token less likely, never
 * impossible: a finite logit stays finite. A logit that is not finite stays as it is; the code that reads the row
 * reports a NaN. */
LZS_DEVICE static inline float lzs_apply_edit(const lzs_edit *edit, float x, bool sign_aware) {
    if (edit->bias == -INFINITY) return -INFINITY;
    if (!(x >= -FLT_MAX && x <= FLT_MAX)) return x;
    float scaled = x;
    if (edit->repeat != 1.0f) { /* compute quotient and product, since a mispredicted branch on the sign takes longer */
        float quotient = lzs_quotient(x, edit->repeat), product = x * edit->repeat;
        bool divides = x > 0.0f;
        divides |= !sign_aware;
        uint32_t first = 0u - (uint32_t)divides; /* choose by bits, since compilers may turn a choice of floats into a
                                                  * branch */
        scaled = lzs_bits_float((lzs_float_bits(quotient) & first) | (lzs_float_bits(product) & ~first));
    }
    return lzs_finite(scaled + edit->bias);
}

/* Returns the name of the first number of a plan that is out of range, or NULL. The contents of arrays are not
 * checked. */
const char *lzs_plan_invalid(const lzs_plan *plan);

/* Sets all fields of a plan that come from `params`, and clears the other fields. */
void lzs_plan_settings(lzs_plan *plan, int32_t n_vocab, const lzs_params *params);

#endif
