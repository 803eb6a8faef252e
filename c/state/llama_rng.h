/* llama_rng.h - the random numbers of llama.cpp's `dist`, at any position of a sequence. */
#ifndef LZS_LLAMA_RNG_H
#define LZS_LLAMA_RNG_H

#include "../include/lzsampler.h"

typedef struct lzs_mt19937 {
    uint32_t state[624];
    uint32_t next;
} lzs_mt19937;

/* Draws between two states that are kept, so that a rewind of any length replays fewer than this. */
#define LZS_RNG_STEP 1024

typedef struct lzs_llama_rng {
    lzs_mt19937 rng; /* about to give the two words of draw number `draw` */
    uint64_t draw;
    uint32_t seed;
    lzs_mt19937 *kept; /* (n_kept of capacity) states before draw 0, LZS_RNG_STEP, 2 * LZS_RNG_STEP, ... */
    size_t n_kept, capacity;
} lzs_llama_rng;

void lzs_llama_rng_init(lzs_llama_rng *r, uint32_t seed);
/* Makes `to`, which was initialised, equal to `from`; on failure `to` is as it was. */
lzs_status lzs_llama_rng_copy(lzs_llama_rng *to, const lzs_llama_rng *from);
void lzs_llama_rng_free(lzs_llama_rng *r);
void lzs_llama_rng_seed(lzs_llama_rng *r, uint32_t seed);
size_t lzs_llama_rng_memory(const lzs_llama_rng *r);
/* Makes room for the states up to a position. */
lzs_status lzs_llama_rng_reserve(lzs_llama_rng *r, uint64_t position);
/* The uniform number of draw number `position`; the same call gives the same number. */
double lzs_llama_rng_uniform(lzs_llama_rng *r, uint64_t position);

#endif
