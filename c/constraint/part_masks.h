/* part_masks.h - masks of parts that many grammars have, kept for all of them. */
#ifndef LZS_PART_MASKS_H
#define LZS_PART_MASKS_H

#include "grammar.h"

enum {
    LZS_PART_PLACES = 64, /* of a state that is looked at */
    LZS_PART_EXITS = 4096 /* with more of them the walk is not much shorter */
};

typedef struct lzs_shared_mask {
    uint32_t part, n_places;
    uint64_t *places;
    lzs_kept_base *mask; /* tokens that stay inside the part or end with it */
    uint32_t n_exits;   /* more than LZS_PART_EXITS where the mask is not used */
    uint32_t *exits;    /* nodes of the tree of tokens at which the part may end, and that others follow */
    uint32_t n_behind;
    uint32_t *behind;   /* the nodes that follow these, by their bytes, ascending */
} lzs_shared_mask;

/* False while another thread uses them; else they are in use until lzs_part_masks_end. */
bool lzs_part_masks_begin(lzs_part_masks *masks);
void lzs_part_masks_end(lzs_part_masks *masks);

/* The mask of some places of a part, as lzs_slice_place has them. It is made if it is not there; NULL where it cannot be. It is
 * valid until the next call. */
lzs_status lzs_part_masks_find(lzs_part_masks *masks, lzs_grammar *g, size_t part, const uint64_t *places, size_t n,
                               const lzs_shared_mask **mask);

#endif
