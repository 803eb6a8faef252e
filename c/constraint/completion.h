/* completion.h - whether the tokens of the vocabulary can complete a text. */
#ifndef LZS_COMPLETION_H
#define LZS_COMPLETION_H

#include "grammar_data.h"

/* Finds the places from which tokens of one byte complete the text. In most vocabularies these are all places. */
lzs_status lzs_completion_init(lzs_grammar *g);

/* Whether tokens can complete the text after a state that is not LZS_DEAD. If tokens of one byte may not be enough,
 * searches, and keeps the answer. */
lzs_status lzs_viable(lzs_grammar *g, int32_t state, bool *viable);

#endif
