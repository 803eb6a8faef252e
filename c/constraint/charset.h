/* charset.h - a set of Unicode code points, as ranges. */
#ifndef LZS_CHARSET_H
#define LZS_CHARSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LZS_MAX_CODE_POINT 0x10FFFFu

typedef struct lzs_range {
    uint32_t first, last;
} lzs_range;

typedef struct lzs_charset {
    lzs_range *ranges;
    size_t n, room;
} lzs_charset;

void lzs_charset_free(lzs_charset *set);
/* The functions below return false if memory runs out. */
bool lzs_charset_add(lzs_charset *set, uint32_t first, uint32_t last);
/* Sorts and merges the ranges, and removes the surrogates, which UTF-8 does not have. */
bool lzs_charset_normalize(lzs_charset *set);
/* Replaces a set by its complement. The caller must normalize `set` first. The complement is normalized, too. */
bool lzs_charset_negate(lzs_charset *set);
/* For each ASCII letter in the set, adds the letter of the other case. */
bool lzs_charset_fold(lzs_charset *set);

#endif
