/* lzs_pick.c - a token from those that remain.
 *
 * The default is an exponential race (Gumbel-max): score(t) = y(t) + log2(-log2 u(t)), the smallest wins, and wins
 * with probability proportional to 2^-y. u(t) comes from Philox keyed by (seed, position) with the token id as
 * counter, so a token's draw depends on nothing else: no batch, thread, restart or draft model changes a text.
 *
 * LZS_PICK_LLAMA_DIST repeats llama.cpp's `dist` instead, for users who compare: mt19937, two words a draw, float
 * exponentials of the C library summed in double, in the order llama.cpp's own chain leaves the candidates.
 */
#include <math.h>
#include <stdlib.h>

#include "lzs_internal.h"

int32_t lzs_race_pick(const lzs_kernels *k, const lzs_row *row, lzs_cut cut, const lzs_params *params, float max,
                      uint64_t position) {
    lzs_scale scale = {max, lzs_temperature_scale(params->temperature)};
    lzs_race race = {{(uint32_t)params->seed, (uint32_t)(params->seed >> 32)}, position, INFINITY, -1};
    k->race(row, cut, scale, &race);
    return race.token;
}

/* ---- mt19937 (Matsumoto and Nishimura 1998), as std::mt19937 ---- */

static void mt_seed(lzs_mt19937 *rng, uint32_t seed) {
    rng->state[0] = seed;
    for (uint32_t i = 1; i < 624; i++) {
        rng->state[i] = 1812433253u * (rng->state[i - 1] ^ (rng->state[i - 1] >> 30)) + i;
    }
    rng->next = 624;
}

static uint32_t mt_word(lzs_mt19937 *rng) {
    uint32_t *s = rng->state;
    if (rng->next == 624) {
        for (uint32_t i = 0; i < 624; i++) {
            uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % 624] & 0x7fffffffu);
            s[i] = s[(i + 397) % 624] ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0);
        }
        rng->next = 0;
    }
    uint32_t y = s[rng->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* ---- llama.cpp's dist ---- */

lzs_dist *lzs_dist_new(int32_t n_vocab, uint64_t seed) {
    lzs_dist *dist = malloc(sizeof *dist);
    if (!dist) return NULL;
    mt_seed(&dist->rng, (uint32_t)seed);
    dist->draw = 0;
    dist->order = malloc((size_t)n_vocab * sizeof *dist->order);
    if (!dist->order) {
        free(dist);
        return NULL;
    }
    return dist;
}

void lzs_dist_free(lzs_dist *dist) {
    if (!dist) return;
    free(dist->order);
    free(dist);
}

/* The uniform of draw number `position`, as std::uniform_real_distribution<double> makes it of two words. */
static double dist_uniform(lzs_dist *dist, uint64_t position, uint32_t seed) {
    if (position < dist->draw) { /* after a rewind */
        mt_seed(&dist->rng, seed);
        dist->draw = 0;
    }
    for (; dist->draw < position; dist->draw++) {
        mt_word(&dist->rng);
        mt_word(&dist->rng);
    }
    lzs_mt19937 rng = dist->rng; /* a second call at the same position draws the same */
    double low = mt_word(&rng), high = mt_word(&rng);
    return (low + high * 4294967296.0) / 18446744073709551616.0;
}

static bool before(const lzs_row *row, int32_t a, int32_t b) {
    return row->x[a] > row->x[b] || (row->x[a] == row->x[b] && a < b);
}

/* Heap sort into (logit descending, id ascending): in place, and qsort may allocate. */
static void sort_ids(const lzs_row *row, int32_t *ids, int32_t n) {
    for (int32_t end = n, start = n / 2; end > 1;) {
        int32_t root, moved;
        if (start > 0) {
            moved = ids[root = --start];
        } else {
            moved = ids[--end];
            ids[end] = ids[root = 0];
        }
        for (int32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && before(row, ids[child], ids[child + 1])) child++;
            if (!before(row, moved, ids[child])) break;
            ids[root] = ids[child];
        }
        ids[root] = moved;
    }
}

int32_t lzs_dist_pick(lzs_dist *dist, const lzs_row *row, lzs_cut cut, const lzs_params *params, float max,
                      uint64_t position) {
    int32_t n = 0;
    for (int32_t i = 0; i < row->n; i++) {
        if (lzs_inside(cut, lzs_key(row->x[i]), i) && lzs_allowed(row->mask, i)) dist->order[n++] = i;
    }
    /* top-k and top-p leave llama.cpp's candidates sorted; min-p and the temperature keep the order of ids */
    if (params->top_k > 0 || params->top_p < 1.0f) sort_ids(row, dist->order, n);
    float t = params->temperature;
    double sum = 0.0, run = 0.0;
    for (int32_t i = 0; i < n; i++) sum += expf(row->x[dist->order[i]] / t - max / t);
    double target = sum * dist_uniform(dist, position, (uint32_t)params->seed);
    for (int32_t i = 0; i < n; i++) {
        run += expf(row->x[dist->order[i]] / t - max / t);
        if (run >= target) return dist->order[i];
    }
    return dist->order[n - 1]; /* a NaN sum, from logits of +inf */
}
