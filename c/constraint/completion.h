/* completion.h - whether the tokens of the vocabulary can complete a text. */
#ifndef LZS_COMPLETION_H
#define LZS_COMPLETION_H

#include "grammar_data.h"

/* Finds the operations from which tokens of one byte complete the text. In most vocabularies these are all
 * operations. */
lzs_status lzs_completion_init(lzs_grammar *g);

/* Finds whether tokens can complete the text from a state that is not LZS_DEAD. If the answer is not known, searches
 * for the answer and stores it in the state. */
lzs_status lzs_viable(lzs_grammar *g, int32_t state, bool *viable);

#endif
