/* grammar.h - a constraint on texts, for one vocabulary. */
#ifndef LZS_GRAMMAR_H
#define LZS_GRAMMAR_H

#include "state_masks.h"

/* Makes the grammar of a tree. If the tokens of the vocabulary can write no text of the tree, returns LZS_EINVAL and
 * fills the error. */
lzs_status lzs_grammar_of_tree(const lzs_tree *tree, const lzs_vocabulary *vocabulary, size_t max_bytes,
                               lzs_grammar_error *error, lzs_grammar **grammar);

/* If states and masks need too much memory, forgets them. Call it before any function that makes states. *state gets
 * the new number of the same state. */
lzs_status lzs_grammar_trim(lzs_grammar *g, int32_t *state);

/* The share of a token's bytes that are free in a state, 0 to 1. A byte is free if another byte, or the end of the
 * text, could come in its place. A token that ends the text has share 1 if a byte could follow instead, else 0. A token
 * that the grammar does not allow has share 1. */
lzs_status lzs_grammar_free_share(lzs_grammar *g, int32_t state, int32_t token, float *share);

#endif
