/* penalty.h - the penalties of a history, folded into one edit a token. */
#ifndef LZS_PENALTY_H
#define LZS_PENALTY_H

#include "../constraint/grammar.h"
#include "../include/lzsampler_explain.h"
#include "counted.h"
#include "paper.h"

typedef struct lzs_edit_list lzs_edit_list;

/* What the library has to know of a penalty. The functions get whole settings; those marked with a star may be NULL. */
typedef struct lzs_penalty {
    /* Sets those of its fields whose default is not 0. */
    void (*set_defaults)(lzs_params *params);
    /* The name of one of its fields that is out of range, or NULL. */
    const char *(*invalid)(const lzs_params *params, int32_t n_vocab);
    /* The name of one of its [fixed] numbers in which two settings differ, or NULL. */
    const char *(*fixed)(const lzs_params *a, const lzs_params *b);
    /* (*) What it watches of the history, if it is on; the shape begins as {0}. */
    void (*watch)(lzs_watch_shape *shape, const lzs_params *params);
    /* (*) The most tokens that it finds in one step, which are tokens of the history; 0 when it is off. */
    size_t (*most)(const lzs_params *params);
    /* (*) Called while its watch has a window, which a penalty without need of matches can set to 1. Finds its tokens: takes their entries of `found`, and raises the `count` of each, which begins
     * with 0. Counts and the paper's rule have none: lzs_edit_list_make folds those in one pass over the history's
     * table. */
    void (*find)(lzs_token_table *found, const lzs_history *h, const lzs_params *params, float log2_vocab);
    /* (*) What a token's logit loses for a `count` above 0. */
    float (*price)(const lzs_params *params, int32_t count);
    /* (*) After a change of settings. */
    void (*settings_changed)(lzs_edit_list *e, const lzs_params *before, const lzs_params *params, float log2_vocab);
    /* Fills in its fields of the explanation of e->token; its changes are 0 where e->exempt is set. */
    void (*explain)(lzs_explanation *e, const lzs_history *h, const lzs_params *params, float log2_vocab);
    /* Whether the CUDA kernels have it, which fold by themselves; if not, a batch refuses settings that switch it on. */
    int on_gpu;
} lzs_penalty;

/* All penalties, in the order in which their settings are checked and those with a `find` are folded. A new one is a
 * file of its own and a name here: X(NAME) stands for its lzs_penalty_NAME. */
#define LZS_PENALTIES(X) X(lz) X(paper) X(counts) X(dry)

/* The lists of tokens and the bit sets of tokens in lzs_params, by their names; the length of NAME is n_NAME there. */
#define LZS_TOKEN_LISTS(X) X(exempt) X(dry_breakers)
#define LZS_TOKEN_SETS(X) X(lz_separators) X(lz_commas)

/* The place of a penalty's watch in a history. */
#define LZS_NUMBER_PENALTY(name) LZS_WATCH_##name,
enum { LZS_PENALTIES(LZS_NUMBER_PENALTY) LZS_N_PENALTIES };
_Static_assert((int)LZS_N_PENALTIES <= (int)LZS_MAX_WATCHES, "a history has room for the watches of all penalties");

#define LZS_DECLARE_PENALTY(name) extern const lzs_penalty lzs_penalty_##name;
LZS_PENALTIES(LZS_DECLARE_PENALTY)

/* Their addresses, and NULL at the end. */
extern const lzs_penalty *const lzs_penalties[];

/* The edits of a history, and the room to make them. Edit i belongs to entry i of the token table; edits of tokens that
 * are not in the table follow. */
struct lzs_edit_list {
    lzs_edit *edits; /* (n of capacity) */
    size_t n, capacity;
    int32_t *biased; /* (n_logit_bias) the edit of each token that has a logit_bias */
    bool valid; /* they are those of the history as it is */
    lzs_paper paper;
    /* The tokens that a `find` has found. `count` is for the penalty at work; `last` is the token's edit, -1: it has
     * none. */
    lzs_token_table found;
    size_t most_found;       /* entries that `found` may need */
    uint32_t table_capacity; /* that of the history's table when room was made last; UINT32_MAX when there was none */
};

/* A share (0..1) of what an edit does: of the bias, and of the way from 1 to the factor. */
static inline lzs_edit lzs_scaled_edit(lzs_edit edit, float share) {
    if (share == 1.0f) return edit;
    if (share == 0.0f) return (lzs_edit){edit.token, 1.0f, 0.0f};
    return (lzs_edit){edit.token, 1.0f + share * (edit.repeat - 1.0f), share * edit.bias};
}

/* The shape of the history that valid settings need. */
lzs_history_shape lzs_penalties_shape(const lzs_params *params, int32_t n_vocab);

lzs_status lzs_edit_list_init(lzs_edit_list *e, const lzs_params *params, float log2_vocab, const lzs_history *h);
/* Makes room for the edits of a history that has come to n tokens. */
lzs_status lzs_edit_list_reserve(lzs_edit_list *e, const lzs_params *params, const lzs_history *h, size_t n);
/* After a change of settings. */
void lzs_edit_list_settings(lzs_edit_list *e, const lzs_params *before, const lzs_params *params, float log2_vocab);
void lzs_edit_list_free(lzs_edit_list *e);
size_t lzs_edit_list_memory(const lzs_edit_list *e, const lzs_params *params);
/* Makes the edits, unscaled without a grammar; `place` is the state of it. Not valid on failure, which only a grammar
 * can bring about. */
lzs_status lzs_edit_list_make(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab,
                              lzs_grammar *grammar, int32_t place);
/* The edit of a token among those that lzs_edit_list_make made, or NULL. */
const lzs_edit *lzs_edit_list_find(const lzs_edit_list *e, const lzs_history *h, const lzs_params *params,
                                   int32_t token);

/* What one token's edit is made of; `edit` is the one of the step, or NULL. The fields that need the
 * row of logits are left as they are in a new struct: 0. */
lzs_explanation lzs_explain_edit(const lzs_history *h, const lzs_params *params, float log2_vocab, int32_t token,
                                 const lzs_edit *edit);

#endif
