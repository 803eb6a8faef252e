/* kernels_simd.h - all kernels, written once with the vector operations of an instruction set. Each kernels_<isa>.c
 * defines the operations (v_*), LZS_FN (the function attributes), LZS_NAME and LZS_TABLE, and then includes this
 * header.
 *
 * Results have the bits of kernels_scalar.c: sums are of integers, and floats go through the same single operations in
 * the same order. If a cheap bound says that a token cannot win the race, its exact score is not computed.
 */
#include <math.h>

#define V_GROUP (LZS_GROUP / V_LANES) /* number of vectors that hold a group */

/* Loads the logits of V_LANES tokens; the logit is -inf if the mask forbids the token. Callers pass `masked` as a
 * constant. */
LZS_FN LZS_INLINE vf loaded_if(const lzs_row *row, int32_t i, bool masked) {
    return masked ? v_load_if(row->x + i, row->mask[i >> 5] >> (i & 31)) : v_load(row->x + i);
}

LZS_FN LZS_INLINE vf loaded(const lzs_row *row, int32_t i) {
    return loaded_if(row, i, row->mask != NULL);
}

LZS_FN static inline float loaded_one(const lzs_row *row, int32_t i) {
    return lzs_allowed(row->mask, i) ? row->x[i] : -INFINITY;
}

/* Returns the maxima over a group, lane by lane. *unordered records whether a logit is NaN. If so, the result is
 * undefined. */
LZS_FN LZS_INLINE vf max_of_lanes(const lzs_row *row, int32_t i, vm *unordered, bool masked) {
    vf max[2]; /* two accumulators, because with one accumulator each maximum would wait for the previous one */
    for (int v = 0; v < V_GROUP; v += 2) {
        vf x = loaded_if(row, i + v * V_LANES, masked), y = loaded_if(row, i + (v + 1) * V_LANES, masked);
        max[0] = v == 0 ? x : v_max(x, max[0]);
        max[1] = v == 0 ? y : v_max(y, max[1]);
        *unordered = v_or(*unordered, v_unordered(x, y));
    }
    return v_max(max[0], max[1]);
}

/* Finds the maxima of the groups of the last stretch, which may be short. */
LZS_FN LZS_INLINE bool max_of_rest(const lzs_row *row, int32_t i, float *groups, vm *unordered, bool masked) {
    bool nan = false;
    for (int32_t g = 0; g < LZS_STRETCH_GROUPS; g++) {
        groups[g] = -INFINITY;
        if (row->n - i >= LZS_GROUP) {
            groups[g] = v_greatest(max_of_lanes(row, i, unordered, masked));
            i += LZS_GROUP;
            continue;
        }
        for (; i < row->n; i++) {
            float x = loaded_one(row, i);
            if (x != x) nan = true;
            if (x > groups[g]) groups[g] = x;
        }
    }
    return nan;
}

LZS_FN LZS_INLINE bool max_of_groups(const lzs_row *row, float *maxima, float *best, bool masked) {
    vm unordered = v_unordered(v_set(0.0f), v_set(0.0f)); /* false in all lanes */
    bool nan = false;
    for (int32_t s = 0; s < lzs_stretches(row->n); s++) {
        float *groups = maxima + s * LZS_STRETCH_GROUPS;
        int32_t i = s * LZS_STRETCH;
        if (row->n - i < LZS_STRETCH) {
            nan = max_of_rest(row, i, groups, &unordered, masked);
        } else {
            for (int32_t g = 0; g < LZS_STRETCH_GROUPS; g += V_LANES) {
                vf lanes[V_LANES];
                for (int32_t k = 0; k < V_LANES; k++) {
                    lanes[k] = max_of_lanes(row, i + (g + k) * LZS_GROUP, &unordered, masked);
                }
                v_store(groups + g, v_maxima(lanes));
            }
        }
        vf all = v_load(groups);
        for (int32_t g = V_LANES; g < LZS_STRETCH_GROUPS; g += V_LANES) all = v_max(v_load(groups + g), all);
        best[s] = v_greatest(all);
    }
    return nan || v_bits(unordered);
}

LZS_FN static bool simd_max(const lzs_row *row, float *maxima, float *best) {
    return row->mask ? max_of_groups(row, maxima, best, true) : max_of_groups(row, maxima, best, false);
}

LZS_FN static float simd_max_of_group(const lzs_row *row, int32_t group) {
    if (row->n - group * LZS_GROUP < LZS_GROUP) return lzs_kernels_scalar.max_of_group(row, group);
    vm unordered = v_unordered(v_set(0.0f), v_set(0.0f));
    return v_greatest(max_of_lanes(row, group * LZS_GROUP, &unordered, true));
}

/* Branches on the number of tokens to gather in a group are hard for the CPU to predict. So the work without these
 * branches comes first, for many groups at a time. */
LZS_FN static int32_t simd_gather(const lzs_row *row, const float *maxima, int32_t from, float low, float high,
                                  lzs_list *list) {
    enum { CHUNK = 128 };
    uint32_t groups[CHUNK + V_LANES];
    uint64_t found[CHUNK];
    int32_t n_whole = row->n / LZS_GROUP, g = (int32_t)lzs_group_of(from) / V_LANES * V_LANES;
    vf lows = v_set(low), highs = v_set(high);
    while (g < n_whole) {
        int n = 0, n_found = 0;
        for (; g < n_whole && n <= CHUNK - V_LANES; g += V_LANES) { /* list the groups that may have tokens to gather */
            uint32_t bits = v_bits(v_ge(v_load(maxima + g), lows));
            if (g * LZS_GROUP < from) bits = bits >> (from / LZS_GROUP - g) << (from / LZS_GROUP - g);
            if (n_whole - g < V_LANES) bits &= (1u << (n_whole - g)) - 1;
            v_compress(groups + n, v_ids(g), bits);
            n += lzs_bit_count(bits);
        }
        for (int k = 0; k < n; k++) { /* find the tokens to gather in the listed groups */
            int32_t first = (int32_t)groups[k] * LZS_GROUP;
            uint64_t bits = 0;
            for (int v = 0; v < V_GROUP; v++) {
                vf x = v_load(row->x + first + v * V_LANES);
                bits |= (uint64_t)v_bits(v_and(v_ge(x, lows), v_ge(highs, x))) << (v * V_LANES);
            }
            if (row->mask) bits &= row->mask[first >> 5] | (uint64_t)row->mask[(first >> 5) + 1] << 32;
            groups[n_found] = groups[k];
            found[n_found] = bits;
            n_found += bits != 0;
        }
        for (int k = 0; k < n_found; k++) {
            int32_t first = (int32_t)groups[k] * LZS_GROUP;
            uint64_t bits = found[k];
            if (list->capacity - list->n < LZS_GROUP && list->capacity - list->n < lzs_bit_count_64(bits)) return first;
            uint64_t *packed = list->packed + list->n;
            do {
                int32_t id = first + lzs_lowest_bit_64(bits);
                *packed++ = lzs_pack(row->x[id], id);
                bits &= bits - 1;
            } while (bits);
            list->n = (int32_t)(packed - list->packed);
        }
    }
    int32_t rest = n_whole * LZS_GROUP;
    return lzs_kernels_scalar.gather(row, maxima, rest > from ? rest : from, low, high, list);
}

LZS_FN static int32_t simd_count(const float *maxima, int32_t n, float low) {
    int32_t count = 0;
    for (int32_t g = 0; g < n; g += V_LANES) count += lzs_bit_count(v_bits(v_ge(v_load(maxima + g), v_set(low))));
    return count;
}

/* Returns lzs_weight(y) of each lane. `s` is 16 y, and y >= 0 or +inf. */
LZS_FN static inline vi weights_of(vf s) {
    vi m = v_truncate(s);
    vf d = v_sub(v_fraction(s, m), v_set(LZS_WEIGHT_ORIGIN));
    vf v = v_mul(v_add(v_mul(d, d), v_set(LZS_WEIGHT_LEAST)), v_weight_table(m));
    /* From y = 32 on, 32 or more bits are shifted out, so the result is 0, even if s is too large to convert. */
    return v_shift_right(v_truncate(v), v_shift_right_4(m));
}

/* Returns the gap y of each lane, for a finite maximum. */
LZS_FN static inline vf gaps_of(vf x, lzs_softmax_scale scale) {
    return v_mul(v_sub(v_set(scale.max), x), v_set(scale.scale));
}

/* Returns the scale with which gaps_of gives 16 y. Where a weight depends on 16 y, this 16 y has the bits of 16.0f *
 * y. */
LZS_FN static inline lzs_softmax_scale in_sixteenths(lzs_softmax_scale scale) {
    return (lzs_softmax_scale){scale.max, scale.scale * 16.0f};
}

/* Sums of the weights of at most 1,024 tokens, in lanes of 32 bits. `low` sums the weights modulo 2^32. `high` sums the
 * upper 24 bits of each weight. A lane of `high` cannot overflow: it is at most 256 * 2^23. `low` supplies the low bits
 * that `high` leaves out. */
typedef struct lane_sums {
    vi low, high;
} lane_sums;

LZS_FN static inline lane_sums with_weights(lane_sums s, vi w) {
    return (lane_sums){v_add_int(s.low, w), v_add_int(s.high, v_shift_right_8(w))};
}

LZS_FN static inline lane_sums with_weights_where(lane_sums s, vm where, vi w) {
    return (lane_sums){v_add_where(s.low, where, w), v_add_where(s.high, where, v_shift_right_8(w))};
}

LZS_FN static inline uint64_t sum_of_lanes(lane_sums s) {
    return (v_sum_wide(s.high) << 8) + v_sum_wide(v_sub_int(s.low, v_shift_left_8(s.high)));
}

/* Adds n tokens of the window to their bins. `gaps` has 16 y of each token, and room for a whole vector after the n
 * values. If `whole`, n is a multiple of V_LANES, and tokens beyond the window have no weight. */
LZS_FN LZS_INLINE void fill_bins(lzs_histogram *h, float *gaps, int n, bool count, bool whole) {
    vf from = v_set(h->from * 16.0f), per_16th = v_set(h->per_bit * 0.0625f), last = v_set((float)(LZS_BINS - 1));
    uint32_t weights[V_LANES], bins[V_LANES];
    if (!whole) v_store(gaps + n, from); /* the loop reads the last vector whole */
    for (int k = 0; k < n; k += V_LANES) {
        vf y = v_load(gaps + k), bin = v_mul(v_sub(y, from), per_16th);
        int left = whole || n - k > V_LANES ? V_LANES : n - k;
        v_store_int((int32_t *)bins, v_truncate(whole ? v_min(bin, last) : bin));
        if (!count) v_store_int((int32_t *)weights, weights_of(y));
        for (int l = 0; l < left; l++) h->bins[bins[l]] += count ? 1 : weights[l];
    }
}

/* Gaps in the window are collected until there are many, because branches on single gaps would be hard to predict.
 * `whole` says that every token with a weight is in the window. */
LZS_FN LZS_INLINE void weigh_part(const lzs_row *row, int32_t from_id, int32_t to, lzs_softmax_scale scale,
                                  lzs_histogram *h, bool masked, bool count, bool whole) {
    enum { ROOM = 256 };
    float waiting[ROOM + 2 * V_LANES];
    int n_waiting = 0;
    vf from = v_set(h->from * 16.0f), limit = v_set(h->limit * 16.0f);
    lane_sums total = {v_zero(), v_zero()}, above = total;
    uint64_t n_above = 0;
    int32_t i = from_id;
    for (; to - i >= V_LANES; i += V_LANES) {
        vf y = gaps_of(loaded_if(row, i, masked), in_sixteenths(scale));
        vm outer = v_gt(from, y);
        uint32_t bits = v_bits(v_gt(limit, y)) & ~v_bits(outer);
        if (count) {
            n_above += (uint64_t)lzs_bit_count(v_bits(outer));
        } else {
            vi w = weights_of(y);
            total = with_weights(total, w);
            if (!whole) above = with_weights_where(above, outer, w);
        }
        if (whole) {
            v_store(waiting + n_waiting, y);
            n_waiting += V_LANES;
        } else {
            if (!V_COMPRESSES && !bits) continue;
            v_compress((uint32_t *)waiting + n_waiting, v_bits_of(y), bits);
            n_waiting += lzs_bit_count(bits);
        }
        if (n_waiting < ROOM) continue;
        fill_bins(h, waiting, n_waiting, count, whole);
        n_waiting = 0;
    }
    fill_bins(h, waiting, n_waiting, count, whole);
    h->above += count ? n_above : sum_of_lanes(above);
    h->total += sum_of_lanes(total);
    for (; i < to; i++) {
        if (lzs_allowed(row->mask, i)) lzs_weigh_one(h, lzs_gap_bits(scale, row->x[i]));
    }
}

LZS_FN LZS_INLINE void weigh_masked(const lzs_row *row, int32_t from, int32_t to, lzs_softmax_scale scale,
                                    lzs_histogram *h, bool masked) {
    if (h->count) {
        weigh_part(row, from, to, scale, h, masked, true, false);
    } else if (h->from == 0.0f && h->limit == 32.0f && h->per_bit == 64.0f) {
        weigh_part(row, from, to, scale, h, masked, false, true);
    } else {
        weigh_part(row, from, to, scale, h, masked, false, false);
    }
}

LZS_FN static void simd_weigh(const lzs_row *row, int32_t from, int32_t to, lzs_softmax_scale scale, lzs_histogram *h) {
    if (!(scale.max < INFINITY)) {
        lzs_kernels_scalar.weigh(row, from, to, scale, h);
    } else {
        row->mask ? weigh_masked(row, from, to, scale, h, true) : weigh_masked(row, from, to, scale, h, false);
    }
}

enum { BLOCK = 256 }; /* number of tokens of four groups */

/* Adds the weights of a block to the sums. `small` says that the block's weights in each lane add up to less than 2^32.
 * `outer` says that some gaps may be below the limit. */
LZS_FN LZS_INLINE void sum_block(const lzs_row *row, int32_t i, lzs_softmax_scale scale, vf limit,
                                 lane_sums *total, lane_sums *above, bool masked, bool small, bool outer) {
    vi all = v_zero(), outside = v_zero();
    for (int v = 0; v < BLOCK / V_LANES; v++) {
        vf y = gaps_of(loaded_if(row, i + v * V_LANES, masked), scale);
        vi w = weights_of(y);
        if (small) {
            all = v_add_int(all, w);
            if (outer) outside = v_add_where(outside, v_gt(limit, y), w);
        } else {
            *total = with_weights(*total, w);
            if (outer) *above = with_weights_where(*above, v_gt(limit, y), w);
        }
    }
    if (small) *total = with_weights(*total, all);
    if (small && outer) *above = with_weights(*above, outside);
}

/* The best token of a block bounds all weights of the block, so it decides what the block's sums need. */
LZS_FN LZS_INLINE void sum_part(const lzs_row *row, const float *maxima, int32_t from, int32_t to,
                                lzs_softmax_scale scale, float limit, lzs_sums *sums, bool masked) {
    /* a lane sums 2^(small + 1) weights of a block */
    const float small = BLOCK / V_LANES == 16 ? 3.0f : BLOCK / V_LANES == 32 ? 4.0f : 5.0f;
    lane_sums total = {v_zero(), v_zero()}, above = total;
    lzs_softmax_scale scale_16 = in_sixteenths(scale);
    vf limits = v_set(limit * 16.0f);
    int32_t i = from;
    for (; to - i >= BLOCK; i += BLOCK) {
        const float *groups = maxima + lzs_group_of(i);
        float a = groups[0] > groups[1] ? groups[0] : groups[1], b = groups[2] > groups[3] ? groups[2] : groups[3];
        float y = lzs_gap_bits(scale, a > b ? a : b);
        if (y >= 31.0f) continue; /* all weights of the block are 0 */
        if (y < small) {
            sum_block(row, i, scale_16, limits, &total, &above, masked, false, true);
        } else if (y < limit) {
            sum_block(row, i, scale_16, limits, &total, &above, masked, true, true);
        } else {
            sum_block(row, i, scale_16, limits, &total, &above, masked, true, false);
        }
    }
    sums->total += sum_of_lanes(total);
    sums->above += sum_of_lanes(above);
    lzs_kernels_scalar.sum(row, maxima, i, to, scale, limit, sums);
}

LZS_FN static void simd_sum(const lzs_row *row, const float *maxima, int32_t from, int32_t to, lzs_softmax_scale scale,
                            float limit, lzs_sums *sums) {
    if (!(scale.max < INFINITY)) {
        lzs_kernels_scalar.sum(row, maxima, from, to, scale, limit, sums);
    } else if (row->mask) {
        sum_part(row, maxima, from, to, scale, limit, sums, true);
    } else {
        sum_part(row, maxima, from, to, scale, limit, sums, false);
    }
}

/* Writes the keys of the ten rounds of Philox, two for each round. The keys are in memory, because a broadcasting load
 * takes no longer than a plain load. */
LZS_FN static inline void round_keys(lzs_noise_key key, uint64_t keys[20]) {
    for (uint32_t r = 0; r < 10; r++) {
        keys[2 * r] = key.seed[0] + r * 0x9E3779B9u;
        keys[2 * r + 1] = key.seed[1] + r * 0xBB67AE85u;
    }
}

/* Returns lzs_log2_below of each lane. */
LZS_FN static inline vf log2_below(vi k, float below) {
    return v_sub(v_mul(v_float(v_bits_of(v_float(k))), v_set(0x1p-23f)), v_set(below));
}

/* Replaces the maxima of one vector of groups by bounds. The least bound so far is kept as the greatest negated bound,
 * because v_greatest finds the greatest lane, and no operation finds the least. */
LZS_FN static inline vf bounds_of(vi words, float *maxima, lzs_softmax_scale scale, float low, vf greatest) {
    vf below = log2_below(v_shift_right_6(words), LZS_BELOW_LOG2(LZS_GROUP_BITS));
    vf max = v_load(maxima);
    vf bound = v_select(v_ge(max, v_set(low)), v_add(gaps_of(max, scale), below), v_set(INFINITY));
    v_store(maxima, bound);
    return v_max(v_sub(v_set(0.0f), bound), greatest);
}

LZS_FN static float simd_bounds(lzs_noise_key key, int32_t n, lzs_softmax_scale scale, float low, uint32_t *words,
                                float *maxima) {
    uint64_t keys[20];
    round_keys(key, keys);
    vf greatest = v_set(-INFINITY);
    for (int32_t g = 0; g < n; g += 4 * V_LANES) {
        vi c[4];
        v_philox(keys, key.position, LZS_DOMAIN_GROUP, (uint32_t)g >> 2, c);
        for (int32_t j = 0; j < 4 && g + j * V_LANES < n; j++) {
            v_store_int((int32_t *)words + g + j * V_LANES, c[j]);
            greatest = bounds_of(c[j], maxima + g + j * V_LANES, scale, low, greatest);
        }
    }
    return -v_greatest(greatest);
}

LZS_FN static int32_t simd_contenders(const float *bounds, int32_t n, float above, float score, int32_t *groups) {
    int32_t found = 0;
    for (int32_t g = 0; g < n; g += V_LANES) {
        vf bound = v_load(bounds + g);
        uint32_t bits = v_bits(v_and(v_gt(bound, v_set(above)), v_ge(v_set(score), bound)));
        if (!V_COMPRESSES && !bits) continue;
        v_compress((uint32_t *)groups + found, v_ids(g), bits);
        found += lzs_bit_count(bits);
    }
    return found;
}

LZS_FN static void simd_open(const lzs_row *row, int32_t group, uint32_t word, lzs_cut cut, const lzs_race *race,
                             lzs_runners *runners) {
    int32_t first = group * LZS_GROUP, last = cut.id - first; /* the last member that stays if its key equals the cut's
                                                               * key */
    if (!(race->scale.max < INFINITY) || row->n - first < LZS_GROUP) {
        lzs_kernels_scalar.open(row, group, word, cut, race, runners);
        return;
    }
    uint64_t stay = last >= 63 ? ~(uint64_t)0 : last < 0 ? 0 : ((uint64_t)2 << last) - 1;
    vf low = v_set(lzs_key_float(cut.key)), score = v_set(race->score);
    vf bound_of_minimum = v_set(lzs_log2_below(word >> 6, LZS_BELOW_LOG2(LZS_GROUP_BITS)));
    uint64_t possible = 0;
    for (int v = 0; v < V_GROUP; v++) {
        vf x = loaded(row, first + v * V_LANES), bound = v_add(gaps_of(x, race->scale), bound_of_minimum);
        uint32_t inside = v_bits(v_gt(x, low)) | (v_bits(v_ge(x, low)) & (uint32_t)(stay >> (v * V_LANES)));
        possible |= (uint64_t)(v_bits(v_ge(score, bound)) & inside) << (v * V_LANES);
    }
    int32_t n = runners->n; /* a local variable, because the compiler must assume that an append changes a struct
                             * member */
    for (; possible; possible &= possible - 1) {
        runners->ids[n] = first + lzs_lowest_bit_64(possible);
        runners->x[n] = row->x[runners->ids[n]];
        n++;
    }
    runners->n = n;
}

/* Returns lzs_log2_1p of each lane. */
LZS_FN LZS_INLINE vf log2_1p_of(vf x) {
    vf q = v_set(lzs_log2_factors[0]);
    for (int i = 1; i < LZS_LOG2_FACTORS; i++) q = v_add(v_mul(q, x), v_set(lzs_log2_factors[i]));
    return v_mul(q, x);
}

/* Returns lzs_log2 of each lane. */
LZS_FN LZS_INLINE vf log2_of(vf v) {
    vi e = v_log2_exponent(v);
    return v_add(v_float(e), log2_1p_of(v_sub(v_without_exponent(v, e), v_set(1.0f))));
}

/* Returns lzs_exponential((k + 1/2) * unit) for each lane. Both branches of lzs_exponential use one polynomial. The
 * branch for small v has no exponent to add. */
LZS_FN LZS_INLINE vf exponential_of(vi k, float unit) {
    vf v = v_min(v_mul(v_add(v_float(k), v_set(0.5f)), v_set(unit)), v_set(1.0f - 0x1p-24f));
    vf rest = v_sub(v_set(1.0f), v);
    vi e = v_log2_exponent(rest);
    vm small = v_gt(v_set(0x1.555554p-2f), v);
    vf x = v_select(small, v_sub(v_set(0.0f), v), v_sub(v_without_exponent(rest, e), v_set(1.0f)));
    return v_sub(v_set(0.0f), v_add(v_select(small, v_set(0.0f), v_float(e)), log2_1p_of(x)));
}

LZS_FN static void simd_run(lzs_race *race, lzs_runners *runners) {
    if (!(race->scale.max < INFINITY)) {
        lzs_kernels_scalar.run(race, runners);
        return;
    }
    uint64_t keys[20];
    float scores[V_LANES];
    round_keys(race->key, keys);
    for (int32_t i = 0; i < runners->n; i += V_LANES) {
        for (int32_t k = runners->n; k < i + V_LANES; k++) { /* running a token twice changes nothing */
            runners->ids[k] = runners->ids[i];
            runners->x[k] = runners->x[i];
        }
        vi ids = v_load_int(runners->ids + i);
        vi groups = v_shift_right_6(ids), own = v_words(keys, race->key.position, LZS_DOMAIN_TOKEN, ids);
        vi words = runners->words ? v_look_up(runners->words, groups)
                                  : v_words(keys, race->key.position, LZS_DOMAIN_GROUP, groups);
        vf gaps = gaps_of(v_load(runners->x + i), race->scale);
        vm holders = v_same_member(ids, words);
        vf bound = v_add(gaps, log2_below(v_shift_right_1(own), LZS_BELOW_LOG2(LZS_TOKEN_BITS)));
        if (!v_bits(v_or(v_ge(v_set(race->score), bound), holders))) continue;
        vf minimum = v_mul(exponential_of(v_shift_right_6(words), 0x1p-26f), v_set(0x1p-6f));
        vf noise = v_select(holders, minimum, v_add(minimum, exponential_of(v_shift_right_1(own), 0x1p-31f)));
        vf score = v_add(gaps, log2_of(noise));
        v_store(scores, score);
        for (uint32_t bits = v_bits(v_ge(v_set(race->score), score)); bits; bits &= bits - 1) {
            int l = lzs_lowest_bit(bits);
            lzs_finish(race, scores[l], runners->ids[i + l]);
        }
    }
    runners->n = 0;
}

LZS_FN static void simd_extend(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap) {
    int32_t k = 0;
    for (; n - k >= V_SHORTS; k += V_SHORTS) v_extend(len + k, tokens + k, newest, cap);
    lzs_kernels_scalar.extend(len + k, tokens + k, n - k, newest, cap);
}

LZS_FN static int32_t simd_find_long(const uint16_t *len, int32_t n, uint16_t least, int32_t *indices) {
    int32_t found = 0, k = 0;
    for (; n - k >= V_SHORTS; k += V_SHORTS) {
        for (uint32_t bits = v_long_shorts(len + k, least); bits; bits &= bits - 1) {
            indices[found++] = k + lzs_lowest_bit(bits);
        }
    }
    for (; k < n; k++) {
        if (len[k] >= least) indices[found++] = k;
    }
    return found;
}

LZS_FN static void simd_price_nearest(const lzs_token_entry *entries, int32_t n, int32_t length,
                                      const lzs_nearest_price *price, lzs_edit *edits) {
    int32_t i = 0;
#ifdef V_TRIPLES
    vf log2_vocab = v_set(price->log2_vocab), minus_penalty = v_set(-price->penalty);
    for (; n - i >= V_LANES; i += V_LANES) {
        vi token, last;
        v_load_entries(entries + i, &token, &last);
        vf cost = log2_of(v_float(v_sub_int(v_set_int(length + price->plus), last)));
        vf bias = v_mul(minus_penalty, v_sub(log2_vocab, v_min(cost, log2_vocab)));
        v_store_edits(edits + i, token, v_max(bias, v_set(-FLT_MAX)));
    }
#endif
    lzs_kernels_scalar.price_nearest(entries + i, n - i, length, price, edits + i);
}

const lzs_kernels LZS_TABLE = {
    LZS_NAME,    simd_max,        simd_max_of_group, simd_gather, simd_count,  simd_weigh,     simd_sum,
    simd_bounds, simd_contenders, simd_open,         simd_run,    simd_extend, simd_find_long, simd_price_nearest,
};
