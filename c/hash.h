/* hash.h - keyed hashes, for tables whose contents an attacker may choose, and fingerprints of strings. Both
 * liblzsampler and liblzsampler_text use this file.
 *
 * The key is made from addresses of the running process, which the author of an input does not know. Without the key,
 * nobody can find elements that collide in a table more often than by chance.
 */
#ifndef LZS_HASH_H
#define LZS_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && defined(_M_X64)
#  include <intrin.h>
#endif

/* lzs_fold for compilers without 128-bit products. */
static inline uint64_t lzs_fold_portably(uint64_t a, uint64_t b) {
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32), other = a_low * b_high + (uint32_t)middle;
    return a * b ^ (a_high * b_high + (middle >> 32) + (other >> 32));
}

/* Multiplies two words, and combines the two halves of the product by exclusive or. Each bit of the result depends on
 * all bits of both words. */
static inline uint64_t lzs_fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 product;
    product whole = (product)a * b;
    return (uint64_t)whole ^ (uint64_t)(whole >> 64);
#elif defined(_MSC_VER) && defined(_M_X64)
    uint64_t high, low = _umul128(a, b, &high);
    return low ^ high;
#else
    return lzs_fold_portably(a, b);
#endif
}

/* Makes a key for lzs_fold from an address on the heap and an address on the stack. */
static inline uint64_t lzs_hash_key(const void *heap) {
    const char stack = 0;
    return lzs_fold((uint64_t)(uintptr_t)heap ^ UINT64_C(0xA0761D6478BD642F),
                    (uint64_t)(uintptr_t)&stack ^ UINT64_C(0x9E3779B97F4A7C15)) | 1;
}

/* Returns a keyed hash of n bytes. */
static inline uint32_t lzs_hash_bytes(const uint8_t *bytes, size_t n, uint64_t key) {
    uint64_t hash = n, word = 0;
    for (size_t at = 0; at + sizeof word < n; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = lzs_fold(hash ^ word, key);
    }
    if (n >= sizeof word) {
        /* hash the last 8 bytes; unless n is a multiple of 8, some of these bytes were hashed before */
        memcpy(&word, bytes + n - sizeof word, sizeof word);
    } else if (n) {
        memcpy(&word, bytes, n);
    }
    return (uint32_t)lzs_fold(hash ^ word, key);
}

/* ---- fingerprints (Karp and Rabin 1987): numbers modulo 2^61 - 1 whose digits are the bytes of a string, in a base
 * made from a key ---- */

#define LZS_PRINT_MODULUS ((UINT64_C(1) << 61) - 1)

static inline uint64_t lzs_print_reduced(uint64_t x) {
    x = (x & LZS_PRINT_MODULUS) + (x >> 61);
    return x >= LZS_PRINT_MODULUS ? x - LZS_PRINT_MODULUS : x;
}

/* Returns a base for fingerprints, greater than any byte. */
static inline uint64_t lzs_print_base(uint64_t key) {
    return 256 + key % (LZS_PRINT_MODULUS - 256);
}

/* a * b modulo 2^61 - 1, from 64-bit products of halves. Modulo 2^61 - 1, 2^61 is 1 and 2^62 is 2. */
static inline uint64_t lzs_print_times(uint64_t a, uint64_t b) {
    const uint64_t mask31 = (UINT64_C(1) << 31) - 1, mask30 = (UINT64_C(1) << 30) - 1;
    uint64_t high_a = a >> 31, low_a = a & mask31, high_b = b >> 31, low_b = b & mask31;
    uint64_t middle = low_a * high_b + high_a * low_b;
    return lzs_print_reduced(2 * high_a * high_b + (middle >> 30) + ((middle & mask30) << 31) + low_a * low_b);
}

/* The fingerprint of a string with one more byte; `print` is the fingerprint without this byte. */
static inline uint64_t lzs_print_on(uint64_t print, uint64_t base, uint8_t byte) {
    return lzs_print_reduced(lzs_print_times(print, base) + byte);
}

#endif
