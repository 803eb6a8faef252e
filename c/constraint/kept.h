/* kept.h - a mask in the form that needs the least memory. */
#ifndef LZS_KEPT_H
#define LZS_KEPT_H

#include "vocabulary.h"

typedef enum lzs_kept_form {
    LZS_KEPT_ALLOWED,   /* these tokens */
    LZS_KEPT_FORBIDDEN, /* all others */
    LZS_KEPT_WORDS,     /* as it is */
    LZS_KEPT_ADDED      /* these tokens, and those of another mask, which many may have */
} lzs_kept_form;

typedef struct lzs_kept_base lzs_kept_base;

typedef struct lzs_kept_mask {
    lzs_kept_form form;
    uint32_t n;          /* tokens or words */
    uint32_t *data;      /* allocated, never NULL */
    lzs_kept_base *base; /* the other mask of LZS_KEPT_ADDED, else NULL */
} lzs_kept_mask;

/* The mask in `words`. */
lzs_status lzs_kept_make(const lzs_vocabulary *vocabulary, const uint32_t *words, lzs_kept_mask *mask);
/* The mask of fewer tokens than it has words, in any order and each once. */
lzs_status lzs_kept_list(const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
/* The mask of `base` and a list of tokens, in any order; some may be in it twice, or in `base`. */
lzs_status lzs_kept_add(lzs_kept_base *base, const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
void lzs_kept_write(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);
/* Adds the tokens of a mask to those in `words`. */
void lzs_kept_write_more(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);
void lzs_kept_free(lzs_kept_mask *mask);

/* A mask of its own memory that lives until the last of those that use it, in any thread, leaves it; whoever makes it
 * is the first. It takes the mask over, which is not one of LZS_KEPT_ADDED; NULL when memory runs out. */
lzs_kept_base *lzs_kept_base_new(const lzs_kept_mask *mask);
const lzs_kept_mask *lzs_kept_base_mask(const lzs_kept_base *base);
void lzs_kept_base_leave(lzs_kept_base *base);

#endif
