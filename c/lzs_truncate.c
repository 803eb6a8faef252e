/* lzs_truncate.c - top-k, top-p, min-p as cuts of one order (logit descending, token id ascending).
 *
 * The vocabulary is never sorted. Top-k takes the few tokens above a bound that the maxima of the row's parts give;
 * top-p sums integer weights by coarse bins of y and looks closer at the one bin where the threshold falls; min-p is
 * a binary search over keys. Integer sums do not depend on the order of addition, so a cut has the same bits on every
 * machine. A top-k of more than 1,024 tokens, and thousands of nearly equal logits, take the long way: a radix descent
 * on the keys.
 */
#include <math.h>

#include "lzs_internal.h"

/* ceil(top_p * total) without rounding: top_p as a 32-bit fraction, total below 2^63. At least 1: a token stays. */
static uint64_t top_p_target(float top_p, uint64_t total) {
    uint64_t p = (uint64_t)((double)top_p * 4294967296.0 + 0.5);
    uint64_t high = total >> 32, low = total & 0xffffffffu;
    uint64_t target = p * high + ((p * low + 0xffffffffu) >> 32);
    return target ? target : 1;
}

static float min_p_limit(float min_p) {
    return -lzs_log2(min_p > FLT_MIN ? min_p : FLT_MIN);
}

/* ---- the short list: sorted, then every cut is a prefix ---- */

void lzs_sort(uint64_t *packed, int32_t n) {
    /* Shell sort, descending, gaps of Ciura 2001 continued: short, in place, and never quadratic in practice */
    static const int32_t gaps[] = {1, 4, 10, 23, 57, 132, 301, 701, 1577, 3548, 7983, 17961, 40412, 90927, 204585};
    for (int g = (int)(sizeof gaps / sizeof *gaps) - 1; g >= 0; g--) {
        int32_t gap = gaps[g];
        for (int32_t i = gap; i < n; i++) {
            uint64_t moved = packed[i];
            int32_t j = i;
            for (; j >= gap && packed[j - gap] < moved; j -= gap) packed[j] = packed[j - gap];
            packed[j] = moved;
        }
    }
}

/* The prefix of a sorted list that holds n tokens, and those equal to the last one if ties are kept. */
static void shorten(lzs_list *list, int32_t n, bool keep_ties) {
    if (n >= list->n) return;
    while (keep_ties && n < list->n && list->packed[n] >> 32 == list->packed[n - 1] >> 32) n++;
    list->n = n;
}

static lzs_cut last_of(const lzs_list *list, bool keep_ties) {
    uint64_t last = list->packed[list->n - 1];
    return (lzs_cut){(uint32_t)(last >> 32), keep_ties ? INT32_MAX : lzs_packed_id(last)};
}

/* Number of tokens of a sorted list whose weights together reach the target. */
static int32_t reaching(const lzs_list *list, lzs_scale scale, uint64_t target) {
    uint64_t sum = 0;
    for (int32_t i = 0; i < list->n; i++) {
        sum += lzs_weight(lzs_y(scale, lzs_packed_x(list->packed[i])));
        if (sum >= target) return i + 1;
    }
    return list->n;
}

static lzs_cut truncate_list(lzs_list *list, lzs_scale scale, const lzs_params *params) {
    bool keep_ties = params->ties == LZS_TIES_KEEP;
    if (params->top_p < 1.0f) {
        uint64_t total = 0;
        for (int32_t i = 0; i < list->n; i++) total += lzs_weight(lzs_y(scale, lzs_packed_x(list->packed[i])));
        shorten(list, reaching(list, scale, top_p_target(params->top_p, total)), keep_ties);
    }
    if (params->min_p > 0.0f) {
        float limit = min_p_limit(params->min_p);
        int32_t n = 1;
        while (n < list->n && lzs_y(scale, lzs_packed_x(list->packed[n])) <= limit) n++;
        list->n = n;
    }
    return last_of(list, keep_ties);
}

/* ---- top-k ---- */

/* The k-th largest of n (Hoare's FIND); reorders them. */
static uint64_t kth_largest(uint64_t *packed, int32_t n, int32_t k) {
    int32_t low = 0, high = n - 1;
    while (low < high) {
        uint64_t pivot = packed[k - 1];
        int32_t i = low, j = high;
        while (i <= j) {
            while (packed[i] > pivot) i++;
            while (packed[j] < pivot) j--;
            if (i <= j) {
                uint64_t swapped = packed[i];
                packed[i++] = packed[j];
                packed[j--] = swapped;
            }
        }
        if (j < k - 1) low = i;
        if (k - 1 < i) high = j;
    }
    return packed[k - 1];
}

/* A logit that at least k tokens reach, from the maxima of blocks or of lanes: there are at least k parts. */
static float lower_bound(const lzs_blocks *blocks, int32_t k, lzs_list *room) {
    int32_t n = 0;
    for (int32_t b = 0; b < blocks->n; b++) {
        if (2 * k <= blocks->n) {
            room->packed[n++] = lzs_pack(blocks->best[b], 0);
        } else {
            for (int l = 0; l < LZS_LANES; l++) room->packed[n++] = lzs_pack(blocks->maxima[b][l], 0);
        }
    }
    if (n < k) return -FLT_MAX;
    float bound = lzs_packed_x(kth_largest(room->packed, n, k));
    return bound > -FLT_MAX ? bound : -FLT_MAX; /* -inf: fewer than k parts have an allowed token */
}

/* Leaves the k best of a list, in any order, and those equal to the k-th if ties are kept. */
static void keep_best(lzs_list *list, int32_t k, bool keep_ties) {
    if (k >= list->n) return;
    uint64_t last = kth_largest(list->packed, list->n, k);
    int32_t n = k;
    for (int32_t i = k; keep_ties && i < list->n; i++) {
        if (list->packed[i] >> 32 == last >> 32) list->packed[n++] = list->packed[i];
    }
    list->n = n;
}

/* The k best tokens, sorted; false when the list is too short for their ties. */
static bool take_top_k(const lzs_kernels *kernels, const lzs_row *row, const lzs_blocks *blocks, int32_t k,
                       bool keep_ties, lzs_list *list) {
    float low = lower_bound(blocks, k, list);
    list->n = 0;
    if (!keep_ties && list->capacity > 4 * k + 256) list->capacity = 4 * k + 256; /* a flat row fills what there is */
    for (int32_t b = 0; b < blocks->n; b++) {
        if (blocks->best[b] < low) continue;
        int32_t i = b * blocks->size, to = lzs_block_end(row, blocks, b);
        while ((i = kernels->gather(row, i, to, low, INFINITY, list)) < to) {
            keep_best(list, k, keep_ties);
            if (list->n == list->capacity) return false;
            uint32_t last = (uint32_t)(kth_largest(list->packed, list->n, k) >> 32);
            low = lzs_key_float(keep_ties ? last : last + 1); /* an equal one further on loses its tie */
        }
    }
    keep_best(list, k, keep_ties);
    lzs_sort(list->packed, list->n);
    return true;
}

/* ---- keys by y: y falls as the key grows, so binary searches find where it crosses a value ---- */

/* The lowest key of (low, high] whose y is at most the limit; y(high) is. */
static uint32_t first_within(lzs_scale scale, uint32_t low, uint32_t high, float limit) {
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lzs_y(scale, lzs_key_float(middle)) <= limit) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}

static lzs_cut min_p_cut(lzs_cut cut, lzs_scale scale, float min_p) {
    float limit = min_p_limit(min_p);
    if (lzs_y(scale, lzs_key_float(cut.key)) <= limit) return cut;
    return (lzs_cut){first_within(scale, cut.key, lzs_key(scale.max), limit), INT32_MAX};
}

/* ---- top-p over the whole row ---- */

/* The nth (from 1) allowed token, in order of ids, with this key; -1 when there are fewer. */
static int32_t nth_equal(const lzs_row *row, uint32_t key, uint64_t nth) {
    for (int32_t i = 0; i < row->n; i++) {
        if (lzs_key(row->x[i]) == key && lzs_allowed(row->mask, i) && --nth == 0) return i;
    }
    return -1;
}

static void set_window(lzs_weights *weights, float from, float limit, float per_bit) {
    *weights = (lzs_weights){.from = from, .limit = limit, .per_bit = per_bit};
}

/* The bin where the target falls, and the part of the target that is left for it; LZS_BINS where the bins do not reach
 * it, and the part that is left for what lies below. */
static int32_t crossing_bin(const lzs_weights *weights, uint64_t *target) {
    int32_t b = 0;
    while (b < LZS_BINS && weights->bins[b] < *target) *target -= weights->bins[b++];
    return b;
}

/* About where the target falls, in bits below the top: from 64 tokens of every block, and the best of each. */
static float guess(const lzs_kernels *kernels, const lzs_row *row, const lzs_blocks *blocks, lzs_scale scale,
                   const lzs_params *params, lzs_weights *weights) {
    set_window(weights, 0.0f, 32.0f, 64.0f);
    int32_t parts = blocks->size / 64;
    for (int32_t b = 0; b < blocks->n; b++) {
        int32_t at = b * blocks->size + (b * 7 % parts) * 64;
        if (at + 64 > row->n) continue;
        lzs_row some = {row->x + at, 64, row->mask ? row->mask + at / 32 : NULL};
        kernels->weigh(&some, scale, weights);
        float y = lzs_y(scale, blocks->best[b]);
        uint32_t share = lzs_weight(y) / (uint32_t)parts; /* counted once, where the sample stands for all parts */
        if (y < 32.0f) weights->bins[(int32_t)(y * 64.0f)] += share;
        weights->total += share;
    }
    uint64_t target = top_p_target(params->top_p, weights->total);
    return (float)crossing_bin(weights, &target) / 64.0f;
}

/* The tokens whose keys are from low to high; false when there are too many for the list. */
static bool gather(const lzs_kernels *kernels, const lzs_row *row, const lzs_blocks *blocks, uint32_t low,
                   uint32_t high, lzs_list *list) {
    list->n = 0;
    for (int32_t b = 0; b < blocks->n; b++) {
        if (blocks->best[b] < lzs_key_float(low)) continue;
        int32_t i = b * blocks->size, to = lzs_block_end(row, blocks, b);
        if (kernels->gather(row, i, to, lzs_key_float(low), lzs_key_float(high), list) < to) return false;
    }
    return true;
}

static float float_before(float positive) {
    return lzs_bits_float(lzs_float_bits(positive) - 1);
}

/* The cut of top-p; false when thousands of tokens have so nearly the same logit that bins do not tell them apart. */
static bool top_p_cut(const lzs_kernels *kernels, const lzs_row *row, const lzs_blocks *blocks, lzs_scale scale,
                      const lzs_params *params, lzs_list *list, lzs_cut *cut) {
    bool keep_ties = params->ties == LZS_TIES_KEEP;
    uint32_t top = lzs_key(scale.max), bottom = lzs_key(-FLT_MAX) - 1;
    lzs_weights weights;
    float from = 0.0f, limit = 32.0f;
    if (blocks->size > 64) { /* else the row is small: all of it at once */
        float at = (float)(int32_t)guess(kernels, row, blocks, scale, params, &weights);
        from = at > 1.0f ? at - 1.0f : 0.0f;
        limit = at + 2.0f;
    }
    uint64_t target, whole = 0;
    int32_t bin;
    for (;;) { /* a good guess is right; a bad one tells on which side the target lies */
        set_window(&weights, from, limit, 64.0f);
        kernels->weigh(row, scale, &weights);
        if (!whole) whole = top_p_target(params->top_p, weights.total);
        target = whole - weights.above;
        if (whole <= weights.above) {
            limit = from;
            from = from > 4.0f ? from - 4.0f : 0.0f;
            continue;
        }
        bin = crossing_bin(&weights, &target);
        if (bin < LZS_BINS) break;
        from = limit;
        limit += 4.0f;
    }
    for (int zoom = 0; zoom < 2; zoom++) {
        from = weights.from + (float)bin / weights.per_bit;
        limit = from + 1.0f / weights.per_bit;
        uint32_t low = first_within(scale, bottom, top, float_before(limit));
        uint32_t high = from > 0.0f ? first_within(scale, bottom, top, float_before(from)) - 1 : top;
        if (gather(kernels, row, blocks, low, high, list)) {
            lzs_sort(list->packed, list->n);
            shorten(list, reaching(list, scale, target), keep_ties);
            *cut = last_of(list, keep_ties);
            return true;
        }
        if (from == 0.0f) { /* a flat row: the target may be reached by tokens at the maximum alone */
            int32_t last = nth_equal(row, top, (target + lzs_weight(0.0f) - 1) / lzs_weight(0.0f));
            if (last >= 0) {
                *cut = (lzs_cut){top, keep_ties ? INT32_MAX : last};
                return true;
            }
        }
        set_window(&weights, from, limit, weights.per_bit * LZS_BINS);
        kernels->weigh(row, scale, &weights);
        bin = crossing_bin(&weights, &target);
    }
    return false;
}

/* ---- the long way ---- */

enum { RADIX_BINS = 2048 };
static const int32_t shifts[] = {21, 10, 0}, widths[] = {11, 11, 10};

/* bins[d] = number (scale NULL) or sum of weights of the tokens inside the cut whose key continues the prefix with d. */
static void histogram(const lzs_row *row, lzs_cut cut, const lzs_scale *scale, uint32_t prefix, int level,
                      uint64_t bins[RADIX_BINS]) {
    uint32_t n_bins = 1u << widths[level];
    for (uint32_t b = 0; b < n_bins; b++) bins[b] = 0;
    for (int32_t i = 0; i < row->n; i++) {
        uint32_t key = lzs_key(row->x[i]);
        /* 64 bits because the first digit shifts by all 32 */
        if (((uint64_t)key >> (shifts[level] + widths[level])) != prefix) continue;
        if (!lzs_inside(cut, key, i) || !lzs_allowed(row->mask, i)) continue;
        bins[(key >> shifts[level]) & (n_bins - 1)] += scale ? lzs_weight(lzs_y(*scale, row->x[i])) : 1;
    }
}

/* The cut where the cumulative count, or with a scale the cumulative weight, reaches what top-k or top-p wants of the
 * tokens inside the cut. */
static lzs_cut descend(const lzs_row *row, lzs_cut cut, const lzs_scale *scale, const lzs_params *params) {
    uint64_t bins[RADIX_BINS], target = 0;
    uint32_t prefix = 0;
    for (int level = 0; level < 3; level++) {
        histogram(row, cut, scale, prefix, level, bins);
        uint32_t b = (1u << widths[level]) - 1;
        if (level == 0) {
            uint64_t total = 0;
            for (uint32_t i = 0; i <= b; i++) total += bins[i];
            target = scale ? top_p_target(params->top_p, total) : (uint64_t)params->top_k;
            if (target > total) return cut; /* top-k of more than there are */
        }
        while (bins[b] < target) target -= bins[b--]; /* ends: the bins together hold at least the target */
        prefix = (prefix << widths[level]) | b;
    }
    /* every token with this key has the same weight: the target is reached by this many of them, lowest ids first */
    uint64_t each = scale ? lzs_weight(lzs_y(*scale, lzs_key_float(prefix))) : 1;
    int32_t last = params->ties == LZS_TIES_KEEP ? INT32_MAX : nth_equal(row, prefix, (target + each - 1) / each);
    if (prefix == cut.key && last > cut.id) last = cut.id;
    return (lzs_cut){prefix, last};
}

/* ---- all of it ---- */

static lzs_cut truncate(const lzs_kernels *kernels, const lzs_params *params, lzs_survivors *v) {
    const lzs_row *row = &v->row;
    lzs_cut cut = {lzs_key(-FLT_MAX), INT32_MAX};
    lzs_scale scale = {v->top.max, lzs_temperature_scale(params->temperature_last ? 1.0f : params->temperature)};
    bool keep_ties = params->ties == LZS_TIES_KEEP;
    bool cut_by_k = params->top_k > 0 && params->top_k < row->n;
    if (cut_by_k && params->top_k <= LZS_SHORT_TOP_K &&
        take_top_k(kernels, row, &v->blocks, params->top_k, keep_ties, &v->list)) {
        return truncate_list(&v->list, scale, params);
    }
    if (cut_by_k) cut = descend(row, cut, NULL, params);
    if (params->top_p < 1.0f) {
        bool found = !cut_by_k && top_p_cut(kernels, row, &v->blocks, scale, params, &v->list, &cut);
        if (!found) cut = descend(row, cut, &scale, params);
    }
    if (params->min_p > 0.0f) cut = min_p_cut(cut, scale, params->min_p);
    v->list.n = 0; /* not all that stays is in the list */
    return cut;
}

lzs_status lzs_survive(const lzs_kernels *kernels, const lzs_row *row, const lzs_params *params, lzs_survivors *v) {
    v->row = *row;
    v->list = (lzs_list){v->packed, 0, LZS_LIST};
    v->blocks.size = 64;
    while ((row->n - 1) / v->blocks.size >= LZS_MAX_BLOCKS) v->blocks.size *= 2;
    v->blocks.n = (row->n - 1) / v->blocks.size + 1;
    kernels->max(row, &v->blocks, &v->top);
    if (v->top.nan) return LZS_ENAN;
    if (v->top.argmax < 0) return LZS_EMASKED;
    if (params->temperature > 0.0f) {
        v->cut = truncate(kernels, params, v);
    } else { /* greedy: the lowest id at the maximum */
        v->cut = (lzs_cut){lzs_key(v->top.max), v->top.argmax};
    }
    return LZS_OK;
}
