/* sort.h - selecting and sorting 64-bit keys, the largest first. */
#ifndef LZS_SORT_H
#define LZS_SORT_H

#include <stdint.h>

/* Sorts n keys, the largest first, in place. */
void lzs_sort_keys(uint64_t *keys, int32_t n);

/* As lzs_sort_keys, in time linear in n. `room` has room for n keys. */
void lzs_sort_keys_with(uint64_t *keys, int32_t n, uint64_t *room);

/* Returns the k-th largest of n keys, 1 <= k <= n. Reorders the keys: the k largest come first, in any order. */
uint64_t lzs_kth_largest(uint64_t *keys, int32_t n, int32_t k);

#endif
