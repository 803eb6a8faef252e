/* watch.h - a watch, which compares the end of the text with earlier text for one penalty. A watch knows, for each
 * distance d, how many last tokens equal the tokens d positions earlier. After each token, it knows how many tokens
 * have come since a separator.
 */
#ifndef LZS_WATCH_H
#define LZS_WATCH_H

#include <stdbool.h>

#include "match_index.h"

/* The tokens that are separators. All arrays are borrowed. */
typedef struct lzs_separators {
    const int32_t *tokens; /* (n) separators, ascending */
    size_t n;
    const uint32_t *set;    /* further separators, as a bit set; NULL for none */
    const uint32_t *commas; /* bit set of commas: a comma is a separator only if fewer than `item` tokens, the comma
                             * included, follow the last separator; NULL for none */
    int32_t item;
} lzs_separators;

/* The settings with which a watch is made. */
typedef struct lzs_watch_shape {
    int32_t window; /* greatest distance that is watched; 0 switches the watch off */
    int32_t cap;    /* upper limit of the lengths, at most 65535 */
    lzs_separators separators;
} lzs_watch_shape;

typedef struct lzs_watch {
    lzs_match_index index;
    lzs_separators separators;
    uint16_t *since; /* (n of capacity) since[i]: number of tokens after the last separator, up to and including token
                      * i; 65535 for more */
    size_t capacity;
} lzs_watch;

bool lzs_is_separator(const lzs_separators *s, int32_t token);

void lzs_watch_init(lzs_watch *w, const lzs_watch_shape *shape);
/* Makes room for a history of n tokens. On failure the watch is as it was. */
lzs_status lzs_watch_reserve(lzs_watch *w, size_t n);
/* Makes `to` equal to `from`, which has the same shape and watches n tokens. After a failure the caller must clear
 * `to`. */
lzs_status lzs_watch_copy(lzs_watch *to, const lzs_watch *from, size_t n);
void lzs_watch_free(lzs_watch *w);
void lzs_watch_clear(lzs_watch *w);
size_t lzs_watch_memory(const lzs_watch *w);

/* Updates the watch after `added` tokens were appended; n is the number of tokens after that. The watch must have room
 * for n tokens. */
void lzs_watch_extend(lzs_watch *w, const lzs_kernels *kernels, const int32_t *tokens, size_t n, size_t added);
/* Updates the watch after a rewind: only the first n tokens are left. */
void lzs_watch_rewind(lzs_watch *w, const int32_t *tokens, size_t n);

/* The number of tokens since the last separator, after n tokens; 65535 for more. */
static inline int32_t lzs_unbroken(const lzs_watch *w, size_t n) {
    return n ? w->since[n - 1] : 0;
}

/* The length, at most the cap, of the common suffix of the text and of the text without its last `distance` tokens. */
static inline int32_t lzs_suffix_at(const lzs_watch *w, int32_t distance) {
    return lzs_match_length(&w->index, distance);
}

#endif
