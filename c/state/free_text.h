/* free_text.h - the free tokens of a sequence, for LZS_STRUCTURE_FREE. A token is free if the grammar left at least one
 * of its bytes free. Penalties then look at free tokens only, as if the other tokens were not in the text.
 */
#ifndef LZS_FREE_TEXT_H
#define LZS_FREE_TEXT_H

#include "history.h"

typedef struct lzs_free_text {
    lzs_history history; /* the prompt, if penalties look at the prompt, and the free accepted tokens */
    uint64_t position;   /* number of accepted tokens classified so far; the sequence may have more */
    int32_t *before;     /* (position of capacity) before[i]: number of tokens that `history` had before accepted token
                          * i was classified */
    size_t capacity;
} lzs_free_text;

lzs_status lzs_free_text_init(lzs_free_text *text, const lzs_history_shape *shape, const lzs_kernels *kernels);
/* Makes `to` equal to `from`, which has the same shape. On failure `to` is empty. */
lzs_status lzs_free_text_copy(lzs_free_text *to, const lzs_free_text *from);
void lzs_free_text_free(lzs_free_text *text);
void lzs_free_text_clear(lzs_free_text *text);
size_t lzs_free_text_memory(const lzs_free_text *text);

/* Classifies the next accepted token, and appends it to the history if it is free. On failure nothing has changed. */
lzs_status lzs_free_text_add(lzs_free_text *text, int32_t token, bool is_free);
/* Takes back all but the first `position` accepted tokens. */
void lzs_free_text_rewind(lzs_free_text *text, uint64_t position);

#endif
