/* lzsampler_separators.h - which tokens are separators of the LZ penalty. Only the text of a token decides.
 *
 * A separator restarts the count of matching tokens (lz_separators of lzs_params), so short building blocks of a text
 * may recur without a penalty. A separator is a token without a letter: a line break, a bracket, a number, a space.
 * Sentence marks are not separators, since repeated sentences are what the penalty is for. A comma is a separator only
 * in lists, between short items (lz_commas).
 *
 * A letter is a code point of Unicode's categories L and M, so a Hindi vowel sign counts as a letter. So does a byte
 * that is not part of a well-formed character, and U+FFFD: such a token holds a piece of a character. */
#ifndef LZSAMPLER_SEPARATORS_H
#define LZSAMPLER_SEPARATORS_H

#include <stddef.h>
#include <stdint.h>

#include "lzsampler_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* Writes the fields lz_separators and lz_commas of lzs_params: two sets of (n_vocab + 31) / 32 words.
 *
 * text: the texts of all tokens in UTF-8, one directly after the other; may be NULL if all are empty.
 * begins: (n_vocab + 1) where in `text` each token's text begins, and the size of `text`.
 *
 * LZS_EINVAL if n_vocab is negative, a pointer is NULL, or a text ends before it begins. */
LZS_API lzs_status lzs_separators_of(const char *text, const size_t *begins, int32_t n_vocab, uint32_t *separators,
                                     uint32_t *commas);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
