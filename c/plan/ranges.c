/* ranges.c - the valid ranges of settings that belong to no penalty. */
#include "ranges.h"

#include "plan.h"

bool lzs_tokens_valid(const int32_t *list, size_t n, int32_t n_vocab) {
    if (n && !list) return false;
    for (size_t i = 0; i < n; i++) {
        if (list[i] < 0 || list[i] >= n_vocab) return false;
    }
    return true;
}

bool lzs_token_set_valid(const uint32_t *words, size_t n, int32_t n_vocab) {
    return n == 0 || (words && n == lzs_mask_words(n_vocab));
}

const char *lzs_sampling_invalid(const lzs_params *p) {
    if (p->temperature != 0.0f && !lzs_within(p->temperature, LZS_MIN_TEMPERATURE, LZS_MAX_TEMPERATURE)) {
        return "temperature";
    }
    if (!lzs_choice(p->temperature_last, 1)) return "temperature_last";
    if (p->top_k < 0) return "top_k";
    if (!lzs_within(p->top_p, 0.0f, 1.0f)) return "top_p";
    if (!lzs_within(p->min_p, 0.0f, 1.0f)) return "min_p";
    if (!lzs_choice(p->ties, LZS_TIES_KEEP)) return "ties";
    return NULL;
}
