/* explain.c - why a token's logit is changed: the parts of its edit, each found anew for that token alone.
 *
 * A step folds the penalties of all tokens together and forgets what each was made of. Here a few tokens are looked at
 * again, by the definitions of the penalties and not by the shortcuts of the step; the tests compare the two.
 */
#include <stdlib.h>

#include "backend/arithmetic.h"
#include "backend/kernels.h"
#include "plan/plan.h"
#include "sampler.h"
#include "state/sorted_tokens.h"

/* Occurrences in the window of the penalties that count. */
static int32_t count_of(const lzs_history *h, int32_t token) {
    int32_t at = h->count_window ? lzs_token_table_find(&h->table, token) : -1;
    return at < 0 ? 0 : h->table.entries[at].count;
}

static float bias_of_user(const lzs_params *p, int32_t token) {
    size_t at = lzs_find_token(p->logit_bias, p->n_logit_bias, sizeof *p->logit_bias, token);
    return at < p->n_logit_bias ? p->logit_bias[at].bias : 0.0f;
}

static lzs_explanation explained(const lzs_sampler *s, int32_t token) {
    const lzs_history *h = &s->state.history;
    const lzs_params *p = &s->params;
    lzs_explanation e = {.token = token, .repeat = 1.0f, .count_repeat = 1.0f};
    const lzs_edit *edit = lzs_sampler_edit_of(s, token);
    if (edit) {
        e.repeat = edit->repeat;
        e.bias = edit->bias;
    }
    e.exempt = lzs_find_token(p->exempt, p->n_exempt, sizeof token, token) < p->n_exempt;
    lzs_lz_reason lz = lzs_lz_explain(h, p, s->log2_vocab, token);
    e.lz_length = lz.length;
    e.lz_distance = lz.distance;
    e.lz_bits = lz.bits;
    e.count = count_of(h, token);
    e.dry_length = lzs_dry_explain(h, p, token, &e.dry_distance);
    e.logit_bias = bias_of_user(p, token);
    if (e.exempt) return e;
    e.lz_bias = lz.bias;
    if (e.dry_length) e.dry_bias = -lzs_dry_penalty(p, e.dry_length);
    if (e.count) {
        lzs_edit counted = lzs_counted_edit(p, token, e.count);
        e.count_repeat = counted.repeat;
        e.count_bias = counted.bias;
    }
    return e;
}

lzs_status lzs_explain(lzs_sampler *s, const float *logits, const int32_t *tokens, size_t n, lzs_explanation *out) {
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= s->n_vocab) return LZS_EINVAL;
    }
    float *row = malloc((size_t)s->n_vocab * sizeof *row);
    if (!row) return LZS_ENOMEM;
    lzs_plan plan;
    lzs_status status = lzs_sampler_plan(s, &plan);
    if (status == LZS_OK) status = lzs_backend_process(s->backend, logits, &plan, row);
    for (size_t i = 0; status == LZS_OK && i < n; i++) {
        lzs_explanation e = explained(s, tokens[i]);
        lzs_edit edit = {e.token, e.repeat, e.bias};
        e.allowed = lzs_allowed(plan.mask, e.token);
        e.logit = logits[e.token];
        e.edited = lzs_apply_edit(&edit, e.logit, plan.sign_aware);
        e.after = row[e.token];
        out[i] = e;
    }
    free(row);
    return status;
}
