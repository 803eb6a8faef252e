/* part_masks.h - masks of parts that many grammars have, such as the strings of JSON. The masks are kept once for all
 * grammars.
 *
 * A part is a piece of a program with only one exit. While a text is inside the part, some tokens stay inside the part
 * or end exactly with it. These tokens are the same in every grammar, so they are kept as a mask. Other tokens leave
 * the part and go on after it. For the other tokens, lzs_part_ends lists the nodes of the vocabulary's tree where the
 * part may end. Grammars allow different texts after the part, so each grammar itself walks on from these nodes.
 */
#ifndef LZS_PART_MASKS_H
#define LZS_PART_MASKS_H

#include "grammar_data.h"

/* If a state has places in a shared part, makes the mask of the state from three masks. They are the mask of the part,
 * the mask of the tokens that go on after the part, and the mask of the other places. *done says whether the mask was
 * made. */
lzs_status lzs_shared_mask_of(lzs_grammar *g, int32_t state, lzs_kept_mask *mask, bool *done);

#endif
