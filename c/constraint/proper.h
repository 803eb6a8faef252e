/* proper.h - restricts a grammar to the tokens that the model's tokenizer would write. */
#ifndef LZS_PROPER_H
#define LZS_PROPER_H

#include "grammar_data.h"

typedef struct lzs_proper lzs_proper;

/* Forgets everything that refers to states of the automaton, because their numbers are no longer valid. */
void lzs_proper_forget(lzs_proper *proper);
void lzs_proper_free(lzs_proper *proper);
size_t lzs_proper_memory(const lzs_proper *proper);
/* The bytes of what lzs_proper_forget forgets. The grammar calls it when they become too many. */
size_t lzs_proper_used(const lzs_proper *proper);

/* As lzs_grammar_accept and lzs_grammar_mask (grammar.h), with two further arguments: the token before (-1: none) and
 * the context. lzs_proper_begin gives the first context. */
int32_t lzs_proper_begin(const lzs_grammar *g);
lzs_status lzs_proper_accept(lzs_grammar *g, int32_t last, int32_t token, int32_t *state, int32_t *context);
lzs_status lzs_proper_mask(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words);

#endif
