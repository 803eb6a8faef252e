/* lzs_kernels_scalar.c - the definition of every kernel, one token at a time. */
#include <math.h>
#include <stddef.h>

#include "lzs_kernels.h"

static void scalar_max(const lzs_row *row, lzs_top *top) {
    *top = (lzs_top){-INFINITY, -1, false};
    for (int32_t i = 0; i < row->n; i++) {
        if (!lzs_allowed(row->mask, i)) continue;
        float x = row->x[i];
        if (x != x) top->nan = true;
        if (x > top->max) {
            top->max = x;
            top->argmax = i;
        }
    }
}

/* One body for both histograms: `scale` is NULL where tokens are only counted. */
static inline void scalar_histogram(const lzs_row *row, lzs_cut cut, lzs_digit digit, const lzs_scale *scale,
                                    uint64_t bins[LZS_RADIX_BINS]) {
    uint32_t low = (1u << digit.bits) - 1;
    for (int32_t i = 0; i < row->n; i++) {
        uint32_t key = lzs_key(row->x[i]);
        /* 64 bits because the first digit shifts by all 32 */
        if (((uint64_t)key >> (digit.shift + digit.bits)) != digit.prefix) continue;
        if (!lzs_inside(cut, key, i) || !lzs_allowed(row->mask, i)) continue;
        bins[(key >> digit.shift) & low] += scale ? lzs_weight(lzs_y(*scale, row->x[i])) : 1;
    }
}

static void scalar_count(const lzs_row *row, lzs_cut cut, lzs_digit digit, uint64_t bins[LZS_RADIX_BINS]) {
    scalar_histogram(row, cut, digit, NULL, bins);
}

static void scalar_weigh(const lzs_row *row, lzs_cut cut, lzs_digit digit, lzs_scale scale,
                         uint64_t bins[LZS_RADIX_BINS]) {
    scalar_histogram(row, cut, digit, &scale, bins);
}

static int32_t scalar_nth_equal(const lzs_row *row, uint32_t key, uint64_t nth) {
    for (int32_t i = 0; i < row->n; i++) {
        if (lzs_key(row->x[i]) == key && lzs_allowed(row->mask, i) && --nth == 0) return i;
    }
    return INT32_MAX;
}

static void scalar_race(const lzs_row *row, lzs_cut cut, lzs_scale scale, lzs_race *race) {
    uint32_t words[4] = {0, 0, 0, 0};
    int32_t block = -1; /* four neighbouring tokens share one Philox call */
    for (int32_t i = 0; i < row->n; i++) {
        if (!lzs_inside(cut, lzs_key(row->x[i]), i) || !lzs_allowed(row->mask, i)) continue;
        if (block != i >> 2) {
            block = i >> 2;
            uint32_t counter[4] = {(uint32_t)block, (uint32_t)race->position, (uint32_t)(race->position >> 32), 0};
            lzs_philox(counter, race->seed, words);
        }
        float score = lzs_y(scale, row->x[i]) + lzs_race_noise(words[i & 3]);
        if (score < race->score || race->token < 0) {
            race->score = score;
            race->token = i;
        }
    }
}

static void scalar_extend(uint16_t *len, const int32_t *newest, int32_t n, uint16_t cap) {
    for (int32_t d = 1; d <= n; d++) {
        uint16_t longer = len[d - 1] < cap ? (uint16_t)(len[d - 1] + 1) : cap;
        len[d - 1] = newest[0] == newest[-d] ? longer : 0;
    }
}

const lzs_kernels lzs_kernels_scalar = {
    "scalar", scalar_max, scalar_count, scalar_weigh, scalar_nth_equal, scalar_race, scalar_extend,
};
