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
#include <string.h>

#include "../plan/params.h"
#include "../room.h"
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
    if (!lzs_tokens_valid(p->lz_marks, p->n_lz_marks, n_vocab) || (short_ones && p->n_lz_marks)) return "lz_marks";
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
    lzs_lz_match *matches = lzs_room(lz->matches, capacity, sizeof *matches);
    if (!matches) return LZS_ENOMEM;
    lz->matches = matches;
    int32_t *matched = lzs_room(lz->matched, capacity, sizeof *matched);
    if (!matched) return LZS_ENOMEM;
    lz->matched = matched;
    for (size_t i = lz->capacity; i < capacity; i++) matches[i].stamp = 0;
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

/* The length that a match at a distance has. */
static int32_t length_at(const lzs_history *h, int32_t distance) {
    return lzs_history_lz_suffix(h, lzs_match_length(&h->lz, distance), distance) + 1;
}

/* The matches of an entry begin. */
static void begin_match(lzs_lz *lz, int32_t entry, lzs_lz_match none) {
    none.stamp = lz->stamp;
    lz->matches[entry] = none;
    lz->matched[lz->n_matched++] = entry;
}

/* The best match of each token, where matches of length 1 are priced. The walk goes from near to far, so a token whose match has
 * the greatest length there is will not find a better one; when that holds for all tokens in reach, as in a text of one
 * repeated pattern, it ends. */
static void find_best(lzs_lz *lz, const lzs_history *h, bool rate) {
    lzs_match_walk walk = {.reach = lzs_history_reach(h), .least = 1};
    size_t n_final = 0;
    int32_t final_token = -1; /* the last one that no other match changes: runs of it need no look at the table */
    while (n_final < h->n_in_reach && lzs_match_walk_on(&walk, &h->lz, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            int32_t distance = walk.base - walk.found[i], token = h->tokens[h->n - (size_t)distance];
            if (token == final_token) continue;
            int32_t length = length_at(h, distance), entry = lzs_token_table_find(&h->table, token);
            lzs_lz_match *m = &lz->matches[entry];
            if (m->stamp != lz->stamp) {
                int32_t nearest = (int32_t)h->n - h->table.entries[entry].last;
                float cost = rate ? lzs_log2((float)(nearest + 1)) : 0.0f;
                begin_match(lz, entry, (lzs_lz_match){.length = 1, .distance = nearest, .nearest = nearest, .value = cost});
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
            if (m->length > h->lz.cap) final_token = token;
        }
    }
}

/* The last tokens of the history, looked at as far back as somebody asks, until LZS_LZ_WORDS of them are no breakers. */
typedef struct last_words {
    int32_t looked_at, words;
} last_words;

/* Whether so many of the last n tokens are no breakers. */
static bool has_words(last_words *w, const lzs_history *h, int32_t n) {
    while (w->looked_at < n && w->words < LZS_LZ_WORDS) {
        w->looked_at++;
        w->words += !lzs_is_breaker(&h->lz_breakers, h->tokens[h->n - (size_t)w->looked_at]);
    }
    return w->words == LZS_LZ_WORDS && w->looked_at <= n;
}

static bool ends_plainly(const lzs_history *h) {
    const size_t close = h->n < LZS_LZ_CLOSE ? h->n : (size_t)LZS_LZ_CLOSE;
    int32_t n = 0;
    for (size_t i = 1; i <= close; i++) n += lzs_is_breaker(&h->lz_breakers, h->tokens[h->n - i]);
    return n < LZS_LZ_PLAIN;
}

/* Asked where it matters, which it seldom does. */
static bool is_plain(lzs_lz *lz, const lzs_history *h) {
    if (lz->plain < 0) lz->plain = ends_plainly(h);
    return lz->plain > 0;
}

/* A walk over the matches, where those of length 1 do not count. */
typedef struct counted_walk {
    lzs_lz *lz;
    const lzs_history *h;
    const lzs_params *p;
    lzs_token_table *found;
    last_words words;
    bool rate;
} counted_walk;

/* Adds a match that counts to those of its token; of matches of one length the nearer ones come first. In every formula one that is
 * further away than the longest and not longer costs at least as much. */
static void count_match(counted_walk *w, lzs_lz_match *m, int32_t length, int32_t distance) {
    m->matches += lzs_counted_match(distance);
    if (length > distance && lzs_copies(length, distance, true) > m->copies) {
        const bool words = has_words(&w->words, w->h, distance) && is_plain(w->lz, w->h);
        const float copies = lzs_copies(length, distance, words);
        if (copies > m->copies) m->copies = copies;
    }
    if (distance < m->nearest) m->nearest = distance;
    if (w->rate && (length > m->length || distance < m->distance)) {
        float cost = lzs_rate_cost(length, distance);
        if (cost < m->value) m->value = cost;
    }
    if (length > m->length) {
        m->length = length;
        m->distance = distance;
    }
}

/* Tokens of which matches of any length count. */
typedef struct dense_tokens {
    int32_t n, tokens[LZS_LZ_CLOSE / LZS_LZ_DENSE];
} dense_tokens;

static bool is_dense(const dense_tokens *dense, int32_t token) {
    for (int32_t i = 0; i < dense->n; i++) {
        if (dense->tokens[i] == token) return true;
    }
    return false;
}

static void find_dense(dense_tokens *dense, const lzs_history *h, const lzs_params *p) {
    const int32_t reach = lzs_history_reach(h), close = reach < LZS_LZ_CLOSE ? reach : (int32_t)LZS_LZ_CLOSE;
    const int32_t *tokens = h->tokens + h->n - (size_t)close;
    uint8_t counts[256] = {0}; /* of tokens with the same last byte, of which few texts have many */
    bool any = false;
    dense->n = 0;
    if (!p->n_lz_marks || close < LZS_LZ_DENSE) return;
    for (int32_t i = 0; i < close; i++) any |= ++counts[(uint8_t)tokens[i]] >= LZS_LZ_DENSE;
    for (int32_t i = 0; any && i < close; i++) {
        int32_t n = 0;
        if (counts[(uint8_t)tokens[i]] < LZS_LZ_DENSE || is_dense(dense, tokens[i])) continue;
        for (int32_t k = 0; k < close; k++) n += tokens[k] == tokens[i];
        if (n >= LZS_LZ_DENSE && !lzs_listed(p->lz_marks, p->n_lz_marks, tokens[i])) dense->tokens[dense->n++] = tokens[i];
    }
}

/* The match of an entry, which begins where there is none. */
static lzs_lz_match *match_of(lzs_lz *lz, int32_t entry) {
    lzs_lz_match *m = &lz->matches[entry];
    if (m->stamp != lz->stamp) begin_match(lz, entry, (lzs_lz_match){.nearest = INT32_MAX, .value = FLT_MAX});
    return m;
}

/* Adds the matches of lz_min_match tokens or more, and counts those that are shorter by one; false where there is none of these. */
static bool add_full(counted_walk *w) {
    const int32_t least = lzs_short_length(w->p), full = w->p->lz_min_match;
    lzs_match_walk walk = {.reach = lzs_history_reach(w->h), .least = (uint16_t)(least - 1)};
    bool shorter = false;
    while (lzs_match_walk_on(&walk, &w->h->lz, w->h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            const int32_t distance = walk.base - walk.found[i], length = length_at(w->h, distance);
            if (length < least || (length < full && distance > LZS_LZ_NEAR)) continue;
            lzs_lz_match *m = match_of(w->lz, lzs_token_table_take(w->found, w->h->tokens[w->h->n - (size_t)distance]));
            if (length >= full) count_match(w, m, length, distance);
            m->near = (int16_t)(m->near + (distance <= LZS_LZ_NEAR));
            shorter |= length < full;
        }
    }
    return shorter;
}

/* Adds the matches of a token that are shorter than lz_min_match. */
static void add_dense(counted_walk *w, int32_t token) {
    const int32_t reach = lzs_history_reach(w->h);
    lzs_lz_match *m = match_of(w->lz, lzs_token_table_take(w->found, token));
    for (int32_t distance = 1; distance <= reach; distance++) {
        if (w->h->tokens[w->h->n - (size_t)distance] != token) continue;
        const int32_t length = length_at(w->h, distance);
        if (length < w->p->lz_min_match) count_match(w, m, length, distance);
    }
    m->near = INT16_MIN;
}

/* Adds the matches that are shorter by one, of the tokens that have many. */
static void add_shorter(counted_walk *w) {
    const int32_t least = lzs_short_length(w->p);
    lzs_match_walk walk = {.reach = lzs_history_reach(w->h), .least = (uint16_t)(least - 1)};
    while (lzs_match_walk_on(&walk, &w->h->lz, w->h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            const int32_t distance = walk.base - walk.found[i];
            if (length_at(w->h, distance) != least) continue;
            lzs_lz_match *m = match_of(w->lz, lzs_token_table_take(w->found, w->h->tokens[w->h->n - (size_t)distance]));
            if (m->near >= LZS_LZ_MANY) count_match(w, m, least, distance);
        }
    }
}

/* The matches that count, where those of length 1 do not. Only where a token has many that are too short, or comes very often, are
 * these looked at. */
static void find_counted(lzs_lz *lz, const lzs_history *h, const lzs_params *p, lzs_token_table *found) {
    counted_walk walk = {.lz = lz, .h = h, .p = p, .found = found, .rate = p->lz_formula == LZS_LZ_RATE};
    dense_tokens dense;
    bool shorter = add_full(&walk), many = false;
    find_dense(&dense, h, p);
    for (int32_t i = 0; i < dense.n; i++) add_dense(&walk, dense.tokens[i]);
    for (uint32_t i = 0; i < lz->n_matched && shorter; i++) many |= lz->matches[lz->matched[i]].near >= LZS_LZ_MANY;
    if (many && is_plain(lz, h)) add_shorter(&walk);
}

/* `table`: that of the entries which have matches. */
static void price_matches(lzs_lz *lz, const lzs_history *h, const lzs_params *p, float log2_vocab, const lzs_token_table *table) {
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
        if (!m->length) continue;
        float cost = m->value; /* rate */
        if (p->lz_formula == LZS_LZ_DISTANCE) {
            cost = lzs_log2((float)m->distance);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH && longest && m->length == longest + 1) {
            cost = lzs_joint_cost(m->length, m->distance, longest, at);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH) {
            cost = lzs_log2((float)m->nearest);
        }
        const bool plain = lzs_near_matches(m->matches) > LZS_LZ_STEEP && is_plain(lz, h);
        float times = lzs_times(p, table->entries[lz->matched[i]].token, m->matches, m->copies, plain);
        m->value = lzs_finite(lzs_bias_of_cost(p, cost, log2_vocab) * times);
    }
}

void lzs_lz_match_all(lzs_lz *lz, const lzs_history *h, const lzs_params *params, float log2_vocab, lzs_token_table *found) {
    lz->n_matched = 0;
    lz->plain = -1;
    new_stamp(lz);
    if (found) {
        find_counted(lz, h, params, found);
    } else {
        find_best(lz, h, params->lz_formula == LZS_LZ_RATE);
    }
    price_matches(lz, h, params, log2_vocab, found ? found : &h->table);
}

static void fold(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    if (!finds(params)) return;
    lzs_lz_match_all(&e->lz, h, params, log2_vocab, &e->found);
    for (uint32_t i = 0; i < e->lz.n_matched; i++) {
        const lzs_lz_match *m = &e->lz.matches[e->lz.matched[i]];
        if (!m->length) continue;
        lzs_edit *edit = lzs_edit_of_found(e, h, &e->found.entries[e->lz.matched[i]]);
        edit->bias = lzs_finite(edit->bias + m->value);
    }
}

/* Whether a match counts that is shorter than lz_min_match, by looking at all of its token. */
static bool counts_shorter(const lzs_history *h, const lzs_params *p, const dense_tokens *dense, bool plain, int32_t token,
                           int32_t length) {
    const int32_t reach = lzs_history_reach(h), least = lzs_short_length(p);
    int32_t near = 0;
    if (is_dense(dense, token)) return true;
    if (!plain || length < least) return false;
    for (int32_t d = 1; d <= reach && d <= LZS_LZ_NEAR; d++) {
        near += h->tokens[h->n - (size_t)d] == token && length_at(h, d) >= least;
    }
    return near >= LZS_LZ_MANY;
}

lzs_lz_reason lzs_lz_explain(const lzs_history *h, const lzs_params *p, float log2_vocab, int32_t token) {
    lzs_lz_reason reason = {0}, nearest = {0};
    int32_t longest = 0, at = 0; /* of all tokens: the longest common suffix, and where it is */
    uint32_t matches = 0;
    last_words words = {0};
    dense_tokens dense;
    float copies = 0.0f;
    float cheapest = 0.0f;
    if (!h->lz.window) return reason;
    const bool plain = ends_plainly(h);
    find_dense(&dense, h, p);
    for (int32_t d = 1; d <= lzs_history_reach(h); d++) {
        const int32_t length = length_at(h, d), there = h->tokens[h->n - (size_t)d];
        if (length < p->lz_min_match && !counts_shorter(h, p, &dense, plain, there, length)) continue;
        if (length - 1 > longest) {
            longest = length - 1;
            at = d;
        }
        if (there != token) continue;
        if (p->lz_min_match > 1) {
            matches += lzs_counted_match(d);
            if (length > d) {
                const float those = lzs_copies(length, d, plain && has_words(&words, h, d));
                if (those > copies) copies = those;
            }
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
    reason.times = lzs_times(p, token, matches, copies, plain);
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
