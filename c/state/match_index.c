/* match_index.c - an index of the places where the history repeats its own end.
 *
 * When a token is accepted, one pass without branches updates the lengths. A rewind needs no log: it computes all
 * lengths anew by the Z-function of the reversed history (Gusfield 1997, section 1.4). The Z-function compares each
 * token a bounded number of times.
 */
#include "match_index.h"

#include <string.h>

#include "../room.h"

lzs_status lzs_match_index_reserve(lzs_match_index *index, size_t n) {
    if (n <= (size_t)index->room || index->room == index->window) return LZS_OK;
    size_t room = n + n / 2 + 64;
    if (room > (size_t)index->window) room = (size_t)index->window;
    uint16_t *len = calloc(room, sizeof *len);
    if (!len) return LZS_ENOMEM;
    if (index->room) memcpy(len + (room - (size_t)index->room), index->len, (size_t)index->room * sizeof *len);
    free(index->len);
    index->len = len;
    index->room = (int32_t)room;
    return LZS_OK;
}

lzs_status lzs_match_index_copy(lzs_match_index *to, const lzs_match_index *from) {
    if (to->room != from->room) {
        uint16_t *len = lzs_room(NULL, (size_t)from->room, sizeof *len);
        if (!len) return LZS_ENOMEM;
        free(to->len);
        to->len = len;
        to->room = from->room;
    }
    if (from->room) memcpy(to->len, from->len, (size_t)from->room * sizeof *to->len);
    return LZS_OK;
}

void lzs_match_index_free(lzs_match_index *index) {
    free(index->len);
    index->len = NULL;
    index->room = 0;
}

void lzs_match_index_clear(lzs_match_index *index) {
    if (index->room) memset(index->len, 0, (size_t)index->room * sizeof *index->len);
}

size_t lzs_match_index_memory(const lzs_match_index *index) {
    return (size_t)index->room * sizeof *index->len;
}

void lzs_match_index_extend(lzs_match_index *index, const lzs_kernels *kernels, const int32_t *tokens, size_t n) {
    size_t before = n - 1;
    int32_t k = before < (size_t)index->room ? (int32_t)before : index->room;
    kernels->extend(index->len + index->room - k, tokens + before - k, k, tokens[before], (uint16_t)index->cap);
}

void lzs_match_index_rebuild(lzs_match_index *index, const int32_t *tokens, size_t n) {
    const int32_t *end = tokens + n;
    int32_t left = 0, right = 0; /* the tokens at distances left to right - 1 are known to repeat the end of the text */
    for (int32_t d = 1; d <= index->room; d++) {
        int32_t length = 0;
        if ((size_t)d < n) {
            size_t limit = n - (size_t)d;
            if (limit > (size_t)index->cap) limit = (size_t)index->cap;
            if (d < right) {
                int32_t known = lzs_match_length(index, d - left);
                length = known < right - d ? known : right - d;
            }
            if ((size_t)length > limit) length = (int32_t)limit;
            while ((size_t)length < limit && end[-1 - length] == end[-1 - length - d]) length++;
            if (d + length > right) {
                left = d;
                right = d + length;
            }
        }
        index->len[index->room - d] = (uint16_t)length;
    }
}

bool lzs_match_walk_on(lzs_match_walk *walk, const lzs_match_index *index, const lzs_kernels *kernels) {
    while (walk->done < walk->reach) {
        int32_t n = walk->reach - walk->done < LZS_MATCH_CHUNK ? walk->reach - walk->done : LZS_MATCH_CHUNK;
        walk->done += n;
        walk->base = walk->done;
        walk->n = kernels->find_long(index->len + index->room - walk->done, n, walk->least, walk->found);
        if (walk->n) return true;
    }
    return false;
}
