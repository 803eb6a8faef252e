/* text.h - what the files of the text library share: counting characters, stripping white space, and the figures of a
 * piece.
 */
#ifndef LZS_TEXT_H
#define LZS_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "../table.h"
#include "lzsampler_text.h"

/* ---- characters ---- */

/* Counts in blocks whose sums fit in a byte. Compilers turn such loops into instructions on many bytes at once. */
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

#define LZS_TEXT_PIECE ((size_t)4 << 20) /* bytes of a piece; a long text adds up the figures of its pieces */

/* Does the work of lzs_text_figures, for valid arguments. *longest is the length in words of the longest stretch that
 * occurs twice in the text. It is SIZE_MAX if unknown: for a text of several pieces, or if the search for longer
 * stretches stopped early. */
lzs_status lzs_text_figures_of(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                               lzs_figures *figures, size_t *longest);

/* Computes the figures of lzs_text_figures with only the words of one piece in memory at a time. LZS_ESPACE if no word
 * ends in some piece. The contents of *figures are then undefined. */
lzs_status lzs_text_figures_by_piece(const uint8_t *text, size_t n, lzs_figures *figures);

#endif
