/* text.h - what the files of the text library share: how to count characters and strip white space, and the figures of
 * a piece.
 */
#ifndef LZS_TEXT_H
#define LZS_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "../table.h"
#include "lzsampler_text.h"

/* ---- characters ---- */

/* Counts in blocks whose sums fit in a byte, which compilers make into instructions on many bytes at once. */
static inline uint64_t count_characters(const uint8_t *text, size_t n) {
    uint64_t count = 0;
    for (; n >= 128; n -= 128, text += 128) {
        uint8_t of_block = 0;
        for (size_t i = 0; i < 128; i++) of_block += (text[i] & 0xC0) != 0x80;
        count += of_block;
    }
    for (size_t i = 0; i < n; i++) count += (text[i] & 0xC0) != 0x80;
    return count;
}

/* Returns the span without the white space at its two ends (words.c). */
lzs_span lzs_text_strip(const uint8_t *text, lzs_span span);

/* ---- figures (figures.c) ---- */

#define LZS_TEXT_PIECE ((size_t)4 << 20) /* bytes of a piece of a long text, whose figures are those of its pieces */

/* Computes what lzs_text_figures does of valid arguments. *longest is the most words that come twice in the same order,
 * wherever that is, or SIZE_MAX if it is not known: in a text of several pieces, and where they are many. */
lzs_status lzs_text_figures_of(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                               lzs_figures *figures, size_t *longest);

/* Computes what lzs_text_figures does, with only the words of one piece in memory at a time. LZS_ESPACE if a piece has
 * no word that ends in it: *figures is then useless. */
lzs_status lzs_text_figures_by_piece(const uint8_t *text, size_t n, lzs_figures *figures);

#endif
