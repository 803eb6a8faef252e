/* kept.h - a mask, stored in the form that needs the least memory. */
#ifndef LZS_KEPT_H
#define LZS_KEPT_H

#include "vocabulary.h"

typedef enum lzs_kept_form {
    LZS_KEPT_ALLOWED,   /* `data` lists the allowed tokens */
    LZS_KEPT_FORBIDDEN, /* `data` lists the forbidden tokens */
    LZS_KEPT_WORDS,     /* `data` is the mask itself */
    LZS_KEPT_ADDED      /* allowed: the tokens in `data` and the tokens of `base`, which many masks may share */
} lzs_kept_form;

typedef struct lzs_kept_base lzs_kept_base;

typedef struct lzs_kept_mask {
    lzs_kept_form form;
    uint32_t n;          /* number of tokens or words in `data` */
    uint32_t *data;      /* allocated, never NULL */
    lzs_kept_base *base; /* the other mask of LZS_KEPT_ADDED, else NULL */
} lzs_kept_mask;

/* Makes a kept mask of the mask in `words`. */
lzs_status lzs_kept_make(const lzs_vocabulary *vocabulary, const uint32_t *words, lzs_kept_mask *mask);
/* Makes the mask of a list of tokens, in any order and without duplicates. The list must be shorter than a mask has
 * words. */
lzs_status lzs_kept_list(const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
/* Makes the mask of the tokens of `base` and of a list. The list may be in any order, may have duplicates and may have
 * tokens of `base`. */
lzs_status lzs_kept_add(lzs_kept_base *base, const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
void lzs_kept_write(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);
/* Adds the tokens of a mask to the mask in `words`. */
void lzs_kept_write_more(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);
void lzs_kept_free(lzs_kept_mask *mask);

/* A reference-counted mask, which users in any thread share. The caller is the first user. The mask is freed when its
 * last user leaves it. The function takes ownership of `mask`, whose form must not be LZS_KEPT_ADDED. NULL if memory
 * runs out. */
lzs_kept_base *lzs_kept_base_new(const lzs_kept_mask *mask);
const lzs_kept_mask *lzs_kept_base_mask(const lzs_kept_base *base);
void lzs_kept_base_leave(lzs_kept_base *base);

#endif
