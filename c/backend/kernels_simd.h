/* kernels_simd.h - every kernel, once, over the vector operations of an instruction set. This is not a header of its own: a
 * kernels_<isa>.c defines the operations (v_*), LZS_FN (the function attributes), LZS_NAME and LZS_TABLE, and includes it.
 *
 * Results have the bits of kernels_scalar.c: sums are of integers, floats go through the same single operations in the
 * same order, and where a cheap bound says that a token cannot win the race, its exact score is not computed.
 */
#include <math.h>

#define LZS_VECTORS (LZS_LANES / V_LANES) /* vectors that hold the 16 lanes of a block */
#define V_UNROLL (LZS_VECTORS < 4 ? 4 : LZS_VECTORS)

/* Logits as the vector kernels see them: -inf where the mask forbids them. `masked` is a constant where it is called. */
LZS_FN static inline vf loaded_if(const lzs_row *row, int32_t i, bool masked) {
    vf x = v_load(row->x + i);
    return masked ? v_blend(v_set(-INFINITY), x, v_mask_of_bits(row->mask[i >> 5] >> (i & 31))) : x;
}

LZS_FN static inline float loaded_one(const lzs_row *row, int32_t i) {
    return lzs_allowed(row->mask, i) ? row->x[i] : -INFINITY;
}

LZS_FN static float simd_scan(const float *x, int32_t n) {
    vf several[4] = {v_set(-INFINITY), v_set(-INFINITY), v_set(-INFINITY), v_set(-INFINITY)};
    int32_t i = 0;
    for (; n - i >= 4 * V_LANES; i += 4 * V_LANES) {
        for (int v = 0; v < 4; v++) several[v] = v_max(v_load(x + i + v * V_LANES), several[v]);
    }
    float rest = lzs_kernels_scalar.scan(x + i, n - i);
    float max = v_greatest(v_max(v_max(several[0], several[1]), v_max(several[2], several[3])));
    return rest > max ? rest : max;
}

LZS_FN static inline bool max_of_stretches(const lzs_row *row, float *maxima, float *best, float *greatest, bool masked) {
    vm unordered = v_unordered(v_set(0.0f), v_set(0.0f)); /* none */
    bool tail_nan = false;
    float max = -INFINITY;
    for (int32_t s = 0; s < lzs_stretches(row->n); s++) {
        float *lanes_of = maxima + s * LZS_LANES;
        int32_t i = s * LZS_STRETCH, to = lzs_stretch_end(row->n, s);
        vf lanes[V_UNROLL]; /* several, because one maximum waits for the one before */
        for (int v = 0; v < V_UNROLL; v++) lanes[v] = v_set(-INFINITY);
        for (; to - i >= V_UNROLL * V_LANES; i += V_UNROLL * V_LANES) {
            for (int v = 0; v < V_UNROLL; v += 2) {
                vf x = loaded_if(row, i + v * V_LANES, masked), y = loaded_if(row, i + (v + 1) * V_LANES, masked);
                lanes[v] = v_max(x, lanes[v]); /* a NaN in x gives lanes[v] */
                lanes[v + 1] = v_max(y, lanes[v + 1]);
                unordered = v_or(unordered, v_unordered(x, y));
            }
        }
        for (int v = LZS_VECTORS; v < V_UNROLL; v++) lanes[v % LZS_VECTORS] = v_max(lanes[v], lanes[v % LZS_VECTORS]);
        vf all = lanes[0];
        for (int v = 0; v < LZS_VECTORS; v++) {
            all = v_max(lanes[v], all);
            v_store(lanes_of + v * V_LANES, lanes[v]);
        }
        float greatest_of = v_greatest(all);
        for (; i < to; i++) {
            float x = loaded_one(row, i);
            if (x != x) tail_nan = true;
            if (x > lanes_of[i % LZS_LANES]) lanes_of[i % LZS_LANES] = x;
            if (x > greatest_of) greatest_of = x;
        }
        best[s] = greatest_of;
        if (greatest_of > max) max = greatest_of;
    }
    *greatest = max;
    return tail_nan || v_bits(unordered);
}

LZS_FN static void simd_max(const lzs_row *row, float *maxima, float *best, lzs_top *top) {
    float max;
    bool nan = row->mask ? max_of_stretches(row, maxima, best, &max, true) : max_of_stretches(row, maxima, best, &max, false);
    *top = (lzs_top){-INFINITY, -1, nan};
    if (!(max > -INFINITY)) return;
    int32_t s = 0;
    while (best[s] != max) s++;
    int32_t i = s * LZS_STRETCH;
    while (loaded_one(row, i) != max) i++;
    top->argmax = i;
    top->max = row->x[i];
}

LZS_FN static int32_t simd_gather(const lzs_row *row, int32_t from, int32_t to, float low, float high, lzs_list *list) {
    vf lows = v_set(low), highs = v_set(high);
    int32_t i = from < to && from % LZS_LANES ? from + LZS_LANES - from % LZS_LANES : from;
    if (i > from) { /* up to a whole step; masks are read by halves of a word */
        int32_t head = i < to ? i : to, next = lzs_kernels_scalar.gather(row, from, head, low, high, list);
        if (next < head || head == to) return next;
    }
    for (; to - i >= LZS_LANES; i += LZS_LANES) {
        uint32_t bits = 0;
        for (int v = 0; v < LZS_VECTORS; v++) {
            vf x = v_load(row->x + i + v * V_LANES);
            bits |= v_bits(v_and(v_ge(x, lows), v_ge(highs, x))) << (v * V_LANES);
        }
        if (row->mask) bits &= row->mask[i >> 5] >> (i & 31);
        for (; bits; bits &= bits - 1) {
            int32_t id = i + lzs_lowest_bit(bits);
            if (list->n == list->capacity) return id;
            list->packed[list->n++] = lzs_pack(row->x[id], id);
        }
    }
    return lzs_kernels_scalar.gather(row, i, to, low, high, list);
}

/* lzs_weight of each lane; y >= 0 or inf. */
LZS_FN static inline vi weights_of(vf y) {
    vi n = v_truncate(v_add(y, v_set(0.5f)));
    vf g = v_sub(v_float(n), y), p = v_set(0x1.41fbbap-13f);
    p = v_add(v_mul(p, g), v_set(0x1.5f3e54p-10f));
    p = v_add(v_mul(p, g), v_set(0x1.3b2d4cp-7f));
    p = v_add(v_mul(p, g), v_set(0x1.c6aee8p-5f));
    p = v_add(v_mul(p, g), v_set(0x1.ebfbdcp-3f));
    p = v_add(v_mul(p, g), v_set(0x1.62e430p-1f));
    p = v_add(v_mul(p, g), v_set(1.0f));
    /* from y = 31.5 on n is 32 or more, whatever a conversion makes of a float that is too large, and nothing is left */
    return v_shift_right(v_shift_left_1(v_truncate(v_mul(p, v_set(0x1p30f)))), n);
}

/* y of each lane, for a finite maximum. */
LZS_FN static inline vf gaps_of(vf x, lzs_softmax_scale scale) {
    return v_mul(v_sub(v_set(scale.max), x), v_set(scale.scale));
}

LZS_FN static inline void weigh_row(const lzs_row *row, lzs_softmax_scale scale, lzs_histogram *h, bool masked, bool count) {
    enum { ROOM = 256 }; /* weights wait here for their bins: a loop of known length costs less than one a vector */
    uint32_t w_waiting[ROOM + V_LANES], bins_waiting[ROOM + V_LANES];
    int n_waiting = 0;
    vf from = v_set(h->from), limit = v_set(h->limit), per_bit = v_set(h->per_bit);
    vi above = v_zero(), total = v_zero();
    uint64_t n_above = 0;
    int32_t i = 0;
    for (; row->n - i >= V_LANES; i += V_LANES) {
        vf y = gaps_of(loaded_if(row, i, masked), scale);
        vm inner = v_ge(y, from);
        uint32_t bits = v_bits(v_and(inner, v_gt(limit, y)));
        vi w = v_zero();
        if (count) {
            n_above += (uint64_t)lzs_bit_count(v_bits(v_gt(from, y)));
        } else {
            w = weights_of(y);
            total = v_add_wide(total, w);
            above = v_add_wide(above, v_drop(w, inner));
        }
        if (!bits) continue;
        if (!count) v_compress(w_waiting + n_waiting, w, bits);
        v_compress(bins_waiting + n_waiting, v_truncate(v_mul(v_sub(y, from), per_bit)), bits);
        n_waiting += lzs_bit_count(bits);
        if (n_waiting < ROOM) continue;
        for (int k = 0; k < ROOM; k++) h->bins[bins_waiting[k]] += count ? 1 : w_waiting[k];
        n_waiting -= ROOM;
        for (int k = 0; k < n_waiting; k++) { /* fewer than V_LANES */
            if (!count) w_waiting[k] = w_waiting[ROOM + k];
            bins_waiting[k] = bins_waiting[ROOM + k];
        }
    }
    for (int k = 0; k < n_waiting; k++) h->bins[bins_waiting[k]] += count ? 1 : w_waiting[k];
    h->above += count ? n_above : v_sum_wide(above);
    h->total += v_sum_wide(total);
    for (; i < row->n; i++) {
        if (lzs_allowed(row->mask, i)) lzs_weigh_one(h, lzs_gap_bits(scale, row->x[i]));
    }
}

LZS_FN static void simd_weigh(const lzs_row *row, lzs_softmax_scale scale, lzs_histogram *h) {
    if (!(scale.max < INFINITY)) {
        lzs_kernels_scalar.weigh(row, scale, h);
    } else if (h->count) {
        row->mask ? weigh_row(row, scale, h, true, true) : weigh_row(row, scale, h, false, true);
    } else {
        row->mask ? weigh_row(row, scale, h, true, false) : weigh_row(row, scale, h, false, false);
    }
}

/* The keys of the ten rounds of Philox, two each; in memory because a load broadcasts for nothing. */
LZS_FN static inline void round_keys(lzs_noise_key key, uint64_t keys[20]) {
    for (uint32_t r = 0; r < 10; r++) {
        keys[2 * r] = key.seed[0] + r * 0x9E3779B9u;
        keys[2 * r + 1] = key.seed[1] + r * 0xBB67AE85u;
    }
}

LZS_FN static void simd_group_words(lzs_noise_key key, int32_t n, uint32_t *words) {
    uint64_t keys[20];
    round_keys(key, keys);
    int32_t g = 0;
    for (; n - g >= 4 * V_LANES; g += 4 * V_LANES) {
        vi c[4];
        v_philox(keys, key.position, LZS_DOMAIN_GROUP, (uint32_t)g >> 2, c);
        for (int j = 0; j < 4; j++) v_store_int((int32_t *)words + g + j * V_LANES, c[j]);
    }
    for (; g < n; g += 4) lzs_noise_words(key, (uint32_t)g >> 2, LZS_DOMAIN_GROUP, words + g);
}

/* Below log2((k + 1/2) * log2(e)) for k = word >> shift, less the constant: kernels_scalar.c says why. */
LZS_FN static inline vf log2_below(vi k, float constant) {
    return v_sub(v_mul(v_float(v_bits_of(v_float(k))), v_set(0x1p-23f)), v_set(constant));
}

LZS_FN static float simd_bounds(const float *maxima, const uint32_t *words, int32_t n, lzs_softmax_scale scale, float *bounds) {
    vf greatest = v_set(-INFINITY);
    for (int32_t g = 0; g < n; g += V_LANES) {
        vi k = v_shift_right_6(v_load_int((const int32_t *)words + g));
        vf bound = v_add(gaps_of(v_load(maxima + g), scale), log2_below(k, 127.0f + 26.0f + 6.0f - 0.5287f + 0.01f));
        v_store(bounds + g, bound);
        greatest = v_max(v_sub(v_set(0.0f), bound), greatest);
    }
    return -v_greatest(greatest);
}

LZS_FN static void simd_open(const lzs_row *row, int32_t group, uint32_t word, lzs_cut cut, lzs_race *race) {
    if (!(race->scale.max < INFINITY)) {
        lzs_kernels_scalar.open(row, group, word, cut, race);
        return;
    }
    float x[LZS_GROUP], minimum = lzs_group_minimum(word), least = lzs_key_float(cut.key);
    uint32_t words[LZS_GROUP], holder = lzs_group_holder(word);
    int32_t first = lzs_group_token((uint32_t)group, 0);
    for (int32_t j = 0; j < LZS_GROUP; j++) {
        int32_t id = first + 16 * j;
        x[j] = id < row->n ? loaded_one(row, id) : -INFINITY;
    }
    uint64_t keys[20];
    round_keys(race->key, keys);
    /* no score is below its gap plus the log2 of the minimum, or of its own word's part of the noise */
    vf bound_of_minimum = v_set(lzs_log2(minimum) - 0.01f);
    for (int32_t from = 0; from < LZS_GROUP; from += 4 * V_LANES) {
        vi c[4];
        v_philox(keys, race->key.position, LZS_DOMAIN_TOKEN, (LZS_GROUP * (uint32_t)group + (uint32_t)from) >> 2, c);
        for (int v = 0; v < 4; v++) {
            int32_t at = from + v * V_LANES;
            vf logits = v_load(x + at), gap = gaps_of(logits, race->scale);
            vf own = v_max(log2_below(v_shift_right_1(c[v]), 127.0f + 31.0f - 0.5287f + 0.01f), bound_of_minimum);
            uint32_t bits = v_bits(v_and(v_ge(v_set(race->score), v_add(gap, own)), v_ge(logits, v_set(least))));
            if (holder - (uint32_t)at < V_LANES) bits |= 1u << (holder - (uint32_t)at); /* its word does not count */
            if (!bits) continue;
            v_store_int((int32_t *)words + at, c[v]);
            for (; bits; bits &= bits - 1) {
                int32_t member = at + lzs_lowest_bit(bits), id = first + 16 * member;
                if (!lzs_inside(cut, lzs_key(x[member]), id)) continue;
                bool holds = (uint32_t)member == holder;
                lzs_run(race, x[member], id, holds ? minimum : lzs_member_noise(minimum, words[member]));
            }
        }
    }
}

LZS_FN static void simd_extend(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap) {
    int32_t k = 0;
    for (; n - k >= V_SHORTS; k += V_SHORTS) v_extend(len + k, tokens + k, newest, cap);
    lzs_kernels_scalar.extend(len + k, tokens + k, n - k, newest, cap);
}

LZS_FN static int32_t simd_nonzero(const uint16_t *len, int32_t n, int32_t *indices) {
    int32_t found = 0, k = 0;
    for (; n - k >= V_SHORTS; k += V_SHORTS) {
        for (uint32_t bits = v_nonzero_shorts(len + k); bits; bits &= bits - 1) {
            indices[found++] = k + lzs_lowest_bit(bits);
        }
    }
    for (; k < n; k++) {
        if (len[k]) indices[found++] = k;
    }
    return found;
}

const lzs_kernels LZS_TABLE = {
    LZS_NAME,    simd_scan, simd_max,    simd_gather, simd_weigh, simd_group_words,
    simd_bounds, simd_open, simd_extend, simd_nonzero,
};
