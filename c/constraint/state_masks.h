/* state_masks.h - which tokens a state of a grammar allows, and where a token leads. */
#ifndef LZS_STATE_MASKS_H
#define LZS_STATE_MASKS_H

#include "grammar_data.h"

/* a part with more exits than this does not share its masks, because sharing them saves little */
enum { LZS_PART_EXITS = 4096 };

/* Finds the state after a token, or LZS_DEAD if the grammar does not allow the token. */
lzs_status lzs_grammar_accept(lzs_grammar *g, int32_t state, int32_t token, int32_t *next);

/* Writes the mask of a state. */
lzs_status lzs_grammar_mask(lzs_grammar *g, int32_t state, uint32_t *words);

/* Finds the state after the bytes of a text token, or LZS_DEAD if the grammar does not allow the bytes. */
lzs_status lzs_grammar_spell(lzs_grammar *g, int32_t state, int32_t token, int32_t *next);

/* lzs_grammar_mask_number finds the number of a state's mask. lzs_grammar_keep keeps the mask that `words` has, and
 * finds its number. Mask numbers are valid until lzs_grammar_trim forgets masks. */
lzs_status lzs_grammar_mask_number(lzs_grammar *g, int32_t state, int32_t *number);
lzs_status lzs_grammar_keep(lzs_grammar *g, const uint32_t *words, int32_t *number);
void lzs_grammar_write(const lzs_grammar *g, int32_t number, uint32_t *words);

/* Forgets all masks, and the mask numbers in the states. */
void lzs_grammar_forget_masks(lzs_grammar *g);

#endif
