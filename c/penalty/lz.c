/* lz.c - the LZ penalty: history -> a bias for each token that the window repeats. The formulas and their sources
 * are in docs/penalties.md.
 *
 * A match of token t is a position in reach that holds t; its length L is one more than the length of the common suffix
 * before it, its distance D is 1 for the last token. At one distance a longer match never costs more, since
 * (c + log2 L) / L <= c for c = log2(D + 1) >= 1. So the best match of a token that only has matches of length 1 is its
 * nearest occurrence, which the token table knows; the index is searched for longer matches alone.
 *
 * With lz_min_match above 1 only matches of that many tokens count. Then most steps find nothing, no token has to be known by
 * its nearest occurrence, and LZ finds its tokens itself, as DRY does. There the price grows with the number of
 * matches, so that a text which pays for a repetition does not go on paying for ever; and the only match of a number is free.
 */
#include "lz.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "../plan/params.h"
#include "penalty.h"

static void set_defaults(lzs_params *p) {
    p->lz_window = 512;
    p->lz_buffer = 32;
    p->lz_formula = LZS_LZ_RATE;
    p->lz_min_match = 1;
}

static const char *invalid(const lzs_params *p, int32_t n_vocab) {
    if (!lzs_within(p->lz_penalty, 0.0f, FLT_MAX)) return "lz_penalty";
    if (p->lz_window < 2 || p->lz_window > LZS_MAX_WINDOW) return "lz_window";
    if (p->lz_buffer < 1 || p->lz_buffer > LZS_MAX_BUFFER || p->lz_buffer >= p->lz_window) return "lz_buffer";
    if (!lzs_choice(p->lz_formula, LZS_LZ_CODELENGTH)) return "lz_formula";
    if (p->lz_min_match < 1 || p->lz_min_match > p->lz_buffer + 1) return "lz_min_match";
    const bool short_ones = p->lz_min_match == 1; /* of which lists can say nothing */
    if (!lzs_tokens_valid(p->lz_breakers, p->n_lz_breakers, n_vocab) || (short_ones && p->n_lz_breakers)) return "lz_breakers";
    if (!lzs_tokens_valid(p->lz_numbers, p->n_lz_numbers, n_vocab) || (short_ones && p->n_lz_numbers)) return "lz_numbers";
    return NULL;
}

static const char *fixed(const lzs_params *a, const lzs_params *b) {
    if ((a->lz_penalty > 0.0f) != (b->lz_penalty > 0.0f)) return "lz_penalty";
    if (a->lz_window != b->lz_window) return "lz_window";
    if (a->lz_buffer != b->lz_buffer) return "lz_buffer";
    return (a->lz_min_match == 1) != (b->lz_min_match == 1) ? "lz_min_match" : NULL;
}

/* Whether LZ finds its tokens itself. */
static bool finds(const lzs_params *p) {
    return p->lz_penalty > 0.0f && p->lz_min_match > 1;
}

static size_t most(const lzs_params *p) {
    return finds(p) ? (size_t)p->lz_window : 0;
}

lzs_status lzs_lz_init(lzs_lz *lz, const lzs_params *params, float log2_vocab, int32_t reach) {
    *lz = (lzs_lz){.reach = reach};
    if (!reach) return LZS_OK;
    lz->bias_at = malloc(((size_t)reach + 1) * sizeof *lz->bias_at);
    if (!lz->bias_at) return LZS_ENOMEM;
    lzs_lz_set_prices(lz, params, log2_vocab);
    return LZS_OK;
}

void lzs_lz_set_prices(lzs_lz *lz, const lzs_params *params, float log2_vocab) {
    lz->nearest = (lzs_nearest_price){lz->bias_at, params->lz_penalty, log2_vocab, params->lz_formula == LZS_LZ_RATE};
    for (int32_t d = 1; d <= lz->reach; d++) {
        lz->bias_at[d] = lzs_bias_of_cost(params, lzs_log2((float)(d + lz->nearest.plus)), log2_vocab);
    }
}

lzs_status lzs_lz_reserve(lzs_lz *lz, size_t capacity) {
    if (capacity <= lz->capacity) return LZS_OK;
    lzs_lz_match *matches = realloc(lz->matches, capacity * sizeof *matches);
    if (!matches) return LZS_ENOMEM;
    lz->matches = matches;
    int32_t *matched = realloc(lz->matched, capacity * sizeof *matched);
    if (!matched) return LZS_ENOMEM;
    lz->matched = matched;
    for (size_t i = lz->capacity; i < capacity; i++) matches[i].stamp = lz->stamp - 1;
    lz->capacity = capacity;
    return LZS_OK;
}

void lzs_lz_free(lzs_lz *lz) {
    free(lz->bias_at);
    free(lz->matches);
    free(lz->matched);
}

size_t lzs_lz_memory(const lzs_lz *lz) {
    size_t prices = lz->reach ? (size_t)lz->reach + 1 : 0;
    return lz->capacity * (sizeof *lz->matches + sizeof *lz->matched) + prices * sizeof *lz->bias_at;
}

/* A stamp that no match has. */
static void new_stamp(lzs_lz *lz) {
    if (++lz->stamp) return;
    for (size_t i = 0; i < lz->capacity; i++) lz->matches[i].stamp = 0; /* the stamps have all been used once */
    lz->stamp = 1;
}

/* What a token's matches are compared with before the first of them is found. */
static lzs_lz_match no_match(const lzs_lz *lz, const lzs_history *h, int32_t distance, int32_t at, bool rate, bool found) {
    if (found) return (lzs_lz_match){.stamp = lz->stamp, .nearest = distance, .value = FLT_MAX};
    int32_t nearest = (int32_t)h->n - h->table.entries[at].last;
    float value = rate ? lzs_log2((float)(nearest + 1)) : 0.0f;
    return (lzs_lz_match){.stamp = lz->stamp, .length = 1, .distance = nearest, .nearest = nearest, .value = value};
}

/* Whether further matches of a token, which are not nearer than this distance, cannot change what its price is multiplied by. */
static bool counted(uint32_t matches, int32_t distance) {
    bool often = lzs_near_matches(matches) >= LZS_LZ_OFTEN * LZS_LZ_TIMES;
    return (often || distance > LZS_LZ_NEAR) && !lzs_one_match(matches);
}

/* The best match of each token. The walk goes from near to far, so a token whose match has the greatest length there is will
 * not find a better one; when that holds for all tokens in reach, as in a text of one repeated pattern, it ends. */
static void find_matches(lzs_lz *lz, const lzs_history *h, const lzs_params *p, lzs_token_table *found) {
    bool rate = p->lz_formula == LZS_LZ_RATE;
    int32_t least = found ? p->lz_min_match : 2;
    lzs_match_walk walk = {.reach = lzs_history_reach(h), .least = (uint16_t)(least - 1)};
    size_t n_final = 0;
    int32_t final_token = -1; /* the last one that no other match changes: runs of it need no look at the table */
    lz->n_matched = 0;
    new_stamp(lz);
    while ((found || n_final < h->n_in_reach) && lzs_match_walk_on(&walk, &h->lz, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            int32_t distance = walk.base - walk.found[i], token = h->tokens[h->n - (size_t)distance];
            if (token == final_token) continue;
            int32_t suffix = lzs_match_length(&h->lz, distance), length = lzs_history_lz_suffix(h, suffix, distance) + 1;
            if (length < least) continue;
            int32_t at = found ? lzs_token_table_take(found, token) : lzs_token_table_find(&h->table, token);
            lzs_lz_match *m = &lz->matches[at];
            if (m->stamp != lz->stamp) {
                *m = no_match(lz, h, distance, at, rate, found);
                lz->matched[lz->n_matched++] = at;
            }
            if (found) {
                m->matches += lzs_counted_match(distance);
                float copies = length > distance ? (float)length / (float)distance : 0.0f;
                if (copies > m->copies) m->copies = copies;
            }
            if (length > m->length) { /* in every formula a match that is further away and not longer costs at least as much */
                m->length = length;
                m->distance = distance;
                if (rate) {
                    float cost = lzs_rate_cost(length, distance);
                    if (cost < m->value) m->value = cost;
                }
                if (length > h->lz.cap) n_final++;
            }
            if (m->length > h->lz.cap && (!found || counted(m->matches, distance))) final_token = token;
        }
    }
}

/* `table`: that of the entries which have matches. */
static void price_matches(lzs_lz *lz, const lzs_params *p, float log2_vocab, const lzs_token_table *table) {
    int32_t longest = 0, at = 0; /* for codelength: the longest match of the buffer (l) and its nearest distance (d) */
    for (uint32_t i = 0; i < lz->n_matched; i++) {
        const lzs_lz_match *m = &lz->matches[lz->matched[i]];
        if (m->length - 1 > longest || (m->length - 1 == longest && m->distance < at)) {
            longest = m->length - 1;
            at = m->distance;
        }
    }
    for (uint32_t i = 0; i < lz->n_matched; i++) {
        lzs_lz_match *m = &lz->matches[lz->matched[i]];
        float cost = m->value; /* rate */
        if (p->lz_formula == LZS_LZ_DISTANCE) {
            cost = lzs_log2((float)m->distance);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH && m->length == longest + 1) {
            cost = lzs_joint_cost(m->length, m->distance, longest, at);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH) {
            cost = lzs_log2((float)m->nearest);
        }
        float times = lzs_times(p, table->entries[lz->matched[i]].token, m->matches, m->copies);
        m->value = lzs_finite(lzs_bias_of_cost(p, cost, log2_vocab) * times);
    }
}

void lzs_lz_match_all(lzs_lz *lz, const lzs_history *h, const lzs_params *params, float log2_vocab, lzs_token_table *found) {
    find_matches(lz, h, params, found);
    price_matches(lz, params, log2_vocab, found ? found : &h->table);
}

static void fold(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    if (!finds(params)) return;
    lzs_lz_match_all(&e->lz, h, params, log2_vocab, &e->found);
    for (uint32_t i = 0; i < e->lz.n_matched; i++) {
        lzs_edit *edit = lzs_edit_of_found(e, h, &e->found.entries[e->lz.matched[i]]);
        edit->bias = lzs_finite(edit->bias + e->lz.matches[e->lz.matched[i]].value);
    }
}

lzs_lz_reason lzs_lz_explain(const lzs_history *h, const lzs_params *p, float log2_vocab, int32_t token) {
    lzs_lz_reason reason = {0}, nearest = {0};
    int32_t longest = 0, at = 0; /* of all tokens: the longest common suffix, and where it is */
    uint32_t matches = 0;
    float copies = 0.0f;
    float cheapest = 0.0f;
    for (int32_t d = 1; h->lz.window && d <= lzs_history_reach(h); d++) {
        int32_t suffix = lzs_history_lz_suffix(h, lzs_match_length(&h->lz, d), d), length = suffix + 1;
        if (length < p->lz_min_match) continue;
        if (suffix > longest) {
            longest = suffix;
            at = d;
        }
        if (h->tokens[h->n - (size_t)d] != token) continue;
        if (p->lz_min_match > 1) {
            matches += lzs_counted_match(d);
            if (length > d && (float)length / (float)d > copies) copies = (float)length / (float)d;
        }
        float cost = lzs_rate_cost(length, d);
        bool better = p->lz_formula == LZS_LZ_RATE ? cost < cheapest : length > reason.length;
        if (!nearest.length) nearest = (lzs_lz_reason){.length = p->lz_min_match == 1 ? 1 : length, .distance = d};
        if (reason.length && !better) continue;
        reason.length = length;
        reason.distance = d;
        cheapest = cost;
    }
    if (!reason.length) return reason;
    bool joint = p->lz_formula == LZS_LZ_CODELENGTH && longest && reason.length == longest + 1;
    if (p->lz_formula == LZS_LZ_CODELENGTH && !joint) reason = nearest;
    float cost = p->lz_formula == LZS_LZ_RATE ? cheapest : lzs_log2((float)reason.distance);
    if (joint) cost = lzs_joint_cost(reason.length, reason.distance, longest, at);
    reason.bits = lzs_bits_of_cost(p, cost, log2_vocab);
    reason.times = lzs_times(p, token, matches, copies);
    if (reason.times > 0.0f) reason.bias = lzs_finite(lzs_bias_of_cost(p, cost, log2_vocab) * reason.times);
    return reason;
}

static void settings_changed(lzs_edit_list *e, const lzs_params *before, const lzs_params *p, float log2_vocab) {
    bool priced_anew = p->lz_penalty != before->lz_penalty || p->lz_formula != before->lz_formula;
    if (priced_anew) lzs_lz_set_prices(&e->lz, p, log2_vocab);
}

static void explain(lzs_explanation *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    lzs_lz_reason reason = lzs_lz_explain(h, params, log2_vocab, e->token);
    e->lz_length = reason.length;
    e->lz_distance = reason.distance;
    e->lz_bits = reason.bits;
    e->lz_times = reason.times;
    if (!e->exempt) e->lz_bias = reason.bias;
}

const lzs_penalty lzs_penalty_lz = {
    .set_defaults = set_defaults,
    .invalid = invalid,
    .fixed = fixed,
    .most = most,
    .fold = fold,
    .settings_changed = settings_changed,
    .explain = explain,
};
