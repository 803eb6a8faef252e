/* lz.c - the LZ penalty: computes a bias for each token that would continue a repetition of the history.
 * docs/penalties.md has the rule, and price.h the formula.
 *
 * The price of a token, which is subtracted from its logit, is the highest price of its matches. Of two matches at the
 * same distance, the longer never has the lower price. Of two matches of the same length, the nearer never has the
 * lower price.
 */
#include <float.h>

#include "../plan/ranges.h"
#include "penalty.h"
#include "price.h"

static bool is_on(const lzs_params *p) {
    return p->lz_rule == LZS_RULE_DEFAULT && (p->lz_penalty > 0.0f || p->lz_run_penalty > 0.0f);
}

static void set_defaults(lzs_params *p) {
    p->lz_window = 2048;
    p->lz_min_match = 5;
    p->lz_run_allowance = 32;
}

static const char *invalid(const lzs_params *p, int32_t n_vocab) {
    if (!lzs_choice(p->lz_rule, LZS_RULE_PAPER)) return "lz_rule";
    if (!lzs_within(p->lz_penalty, 0.0f, FLT_MAX)) return "lz_penalty";
    if (p->lz_window < 2 || p->lz_window > LZS_MAX_WINDOW) return "lz_window";
    if (p->lz_rule == LZS_RULE_PAPER) {
        if (p->lz_run_penalty != 0.0f) return "lz_run_penalty";
        if (p->n_lz_separators) return "lz_separators";
        return p->n_lz_commas ? "lz_commas" : NULL;
    }
    if (p->lz_min_match < 1 || p->lz_min_match > p->lz_window || p->lz_min_match > UINT16_MAX) return "lz_min_match";
    if (!lzs_within(p->lz_run_penalty, 0.0f, FLT_MAX)) return "lz_run_penalty";
    if (p->lz_run_allowance < 0 || p->lz_run_allowance > LZS_MAX_WINDOW) return "lz_run_allowance";
    if (!lzs_token_set_valid(p->lz_separators, p->n_lz_separators, n_vocab)) return "lz_separators";
    return lzs_token_set_valid(p->lz_commas, p->n_lz_commas, n_vocab) ? NULL : "lz_commas";
}

static const char *fixed(const lzs_params *a, const lzs_params *b) {
    if (a->lz_rule != b->lz_rule) return "lz_rule";
    if (is_on(a) != is_on(b)) return a->lz_penalty > 0.0f || b->lz_penalty > 0.0f ? "lz_penalty" : "lz_run_penalty";
    if (a->lz_window != b->lz_window) return "lz_window";
    return a->lz_min_match != b->lz_min_match ? "lz_min_match" : NULL;
}

static void watch(lzs_watch_shape *shape, const lzs_params *p) {
    if (!is_on(p)) return;
    shape->window = p->lz_window;
    shape->cap = lzs_most_suffix(p);
    shape->separators = (lzs_separators){.set = p->n_lz_separators ? p->lz_separators : NULL,
                                         .commas = p->n_lz_commas ? p->lz_commas : NULL,
                                         .item = p->lz_min_match};
}

static size_t most(const lzs_params *p) {
    return is_on(p) ? (size_t)p->lz_window : 0;
}

static void find(lzs_token_table *found, const lzs_history *h, const lzs_params *p, float log2_vocab) {
    const lzs_watch *w = &h->watches[LZS_WATCH_lz];
    const int32_t unbroken = lzs_unbroken(w, h->n), least = lzs_least_suffix(p, unbroken);
    if (least > w->index.cap) return;
    lzs_match_walk walk = {.reach = lzs_watched(h, w), .least = (uint16_t)least};
    int32_t seen = -1, seen_suffix = 0; /* in a loop most matches are of the same token, and are no longer than its
                                         * first match */
    while (lzs_match_walk_on(&walk, &w->index, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            const int32_t distance = walk.base - walk.found[i], suffix = lzs_suffix_at(w, distance);
            const int32_t token = h->tokens[h->n - (size_t)distance];
            if (token == seen && suffix <= seen_suffix) continue;
            seen = token;
            seen_suffix = suffix;
            const float cost = lzs_price(p, log2_vocab, (lzs_lz_match){suffix, unbroken, distance});
            if (cost <= 0.0f) continue;
            lzs_token_entry *entry = &found->entries[lzs_token_table_take(found, token)];
            const int32_t bits = (int32_t)lzs_float_bits(cost); /* the bits of positive floats have the same order as
                                                                 * the floats */
            if (bits > entry->count) entry->count = bits;
        }
    }
}

static float price(const lzs_params *p, int32_t bits) {
    (void)p;
    return lzs_bits_float((uint32_t)bits);
}

static void explain(lzs_explanation *e, const lzs_history *h, const lzs_params *p, float log2_vocab) {
    const lzs_watch *w = &h->watches[LZS_WATCH_lz];
    float highest = 0.0f;
    for (int32_t distance = 1; distance <= lzs_watched(h, w); distance++) {
        if (h->tokens[h->n - (size_t)distance] != e->token) continue;
        const lzs_lz_match match = {lzs_suffix_at(w, distance), lzs_unbroken(w, h->n), distance};
        const float cost = lzs_price(p, log2_vocab, match);
        if (cost <= highest) continue;
        const float bits = lzs_match_bits(p, log2_vocab, match);
        const bool run = cost > p->lz_penalty * bits;
        highest = cost;
        e->lz_length = run ? match.suffix + 1 : lzs_said_again(match);
        e->lz_distance = distance;
        e->lz_run = run ? lzs_run_beyond(p, match) : 0;
        e->lz_bits = run ? 0.0f : bits;
    }
    if (!e->exempt && highest > 0.0f) e->lz_bias = -highest;
}

const lzs_penalty lzs_penalty_lz = {
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
