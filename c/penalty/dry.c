/* dry.c - the DRY penalty: computes a bias for each token that would extend a repetition of the history.
 *
 * DRY is by p-e-w (2024, text-generation-webui pull request 5677); names and defaults are as in llama.cpp. Let the text
 * end in n tokens that also occur earlier in the window, followed by token t. If n >= allowed_length, DRY lowers the
 * logit of t by multiplier * base^(n - allowed_length). A repetition contains no breaker, and a breaker is never
 * penalised. The watch (state/watch.h) computes the lengths, up to 65,535.
 */
#include "dry.h"

#include "../plan/ranges.h"
#include "penalty.h"

static void set_defaults(lzs_params *p) {
    p->dry_base = 1.75f;
    p->dry_allowed_length = 2;
    p->dry_penalty_last_n = -1;
}

static const char *invalid(const lzs_params *p, int32_t n_vocab) {
    if (!lzs_within(p->dry_multiplier, 0.0f, FLT_MAX)) return "dry_multiplier";
    if (!lzs_within(p->dry_base, 1.0f, FLT_MAX)) return "dry_base";
    if (p->dry_allowed_length < 0 || p->dry_allowed_length > UINT16_MAX) return "dry_allowed_length";
    if (p->dry_penalty_last_n < -1 || p->dry_penalty_last_n > LZS_MAX_WINDOW) return "dry_penalty_last_n";
    return lzs_tokens_valid(p->dry_breakers, p->n_dry_breakers, n_vocab) ? NULL : "dry_breakers";
}

static const char *fixed(const lzs_params *a, const lzs_params *b) {
    if (!lzs_dry_window(a) != !lzs_dry_window(b)) return "dry_multiplier";
    return lzs_dry_window(a) != lzs_dry_window(b) ? "dry_penalty_last_n" : NULL;
}

static size_t most(const lzs_params *p) {
    return (size_t)lzs_dry_window(p);
}

static void watch(lzs_watch_shape *shape, const lzs_params *p) {
    const int32_t window = lzs_dry_window(p);
    if (!window) return;
    shape->window = window - 1; /* the earlier token that equals the last token must lie in the window, too */
    shape->cap = UINT16_MAX;
    shape->separators = (lzs_separators){.tokens = p->dry_breakers, .n = p->n_dry_breakers};
}

/* The length of a repetition. Only tokens in the window and after the last breaker count. */
static int32_t length_at(const lzs_watch *w, int32_t distance, int32_t unbroken) {
    const int32_t length = lzs_suffix_at(w, distance), inside = w->index.window + 1 - distance;
    const int32_t whole = length < inside ? length : inside;
    return whole < unbroken ? whole : unbroken;
}

/* Finds the tokens that would extend a repetition of dry_allowed_length tokens or more. The `count` of a token becomes
 * the length of its longest repetition. */
static void find(lzs_token_table *longest, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    (void)log2_vocab;
    int32_t least = params->dry_allowed_length > 1 ? params->dry_allowed_length : 1, seen = -1, seen_length = 0;
    const lzs_watch *w = &h->watches[LZS_WATCH_dry];
    const int32_t unbroken = lzs_unbroken(w, h->n);
    if (unbroken < least) return;
    lzs_match_walk walk = {.reach = lzs_watched(h, w), .least = (uint16_t)least};
    while (lzs_match_walk_on(&walk, &w->index, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            int32_t distance = walk.base - walk.found[i], length = length_at(w, distance, unbroken);
            int32_t token = h->tokens[h->n - (size_t)distance];
            bool known = token == seen && length <= seen_length; /* in a loop most matches are of the same token */
            if (!known && length >= least && !lzs_is_separator(&w->separators, token)) {
                lzs_token_entry *entry = &longest->entries[lzs_token_table_take(longest, token)];
                if (length > entry->count) entry->count = length;
                seen = token;
                seen_length = entry->count;
            }
            /* If the whole window has the period `distance`, each match farther away is of a token already seen, and is
             * not longer. */
            if (lzs_suffix_at(w, distance) >= w->index.window + 1 - distance) return;
        }
    }
}

static float price(const lzs_params *params, int32_t length) {
    float power = lzs_finite(lzs_power(params->dry_base, length - params->dry_allowed_length));
    return lzs_finite(params->dry_multiplier * power); /* finite even if the power is out of range */
}

static void explain(lzs_explanation *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    const int32_t least = params->dry_allowed_length > 1 ? params->dry_allowed_length : 1;
    const lzs_watch *w = &h->watches[LZS_WATCH_dry];
    (void)log2_vocab;
    if (!w->index.window || lzs_is_separator(&w->separators, e->token)) return;
    for (int32_t d = 1; d <= lzs_watched(h, w); d++) {
        if (h->tokens[h->n - (size_t)d] != e->token) continue;
        const int32_t length = length_at(w, d, lzs_unbroken(w, h->n));
        if (length >= least && length > e->dry_length) {
            e->dry_length = length;
            e->dry_distance = d;
        }
    }
    if (e->dry_length && !e->exempt) e->dry_bias = -price(params, e->dry_length);
}

const lzs_penalty lzs_penalty_dry = {
    .set_defaults = set_defaults,
    .invalid = invalid,
    .fixed = fixed,
    .watch = watch,
    .most = most,
    .find = find,
    .price = price,
    .explain = explain,
    .on_gpu = 1,
};
