/* inner.h - how many characters of inner tokens (vocabulary.h) a state allows. */
#ifndef LZS_INNER_H
#define LZS_INNER_H

#include "grammar_data.h"

/* How many characters of inner tokens may follow a state, whichever these are: exactly *most, LZS_INNER_ALL for any
 * number, or LZS_INNER_UNKNOWN if it depends on the characters, cannot be told soon, or if a text may end between
 * them and `open_end` is false. */
lzs_status lzs_inner_reach(lzs_grammar *g, int32_t state, bool open_end, int32_t *most);

#endif
