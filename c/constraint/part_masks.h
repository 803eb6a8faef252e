/* part_masks.h - masks of parts that many grammars have, such as the strings of JSON, kept for all of them.
 *
 * A part is a piece of a program that leads on to one place only. While a text is inside it, the tokens that stay
 * inside or end with it are the same in every grammar. They are kept with the nodes of the tree of tokens at which the
 * part may end: what can follow there is another grammar's own, and the walk goes on from these nodes alone.
 */
#ifndef LZS_PART_MASKS_H
#define LZS_PART_MASKS_H

#include "grammar_data.h"

/* The mask of a state that has places in a shared part: that of the part, the tokens that go on after it, and those of
 * the other places. Else *done is false. */
lzs_status lzs_shared_mask_of(lzs_grammar *g, int32_t state, lzs_kept_mask *mask, bool *done);

#endif
