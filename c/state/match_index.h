/* match_index.h - an index of the places where the history repeats its own end.
 *
 * For each distance d the index holds the length, at most `cap`, of the common suffix of the history and the history
 * without its last d tokens. The token at distance d followed the earlier occurrence of this suffix. So the LZ penalty
 * and DRY compute the penalty of this token from the length.
 */
#ifndef LZS_MATCH_INDEX_H
#define LZS_MATCH_INDEX_H

#include "../backend/kernels.h"
#include "../include/lzsampler.h"

#define LZS_MATCH_CHUNK 512

typedef struct lzs_match_index {
    int32_t window; /* greatest distance that is indexed; 0 switches the index off */
    int32_t cap;    /* upper limit of the lengths, at most 65535 */
    int32_t room;   /* number of distances that `len` has memory for, at most `window` */
    uint16_t *len;  /* (room) len[room - d]: length of the common suffix at distance d */
} lzs_match_index;

/* Makes room for a history of n tokens. Initialize a match index as {.window, .cap}. On failure the index is as it
 * was. */
lzs_status lzs_match_index_reserve(lzs_match_index *index, size_t n);
/* Makes `to`, an index of the same window and cap, equal to `from`; on failure `to` is as it was. */
lzs_status lzs_match_index_copy(lzs_match_index *to, const lzs_match_index *from);
void lzs_match_index_free(lzs_match_index *index);
void lzs_match_index_clear(lzs_match_index *index);
size_t lzs_match_index_memory(const lzs_match_index *index);

/* Updates the index after the last of n tokens was appended: one pass, in which every length grows by 1 or becomes
 * 0. */
void lzs_match_index_extend(lzs_match_index *index, const lzs_kernels *kernels, const int32_t *tokens, size_t n);
/* Recomputes all lengths. For any text, the time is linear in the window. */
void lzs_match_index_rebuild(lzs_match_index *index, const int32_t *tokens, size_t n);

static inline int32_t lzs_match_length(const lzs_match_index *index, int32_t distance) {
    return index->len[index->room - distance];
}

/* Finds the distances at which the length is at least `least`, nearest first, in one chunk per call. Returns false at
 * the end:
 *
 *     lzs_match_walk walk = {.reach = reach, .least = 1};
 *     while (lzs_match_walk_on(&walk, index, kernels)) {
 *         for (int32_t i = walk.n - 1; i >= 0; i--) { int32_t distance = walk.base - walk.found[i]; ... }
 *     }
 */
typedef struct lzs_match_walk {
    int32_t reach; /* greatest distance to look at */
    uint16_t least;
    int32_t done;  /* number of distances looked at so far */
    int32_t base;
    int32_t n;
    int32_t found[LZS_MATCH_CHUNK]; /* (n) base - distance of each distance found, in ascending order */
} lzs_match_walk;

bool lzs_match_walk_on(lzs_match_walk *walk, const lzs_match_index *index, const lzs_kernels *kernels);

#endif
