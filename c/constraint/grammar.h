/* grammar.h - a constraint on texts, for one vocabulary. */
#ifndef LZS_GRAMMAR_H
#define LZS_GRAMMAR_H

#include "state_masks.h"

/* Makes the grammar of a tree. LZS_EINVAL, with the error filled, if no text of it can be used. */
lzs_status lzs_grammar_of_tree(const lzs_tree *tree, const lzs_vocabulary *vocabulary, size_t max_bytes,
                               lzs_grammar_error *error, lzs_grammar **grammar);

/* Before anything that makes states: forgets states and masks when they need too much memory. *state keeps its
 * meaning. */
lzs_status lzs_grammar_trim(lzs_grammar *g, int32_t *state);

/* The share of a token's bytes that the grammar leaves free in a state, 0 to 1: those in whose place another byte could
 * follow, or the end of the text. A token that ends the text is free (1) if a byte could follow instead. What the
 * grammar does not allow has share 1. */
lzs_status lzs_grammar_free_share(lzs_grammar *g, int32_t state, int32_t token, float *share);

#endif
