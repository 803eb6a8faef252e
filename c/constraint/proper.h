/* proper.h - restricts a grammar to the tokens that the model's tokenizer would write. */
#ifndef LZS_PROPER_H
#define LZS_PROPER_H

#include "grammar_data.h"

typedef struct lzs_proper lzs_proper;

/* Forgets everything that refers to states of the automaton. Call this function when the ids of the automaton's
 * states become invalid. */
void lzs_proper_forget(lzs_proper *proper);
void lzs_proper_free(lzs_proper *proper);
size_t lzs_proper_memory(const lzs_proper *proper);
/* Returns the number of bytes of the data that lzs_proper_forget forgets. If the number becomes too large, the grammar
 * calls lzs_proper_forget. */
size_t lzs_proper_used(const lzs_proper *proper);

/* lzs_proper_accept and lzs_proper_mask do the work of lzs_grammar_accept and lzs_grammar_mask (state_masks.h). They
 * take two more arguments: `last` is the previous token, or -1, and `context` is a context (words.h). lzs_proper_begin
 * returns the context at the beginning. */
int32_t lzs_proper_begin(const lzs_grammar *g);
lzs_status lzs_proper_accept(lzs_grammar *g, int32_t last, int32_t token, int32_t *state, int32_t *context);
lzs_status lzs_proper_mask(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words);

#endif
