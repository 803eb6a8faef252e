/* counted.h - computes the repetition, frequency and presence penalties of one token from the number of its
 * occurrences.
 *
 * Each penalty has two methods, subtractive and multiplicative. Multiplicative penalties multiply `repeat`, and
 * subtractive penalties lower `bias`. The order is repetition, frequency, presence.
 */
#ifndef LZS_COUNTED_H
#define LZS_COUNTED_H

#include "../backend/arithmetic.h"
#include "../include/lzsampler_plan.h"

/* The number of last tokens in which the repetition, frequency and presence penalties count occurrences: 0 if these
 * penalties are off, SIZE_MAX for the whole history. */
static inline size_t lzs_count_window(const lzs_params *p) {
    const float off = p->repetition_method == LZS_MULTIPLICATIVE ? 1.0f : 0.0f;
    if (p->repetition_penalty == off && p->frequency_penalty == 0.0f && p->presence_penalty == 0.0f) return 0;
    return p->penalty_window ? (size_t)p->penalty_window : SIZE_MAX;
}

/* b^n for n >= 0 by squaring: the same products in the same order on every machine. */
LZS_DEVICE static inline float lzs_power(float b, int32_t n) {
    float p = 1.0f;
    for (; n > 0; n >>= 1, b *= b) {
        if (n & 1) p *= b;
    }
    return p;
}

/* The edit that the three penalties make for a token with `count` occurrences. */
LZS_DEVICE static inline lzs_edit lzs_counted_edit(const lzs_params *p, int32_t token, int32_t count) {
    lzs_edit edit = {token, 1.0f, 0.0f};
    if (count == 0) return edit;
    if (p->repetition_method == LZS_MULTIPLICATIVE) {
        edit.repeat *= p->repetition_penalty;
    } else {
        edit.bias -= p->repetition_penalty;
    }
    if (p->frequency_penalty != 0.0f) {
        if (p->frequency_method == LZS_MULTIPLICATIVE) {
            edit.repeat *= lzs_power(p->frequency_penalty, count);
        } else {
            edit.bias -= (float)count * p->frequency_penalty;
        }
    }
    if (p->presence_penalty != 0.0f) {
        if (p->presence_method == LZS_MULTIPLICATIVE) {
            edit.repeat *= p->presence_penalty;
        } else {
            edit.bias -= p->presence_penalty;
        }
    }
    /* a factor outside the range of floats would turn a logit of 0 into NaN, and a finite logit into -inf */
    edit.repeat = lzs_finite(edit.repeat < FLT_MIN ? FLT_MIN : edit.repeat);
    edit.bias = lzs_finite(edit.bias);
    return edit;
}

#endif
