/* lzs_internal.h - struct bodies and the functions that the files of c/ share. Nothing here is exported. */
#ifndef LZS_INTERNAL_H
#define LZS_INTERNAL_H

#include <stdbool.h>

#include "lzs_kernels.h"
#include "lzsampler.h"

/* The distinct tokens of the windows, found by token in O(1), in any order: a dense list with a hash index (open
 * addressing, linear probing, at most half full). */
typedef struct lzs_bag {
    struct lzs_item {
        int32_t token;
        int32_t count; /* in the window of the penalties that count; 0 outside it */
        int32_t last;  /* last position in reach of LZ, -1 out of it */
    } *items;          /* (n of capacity) */
    uint32_t n, capacity;
    int32_t *slots; /* (n_slots) index of an item, or -1 */
    uint32_t n_slots; /* power of two */
} lzs_bag;

/* Room for `capacity` items or more; whatever fails, the bag is as it was. A bag starts as {0}. */
lzs_status lzs_bag_reserve(lzs_bag *bag, size_t capacity);
lzs_status lzs_bag_copy(lzs_bag *to, const lzs_bag *from);
void lzs_bag_free(lzs_bag *bag);
void lzs_bag_clear(lzs_bag *bag);
size_t lzs_bag_memory(const lzs_bag *bag);
/* Index of the token's item, or -1. */
int32_t lzs_bag_find(const lzs_bag *bag, int32_t token);
/* Index of the token's item, added (count 0, last -1) if it is not there; there is room. */
int32_t lzs_bag_take(lzs_bag *bag, int32_t token);
/* Removes the item at an index; the last one takes its place. */
void lzs_bag_remove(lzs_bag *bag, int32_t at);

/* The tokens that penalties look at, with what the penalties want to know of them. */
typedef struct lzs_history {
    int32_t *tokens; /* (n) the whole history, oldest first: 4 bytes a token buy rewinds of any length */
    size_t n, capacity;

    /* The LZ window. A position is in reach when a whole buffer precedes it in the window: those at distance 1..n_reach
     * (1 is the last token) that are not among the first `buffer` of the history. n_reach is 0 when LZ is off. */
    int32_t n_reach; /* lz_window - lz_buffer */
    int32_t buffer;
    const lzs_kernels *kernels;
    /* len[n_reach - d] = number of tokens, at most `buffer`, by which the history and the history without its last d
     * tokens end alike. */
    uint16_t *len;     /* (n_reach) */
    int32_t *previous; /* (n) position before this one where its token was in reach when it came, or -1; in one block
                        * with the tokens */

    size_t count_window; /* tokens counted; 0: not counted, SIZE_MAX: all */
    lzs_bag bag;         /* tokens that are counted or in reach */
} lzs_history;

lzs_status lzs_history_init(lzs_history *h, int32_t window, int32_t buffer, size_t count_window, int32_t n_vocab,
                            const lzs_kernels *kernels);
lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from);
void lzs_history_free(lzs_history *h);
void lzs_history_clear(lzs_history *h);
size_t lzs_history_memory(const lzs_history *h);
lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n);
void lzs_history_rewind(lzs_history *h, size_t n);
/* Positions in reach: distances 1 to this. */
int32_t lzs_history_reach(const lzs_history *h);

/* The edits of a history, one for each item of its bag (some change nothing), and the room to make them. */
typedef struct lzs_edits_buffer {
    lzs_edit *edits; /* (n of capacity) */
    float *saved;    /* (capacity) logits under the edits while a borrowed row is patched */
    size_t n, capacity;
    bool valid; /* the edits are those of the history as it is */

    /* LZ, while the edits are made. */
    float *lz_bias; /* (n_reach + 1) bias of a token whose best match has length 1, by its distance; [0] is not used */
    int32_t n_reach;
    struct lzs_match { /* of each item: its best match, where one is longer than 1 */
        uint32_t stamp;   /* equal to the buffer's where the rest is of this history */
        int32_t length;   /* longest (L, at least 2), and its distance, the nearest of equals */
        int32_t distance;
        float value;      /* least cost in bits (`rate`), then the bias */
    } *matches;           /* (capacity) */
    int32_t *matched;     /* (capacity) items that have one */
    uint32_t stamp;
} lzs_edits_buffer;

lzs_status lzs_edits_init(lzs_edits_buffer *e, const lzs_params *params, float log2_vocab, int32_t n_reach);
lzs_status lzs_edits_reserve(lzs_edits_buffer *e, size_t capacity);
void lzs_edits_free(lzs_edits_buffer *e);
size_t lzs_edits_memory(const lzs_edits_buffer *e);
void lzs_edits_make(lzs_edits_buffer *e, const lzs_history *h, const lzs_params *params, float log2_vocab);
/* What an edit makes of a logit. */
static inline float lzs_edit_apply(const lzs_edit *edit, float x, bool sign_aware) {
    if (!(x >= -FLT_MAX && x <= FLT_MAX)) return x; /* -inf stays out, +inf in; NaN is reported by the scan */
    float scaled = x;
    if (edit->repeat != 1.0f) scaled = x > 0.0f || !sign_aware ? x / edit->repeat : x * edit->repeat;
    return lzs_finite(scaled + edit->bias); /* a penalty makes a token unlikely, never impossible */
}

/* Logits to bits below the maximum: log2(e) / temperature. */
static inline float lzs_temperature_scale(float temperature) {
    return 0x1.715476p+0f / temperature;
}

/* The longest top-k and list that the short way takes. */
#define LZS_SHORT_TOP_K 1024
#define LZS_LIST 4096

/* What may be picked after the penalties: the row, its maxima, and what stays of it. */
typedef struct lzs_survivors {
    lzs_row row;
    lzs_top top;
    lzs_cut cut;
    lzs_blocks blocks;
    lzs_list list; /* all that stays, best first, or empty; in `packed` */
    uint64_t packed[LZS_LIST];
} lzs_survivors;

/* Temperature and truncation of a patched row (lzs_truncate.c). LZS_EMASKED, LZS_ENAN. */
lzs_status lzs_survive(const lzs_kernels *kernels, const lzs_row *row, const lzs_params *params, lzs_survivors *v);
/* Sorts descending. */
void lzs_sort(uint64_t *packed, int32_t n);

/* mt19937 at a given draw, for LZS_PICK_LLAMA_DIST (lzs_pick.c). */
typedef struct lzs_mt19937 {
    uint32_t state[624];
    uint32_t next;
} lzs_mt19937;

typedef struct lzs_dist { /* NULL in samplers that do not use it */
    lzs_mt19937 rng;      /* about to give the two words of draw number `draw` */
    uint64_t draw;
    uint64_t *order; /* (n_vocab) survivors, packed, in llama.cpp's order */
} lzs_dist;

lzs_dist *lzs_dist_new(int32_t n_vocab, uint64_t seed);
void lzs_dist_free(lzs_dist *dist);
int32_t lzs_dist_pick(lzs_dist *dist, const lzs_survivors *v, const lzs_params *params, uint64_t position);
int32_t lzs_race_pick(const lzs_kernels *kernels, const lzs_survivors *v, const lzs_params *params, uint64_t position);

/* Loops at the end of the accepted tokens (lzs_loop.c). */
#define LZS_LOOP_CLASSES 17 /* of periods, each up to twice the last one's: LZS_MAX_WINDOW / 2 is the longest */

typedef struct lzs_loop_class {
    int32_t first, last; /* periods */
    int32_t step;        /* tokens between two checkpoints: at multiples of it */
    int32_t n, left;     /* length of the list of what is due, and how much of it is to come */
    uint64_t checkpoint; /* accepted tokens at the last one */
} lzs_loop_class;

typedef struct lzs_detector { /* NULL in samplers that do not look for loops */
    uint64_t next;  /* accepted tokens at which there is something to do; UINT64_MAX once a loop was found */
    lzs_loop found; /* its count is 0 while there is none */
    int32_t min_count, n_periods, n_classes;
    lzs_loop_class classes[LZS_LOOP_CLASSES];
    uint64_t due[]; /* (n_periods) the lists of the classes, one after the other */
} lzs_detector;

lzs_detector *lzs_detector_new(const lzs_params *params); /* one block: free() frees it */
void lzs_detector_copy(lzs_detector *to, const lzs_detector *from); /* of the same parameters */
void lzs_detector_clear(lzs_detector *d);
size_t lzs_detector_memory(const lzs_detector *d);
/* After a token was accepted, or some were taken back: `tokens` are the n accepted ones. */
void lzs_detector_accept(lzs_detector *d, const int32_t *tokens, uint64_t n);
void lzs_detector_rewind(lzs_detector *d, const int32_t *tokens, uint64_t n);

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
    lzs_detector *detector;
};

/* Applies the edits to a row and keeps what was there; puts that back. */
void lzs_patch(lzs_sampler *s, float *logits);
void lzs_unpatch(lzs_sampler *s, float *logits);

#endif
