/* check.h - all that the C tests share: CHECK, and random numbers that are the same on every machine. */
#ifndef LZS_TESTS_CHECK_H
#define LZS_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Stops at the first failure: what follows it would be noise. */
#define CHECK(expression) \
    do { \
        if (!(expression)) { \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #expression); \
            exit(1); \
        } \
    } while (0)

/* splitmix64 */
static inline uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* 0..n - 1 */
static inline int32_t random_below(uint64_t *state, int32_t n) {
    return (int32_t)((random_bits(state) >> 32) % (uint32_t)n);
}

/* [0, 1) */
static inline double random_unit(uint64_t *state) {
    return (double)(random_bits(state) >> 11) / 9007199254740992.0;
}

#endif
