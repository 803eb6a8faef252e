/* lzs_internal.h - struct bodies and the functions that the files of c/ share. Nothing here is exported. */
#ifndef LZS_INTERNAL_H
#define LZS_INTERNAL_H

#include <stdbool.h>

#include "lzs_kernels.h"
#include "lzsampler.h"

/* token -> index of its entry in some list: open addressing, linear probing, at most half full. */
typedef struct lzs_map {
    int32_t *keys;   /* (capacity) token, or -1 where free */
    int32_t *values; /* (capacity) */
    uint32_t capacity; /* power of two */
    uint32_t n;
} lzs_map;

lzs_status lzs_map_init(lzs_map *map, uint32_t max_keys);
lzs_status lzs_map_copy(lzs_map *to, const lzs_map *from);
lzs_status lzs_map_grow(lzs_map *map, uint32_t max_keys);
void lzs_map_free(lzs_map *map);
void lzs_map_clear(lzs_map *map);
size_t lzs_map_memory(const lzs_map *map);
/* Index of the token's entry, or -1. */
int32_t lzs_map_find(const lzs_map *map, int32_t token);
/* Sets the entry of a token; there must be room. */
void lzs_map_set(lzs_map *map, int32_t token, int32_t value);
void lzs_map_remove(lzs_map *map, int32_t token);

/* The tokens that penalties look at, with their match index and counts. */
typedef struct lzs_history {
    int32_t *tokens; /* (n) the whole history, oldest first: 4 bytes a token buy rewinds of any length */
    size_t n, capacity;

    /* Match index of the LZ window: len[d - 1] = number of tokens, at most `buffer`, by which the history and the
     * history without its last d tokens end alike. Empty (n_len = 0) when the LZ penalty is off. */
    uint16_t *len; /* (n_len) */
    int32_t n_len; /* lz_window - lz_buffer: further back there is no room for a whole buffer in the window */
    int32_t buffer;
    const lzs_kernels *kernels;

    /* Distinct tokens of the last `count_window` tokens (SIZE_MAX: all) with their counts, in any order. NULL when
     * no penalty counts. */
    struct lzs_count {
        int32_t token;
        int32_t count;
    } *counts; /* (n_counts) */
    uint32_t n_counts, counts_capacity;
    size_t count_window; /* 0: not counted */
    lzs_map count_index;
} lzs_history;

lzs_status lzs_history_init(lzs_history *h, int32_t window, int32_t buffer, size_t count_window,
                            const lzs_kernels *kernels);
lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from);
void lzs_history_free(lzs_history *h);
void lzs_history_clear(lzs_history *h);
size_t lzs_history_memory(const lzs_history *h);
lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n);
void lzs_history_rewind(lzs_history *h, size_t n);

/* The edits of a history, and the room to make them. */
typedef struct lzs_edits_buffer {
    lzs_edit *edits; /* (n) */
    float *saved;    /* (capacity) logits under the edits while a borrowed row is patched */
    size_t n, capacity;
    bool valid; /* the edits are those of the history as it is */

    /* Best match of each distinct token of the LZ window, while edits are made. */
    struct lzs_match {
        int32_t token;
        int32_t length;   /* longest so far (L, at least 1) */
        int32_t distance; /* of the longest, the nearest of equals */
        int32_t nearest;  /* distance of the nearest occurrence */
        float cost;       /* bits, formula `rate` */
    } *matches; /* (max_matches) */
    size_t max_matches;
    lzs_map match_index;
} lzs_edits_buffer;

lzs_status lzs_edits_init(lzs_edits_buffer *e, size_t max_matches);
lzs_status lzs_edits_reserve(lzs_edits_buffer *e, size_t max_edits);
void lzs_edits_free(lzs_edits_buffer *e);
size_t lzs_edits_memory(const lzs_edits_buffer *e);
/* Calls `emit` for each distinct token of the LZ window whose bits are not 0, the token nearest to the end first. */
void lzs_lz_each(const lzs_history *h, lzs_edits_buffer *e, int32_t formula, float log2_vocab,
                 void (*emit)(void *to, int32_t token, float bits), void *to);
void lzs_edits_make(lzs_edits_buffer *e, const lzs_history *h, const lzs_params *params, float log2_vocab);
float lzs_edit_apply(const lzs_edit *edit, float x, bool sign_aware);

/* Logits to bits below the maximum: log2(e) / temperature. */
static inline float lzs_temperature_scale(float temperature) {
    return 0x1.715476p+0f / temperature;
}

/* What stays after top-k, top-p and min-p (lzs_truncate.c). */
lzs_cut lzs_truncate(const lzs_kernels *k, const lzs_row *row, const lzs_params *params, const lzs_top *top);

/* mt19937 at a given draw, for LZS_PICK_LLAMA_DIST (lzs_pick.c). */
typedef struct lzs_mt19937 {
    uint32_t state[624];
    uint32_t next;
} lzs_mt19937;

typedef struct lzs_dist { /* NULL in samplers that do not use it */
    lzs_mt19937 rng;      /* about to give the two words of draw number `draw` */
    uint64_t draw;
    int32_t *order; /* (n_vocab) survivors, in llama.cpp's order */
} lzs_dist;

lzs_dist *lzs_dist_new(int32_t n_vocab, uint64_t seed);
void lzs_dist_free(lzs_dist *dist);
int32_t lzs_dist_pick(lzs_dist *dist, const lzs_row *row, lzs_cut cut, const lzs_params *params, float max,
                      uint64_t position);

int32_t lzs_race_pick(const lzs_kernels *k, const lzs_row *row, lzs_cut cut, const lzs_params *params, float max,
                      uint64_t position);

struct lzs_sampler {
    lzs_params params; /* `exempt` points into this sampler */
    int32_t n_vocab;
    float log2_vocab;
    int32_t *exempt; /* (params.n_exempt) ascending */
    const lzs_kernels *kernels;
    lzs_history history;
    lzs_edits_buffer edits;
    uint64_t position; /* accepted tokens; the draw's key */
    uint32_t *mask;    /* ((n_vocab + 31) / 32) or NULL */
    bool masked;       /* the mask is in force */
    lzs_dist *dist;
};

#endif
