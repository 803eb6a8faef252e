/* paper.c - the penalty of the paper (arXiv 2504.20131), as published: computes a bias for each token that occurs in
 * the window of the history. The formulas and their sources are in docs/penalties.md.
 *
 * A match of token t is a position in reach that holds t. Its length L is 1 plus the length of the common suffix of the
 * text and of the tokens before the match. Its distance D is 1 for the last token. At the same distance, a longer match
 * never costs more than a shorter one, since (c + log2 L) / L <= c for c = log2(D + 1) >= 1. So if all matches of a
 * token have length 1, the best is its nearest occurrence, which the token table knows. Only longer matches need a
 * search of the watch.
 */
#include <float.h>

#include "../plan/ranges.h"
#include "../room.h"
#include "penalty.h"

static void set_defaults(lzs_params *p) {
    p->lz_buffer = 32;
    p->lz_formula = LZS_LZ_RATE;
}

static const char *invalid(const lzs_params *p, int32_t n_vocab) {
    (void)n_vocab;
    if (!lzs_choice(p->lz_formula, LZS_LZ_CODELENGTH)) return "lz_formula";
    if (p->lz_rule != LZS_RULE_PAPER) return NULL;
    return p->lz_buffer < 1 || p->lz_buffer > LZS_MAX_BUFFER || p->lz_buffer >= p->lz_window ? "lz_buffer" : NULL;
}

static const char *fixed(const lzs_params *a, const lzs_params *b) {
    if (lzs_paper_is_on(a) != lzs_paper_is_on(b)) return "lz_penalty";
    return a->lz_buffer != b->lz_buffer ? "lz_buffer" : NULL;
}

static void watch(lzs_watch_shape *shape, const lzs_params *p) {
    if (!lzs_paper_is_on(p)) return;
    shape->window = p->lz_window - p->lz_buffer;
    shape->cap = p->lz_buffer;
}

lzs_status lzs_paper_init(lzs_paper *paper, const lzs_params *params, float log2_vocab, int32_t reach) {
    *paper = (lzs_paper){.reach = reach};
    if (!reach) return LZS_OK;
    paper->bias_at = malloc(((size_t)reach + 1) * sizeof *paper->bias_at);
    if (!paper->bias_at) return LZS_ENOMEM;
    lzs_paper_set_prices(paper, params, log2_vocab);
    return LZS_OK;
}

void lzs_paper_set_prices(lzs_paper *paper, const lzs_params *params, float log2_vocab) {
    paper->nearest = (lzs_nearest_price){paper->bias_at, params->lz_penalty, log2_vocab,
                                         params->lz_formula == LZS_LZ_RATE};
    for (int32_t d = 1; d <= paper->reach; d++) {
        paper->bias_at[d] = lzs_paper_bias(params, lzs_log2((float)(d + paper->nearest.plus)), log2_vocab);
    }
}

lzs_status lzs_paper_reserve(lzs_paper *paper, size_t capacity) {
    if (capacity <= paper->capacity) return LZS_OK;
    lzs_paper_match *matches = lzs_room(paper->matches, capacity, sizeof *matches);
    if (!matches) return LZS_ENOMEM;
    paper->matches = matches;
    int32_t *matched = lzs_room(paper->matched, capacity, sizeof *matched);
    if (!matched) return LZS_ENOMEM;
    paper->matched = matched;
    for (size_t i = paper->capacity; i < capacity; i++) matches[i].stamp = 0;
    paper->capacity = capacity;
    return LZS_OK;
}

void lzs_paper_free(lzs_paper *paper) {
    free(paper->bias_at);
    free(paper->matches);
    free(paper->matched);
}

size_t lzs_paper_memory(const lzs_paper *paper) {
    size_t prices = paper->reach ? (size_t)paper->reach + 1 : 0;
    return paper->capacity * (sizeof *paper->matches + sizeof *paper->matched) + prices * sizeof *paper->bias_at;
}

/* Sets a stamp that no match has. */
static void new_stamp(lzs_paper *paper) {
    if (++paper->stamp) return;
    for (size_t i = 0; i < paper->capacity; i++) paper->matches[i].stamp = 0; /* every stamp has been used once */
    paper->stamp = 1;
}

/* Begins the matches of an entry with its nearest occurrence, as a match of length 1. */
static void begin_match(lzs_paper *paper, const lzs_history *h, int32_t entry, bool rate) {
    const int32_t nearest = (int32_t)h->n - h->table.entries[entry].last;
    const float cost = rate ? lzs_log2((float)(nearest + 1)) : 0.0f;
    paper->matches[entry] = (lzs_paper_match){paper->stamp, 1, nearest, nearest, cost};
    paper->matched[paper->n_matched++] = entry;
}

/* Finds the best match of each token. The search goes from near to far. Once a token has a match of the greatest
 * possible length, no later match is better. When all tokens in reach have such a match, as in a text of one repeated
 * pattern, the search ends. */
static void find_best(lzs_paper *paper, const lzs_history *h, bool rate) {
    const lzs_watch *w = &h->watches[LZS_WATCH_paper];
    lzs_match_walk walk = {.reach = lzs_history_reach(h), .least = 1};
    size_t n_final = 0;
    int32_t final_token = -1; /* the last token whose match was found to be final; if this token comes again next, the
                               * table is not searched */
    while (n_final < h->n_in_reach && lzs_match_walk_on(&walk, &w->index, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            int32_t distance = walk.base - walk.found[i], token = h->tokens[h->n - (size_t)distance];
            if (token == final_token) continue;
            int32_t length = lzs_suffix_at(w, distance) + 1, entry = lzs_token_table_find(&h->table, token);
            lzs_paper_match *m = &paper->matches[entry];
            if (m->stamp != paper->stamp) begin_match(paper, h, entry, rate);
            if (length > m->length) { /* in every formula, a match that is farther than another and not longer costs at
                                       * least as much */
                m->length = length;
                m->distance = distance;
                if (rate) {
                    float cost = lzs_rate_cost(length, distance);
                    if (cost < m->value) m->value = cost;
                }
                if (length > w->index.cap) n_final++;
            }
            if (m->length > w->index.cap) final_token = token;
        }
    }
}

static void price_matches(lzs_paper *paper, const lzs_params *p, float log2_vocab) {
    int32_t longest = 0, at = 0; /* for LZS_LZ_CODELENGTH: the longest match of the buffer (l) and its least distance
                                  * (d) */
    for (uint32_t i = 0; i < paper->n_matched; i++) {
        const lzs_paper_match *m = &paper->matches[paper->matched[i]];
        if (m->length - 1 > longest || (m->length - 1 == longest && m->distance < at)) {
            longest = m->length - 1;
            at = m->distance;
        }
    }
    for (uint32_t i = 0; i < paper->n_matched; i++) {
        lzs_paper_match *m = &paper->matches[paper->matched[i]];
        float cost = m->value; /* the cost for LZS_LZ_RATE */
        if (p->lz_formula == LZS_LZ_DISTANCE) {
            cost = lzs_log2((float)m->distance);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH && longest && m->length == longest + 1) {
            cost = lzs_joint_cost(m->length, m->distance, longest, at);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH) {
            cost = lzs_log2((float)m->nearest);
        }
        m->value = lzs_paper_bias(p, cost, log2_vocab);
    }
}

void lzs_paper_match_all(lzs_paper *paper, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    paper->n_matched = 0;
    new_stamp(paper);
    find_best(paper, h, params->lz_formula == LZS_LZ_RATE);
    price_matches(paper, params, log2_vocab);
}

static void settings_changed(lzs_edit_list *e, const lzs_params *before, const lzs_params *p, float log2_vocab) {
    bool priced_anew = p->lz_penalty != before->lz_penalty || p->lz_formula != before->lz_formula;
    if (priced_anew) lzs_paper_set_prices(&e->paper, p, log2_vocab);
}

static void explain(lzs_explanation *e, const lzs_history *h, const lzs_params *p, float log2_vocab) {
    const lzs_watch *w = &h->watches[LZS_WATCH_paper];
    int32_t longest = 0, at = 0; /* over all tokens: the longest common suffix, and its least distance */
    int32_t length = 0, distance = 0, nearest = 0;
    float cheapest = 0.0f;
    if (!h->reach) return;
    for (int32_t d = 1; d <= lzs_history_reach(h); d++) {
        const int32_t suffix = lzs_suffix_at(w, d);
        if (suffix > longest) {
            longest = suffix;
            at = d;
        }
        if (h->tokens[h->n - (size_t)d] != e->token) continue;
        const float cost = lzs_rate_cost(suffix + 1, d);
        const bool better = p->lz_formula == LZS_LZ_RATE ? cost < cheapest : suffix + 1 > length;
        if (!nearest) nearest = d;
        if (length && !better) continue;
        length = suffix + 1;
        distance = d;
        cheapest = cost;
    }
    if (!length) return;
    const bool codelength = p->lz_formula == LZS_LZ_CODELENGTH, joint = codelength && longest && length == longest + 1;
    if (codelength && !joint) {
        length = 1;
        distance = nearest;
    }
    float cost = p->lz_formula == LZS_LZ_RATE ? cheapest : lzs_log2((float)distance);
    if (joint) cost = lzs_joint_cost(length, distance, longest, at);
    e->lz_length = length;
    e->lz_distance = distance;
    e->lz_bits = lzs_paper_bits(p, cost, log2_vocab);
    if (!e->exempt) e->lz_bias = lzs_paper_bias(p, cost, log2_vocab);
}

const lzs_penalty lzs_penalty_paper = {
    .set_defaults = set_defaults,
    .invalid = invalid,
    .fixed = fixed,
    .watch = watch,
    .settings_changed = settings_changed,
    .explain = explain,
    .on_gpu = 1,
};
