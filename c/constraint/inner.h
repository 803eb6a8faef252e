/* inner.h - how many characters of inner tokens (vocabulary.h) a state allows. */
#ifndef LZS_INNER_H
#define LZS_INNER_H

#include "grammar_data.h"

/* Finds how many characters of inner tokens may follow a state, whichever characters they are. *most gets this number,
 * or LZS_INNER_ALL if any number may follow. *most is LZS_INNER_UNKNOWN if the number depends on the characters, or a
 * short search does not find the number. `open_end` says whether a text may end between the characters. If it is false
 * and a text may end there, *most is LZS_INNER_UNKNOWN, too. */
lzs_status lzs_inner_reach(lzs_grammar *g, int32_t state, bool open_end, int32_t *most);

#endif
