/* text.h - functions that several files of the text library use: counting characters, stripping white space, and
 * figures. Figures are the counts of repeated words, lines and paragraphs of lzs_text_figures.
 */
#ifndef LZS_TEXT_H
#define LZS_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "../table.h"
#include "lzsampler_text.h"

/* ---- characters ---- */

/* Counts the characters of UTF-8 text. The inner loop sums 128 bytes in one byte, which lets compilers use instructions
 * on many bytes at once. */
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

/* Returns the span without white space at its beginning and its end (words.c). */
lzs_span lzs_text_strip(const uint8_t *text, lzs_span span);

/* ---- figures (figures.c) ---- */

/* number of bytes of a piece; the figures of a longer text are the sums of the figures of its pieces */
#define LZS_TEXT_PIECE ((size_t)4 << 20)

/* Does the work of lzs_text_figures without checking the arguments. *longest gets the number of words of the longest
 * stretch that occurs twice in the text. *longest is SIZE_MAX if the text has several pieces, or if the search for
 * longer stretches stopped early. */
lzs_status lzs_text_figures_of(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                               lzs_figures *figures, size_t *longest);

/* Computes the figures of lzs_text_figures with only the words of one piece in memory at a time. If no word ends in
 * some piece, returns LZS_ESPACE, and the contents of *figures are undefined. */
lzs_status lzs_text_figures_by_piece(const uint8_t *text, size_t n, lzs_figures *figures);

#endif
