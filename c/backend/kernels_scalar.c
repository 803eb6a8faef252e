/* kernels_scalar.c - the definition of every kernel, one token at a time. */
#include <math.h>

#include "kernels.h"

static float scalar_max_of_group(const lzs_row *row, int32_t group) {
    float max = -INFINITY;
    for (int32_t id = group * LZS_GROUP; id < (group + 1) * LZS_GROUP && id < row->n; id++) {
        if (lzs_allowed(row->mask, id) && row->x[id] > max) max = row->x[id];
    }
    return max;
}

static bool scalar_max(const lzs_row *row, float *maxima, float *best) {
    bool nan = false;
    for (int32_t s = 0; s < lzs_stretches(row->n); s++) {
        best[s] = -INFINITY;
        for (int32_t g = s * LZS_STRETCH_GROUPS; g < (s + 1) * LZS_STRETCH_GROUPS; g++) {
            maxima[g] = scalar_max_of_group(row, g);
            if (maxima[g] > best[s]) best[s] = maxima[g];
        }
    }
    for (int32_t i = 0; i < row->n; i++) nan |= lzs_allowed(row->mask, i) && row->x[i] != row->x[i];
    return nan;
}

static int32_t scalar_gather(const lzs_row *row, const float *maxima, int32_t from, float low, float high,
                             lzs_list *list) {
    for (int32_t first = from; first < row->n; first += LZS_GROUP) {
        int32_t n = list->n;
        if (maxima[lzs_group_of(first)] < low) continue;
        for (int32_t i = first; i < first + LZS_GROUP && i < row->n; i++) {
            float x = row->x[i];
            if (!(x >= low && x <= high) || !lzs_allowed(row->mask, i)) continue;
            if (n == list->capacity) return first;
            list->packed[n++] = lzs_pack(x, i);
        }
        list->n = n;
    }
    return row->n;
}

static int32_t scalar_count(const float *maxima, int32_t n, float low) {
    int32_t count = 0;
    for (int32_t g = 0; g < n; g++) count += maxima[g] >= low;
    return count;
}

static void scalar_weigh(const lzs_row *row, int32_t from, int32_t to, lzs_softmax_scale scale,
                         lzs_histogram *histogram) {
    for (int32_t i = from; i < to; i++) {
        if (lzs_allowed(row->mask, i)) lzs_weigh_one(histogram, lzs_gap_bits(scale, row->x[i]));
    }
}

static void scalar_sum(const lzs_row *row, const float *maxima, int32_t from, int32_t to, lzs_softmax_scale scale,
                       float limit, lzs_sums *sums) {
    (void)maxima;
    for (int32_t i = from; i < to; i++) {
        if (!lzs_allowed(row->mask, i)) continue;
        float y = lzs_gap_bits(scale, row->x[i]);
        uint32_t w = lzs_weight(y);
        sums->total += w;
        if (y < limit) sums->above += w;
    }
}

static float scalar_bounds(lzs_noise_key key, int32_t n, lzs_softmax_scale scale, float low, uint32_t *words,
                           float *maxima) {
    float least = INFINITY;
    for (int32_t g = 0; g < n; g++) {
        if (g % 4 == 0) lzs_noise_words(key, (uint32_t)g >> 2, LZS_DOMAIN_GROUP, words + g);
        maxima[g] = maxima[g] >= low ? lzs_group_bound(scale, maxima[g], words[g]) : INFINITY;
        if (maxima[g] < least) least = maxima[g];
    }
    return least;
}

static int32_t scalar_contenders(const float *bounds, int32_t n, float above, float score, int32_t *groups) {
    int32_t found = 0;
    for (int32_t g = 0; g < n; g++) {
        if (bounds[g] > above && bounds[g] <= score) groups[found++] = g;
    }
    return found;
}

static void scalar_open(const lzs_row *row, int32_t group, uint32_t word, lzs_cut cut, const lzs_race *race,
                        lzs_runners *runners) {
    for (int32_t id = group * LZS_GROUP; id < (group + 1) * LZS_GROUP && id < row->n; id++) {
        float x = row->x[id];
        if (!lzs_inside(cut, lzs_key(x), id) || !lzs_allowed(row->mask, id)) continue;
        if (lzs_group_bound(race->scale, x, word) > race->score) continue; /* false if race->scale.max is infinite */
        runners->ids[runners->n] = id;
        runners->x[runners->n++] = x;
    }
}

static void scalar_run(lzs_race *race, lzs_runners *runners) {
    for (int32_t i = 0; i < runners->n; i++) {
        float x = runners->x[i];
        int32_t id = runners->ids[i];
        uint32_t group = lzs_group_of(id);
        uint32_t word = runners->words ? runners->words[group] : lzs_group_word(race->key, group);
        if (lzs_group_bound(race->scale, x, word) > race->score) continue; /* false if race->scale.max is infinite */
        lzs_run(race, x, id, lzs_token_noise_in(word, race->key, id));
    }
    runners->n = 0;
}

static void scalar_extend(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap) {
    for (int32_t k = 0; k < n; k++) {
        uint16_t longer = len[k] < cap ? (uint16_t)(len[k] + 1) : cap;
        len[k] = tokens[k] == newest ? longer : 0;
    }
}

static int32_t scalar_find_long(const uint16_t *len, int32_t n, uint16_t least, int32_t *indices) {
    int32_t found = 0;
    for (int32_t k = 0; k < n; k++) {
        if (len[k] >= least) indices[found++] = k;
    }
    return found;
}

static void scalar_price_nearest(const lzs_token_entry *entries, int32_t n, int32_t length,
                                 const lzs_nearest_price *price, lzs_edit *edits) {
    const float *bias_at = price->bias_at; /* a local variable, because the compiler must assume that a write to an edit
                                            * changes a struct member. Distances are unsigned, because a signed index
                                            * costs one more instruction for each entry. */
    for (int32_t i = 0; i < n; i++) {
        edits[i] = (lzs_edit){entries[i].token, 1.0f, bias_at[(uint32_t)(length - entries[i].last)]};
    }
}

const lzs_kernels lzs_kernels_scalar = {
    "scalar",      scalar_max,        scalar_max_of_group, scalar_gather, scalar_count,  scalar_weigh,     scalar_sum,
    scalar_bounds, scalar_contenders, scalar_open,         scalar_run,    scalar_extend, scalar_find_long,
    scalar_price_nearest,
};
