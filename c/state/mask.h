/* mask.h - the masks of one sequence: their owners, what they allow together, and their rewind. */
#ifndef LZS_MASK_H
#define LZS_MASK_H

#include <stdbool.h>

#include "../include/lzsampler.h"

enum { LZS_MASK_OWNERS = LZS_MASK_GRAMMAR + 1 };

/* One mask of one owner, in force from `position` on until the owner's next mask. */
typedef struct lzs_mask {
    uint64_t position;
    const uint32_t *words; /* NULL allows everything */
    uint32_t *copy;        /* copy of the words; NULL if they are borrowed */
} lzs_mask;

typedef struct lzs_masks {
    size_t n_words;
    struct lzs_mask_log {
        lzs_mask *changes; /* (n of LZS_MASK_CHANGES + 1) in ascending order of position; the last mask is in force */
        int32_t n;
        bool forgotten; /* whether changes older than changes[0] were dropped */
    } logs[LZS_MASK_OWNERS];
    uint32_t *both; /* (n_words) mask of the tokens that all masks allow, if more than one mask is in force */
    bool both_valid;
} lzs_masks;

void lzs_masks_init(lzs_masks *masks, int32_t n_vocab);
/* Makes `to`, masks of the same vocabulary, equal to `from`; on failure `to` has no masks. */
lzs_status lzs_masks_copy(lzs_masks *to, const lzs_masks *from);
void lzs_masks_free(lzs_masks *masks);
void lzs_masks_clear(lzs_masks *masks);
size_t lzs_masks_memory(const lzs_masks *masks);

lzs_status lzs_masks_set(lzs_masks *masks, int32_t owner, const uint32_t *words, bool borrow, uint64_t position);
void lzs_masks_rewind(lzs_masks *masks, uint64_t position);
/* Gives the mask of the tokens that all masks allow now (NULL: all tokens). LZS_EMASKED if a mask in force is no longer
 * known. */
lzs_status lzs_masks_allowed(lzs_masks *masks, const uint32_t **words);

#endif
