/* sort.c - selecting and sorting 64-bit keys, the largest first. */
#include "sort.h"

#include <string.h>

/* Shell sort with the gaps of Ciura 2001 and further, larger gaps. The sort is short, works in place, and is never
 * quadratic in practice. */
void lzs_sort_keys(uint64_t *keys, int32_t n) {
    static const int32_t gaps[] = {1, 4, 10, 23, 57, 132, 301, 701, 1577, 3548, 7983, 17961, 40412, 90927, 204585};
    for (int g = (int)(sizeof gaps / sizeof *gaps) - 1; g >= 0; g--) {
        int32_t gap = gaps[g];
        for (int32_t i = gap; i < n; i++) {
            uint64_t moved = keys[i];
            int32_t j = i;
            for (; j >= gap && keys[j - gap] < moved; j -= gap) keys[j] = keys[j - gap];
            keys[j] = moved;
        }
    }
}

void lzs_sort_keys_with(uint64_t *keys, int32_t n, uint64_t *room) {
    if (n <= 128) {
        lzs_sort_keys(keys, n);
        return;
    }
    uint64_t differing = 0; /* the bits in which keys differ; a byte in which no keys differ needs no pass */
    for (int32_t i = 1; i < n; i++) differing |= keys[i] ^ keys[0];
    uint64_t *from = keys, *to = room;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differing >> shift & 0xff)) continue;
        uint32_t starts[256] = {0};
        for (int32_t i = 0; i < n; i++) starts[from[i] >> shift & 0xff]++;
        uint32_t at = 0;
        for (int b = 255; b >= 0; b--) {
            uint32_t count = starts[b];
            starts[b] = at;
            at += count;
        }
        for (int32_t i = 0; i < n; i++) to[starts[from[i] >> shift & 0xff]++] = from[i];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != keys) memcpy(keys, from, (size_t)n * sizeof *keys);
}

/* Hoare's FIND (1961) with the median of three as its pivot. FIND usually takes a few rounds for each bit of n. If an
 * unlucky order of the keys takes more than 64 rounds, the remaining part is sorted. */
uint64_t lzs_kth_largest(uint64_t *keys, int32_t n, int32_t k) {
    int32_t low = 0, high = n - 1, rounds = 64;
    while (low < high) {
        uint64_t a = keys[low], b = keys[low + (high - low) / 2], c = keys[high];
        uint64_t pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        int32_t i = low, j = high;
        if (rounds-- == 0) {
            lzs_sort_keys(keys + low, high - low + 1);
            break;
        }
        while (i <= j) {
            while (keys[i] > pivot) i++;
            while (keys[j] < pivot) j--;
            if (i <= j) {
                uint64_t swapped = keys[i];
                keys[i++] = keys[j];
                keys[j--] = swapped;
            }
        }
        if (j < k - 1) low = i;
        if (k - 1 < i) high = j;
    }
    return keys[k - 1];
}
