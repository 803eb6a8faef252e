/* rejection.c - modified rejection sampling (Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023, arXiv
 * 2302.01318).
 *
 * A token has the probability q in the draft and p in the target. The token is drafted and then kept with probability
 * min(p, q). Some token is rejected with probability 1 - sum min(p, q). After a rejection, the token is drawn with
 * probability max(p - q, 0) / sum max(p - q, 0). This divisor equals the probability of a rejection, so the token comes
 * from a rejection with probability max(p - q, 0). The sum of min(p, q) and max(p - q, 0) is p. The two distributions
 * may have any supports. Sums are computed in double, in order of ids, so they are the same on every machine.
 */
#include "rejection.h"

/* The probability of a token in q. Successive calls must ask for tokens in ascending order. *at is the number of
 * entries of q that are already passed. */
static double probability(const lzs_sparse *q, int32_t id, size_t *at) {
    while (*at < q->n && q->ids[*at] < id) ++*at;
    return *at < q->n && q->ids[*at] == id ? (double)q->probabilities[*at] : 0.0;
}

/* Draws a token from the excess of p over q, by inverting the distribution function of the excess at u. Returns -1 if
 * there is no excess. */
static int32_t draw_excess(const lzs_sparse *p, const lzs_sparse *q, double u) {
    double sum = 0.0, run = 0.0;
    size_t at = 0;
    int32_t last = -1;
    for (size_t i = 0; i < p->n; i++) {
        double excess = (double)p->probabilities[i] - probability(q, p->ids[i], &at);
        if (excess > 0.0) sum += excess;
    }
    double target = u * sum;
    at = 0;
    for (size_t i = 0; i < p->n && !(run > target); i++) {
        double excess = (double)p->probabilities[i] - probability(q, p->ids[i], &at);
        if (!(excess > 0.0)) continue;
        run += excess;
        last = p->ids[i]; /* even if `run` never exceeds `target` because of rounding, a token with an excess is
                           * drawn */
    }
    return last;
}

int32_t lzs_mrs_token(const lzs_sparse *p, const lzs_sparse *q, int32_t drafted, lzs_noise_key key) {
    size_t at_p = 0, at_q = 0;
    double of_p = probability(p, drafted, &at_p), of_q = probability(q, drafted, &at_q);
    if (lzs_uniform(key, LZS_DOMAIN_ACCEPTANCE) * of_q < of_p) return drafted;
    double u = lzs_uniform(key, LZS_DOMAIN_RESIDUAL);
    int32_t token = draw_excess(p, q, u);
    const lzs_sparse nothing = {0};
    return token >= 0 ? token : draw_excess(p, &nothing, u); /* p = q, and the token was refused only by rounding */
}
