/* lzs_kernels_simd.h - every kernel, once, over the vector operations of an instruction set. Not a header of its own: a
 * lzs_kernels_<isa>.c defines the operations (v_*), LZS_FN (the function attributes), LZS_NAME and includes this file.
 *
 * Results have the bits of lzs_kernels_scalar.c: sums are of integers, floats go through the same single operations in
 * the same order, and where a cheap bound says that a token cannot win the race, the exact score is not computed.
 */
#include <math.h>

#define LZS_VECTORS (LZS_LANES / V_LANES) /* vectors that hold the 16 lanes of a block */
#define V_UNROLL (LZS_VECTORS < 4 ? 4 : LZS_VECTORS)

LZS_FN static inline vf loaded(const lzs_row *row, int32_t i) {
    vf x = v_load(row->x + i);
    return row->mask ? v_blend(v_set(-INFINITY), x, v_mask_of_bits(row->mask[i >> 5] >> (i & 31))) : x;
}

/* A logit as the vector kernels see it: -inf where the mask forbids it. */
LZS_FN static inline float loaded_one(const lzs_row *row, int32_t i) {
    return lzs_allowed(row->mask, i) ? row->x[i] : -INFINITY;
}

LZS_FN static float simd_scan(const float *x, int32_t n) {
    vf several[4] = {v_set(-INFINITY), v_set(-INFINITY), v_set(-INFINITY), v_set(-INFINITY)};
    int32_t i = 0;
    for (; i + 4 * V_LANES <= n; i += 4 * V_LANES) {
        for (int v = 0; v < 4; v++) several[v] = v_max(v_load(x + i + v * V_LANES), several[v]);
    }
    float rest = lzs_kernels_scalar.scan(x + i, n - i);
    float max = v_greatest(v_max(v_max(several[0], several[1]), v_max(several[2], several[3])));
    return rest > max ? rest : max;
}

LZS_FN static void simd_max(const lzs_row *row, lzs_blocks *blocks, lzs_top *top) {
    vm unordered = v_unordered(v_set(0.0f), v_set(0.0f)); /* none */
    bool tail_nan = false;
    float max = -INFINITY;
    for (int32_t b = 0; b < blocks->n; b++) {
        float *maxima = blocks->maxima[b];
        int32_t from = b * blocks->size, to = lzs_block_end(row, blocks, b);
        vf lanes[V_UNROLL]; /* several, because one maximum waits for the one before */
        for (int v = 0; v < V_UNROLL; v++) lanes[v] = v_set(-INFINITY);
        int32_t i = from;
        for (; i + V_UNROLL * V_LANES <= to; i += V_UNROLL * V_LANES) {
            for (int v = 0; v < V_UNROLL; v += 2) {
                vf x = loaded(row, i + v * V_LANES), y = loaded(row, i + (v + 1) * V_LANES);
                lanes[v] = v_max(x, lanes[v]); /* a NaN in x gives lanes[v] */
                lanes[v + 1] = v_max(y, lanes[v + 1]);
                unordered = v_or(unordered, v_unordered(x, y));
            }
        }
        for (int v = LZS_VECTORS; v < V_UNROLL; v++) lanes[v % LZS_VECTORS] = v_max(lanes[v], lanes[v % LZS_VECTORS]);
        vf all = lanes[0];
        for (int v = 0; v < LZS_VECTORS; v++) {
            all = v_max(lanes[v], all);
            v_store(maxima + v * V_LANES, lanes[v]);
        }
        float best = v_greatest(all);
        for (; i < to; i++) {
            float x = loaded_one(row, i);
            if (x != x) tail_nan = true;
            if (x > maxima[i % LZS_LANES]) maxima[i % LZS_LANES] = x;
            if (x > best) best = x;
        }
        blocks->best[b] = best;
        if (best > max) max = best;
    }
    *top = (lzs_top){-INFINITY, -1, tail_nan || v_bits(unordered)};
    if (!(max > -INFINITY)) return;
    int32_t b = 0;
    while (blocks->best[b] != max) b++;
    int32_t i = b * blocks->size;
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
    for (; i + LZS_LANES <= to; i += LZS_LANES) {
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
LZS_FN static inline vf ys_of(vf x, lzs_scale scale) {
    return v_mul(v_sub(v_set(scale.max), x), v_set(scale.scale));
}

LZS_FN static void simd_weigh(const lzs_row *row, lzs_scale scale, lzs_weights *weights) {
    enum { ROOM = 256 }; /* weights wait here for their bins: a loop of known length costs less than one a vector */
    uint32_t w_waiting[ROOM + V_LANES], bins_waiting[ROOM + V_LANES];
    int n_waiting = 0;
    vf from = v_set(weights->from), limit = v_set(weights->limit), per_bit = v_set(weights->per_bit);
    vi above = v_zero(), total = v_zero();
    int32_t i = 0;
    if (!(scale.max < INFINITY)) {
        lzs_kernels_scalar.weigh(row, scale, weights);
        return;
    }
    for (; i + V_LANES <= row->n; i += V_LANES) {
        vf y = ys_of(loaded(row, i), scale);
        vi w = weights_of(y);
        vm inner = v_ge(y, from);
        total = v_add_wide(total, w);
        above = v_add_wide(above, v_drop(w, inner));
        uint32_t bits = v_bits(v_and(inner, v_gt(limit, y)));
        if (!bits) continue;
        v_compress(w_waiting + n_waiting, w, bits);
        v_compress(bins_waiting + n_waiting, v_truncate(v_mul(v_sub(y, from), per_bit)), bits);
        n_waiting += lzs_bit_count(bits);
        if (n_waiting < ROOM) continue;
        for (int k = 0; k < ROOM; k++) weights->bins[bins_waiting[k]] += w_waiting[k];
        n_waiting -= ROOM;
        for (int k = 0; k < n_waiting; k++) { /* fewer than V_LANES */
            w_waiting[k] = w_waiting[ROOM + k];
            bins_waiting[k] = bins_waiting[ROOM + k];
        }
    }
    for (int k = 0; k < n_waiting; k++) weights->bins[bins_waiting[k]] += w_waiting[k];
    weights->above += v_sum_wide(above);
    weights->total += v_sum_wide(total);
    for (; i < row->n; i++) {
        if (lzs_allowed(row->mask, i)) lzs_weigh_one(weights, lzs_y(scale, row->x[i]));
    }
}

LZS_FN static void simd_race(const lzs_row *row, int32_t from, int32_t to, lzs_cut cut, lzs_scale scale,
                             lzs_race *race) {
    enum { GROUP = 4 * V_LANES }; /* ids of V_LANES Philox blocks */
    vf least = v_set(lzs_key_float(cut.key));
    uint64_t keys[20]; /* of the ten rounds, two each; in memory because a load broadcasts for nothing */
    for (uint32_t r = 0; r < 10; r++) {
        keys[2 * r] = race->seed[0] + r * 0x9E3779B9u;
        keys[2 * r + 1] = race->seed[1] + r * 0xBB67AE85u;
    }
    int32_t i = from;
    for (; scale.max < INFINITY && i + GROUP <= to; i += GROUP) {
        vf x[4];
        uint32_t inside = 0;
        for (int j = 0; j < 4; j++) {
            x[j] = loaded(row, i + j * V_LANES);
            inside |= v_bits(v_ge(x[j], least));
        }
        if (!inside) continue;
        vi c[4];
        v_philox(keys, race->position, (uint32_t)i >> 2, c);
        for (int j = 0; j < 4; j++) {
            /* noise >= log2(v) + log2(log2 e) with v = (k + 1/2) 2^-31, k = word >> 1; the bits of a float, as a number,
             * lie below its log2: no score is below this bound, less 0.01 for all rounding */
            vf k = v_float(v_shift_right_1(c[j]));
            vf log2_k = v_sub(v_mul(v_float(v_bits_of(k)), v_set(0x1p-23f)), v_set(127.0f + 31.0f - 0.5287f + 0.01f));
            vf bound = v_add(ys_of(x[j], scale), log2_k);
            uint32_t bits = v_bits(v_ge(v_set(race->score), bound));
            if (!bits) continue;
            uint32_t words[V_LANES];
            v_store_int((int32_t *)words, c[j]);
            for (; bits; bits &= bits - 1) {
                int lane = lzs_lowest_bit(bits);
                int32_t id = i + j * V_LANES + lane;
                if (!lzs_inside(cut, lzs_key(row->x[id]), id) || !lzs_allowed(row->mask, id)) continue;
                lzs_run(race, scale, row->x[id], id, words[lane]);
            }
        }
    }
    lzs_kernels_scalar.race(row, i, to, cut, scale, race);
}

LZS_FN static void simd_extend(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap) {
    int32_t k = 0;
    for (; k + V_SHORTS <= n; k += V_SHORTS) v_extend(len + k, tokens + k, newest, cap);
    lzs_kernels_scalar.extend(len + k, tokens + k, n - k, newest, cap);
}

LZS_FN static int32_t simd_nonzero(const uint16_t *len, int32_t n, int32_t *indices) {
    int32_t found = 0, k = 0;
    for (; k + V_SHORTS <= n; k += V_SHORTS) {
        for (uint32_t bits = v_nonzero_shorts(len + k); bits; bits &= bits - 1) {
            indices[found++] = k + lzs_lowest_bit(bits);
        }
    }
    for (; k < n; k++) {
        if (len[k]) indices[found++] = k;
    }
    return found;
}

const lzs_kernels LZS_TABLE = {LZS_NAME, simd_scan, simd_max, simd_gather, simd_weigh, simd_race, simd_extend, simd_nonzero};
