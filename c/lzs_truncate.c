/* lzs_truncate.c - top-k, top-p, min-p as cuts of one order (logit descending, token id ascending).
 *
 * Nothing is sorted: where a count or a cumulative weight reaches its target is found by a radix descent on the
 * ordered keys of the logits, three histograms of 11, 11 and 10 bits. Weights are integers (lzs_weight), so their
 * sums do not depend on the order of addition and the cut has the same bits on every machine.
 */
#include "lzs_internal.h"

static const int32_t shifts[] = {21, 10, 0}, widths[] = {11, 11, 10};

/* The cut where the cumulative count (scale NULL) or weight, from the top, reaches a target that `target_of` makes of
 * the total; the cut as it was when everything is within the target. */
static lzs_cut descend(const lzs_kernels *k, const lzs_row *row, lzs_cut cut, const lzs_scale *scale, bool keep_ties,
                       uint64_t (*target_of)(const lzs_params *params, uint64_t total), const lzs_params *params) {
    uint64_t target = 0, bins[LZS_RADIX_BINS];
    uint32_t prefix = 0;
    for (int level = 0; level < 3; level++) {
        lzs_digit digit = {prefix, shifts[level], widths[level]};
        uint32_t n_bins = 1u << digit.bits;
        for (uint32_t b = 0; b < n_bins; b++) bins[b] = 0;
        if (scale) {
            k->weigh(row, cut, digit, *scale, bins);
        } else {
            k->count(row, cut, digit, bins);
        }
        if (level == 0) {
            uint64_t total = 0;
            for (uint32_t b = 0; b < n_bins; b++) total += bins[b];
            target = target_of(params, total);
            if (target > total) return cut; /* top-k of more than there are */
        }
        uint32_t b = n_bins - 1;
        while (bins[b] < target) target -= bins[b--]; /* ends: the bins together hold at least the target */
        prefix = (prefix << digit.bits) | b;
    }
    /* every token with this key has the same weight: `target` is reached by this many of them, lowest ids first */
    uint64_t each = 1;
    if (scale) each = lzs_weight(lzs_y(*scale, lzs_key_float(prefix)));
    uint64_t needed = (target + each - 1) / each;
    int32_t last = keep_ties ? INT32_MAX : k->nth_equal(row, prefix, needed);
    if (prefix == cut.key && last > cut.id) last = cut.id;
    return (lzs_cut){prefix, last};
}

static uint64_t top_k_target(const lzs_params *params, uint64_t total) {
    (void)total;
    return (uint64_t)params->top_k;
}

/* ceil(top_p * total) without rounding: top_p as a 32-bit fraction, total below 2^63. */
static uint64_t top_p_target(const lzs_params *params, uint64_t total) {
    uint64_t p = (uint64_t)((double)params->top_p * 4294967296.0 + 0.5);
    uint64_t high = total >> 32, low = total & 0xffffffffu;
    uint64_t target = p * high + ((p * low + 0xffffffffu) >> 32);
    return target ? target : 1; /* at least one token stays */
}

/* min-p as a cut of keys: the lowest key whose y is within log2(1 / min_p). y falls as the key grows, so a binary
 * search over the keys finds it, and min-p costs no pass over the vocabulary. */
static lzs_cut min_p_cut(lzs_cut cut, lzs_scale scale, float min_p) {
    float limit = -lzs_log2(min_p > FLT_MIN ? min_p : FLT_MIN);
    uint32_t low = cut.key, high = lzs_key(scale.max); /* y(high) = 0 is always within the limit */
    if (lzs_y(scale, lzs_key_float(low)) <= limit) return cut;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lzs_y(scale, lzs_key_float(middle)) <= limit) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return (lzs_cut){high, INT32_MAX};
}

lzs_cut lzs_truncate(const lzs_kernels *k, const lzs_row *row, const lzs_params *params, const lzs_top *top) {
    lzs_cut cut = {lzs_key(-FLT_MAX), INT32_MAX};
    lzs_scale scale = {top->max, lzs_temperature_scale(params->temperature_last ? 1.0f : params->temperature)};
    bool keep_ties = params->ties == LZS_TIES_KEEP;
    if (params->top_k > 0 && params->top_k < row->n) {
        cut = descend(k, row, cut, NULL, keep_ties, top_k_target, params);
    }
    if (params->top_p < 1.0f) cut = descend(k, row, cut, &scale, keep_ties, top_p_target, params);
    if (params->min_p > 0.0f) cut = min_p_cut(cut, scale, params->min_p);
    return cut;
}
