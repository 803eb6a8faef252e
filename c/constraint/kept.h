/* kept.h - a mask in the form that needs the least memory. */
#ifndef LZS_KEPT_H
#define LZS_KEPT_H

#include "vocabulary.h"

typedef enum lzs_kept_form { LZS_KEPT_ALLOWED, LZS_KEPT_FORBIDDEN, LZS_KEPT_WORDS } lzs_kept_form;

typedef struct lzs_kept_mask {
    lzs_kept_form form;
    uint32_t n;     /* tokens or words */
    uint32_t *data; /* allocated, never NULL */
} lzs_kept_mask;

/* The mask in `words`; the caller frees its data. */
lzs_status lzs_kept_make(const lzs_vocabulary *vocabulary, const uint32_t *words, lzs_kept_mask *mask);
/* The mask of fewer tokens than it has words, in any order and each once. */
lzs_status lzs_kept_list(const uint32_t *tokens, size_t n, lzs_kept_mask *mask);
void lzs_kept_write(const lzs_vocabulary *vocabulary, const lzs_kept_mask *mask, uint32_t *words);

#endif
