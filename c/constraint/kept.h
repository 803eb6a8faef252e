/* kept.h - stores a mask in the form that needs the least memory.
 *
 * A mask is a set of tokens. Its usual form, called `words`, has one bit per token in 32-bit words.
 */
#ifndef LZS_KEPT_H
#define LZS_KEPT_H

#include "vocabulary.h"

typedef enum lzs_kept_form {
    LZS_KEPT_ALLOWED,   /* `data` lists the allowed tokens */
    LZS_KEPT_FORBIDDEN, /* `data` lists the forbidden tokens */
    LZS_KEPT_WORDS,     /* `data` has the bits of the mask, in 32-bit words */
    LZS_KEPT_ADDED      /* the tokens in `data` and the tokens of `base` are allowed; many masks may share `base` */
} lzs_kept_form;

typedef struct lzs_kept_base lzs_kept_base;

typedef struct lzs_kept_mask {
    lzs_kept_form form;
    uint32_t n;          /* number of tokens or words in `data` */
    uint32_t *data;      /* allocated, never NULL */
    lzs_kept_base *base; /* the base of LZS_KEPT_ADDED, else NULL */
} lzs_kept_mask;

/* Stores in *mask the mask that `words` has. */
lzs_status lzs_kept_make(const lzs_vocabulary *vocabulary, const uint32_t *words, lzs_kept_mask *mask);
/* Stores in *mask the mask of n tokens. The tokens may be in any order, but have no duplicates. n must be less than the
 * number of words of a mask. */
lzs_status lzs_kept_list(const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
/* Stores in *mask the mask of the tokens of `base` and of n further tokens. The further tokens may be in any order, may
 * have duplicates and may also be in `base`. */
lzs_status lzs_kept_add(lzs_kept_base *base, const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
void lzs_kept_write(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);
/* Adds the tokens of a mask to the mask in `words`. */
void lzs_kept_write_more(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);
void lzs_kept_free(lzs_kept_mask *mask);

/* Makes a reference-counted mask, which users in any thread may share. The caller is the first user. When the last user
 * leaves the mask, the mask is freed. The function takes ownership of `mask`, whose form must not be LZS_KEPT_ADDED.
 * Returns NULL if memory runs out. */
lzs_kept_base *lzs_kept_base_new(const lzs_kept_mask *mask);
const lzs_kept_mask *lzs_kept_base_mask(const lzs_kept_base *base);
void lzs_kept_base_leave(lzs_kept_base *base);

#endif
