/* kinds.h - the bytes of tokens by kind, and what a vocabulary knows of its tokens by the kinds of their bytes.
 *
 * Patterns seldom tell the small letters from g to z apart, or the digits from 1 to 9. Where a grammar leads from a state back to it by
 * every byte of some kinds, all tokens of these kinds alone are allowed, and need not be walked one by one.
 */
#ifndef LZS_KINDS_H
#define LZS_KINDS_H

#include "vocabulary.h"

/* Fills what a vocabulary knows of kinds, when its tree is there; the caller frees it in any case. */
lzs_status lzs_kinds_init(lzs_vocabulary *v);
void lzs_kinds_free(lzs_vocabulary *v);
size_t lzs_kinds_memory(const lzs_vocabulary *v);

/* The number of a wide node among all of them. */
size_t lzs_wide_number(const lzs_vocabulary *v, uint32_t node);

#endif
