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

int32_t lzs_race_pick(const lzs_kernels *kernels, const lzs_survivors *v, const lzs_params *params, uint64_t position) {
    lzs_scale scale = {v->top.max, lzs_temperature_scale(params->temperature)};
    lzs_race race = {{(uint32_t)params->seed, (uint32_t)(params->seed >> 32)}, position, INFINITY, -1};
    uint32_t words[4];
    for (int32_t i = 0; i < v->list.n; i++) {
        int32_t id = lzs_packed_id(v->list.packed[i]);
        lzs_race_words(&race, id, words);
        lzs_run(&race, scale, v->row.x[id], id, words[id & 3]);
    }
    if (race.token >= 0) return race.token;
    /* the best token runs first: its score spares most others theirs */
    lzs_race_words(&race, v->top.argmax, words);
    lzs_run(&race, scale, v->top.max, v->top.argmax, words[v->top.argmax & 3]);
    float least = lzs_key_float(v->cut.key);
    for (int32_t b = 0; b < v->blocks.n; b++) {
        if (v->blocks.best[b] < least) continue;
        int32_t from = b * v->blocks.size, to = lzs_block_end(&v->row, &v->blocks, b);
        kernels->race(&v->row, from, to, v->cut, scale, &race);
    }
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

int32_t lzs_dist_pick(lzs_dist *dist, const lzs_survivors *v, const lzs_params *params, uint64_t position) {
    const float *x = v->row.x;
    int32_t n = 0;
    for (int32_t i = 0; i < v->row.n; i++) {
        if (lzs_inside(v->cut, lzs_key(x[i]), i) && lzs_allowed(v->row.mask, i)) dist->order[n++] = lzs_pack(x[i], i);
    }
    /* top-k and top-p leave llama.cpp's candidates sorted; min-p and the temperature keep the order of ids */
    if (params->top_k > 0 || params->top_p < 1.0f) lzs_sort(dist->order, n);
    float t = params->temperature, max = v->top.max;
    double sum = 0.0, run = 0.0;
    for (int32_t i = 0; i < n; i++) sum += expf(x[lzs_packed_id(dist->order[i])] / t - max / t);
    double target = sum * dist_uniform(dist, position, (uint32_t)params->seed);
    for (int32_t i = 0; i < n; i++) {
        int32_t id = lzs_packed_id(dist->order[i]);
        run += expf(x[id] / t - max / t);
        if (run >= target) return id;
    }
    return lzs_packed_id(dist->order[n - 1]); /* a NaN sum, from logits of +inf */
}
