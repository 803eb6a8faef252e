/* lookup.c - drafts without a model: the tokens that followed an earlier occurrence of the end of the text.
 *
 * The index is the match index of the LZ penalty (state/match_index.h), over all tokens. Matches are found where text
 * is copied, edited or quoted.
 */
#include <string.h>

#include "../include/lzsampler_verify.h"
#include "../room.h"
#include "../state/match_index.h"

enum { REBUILT_FROM = 32 }; /* from this many new tokens on, one rebuild is faster than one pass for each token */

struct lzs_lookup {
    lzs_match_index index;
    const lzs_kernels *kernels;
    int32_t *tokens; /* (n of room) tokens of the whole text */
    size_t n, room;
};

lzs_status lzs_lookup_new(int32_t window, lzs_lookup **lookup) {
    *lookup = NULL;
    if (window < 1) return LZS_EINVAL;
    lzs_lookup *made = calloc(1, sizeof *made);
    if (!made) return LZS_ENOMEM;
    made->index = (lzs_match_index){.window = window, .cap = UINT16_MAX};
    made->kernels = lzs_kernels_best();
    *lookup = made;
    return LZS_OK;
}

void lzs_lookup_free(lzs_lookup *lookup) {
    if (!lookup) return;
    lzs_match_index_free(&lookup->index);
    free(lookup->tokens);
    free(lookup);
}

lzs_status lzs_lookup_append(lzs_lookup *lookup, const int32_t *tokens, size_t n) {
    if (n == 0) return LZS_OK;
    if (!tokens) return LZS_EINVAL;
    if (n > (size_t)INT32_MAX - lookup->n) return LZS_EFULL;
    size_t after = lookup->n + n;
    lzs_status status = lzs_match_index_reserve(&lookup->index, after);
    if (status != LZS_OK) return status;
    if (after > lookup->room) {
        size_t room = after + after / 2 + 64;
        int32_t *more = lzs_room(lookup->tokens, room, sizeof *more);
        if (!more) return LZS_ENOMEM;
        lookup->tokens = more;
        lookup->room = room;
    }
    memcpy(lookup->tokens + lookup->n, tokens, n * sizeof *tokens);
    size_t before = lookup->n;
    lookup->n = after;
    if (n >= REBUILT_FROM) {
        lzs_match_index_rebuild(&lookup->index, lookup->tokens, after);
        return LZS_OK;
    }
    while (before++ < after) lzs_match_index_extend(&lookup->index, lookup->kernels, lookup->tokens, before);
    return LZS_OK;
}

lzs_status lzs_lookup_rewind(lzs_lookup *lookup, size_t n) {
    if (n > lookup->n) return LZS_EINVAL;
    lookup->n -= n;
    if (n) lzs_match_index_rebuild(&lookup->index, lookup->tokens, lookup->n);
    return LZS_OK;
}

int32_t lzs_lookup_find(const lzs_lookup *lookup, int32_t least, int32_t *tokens, int32_t n) {
    const lzs_match_index *index = &lookup->index;
    if (least < 1 || least > UINT16_MAX || lookup->n < 2) return 0;
    int32_t best = 0, distance = 0;
    lzs_match_walk walk = {.reach = lookup->n <= (size_t)index->room ? (int32_t)lookup->n - 1 : index->room};
    walk.least = (uint16_t)least;
    while (lzs_match_walk_on(&walk, index, lookup->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            int32_t length = lzs_match_length(index, walk.base - walk.found[i]);
            if (length <= best) continue; /* of several longest matches, keep the nearest */
            best = length;
            distance = walk.base - walk.found[i];
        }
        if (best == index->cap) break;
        walk.least = (uint16_t)(best >= least ? best + 1 : least);
    }
    const int32_t *from = lookup->tokens + lookup->n - distance;
    for (int32_t i = 0; i < n && best; i++) tokens[i] = i < distance ? from[i] : tokens[i - distance];
    return best;
}
