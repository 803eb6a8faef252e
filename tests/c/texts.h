/* texts.h - random texts for the tests of the text library, in blocks of their own size.
 *
 * A read or write past the end of such a block is seen by AddressSanitizer and by valgrind.
 */
#ifndef LZS_TESTS_TEXTS_H
#define LZS_TESTS_TEXTS_H

#include <string.h>

#include "check.h"

/* Returns `n` bytes of letters, digits, white space of one to three bytes, and parts of characters; the caller frees
 * them. The last character may be cut off. */
static inline uint8_t *random_text(uint64_t *state, size_t n) {
    static const char *const parts[] = {"a", "b", "ab", "abababab", "abcdefghi", " ", "\n", "\n\n", "\xC2\xA0",
                                        "\xE2\x80\x89", "\xE3\x80\x80", "\xC3\xA9", "\xF0\x9F\x98\x80", "\xE2",
                                        "\x80", "\xED\xA0\x80", "0"};
    int32_t n_parts = 2 + random_below(state, (int32_t)(sizeof parts / sizeof *parts) - 1);
    uint8_t *text = malloc(n ? n : 1);
    CHECK(text);
    for (size_t at = 0; at < n;) {
        const char *part = parts[random_below(state, n_parts)];
        size_t length = strlen(part) < n - at ? strlen(part) : n - at;
        memcpy(text + at, part, length);
        at += length;
    }
    return text;
}

/* A table for lzs_normalize that maps b to a and a line feed to a space. */
static inline void make_fold(uint32_t fold[256]) {
    for (uint32_t c = 0; c < 256; c++) fold[c] = c == 'b' ? 'a' : c == '\n' ? ' ' : c;
}

#endif
