/* normalize.c - writes the normalized text. In this text, stretches that differ only in a counter, in capital letters
 * or in indentation are equal.
 *
 * Each character of the text is decoded, replaced by its entry in the caller's table, and encoded again. Stretches of
 * ASCII are normalized without decoding, since most texts are nearly all ASCII. The table decides which characters are
 * digits, white space or capital letters. This file only replaces several spaces by one space, and several zeros by one
 * zero.
 *
 * Unicode 15, table 3-7, defines well-formed UTF-8: the shortest form of a code point up to 10FFFF that is not a
 * surrogate. Every byte outside well-formed UTF-8 is copied unchanged. So the text between such bytes is still
 * normalized, and an error in the encoding does not make two different texts equal.
 */
#include "text.h"

#define UNICODE_SIZE 0x110000u
#define NO_CHARACTER UINT32_MAX

static bool is_character(uint32_t c) {
    return c < UNICODE_SIZE && (c < 0xD800 || c > 0xDFFF);
}

static size_t encoded_width(uint32_t c) {
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

/* Reads the character that starts with a byte of 80 or more, and returns its number of bytes. If no well-formed
 * character starts there, *character is NO_CHARACTER and the function returns 1. A sequence of two bytes that starts
 * with C2 or more is well-formed if the second byte is a continuation byte. In longer sequences the code point must be
 * checked. */
static size_t decode(const uint8_t *text, size_t n, uint32_t *character) {
    size_t width = text[0] >= 0xF8 ? 1 : text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : text[0] >= 0xC2 ? 2 : 1;
    *character = NO_CHARACTER;
    if (width == 1 || width > n) return 1;
    uint32_t c = text[0] & (0x7Fu >> width);
    for (size_t i = 1; i < width; i++) {
        if ((text[i] & 0xC0) != 0x80) return 1;
        c = c << 6 | (text[i] & 0x3Fu);
    }
    if (width > 2 && (encoded_width(c) != width || !is_character(c))) return 1;
    *character = c;
    return width;
}

static size_t encode(uint32_t c, uint8_t *out) {
    size_t width = encoded_width(c);
    if (width == 1) {
        out[0] = (uint8_t)c;
        return 1;
    }
    for (size_t i = width - 1; i > 0; i--, c >>= 6) out[i] = (uint8_t)(0x80 | (c & 0x3F));
    out[0] = (uint8_t)(0xF00u >> width | c);
    return width;
}

static bool collapses(uint32_t c, uint32_t last) {
    return c == last && (c == ' ' || c == '0');
}

/* Normalizes the ASCII characters from text[*at] on, up to the first byte of 80 or more. */
static size_t normalize_ascii(const uint8_t *text, size_t n, const uint8_t *fold, uint8_t *normalized, size_t made,
                              size_t *at, uint32_t *last) {
    size_t i = *at;
    uint32_t before = *last;
    for (; i < n && text[i] < 0x80; i++) {
        uint32_t c = fold[text[i]];
        normalized[made] = (uint8_t)c; /* in bounds, because made <= i; a byte that collapses is overwritten by the next
                                        * byte */
        made += !collapses(c, before);
        before = c;
    }
    *at = i;
    *last = before;
    return made;
}

lzs_status lzs_normalize(const uint8_t *text, size_t n, const uint32_t *fold, size_t n_fold, uint8_t *normalized,
                         size_t *n_normalized, uint64_t *places, size_t n_places) {
    if ((!text && n) || (!fold && n_fold) || (!normalized && n) || !n_normalized || (!places && n_places)) {
        return LZS_EINVAL;
    }
    if (n_fold > UNICODE_SIZE) n_fold = UNICODE_SIZE;
    uint8_t ascii[0x80];
    for (uint32_t c = 0; c < 0x80; c++) {
        if (c < n_fold && fold[c] >= 0x80) return LZS_EINVAL;
        ascii[c] = (uint8_t)(c < n_fold ? fold[c] : c);
    }
    size_t made = 0, place = 0;
    uint64_t n_characters = 0; /* characters that begin before `at` */
    uint32_t last = NO_CHARACTER;
    for (size_t at = 0; at < n;) {
        if (!n_places) made = normalize_ascii(text, n, ascii, normalized, made, &at, &last);
        if (at == n) break;
        uint32_t c = text[at];
        size_t width = 1;
        if (c >= 0x80) width = decode(text + at, n - at, &c);
        if (c < n_fold) {
            c = fold[c];
            if (encoded_width(c) > width || (width > 2 && !is_character(c))) return LZS_EINVAL;
        }
        if (!collapses(c, last)) {
            while (place < n_places && places[place] <= made) places[place++] = n_characters;
            if (c == NO_CHARACTER) normalized[made++] = text[at];
            else made += encode(c, normalized + made);
        }
        last = c;
        n_characters += (text[at] & 0xC0) != 0x80;
        at += width;
    }
    while (place < n_places) places[place++] = n_characters;
    *n_normalized = made;
    return LZS_OK;
}
