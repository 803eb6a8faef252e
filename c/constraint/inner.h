/* inner.h - tokens that can stand inside a string: of plain bytes (lzs_is_plain) and characters of several bytes alone.
 *
 * Almost all tokens of a vocabulary are of this kind, and inside a string the grammar does not tell one such character from
 * another: what matters is how many it still allows. Where that is so, a mask takes all these tokens at once by their number
 * of characters, and only the few others are walked.
 */
#ifndef LZS_INNER_H
#define LZS_INNER_H

#include "grammar.h"

/* Finds the inner tokens of a vocabulary, whose tree is there; the caller frees it in any case. */
lzs_status lzs_inner_init(lzs_vocabulary *v);
void lzs_inner_free(lzs_vocabulary *v);
size_t lzs_inner_memory(const lzs_vocabulary *v);

enum { LZS_INNER_ALL = -1, LZS_INNER_UNKNOWN = -2 };

/* How many characters of inner tokens may follow a state, whichever these are: exactly *most, LZS_INNER_ALL for any number, or
 * LZS_INNER_UNKNOWN where it depends on the characters, cannot be told soon, or where a text may end between them although
 * `open_end` is false. */
lzs_status lzs_inner_reach(lzs_grammar *g, int32_t state, bool open_end, int32_t *most);

/* Writes the mask of the inner tokens of at most so many characters. */
void lzs_inner_write(const lzs_vocabulary *v, int32_t most, uint32_t *words);

#endif
