/* part_masks.h - masks of parts that many grammars have, such as the strings of JSON, kept once for all grammars.
 *
 * A part is a piece of a program with only one exit. While a text is inside the part, the tokens that stay inside, or
 * end exactly with the part, are the same in every grammar. These tokens are kept as a mask. The nodes of the
 * vocabulary's tree where the part may end are kept with it. What can follow there differs between grammars, so each
 * grammar walks on from these nodes only.
 */
#ifndef LZS_PART_MASKS_H
#define LZS_PART_MASKS_H

#include "grammar_data.h"

/* If a state has places in a shared part, makes its mask from the part's mask, the tokens that go on after the part,
 * and the mask of the other places. Else *done is false. */
lzs_status lzs_shared_mask_of(lzs_grammar *g, int32_t state, lzs_kept_mask *mask, bool *done);

#endif
