/* counts.c - the repetition, frequency and presence penalties: their settings and explanations. counted.h computes the
 * penalties. */
#include "../plan/ranges.h"
#include "penalty.h"

static void set_defaults(lzs_params *p) {
    p->repetition_penalty = 1.0f;
    p->repetition_method = LZS_MULTIPLICATIVE;
    p->sign_aware = 1;
}

static bool strength(float x, int32_t method, float off) {
    return lzs_within(x, -FLT_MAX, FLT_MAX) && (method == LZS_SUBTRACTIVE || x >= FLT_MIN || x == off);
}

static const char *invalid(const lzs_params *p, int32_t n_vocab) {
    (void)n_vocab;
    if (!lzs_choice(p->repetition_method, LZS_MULTIPLICATIVE)) return "repetition_method";
    if (!lzs_choice(p->frequency_method, LZS_MULTIPLICATIVE)) return "frequency_method";
    if (!lzs_choice(p->presence_method, LZS_MULTIPLICATIVE)) return "presence_method";
    if (!strength(p->repetition_penalty, p->repetition_method, 1.0f)) return "repetition_penalty";
    if (!strength(p->frequency_penalty, p->frequency_method, 0.0f)) return "frequency_penalty";
    if (!strength(p->presence_penalty, p->presence_method, 0.0f)) return "presence_penalty";
    if (!lzs_choice(p->sign_aware, 1)) return "sign_aware";
    return p->penalty_window < 0 ? "penalty_window" : NULL;
}

static const char *fixed(const lzs_params *a, const lzs_params *b) {
    if (!lzs_count_window(a) != !lzs_count_window(b)) return "repetition_penalty";
    return lzs_count_window(a) != lzs_count_window(b) ? "penalty_window" : NULL;
}

static void explain(lzs_explanation *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    (void)log2_vocab;
    int32_t at = h->count_window ? lzs_token_table_find(&h->table, e->token) : -1;
    e->count = at < 0 ? 0 : h->table.entries[at].count;
    e->count_repeat = 1.0f;
    if (e->exempt || !e->count) return;
    lzs_edit counted = lzs_counted_edit(params, e->token, e->count);
    e->count_repeat = counted.repeat;
    e->count_bias = counted.bias;
}

const lzs_penalty lzs_penalty_counts = {
    .set_defaults = set_defaults,
    .invalid = invalid,
    .fixed = fixed,
    .explain = explain,
    .on_gpu = 1,
};
