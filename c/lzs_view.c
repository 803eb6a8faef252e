/* lzs_view.c - a text as it is scanned for near loops: what a counter, a capital or another indentation changes is gone. */
#include <stdbool.h>

#include "lzs_internal.h"

/* Reads a character of more than one byte; returns its bytes. What is no UTF-8 is a character a byte. Surrogates are
 * read as they would be written (Python's "surrogatepass"). */
static size_t decode(const uint8_t *text, size_t n, uint32_t *character) {
    size_t width = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : text[0] >= 0xC0 ? 2 : 1;
    *character = UINT32_MAX;
    if (width == 1 || width > n) return 1;
    uint32_t c = text[0] & (0x7Fu >> width);
    for (size_t i = 1; i < width; i++) {
        if ((text[i] & 0xC0) != 0x80) return 1;
        c = c << 6 | (text[i] & 0x3Fu);
    }
    *character = c;
    return width;
}

static size_t encode(uint32_t c, uint8_t *out) {
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t width = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = width - 1; i > 0; i--, c >>= 6) out[i] = (uint8_t)(0x80 | (c & 0x3F));
    out[0] = (uint8_t)(0xF00u >> width | c);
    return width;
}

static size_t encoded_width(uint32_t c) {
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static bool collapses(uint32_t c, uint32_t last) {
    return c == last && (c == ' ' || c == '0');
}

/* ASCII from text[*at] on, as far as it goes; nearly all of most texts. */
static size_t view_ascii(const uint8_t *text, size_t n, const uint8_t *fold, uint8_t *view, size_t made, size_t *at,
                         uint32_t *last) {
    size_t i = *at;
    uint32_t before = *last;
    for (; i < n && text[i] < 0x80; i++) {
        uint32_t c = fold[text[i]];
        view[made] = (uint8_t)c; /* made <= i: a byte that collapses is written over */
        made += !collapses(c, before);
        before = c;
    }
    *at = i;
    *last = before;
    return made;
}

lzs_status lzs_near_view(const uint8_t *text, size_t n, const uint32_t *fold, size_t n_fold, uint8_t *view,
                         size_t *n_view, uint64_t *places, size_t n_places) {
    if ((!text && n) || (!fold && n_fold) || (!view && n) || !n_view || (!places && n_places)) return LZS_EINVAL;
    uint8_t ascii[0x80];
    for (uint32_t c = 0; c < 0x80; c++) {
        if (c < n_fold && fold[c] >= 0x80) return LZS_EINVAL;
        ascii[c] = (uint8_t)(c < n_fold ? fold[c] : c);
    }
    size_t made = 0, place = 0;
    uint64_t character = 0; /* of the text, at `at` */
    uint32_t last = UINT32_MAX;
    for (size_t at = 0; at < n;) {
        if (!n_places) made = view_ascii(text, n, ascii, view, made, &at, &last);
        if (at == n) break;
        uint32_t c = text[at];
        size_t width = 1;
        if (c >= 0x80) width = decode(text + at, n - at, &c);
        if (c < n_fold) {
            c = fold[c];
            if (encoded_width(c) > width) return LZS_EINVAL;
        }
        if (!collapses(c, last)) {
            while (place < n_places && places[place] <= made) places[place++] = character;
            if (c == UINT32_MAX) view[made++] = text[at];
            else made += encode(c, view + made);
        }
        last = c;
        at += width;
        character++;
    }
    while (place < n_places) places[place++] = character;
    *n_view = made;
    return LZS_OK;
}
