/* sorted_tokens.h - looking up a token in a sorted list of tokens, in a sorted list of structs that begin with a token,
 * and in a bit set. */
#ifndef LZS_SORTED_TOKENS_H
#define LZS_SORTED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../backend/arithmetic.h"

/* Returns the index of a token among n items of `size` bytes, sorted by token in ascending order; n if the token is not
 * there. */
LZS_DEVICE static inline size_t lzs_find_token(const void *items, size_t n, size_t size, int32_t token) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*(const int32_t *)(const void *)((const char *)items + middle * size) < token) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < n && *(const int32_t *)(const void *)((const char *)items + low * size) == token) return low;
    return n;
}

/* Whether a token is one of n tokens, which are in ascending order. */
LZS_DEVICE static inline bool lzs_listed(const int32_t *tokens, size_t n, int32_t token) {
    return n && lzs_find_token(tokens, n, sizeof token, token) < n;
}

/* Whether a token is in a bit set of the vocabulary. NULL is the empty set. */
LZS_DEVICE static inline bool lzs_in_set(const uint32_t *set, int32_t token) {
    return set && (set[(uint32_t)token / 32] >> ((uint32_t)token % 32) & 1u);
}

#endif
