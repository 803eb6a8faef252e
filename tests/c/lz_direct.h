/* lz_direct.h - the LZ penalty by its definition: the separators of the whole text from its first token on, and the end of the text
 * compared with every earlier place. What penalty/lz.c must find with its watch.
 *
 * With U for the tokens before a place at distance D that equal the last ones of the text, and S for the tokens since the last
 * separator, a token costs the most of k (log2 V - (log2(D + 1) + log2 L) / L) with L = min(U, S) + 1 >= m, and r (U + 1 - D - a).
 */
#ifndef LZS_TESTS_LZ_DIRECT_H
#define LZS_TESTS_LZ_DIRECT_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "lzsampler_explain.h"

typedef struct lz_direct_price {
    int32_t length, beyond; /* L, and the tokens of the run beyond the allowance */
    int32_t run_length;
    double bits, price;
} lz_direct_price;

static inline bool lz_in_set(const uint32_t *words, size_t n_words, int32_t token) {
    return n_words && (words[token / 32] >> (token % 32)) % 2;
}

/* The tokens since the last separator. */
static inline int32_t lz_direct_since(const lzs_params *p, const int32_t *tokens, int32_t n) {
    int32_t since = 0;
    for (int32_t i = 0; i < n; i++) {
        since++;
        if (lz_in_set(p->lz_separators, p->n_lz_separators, tokens[i])) since = 0;
        if (since < p->lz_min_match && lz_in_set(p->lz_commas, p->n_lz_commas, tokens[i])) since = 0;
    }
    return since;
}

/* What the token at a distance costs for that place alone. */
static inline lz_direct_price lz_price_at(const lzs_params *p, const int32_t *tokens, int32_t n, int32_t n_vocab, int32_t since,
                                          int32_t distance) {
    const int32_t most = p->lz_window < 65535 ? p->lz_window : 65535;
    int32_t same = 0;
    while (same < most && same + distance < n && tokens[n - 1 - same] == tokens[n - 1 - same - distance]) same++;
    lz_direct_price found = {(same < since ? same : since) + 1, same + 1 - distance - p->lz_run_allowance, same + 1, 0.0, 0.0};
    if (found.length >= p->lz_min_match) {
        double cost = (log2(distance + 1.0) + log2(found.length)) / found.length;
        found.bits = fmax(log2(n_vocab) - cost, 0.0);
    }
    found.price = fmax(p->lz_penalty * found.bits, found.beyond > 0 ? p->lz_run_penalty * (double)found.beyond : 0.0);
    if (found.price > FLT_MAX) found.price = FLT_MAX;
    return found;
}

/* The highest price of each token of the vocabulary; 0 where it costs nothing. `tokens` is the whole history. */
static inline void lz_prices(const lzs_params *p, const int32_t *tokens, int32_t n, int32_t n_vocab, lz_direct_price *prices) {
    const int32_t since = lz_direct_since(p, tokens, n);
    const bool on = p->lz_rule == LZS_RULE_DEFAULT;
    for (int32_t t = 0; t < n_vocab; t++) prices[t] = (lz_direct_price){0};
    for (int32_t distance = 1; on && distance <= n && distance <= p->lz_window; distance++) {
        const lz_direct_price found = lz_price_at(p, tokens, n, n_vocab, since, distance);
        lz_direct_price *best = &prices[tokens[n - distance]];
        if (found.price > best->price) *best = found;
    }
}

/* Whether a number of the library, in floats, is that of the definition, in doubles. */
static inline bool lz_same_price(const lzs_params *p, int32_t n_vocab, double got, double expected) {
    return fabs(got - expected) <= 1e-5 * (expected + p->lz_penalty * log2(n_vocab));
}

/* Whether an explanation tells a match that costs the most, and what it costs; `best` is the token's of lz_prices. */
static inline bool lz_explained(const lzs_params *p, const int32_t *tokens, int32_t n, int32_t n_vocab, const lzs_explanation *e,
                                const lz_direct_price *best) {
    if (!e->exempt && !lz_same_price(p, n_vocab, -(double)e->lz_bias, best->price)) return false;
    if (e->exempt && e->lz_bias != 0.0f) return false;
    if (!e->lz_length) return lz_same_price(p, n_vocab, 0.0, best->price) && !e->lz_distance && !e->lz_run && e->lz_bits == 0.0f;
    if (e->lz_distance < 1 || e->lz_distance > n || tokens[n - e->lz_distance] != e->token) return false;
    const lz_direct_price there = lz_price_at(p, tokens, n, n_vocab, lz_direct_since(p, tokens, n), e->lz_distance);
    if (!lz_same_price(p, n_vocab, there.price, best->price)) return false;
    const double price = e->lz_run ? p->lz_run_penalty * (double)e->lz_run : p->lz_penalty * (double)e->lz_bits;
    if (!(price > 0.0) || !lz_same_price(p, n_vocab, fmin(price, FLT_MAX), best->price)) return false;
    if (e->lz_run) return e->lz_run == there.beyond && e->lz_length == there.run_length && e->lz_bits == 0.0f;
    return e->lz_length == there.length;
}

#endif
