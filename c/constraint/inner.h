/* inner.h - how many characters of inner tokens (vocabulary.h) a state allows. */
#ifndef LZS_INNER_H
#define LZS_INNER_H

#include "grammar_data.h"

/* Finds how many characters of inner tokens may follow a state, whichever characters they are. *most is the number, or
 * LZS_INNER_ALL for any number. It is LZS_INNER_UNKNOWN in three cases: the number depends on the characters, a short
 * search does not find it, or a text may end between the characters and `open_end` is false. */
lzs_status lzs_inner_reach(lzs_grammar *g, int32_t state, bool open_end, int32_t *most);

#endif
