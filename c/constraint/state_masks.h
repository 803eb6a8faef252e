/* state_masks.h - which tokens a state of a grammar allows, and where a token leads. */
#ifndef LZS_STATE_MASKS_H
#define LZS_STATE_MASKS_H

#include "grammar_data.h"

enum { LZS_PART_EXITS = 4096 }; /* of a part; with more of them the walk after it is not much shorter */

/* The state after a token; LZS_DEAD if the grammar does not allow it. */
lzs_status lzs_grammar_accept(lzs_grammar *g, int32_t state, int32_t token, int32_t *next);

/* Writes the mask of a state. */
lzs_status lzs_grammar_mask(lzs_grammar *g, int32_t state, uint32_t *words);

/* The state after the bytes of a text token; LZS_DEAD if the grammar does not allow them. */
lzs_status lzs_grammar_spell(lzs_grammar *g, int32_t state, int32_t token, int32_t *next);

/* Masks that are kept, by number, until lzs_grammar_trim forgets them: that of a state, or the one in `words`. */
lzs_status lzs_grammar_mask_number(lzs_grammar *g, int32_t state, int32_t *number);
lzs_status lzs_grammar_keep(lzs_grammar *g, const uint32_t *words, int32_t *number);
void lzs_grammar_write(const lzs_grammar *g, int32_t number, uint32_t *words);

/* Forgets all masks, also in the states. */
void lzs_grammar_forget_masks(lzs_grammar *g);

#endif
