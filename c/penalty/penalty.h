/* penalty.h - the penalties of a history, combined into one edit for each token. */
#ifndef LZS_PENALTY_H
#define LZS_PENALTY_H

#include "../constraint/grammar.h"
#include "../include/lzsampler_explain.h"
#include "counted.h"
#include "paper.h"

typedef struct lzs_edit_list lzs_edit_list;

/* The functions of one penalty. `params` always has all fields. Functions marked (*) may be NULL. */
typedef struct lzs_penalty {
    /* Sets the penalty's fields whose default is not 0. */
    void (*set_defaults)(lzs_params *params);
    /* Returns the name of a field of the penalty that is out of range, or NULL. */
    const char *(*invalid)(const lzs_params *params, int32_t n_vocab);
    /* Returns the name of a [fixed] number of the penalty in which two settings differ, or NULL. */
    const char *(*fixed)(const lzs_params *a, const lzs_params *b);
    /* (*) If the penalty is on, describes the watch that it needs. The caller initializes the shape as {0}. */
    void (*watch)(lzs_watch_shape *shape, const lzs_params *params);
    /* (*) The greatest number of tokens that `find` can find in one step; 0 when the penalty is off. */
    size_t (*most)(const lzs_params *params);
    /* (*) Finds the tokens that the penalty applies to. `find` is called if the penalty's watch has a window; a penalty
     * that needs no matches sets the window to 1. For each token, `find` gets an entry by lzs_token_table_take, and
     * raises the entry's `count`, which is 0 before. The counting penalties and the paper's penalty have no `find`:
     * lzs_edit_list_make handles them in one pass over the history's table. */
    void (*find)(lzs_token_table *found, const lzs_history *h, const lzs_params *params, float log2_vocab);
    /* (*) Returns the number to subtract from a token's logit. `count` (> 0) is the token's count that `find` has
     * set. */
    float (*price)(const lzs_params *params, int32_t count);
    /* (*) Called after a change of settings. */
    void (*settings_changed)(lzs_edit_list *e, const lzs_params *before, const lzs_params *params, float log2_vocab);
    /* Fills in the penalty's fields in the explanation of e->token. If e->exempt is set, the fields that change the
     * logit stay neutral. */
    void (*explain)(lzs_explanation *e, const lzs_history *h, const lzs_params *params, float log2_vocab);
    /* Whether the CUDA kernels, which compute penalties themselves, have this penalty. If not, lzs_batch refuses
     * settings that switch it on. */
    int on_gpu;
} lzs_penalty;

/* All penalties. Settings are checked, and penalties with a `find` are applied, in this order. To add a penalty, write
 * a file that defines lzs_penalty_NAME, and add X(NAME) here. */
#define LZS_PENALTIES(X) X(lz) X(paper) X(counts) X(dry)

/* The names of the lists of tokens and of the bit sets of tokens in lzs_params. The length of the list or set NAME is
 * the field n_NAME. */
#define LZS_TOKEN_LISTS(X) X(exempt) X(dry_breakers)
#define LZS_TOKEN_SETS(X) X(lz_separators) X(lz_commas)

/* The index of a penalty's watch in lzs_history. */
#define LZS_NUMBER_PENALTY(name) LZS_WATCH_##name,
enum { LZS_PENALTIES(LZS_NUMBER_PENALTY) LZS_N_PENALTIES };
_Static_assert((int)LZS_N_PENALTIES <= (int)LZS_MAX_WATCHES, "a history has room for the watches of all penalties");

#define LZS_DECLARE_PENALTY(name) extern const lzs_penalty lzs_penalty_##name;
LZS_PENALTIES(LZS_DECLARE_PENALTY)

/* The addresses of all penalties, with NULL at the end. */
extern const lzs_penalty *const lzs_penalties[];

/* The edits of a history, and the memory to make them. Edit i belongs to entry i of the token table; edits of tokens
 * that are not in the table follow. */
struct lzs_edit_list {
    lzs_edit *edits; /* (n of capacity) edits, in the order described above */
    size_t n, capacity;
    int32_t *biased; /* (n_logit_bias) biased[i]: index of the edit of the token of logit_bias[i] */
    bool valid; /* whether the edits are up to date with the history and the settings */
    lzs_paper paper;
    /* The tokens found by any `find`. `count` is set by the penalty that is being applied. `last` is the index of the
     * token's edit, or -1 if it has none yet. */
    lzs_token_table found;
    size_t most_found;       /* greatest number of entries that `found` may need */
    uint32_t table_capacity; /* capacity of the history's table when memory was last allocated here; UINT32_MAX if the
                              * allocation failed */
};

/* Weakens an edit: multiplies `bias` and `repeat - 1` by a share (0..1). */
static inline lzs_edit lzs_scaled_edit(lzs_edit edit, float share) {
    if (share == 1.0f) return edit;
    if (share == 0.0f) return (lzs_edit){edit.token, 1.0f, 0.0f};
    return (lzs_edit){edit.token, 1.0f + share * (edit.repeat - 1.0f), share * edit.bias};
}

/* Returns the shape of the history that valid settings need. */
lzs_history_shape lzs_penalties_shape(const lzs_params *params, int32_t n_vocab);

lzs_status lzs_edit_list_init(lzs_edit_list *e, const lzs_params *params, float log2_vocab, const lzs_history *h);
/* Makes room for the edits of a history that now has n tokens. */
lzs_status lzs_edit_list_reserve(lzs_edit_list *e, const lzs_params *params, const lzs_history *h, size_t n);
/* Updates the list after a change of settings. */
void lzs_edit_list_settings(lzs_edit_list *e, const lzs_params *before, const lzs_params *params, float log2_vocab);
void lzs_edit_list_free(lzs_edit_list *e);
size_t lzs_edit_list_memory(const lzs_edit_list *e, const lzs_params *params);
/* Makes the edits. With a grammar, `place` is the grammar's state, and each edit is multiplied by the token's free
 * share. Only a grammar can make this fail; then e->valid stays false. */
lzs_status lzs_edit_list_make(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab,
                              lzs_grammar *grammar, int32_t place);
/* Returns the edit that lzs_edit_list_make made for a token, or NULL. */
const lzs_edit *lzs_edit_list_find(const lzs_edit_list *e, const lzs_history *h, const lzs_params *params,
                                   int32_t token);

/* Explains the edit of one token. `edit` is the token's edit in this step, or NULL. Fields that need the row of logits
 * are 0. */
lzs_explanation lzs_explain_edit(const lzs_history *h, const lzs_params *params, float log2_vocab, int32_t token,
                                 const lzs_edit *edit);

#endif
