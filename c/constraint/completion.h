/* completion.h - whether a text can still be completed, with the tokens that the vocabulary has. */
#ifndef LZS_COMPLETION_H
#define LZS_COMPLETION_H

#include "grammar_data.h"

/* Finds out which places can be completed by tokens of one byte: all of them in most vocabularies. */
lzs_status lzs_completion_init(lzs_grammar *g);

/* Whether tokens can complete the texts of a state that is not LZS_DEAD. Where single bytes may not be enough it
 * searches, and keeps the answer. */
lzs_status lzs_viable(lzs_grammar *g, int32_t state, bool *viable);

#endif
