/* penalty.h - the penalties of a history, folded into one edit a token. */
#ifndef LZS_PENALTY_H
#define LZS_PENALTY_H

#include "dry.h"
#include "lz.h"

/* b^n for n >= 0 by squaring: the same products in the same order everywhere. */
static inline float lzs_power(float b, int32_t n) {
    float p = 1.0f;
    for (; n > 0; n >>= 1, b *= b) {
        if (n & 1) p *= b;
    }
    return p;
}

/* The edit that the repetition, frequency and presence penalties make of a token that was counted `count` times. */
lzs_edit lzs_counted_edit(const lzs_params *params, int32_t token, int32_t count);

/* The edits of a history, and the room to make them. Edit i belongs to entry i of the token table; edits of tokens that
 * are not in the table follow. */
typedef struct lzs_edit_list {
    lzs_edit *edits; /* (n of capacity) */
    size_t n, capacity;
    int32_t *biased; /* (n_logit_bias) the edit of each token that has a logit_bias */
    bool valid; /* they are those of the history as it is */
    lzs_lz lz;
    lzs_dry dry;
} lzs_edit_list;

lzs_status lzs_edit_list_init(lzs_edit_list *e, const lzs_params *params, float log2_vocab, const lzs_history *h);
/* Makes room for the edits of a history that has come to n tokens. */
lzs_status lzs_edit_list_reserve(lzs_edit_list *e, const lzs_params *params, const lzs_history *h, size_t n);
void lzs_edit_list_free(lzs_edit_list *e);
size_t lzs_edit_list_memory(const lzs_edit_list *e, const lzs_params *params);
void lzs_edit_list_make(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab);
/* The edit of a token among those that lzs_edit_list_make made, or NULL. */
const lzs_edit *lzs_edit_list_find(const lzs_edit_list *e, const lzs_history *h, const lzs_params *params, int32_t token);

/* What one token's edit is made of; `edit` is the one of the step, NULL where the token has none. The fields that need the
 * row of logits are left as they are in a new struct: 0. */
lzs_explanation lzs_explain_edit(const lzs_history *h, const lzs_params *params, float log2_vocab, int32_t token,
                                 const lzs_edit *edit);

#endif
