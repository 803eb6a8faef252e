/* utf8.h - encodes and decodes code points as UTF-8. */
#ifndef LZS_UTF8_H
#define LZS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at the beginning of n > 0 bytes. *code gets the code point. Returns the character's number of
 * bytes, or 0 if the character is not well-formed. */
static inline size_t lzs_utf8_decode(const uint8_t *bytes, size_t n, uint32_t *code) {
    uint32_t lead = bytes[0];
    if (lead < 0x80) {
        *code = lead;
        return 1;
    }
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || length > n) return 0;
    uint32_t value = lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (bytes[i] & 0x3F);
    }
    if ((length == 3 && value < 0x800) || (length == 4 && value < 0x10000)) return 0;
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
    *code = value;
    return length;
}

/* A group of characters of several bytes (RFC 3629): the range of the first byte, the number of further bytes, and the
 * range of the second byte. */
typedef struct lzs_lead {
    uint8_t first, last, more, second_first, second_last;
} lzs_lead;

static const lzs_lead LZS_LEADS[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F},
    {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};
enum { LZS_N_LEADS = sizeof LZS_LEADS / sizeof *LZS_LEADS };

/* Writes the bytes of a code point, and returns their number. */
static inline size_t lzs_utf8_encode(uint32_t code, uint8_t bytes[4]) {
    if (code < 0x80) {
        bytes[0] = (uint8_t)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    bytes[0] = (uint8_t)((0xF00u >> length & 0xFF) | code);
    return length;
}

#endif
