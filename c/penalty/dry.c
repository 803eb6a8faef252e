/* dry.c - the DRY penalty: history -> a bias for each token that would extend a repetition.
 *
 * DRY (p-e-w 2024, text-generation-webui pull request 5677; names and defaults as in llama.cpp): let the text end in n
 * tokens that stand earlier in the window as well, followed there by t. If n >= allowed_length, t loses
 * multiplier * base^(n - allowed_length). A repetition may not contain a breaker, and a breaker is never penalised. The
 * lengths come from the match index, which counts up to 65,535.
 */
#include "dry.h"

#include "penalty.h"

lzs_status lzs_dry_reserve(lzs_dry *dry, const lzs_history *h, size_t n) {
    if (!h->dry.window) return LZS_OK;
    size_t most = n < (size_t)h->dry.window ? n : (size_t)h->dry.window;
    return lzs_token_table_reserve(&dry->longest, most < (size_t)h->n_vocab ? most : (size_t)h->n_vocab);
}

void lzs_dry_match_all(lzs_dry *dry, const lzs_history *h, const lzs_params *params) {
    lzs_token_table_clear(&dry->longest);
    int32_t least = params->dry_allowed_length > 1 ? params->dry_allowed_length : 1, seen = -1, seen_length = 0;
    if (h->unbroken < (size_t)least) return;
    lzs_match_walk walk = {.reach = lzs_history_dry_reach(h), .least = (uint16_t)least};
    while (lzs_match_walk_on(&walk, &h->dry, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            int32_t distance = walk.base - walk.found[i], length = lzs_match_length(&h->dry, distance);
            int32_t inside = h->dry.window + 1 - distance; /* the repetition lies in the window as a whole */
            bool whole = length >= inside;
            if (whole) length = inside;
            if ((size_t)length > h->unbroken) length = (int32_t)h->unbroken;
            int32_t token = h->tokens[h->n - (size_t)distance];
            bool known = token == seen && length <= seen_length; /* most matches of a loop are of one token */
            if (!known && length >= least && !lzs_history_is_breaker(h, token)) {
                lzs_token_entry *entry = &dry->longest.entries[lzs_token_table_take(&dry->longest, token)];
                if (length > entry->count) entry->count = length;
                seen = token;
                seen_length = entry->count;
            }
            /* The whole window has this period: each match further away is one of those seen, and not longer. */
            if (whole) return;
        }
    }
}

float lzs_dry_penalty(const lzs_params *params, int32_t length) {
    float power = lzs_finite(lzs_power(params->dry_base, length - params->dry_allowed_length));
    return lzs_finite(params->dry_multiplier * power); /* a tiny multiplier stays one where the power is out of range */
}

int32_t lzs_dry_explain(const lzs_history *h, const lzs_params *params, int32_t token, int32_t *distance) {
    int32_t least = params->dry_allowed_length > 1 ? params->dry_allowed_length : 1, longest = 0;
    *distance = 0;
    if (!h->dry.window || lzs_history_is_breaker(h, token)) return 0;
    for (int32_t d = 1; d <= lzs_history_dry_reach(h); d++) {
        if (h->tokens[h->n - (size_t)d] != token) continue;
        int32_t length = lzs_match_length(&h->dry, d), inside = h->dry.window + 1 - d;
        if (length > inside) length = inside;
        if ((size_t)length > h->unbroken) length = (int32_t)h->unbroken;
        if (length >= least && length > longest) {
            longest = length;
            *distance = d;
        }
    }
    return longest;
}
