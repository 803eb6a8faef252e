/* grammar.h - a constraint on texts, for one vocabulary. */
#ifndef LZS_GRAMMAR_H
#define LZS_GRAMMAR_H

#include "state_masks.h"

/* Makes the grammar of a tree. If the tokens of the vocabulary can write no text of the tree, returns LZS_EINVAL and
 * fills the error. */
lzs_status lzs_grammar_of_tree(const lzs_tree *tree, const lzs_vocabulary *vocabulary, size_t max_bytes,
                               lzs_grammar_error *error, lzs_grammar **grammar);

/* If states and masks take too much memory, forgets them. *state is the number of the current state, and gets the new
 * number of this state. Call this function before any function that makes states. */
lzs_status lzs_grammar_trim(lzs_grammar *g, int32_t *state);

/* Finds which share of a token's bytes, from 0 to 1, is free in a state. A byte is free if another byte may take its
 * place, or if the text may end before the byte. The share of a token that ends the text is 1 if a byte may take the
 * token's place, else 0. The share of a token that the grammar does not allow is 1. */
lzs_status lzs_grammar_free_share(lzs_grammar *g, int32_t state, int32_t token, float *share);

#endif
