/* llama_rng.c - the random numbers of llama.cpp's `dist`, at any position of a sequence.
 *
 * llama.cpp draws from one std::mt19937, two words a draw. A generator can only run forward, so a state is kept every
 * LZS_RNG_STEP draws: going back after a rewind replays from the nearest one.
 */
#include "llama_rng.h"

#include <string.h>

#include "../room.h"

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

/* ---- draws ---- */

void lzs_llama_rng_seed(lzs_llama_rng *r, uint32_t seed) {
    r->seed = seed;
    mt_seed(&r->rng, seed);
    r->draw = 0;
    r->n_kept = 0;
}

void lzs_llama_rng_init(lzs_llama_rng *r, uint32_t seed) {
    *r = (lzs_llama_rng){0};
    lzs_llama_rng_seed(r, seed);
}

lzs_status lzs_llama_rng_reserve(lzs_llama_rng *r, uint64_t position) {
    size_t needed = (size_t)(position / LZS_RNG_STEP) + 1;
    if (needed <= r->capacity) return LZS_OK;
    size_t capacity = needed < 2 * r->capacity ? 2 * r->capacity : needed;
    lzs_mt19937 *kept = lzs_room(r->kept, capacity, sizeof *kept);
    if (!kept) return LZS_ENOMEM;
    r->kept = kept;
    r->capacity = capacity;
    return LZS_OK;
}

lzs_status lzs_llama_rng_copy(lzs_llama_rng *to, const lzs_llama_rng *from) {
    if (from->n_kept > to->capacity) {
        lzs_mt19937 *kept = lzs_room(to->kept, from->n_kept, sizeof *kept);
        if (!kept) return LZS_ENOMEM;
        to->kept = kept;
        to->capacity = from->n_kept;
    }
    if (from->n_kept) memcpy(to->kept, from->kept, from->n_kept * sizeof *to->kept);
    to->n_kept = from->n_kept;
    to->rng = from->rng;
    to->draw = from->draw;
    to->seed = from->seed;
    return LZS_OK;
}

void lzs_llama_rng_free(lzs_llama_rng *r) {
    free(r->kept);
}

size_t lzs_llama_rng_memory(const lzs_llama_rng *r) {
    return r->capacity * sizeof *r->kept;
}

double lzs_llama_rng_uniform(lzs_llama_rng *r, uint64_t position) {
    if (position < r->draw) { /* back to the last state that was kept before it */
        uint64_t at = position / LZS_RNG_STEP;
        if (at >= r->n_kept) at = r->n_kept ? r->n_kept - 1 : 0;
        if (r->n_kept) {
            r->rng = r->kept[at];
        } else {
            mt_seed(&r->rng, r->seed);
        }
        r->draw = at * LZS_RNG_STEP;
    }
    for (;; r->draw++) {
        if (r->draw == r->n_kept * LZS_RNG_STEP && r->n_kept < r->capacity) r->kept[r->n_kept++] = r->rng;
        if (r->draw == position) break;
        mt_word(&r->rng);
        mt_word(&r->rng);
    }
    lzs_mt19937 rng = r->rng; /* a copy, so that a second call at this position draws the same */
    double low = mt_word(&rng), high = mt_word(&rng);
    double u = (low + high * 4294967296.0) / 18446744073709551616.0; /* std::uniform_real_distribution<double> */
    return u < 1.0 ? u : 0x1.fffffffffffffp-1; /* the sum may have been rounded up to 2^64; libstdc++ ends below 1, too */
}
