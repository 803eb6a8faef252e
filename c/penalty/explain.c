/* explain.c - why a token's logit is changed: the parts of the token's edit, computed for this token alone.
 *
 * A step combines all penalties of a token into one edit and does not keep the parts. This file computes the parts
 * again for a few tokens, by the definitions of the penalties, without the shortcuts of the step. The tests compare
 * both computations.
 */
#include "../state/sorted_tokens.h"
#include "penalty.h"

static float bias_of_user(const lzs_params *p, int32_t token) {
    size_t at = lzs_find_token(p->logit_bias, p->n_logit_bias, sizeof *p->logit_bias, token);
    return at < p->n_logit_bias ? p->logit_bias[at].bias : 0.0f;
}

lzs_explanation lzs_explain_edit(const lzs_history *h, const lzs_params *p, float log2_vocab, int32_t token,
                                 const lzs_edit *edit) {
    lzs_explanation e = {.token = token, .repeat = 1.0f, .free_share = 1.0f};
    if (edit) {
        e.repeat = edit->repeat;
        e.bias = edit->bias;
    }
    e.exempt = lzs_find_token(p->exempt, p->n_exempt, sizeof token, token) < p->n_exempt;
    e.logit_bias = bias_of_user(p, token);
    for (const lzs_penalty *const *row = lzs_penalties; *row; row++) (*row)->explain(&e, h, p, log2_vocab);
    return e;
}
