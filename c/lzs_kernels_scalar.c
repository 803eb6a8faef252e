/* lzs_kernels_scalar.c - the definition of every kernel, one token at a time. */
#include <math.h>

#include "lzs_kernels.h"

static float scalar_scan(const float *x, int32_t n) {
    float max = -INFINITY;
    for (int32_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

static void scalar_max(const lzs_row *row, lzs_blocks *blocks, lzs_top *top) {
    *top = (lzs_top){-INFINITY, -1, false};
    for (int32_t b = 0; b < blocks->n; b++) {
        float *maxima = blocks->maxima[b];
        int32_t from = b * blocks->size, to = lzs_block_end(row, blocks, b);
        for (int32_t l = 0; l < LZS_LANES; l++) maxima[l] = -INFINITY;
        blocks->best[b] = -INFINITY;
        for (int32_t i = from; i < to; i++) {
            if (!lzs_allowed(row->mask, i)) continue;
            float x = row->x[i];
            if (x != x) top->nan = true;
            if (x > maxima[i % LZS_LANES]) maxima[i % LZS_LANES] = x;
            if (x > blocks->best[b]) blocks->best[b] = x;
            if (x > top->max) {
                top->max = x;
                top->argmax = i;
            }
        }
    }
}

static int32_t scalar_gather(const lzs_row *row, int32_t from, int32_t to, float low, float high, lzs_list *list) {
    for (int32_t i = from; i < to; i++) {
        float x = row->x[i];
        if (!(x >= low && x <= high) || !lzs_allowed(row->mask, i)) continue;
        if (list->n == list->capacity) return i;
        list->packed[list->n++] = lzs_pack(x, i);
    }
    return to;
}

static void scalar_weigh(const lzs_row *row, lzs_scale scale, lzs_weights *weights) {
    for (int32_t i = 0; i < row->n; i++) {
        if (lzs_allowed(row->mask, i)) lzs_weigh_one(weights, lzs_y(scale, row->x[i]));
    }
}

static void scalar_race(const lzs_row *row, int32_t from, int32_t to, lzs_cut cut, lzs_scale scale, lzs_race *race) {
    uint32_t words[4] = {0, 0, 0, 0};
    int32_t block = -1; /* four neighbouring tokens share one Philox call */
    for (int32_t i = from; i < to; i++) {
        if (!lzs_inside(cut, lzs_key(row->x[i]), i) || !lzs_allowed(row->mask, i)) continue;
        if (block != i >> 2) {
            block = i >> 2;
            lzs_race_words(race, i, words);
        }
        lzs_run(race, scale, row->x[i], i, words[i & 3]);
    }
}

static void scalar_extend(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap) {
    for (int32_t k = 0; k < n; k++) {
        uint16_t longer = len[k] < cap ? (uint16_t)(len[k] + 1) : cap;
        len[k] = tokens[k] == newest ? longer : 0;
    }
}

static int32_t scalar_nonzero(const uint16_t *len, int32_t n, int32_t *indices) {
    int32_t found = 0;
    for (int32_t k = 0; k < n; k++) {
        if (len[k]) indices[found++] = k;
    }
    return found;
}

const lzs_kernels lzs_kernels_scalar = {
    "scalar", scalar_scan, scalar_max, scalar_gather, scalar_weigh, scalar_race, scalar_extend, scalar_nonzero,
};
