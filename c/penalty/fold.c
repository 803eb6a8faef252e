/* fold.c - the penalties of a history, combined into one edit for each token.
 *
 * The factors of repetition, frequency and presence are multiplied. Then biases are added: first those of these three
 * penalties, then the bias of the paper's penalty, then the biases of the other penalties in the order of
 * LZS_PENALTIES. The edits of exempt tokens become neutral. Under a grammar, each edit is multiplied by the share of
 * the token's bytes that the grammar leaves free. The user's logit_bias is added last.
 */
#include <math.h>

#include "../room.h"
#include "../state/sorted_tokens.h"
#include "penalty.h"

#define ADDRESS(name) &lzs_penalty_##name,
const lzs_penalty *const lzs_penalties[] = {LZS_PENALTIES(ADDRESS) NULL};

lzs_history_shape lzs_penalties_shape(const lzs_params *params, int32_t n_vocab) {
    lzs_history_shape shape = {.n_vocab = n_vocab, .count_window = lzs_count_window(params),
                               .n_watches = LZS_N_PENALTIES};
    if (lzs_paper_is_on(params)) {
        shape.reach = params->lz_window - params->lz_buffer;
        shape.buffer = params->lz_buffer;
    }
    for (size_t i = 0; i < LZS_N_PENALTIES; i++) {
        if (lzs_penalties[i]->watch) lzs_penalties[i]->watch(&shape.watches[i], params);
    }
    return shape;
}

lzs_status lzs_edit_list_init(lzs_edit_list *e, const lzs_params *params, float log2_vocab, const lzs_history *h) {
    *e = (lzs_edit_list){.table_capacity = UINT32_MAX};
    for (const lzs_penalty *const *row = lzs_penalties; *row; row++) {
        if ((*row)->most) e->most_found += (*row)->most(params);
    }
    if (e->most_found > (size_t)h->n_vocab) e->most_found = (size_t)h->n_vocab;
    if (params->n_logit_bias) {
        e->biased = malloc(params->n_logit_bias * sizeof *e->biased);
        if (!e->biased) return LZS_ENOMEM;
    }
    lzs_status status = lzs_paper_init(&e->paper, params, log2_vocab, h->reach);
    return status == LZS_OK ? lzs_edit_list_reserve(e, params, h, 0) : status;
}

lzs_status lzs_edit_list_reserve(lzs_edit_list *e, const lzs_params *params, const lzs_history *h, size_t n) {
    size_t most = n < e->most_found ? n : e->most_found;
    if (h->table.capacity == e->table_capacity && most <= e->found.capacity) return LZS_OK;
    e->table_capacity = UINT32_MAX; /* stays UINT32_MAX if an allocation fails */
    lzs_status status = most ? lzs_token_table_reserve(&e->found, most) : LZS_OK;
    if (status == LZS_OK && h->reach) status = lzs_paper_reserve(&e->paper, h->table.capacity);
    if (status != LZS_OK) return status;
    size_t capacity = (size_t)h->table.capacity + e->found.capacity + params->n_logit_bias;
    if (capacity > e->capacity) {
        lzs_edit *edits = lzs_room(e->edits, capacity, sizeof *edits);
        if (!edits) return LZS_ENOMEM;
        e->edits = edits;
        e->capacity = capacity;
    }
    e->table_capacity = h->table.capacity;
    return LZS_OK;
}

void lzs_edit_list_settings(lzs_edit_list *e, const lzs_params *before, const lzs_params *params, float log2_vocab) {
    e->valid = false;
    for (const lzs_penalty *const *row = lzs_penalties; *row; row++) {
        if ((*row)->settings_changed) (*row)->settings_changed(e, before, params, log2_vocab);
    }
}

void lzs_edit_list_free(lzs_edit_list *e) {
    free(e->edits);
    free(e->biased);
    lzs_paper_free(&e->paper);
    lzs_token_table_free(&e->found);
}

size_t lzs_edit_list_memory(const lzs_edit_list *e, const lzs_params *params) {
    return e->capacity * sizeof *e->edits + params->n_logit_bias * sizeof *e->biased + lzs_paper_memory(&e->paper) +
           lzs_token_table_memory(&e->found);
}

enum { OFTEN = 8 }; /* most counts are below OFTEN; the edit of each of these counts is computed only once */

/* Returns the edit of an entry: the edit of its count, with `bias` added. */
static inline lzs_edit counted(const lzs_edit by_count[OFTEN], const lzs_params *params, const lzs_token_entry *entry,
                               float bias) {
    int32_t count = entry->count;
    if (count >= OFTEN) {
        lzs_edit edit = lzs_counted_edit(params, 0, count);
        return (lzs_edit){entry->token, edit.repeat, lzs_finite(edit.bias + bias)};
    }
    return (lzs_edit){entry->token, by_count[count].repeat, lzs_finite(by_count[count].bias + bias)};
}

/* Makes one edit for each entry of the token table. For the paper's penalty, first the bias of a match of length 1 is
 * looked up for every entry. Then the few entries with longer matches get their own bias. */
static void fold_windows(lzs_edit_list *e, const lzs_history *h, const lzs_params *params) {
    const lzs_token_entry *entries = h->table.entries;
    lzs_edit *edits = e->edits; /* local variables, since the compiler must assume that a write to an edit changes a
                                 * member of *e */
    size_t n = h->table.n;
    e->n = n;
    if (n == 0) return; /* in a table that was never used, `entries` is NULL */
    if (h->count_window) {
        lzs_edit by_count[OFTEN];
        for (int32_t count = 0; count < OFTEN; count++) by_count[count] = lzs_counted_edit(params, 0, count);
        for (size_t i = 0; i < n; i++) {
            float bias = entries[i].last >= 0 ? lzs_paper_bias_of(&e->paper, h, &entries[i]) : 0.0f;
            edits[i] = counted(by_count, params, &entries[i], bias);
        }
        for (uint32_t i = 0; h->reach && i < e->paper.n_matched; i++) {
            int32_t at = e->paper.matched[i];
            edits[at] = counted(by_count, params, &entries[at], e->paper.matches[at].value);
        }
    } else { /* only the paper's penalty is on, so every entry is in reach */
        h->kernels->price_nearest(entries, (int32_t)n, (int32_t)h->n, &e->paper.nearest, edits);
        for (uint32_t i = 0; i < e->paper.n_matched; i++) {
            edits[e->paper.matched[i]].bias = e->paper.matches[e->paper.matched[i]].value;
        }
    }
}

/* Returns the edit of a token of e->found. If the token has no edit, adds an edit that changes nothing. */
static lzs_edit *edit_of_found(lzs_edit_list *e, const lzs_history *h, lzs_token_entry *entry) {
    if (entry->last < 0) entry->last = lzs_token_table_find(&h->table, entry->token);
    if (entry->last < 0) {
        entry->last = (int32_t)e->n;
        e->edits[e->n++] = (lzs_edit){entry->token, 1.0f, 0.0f};
    }
    return &e->edits[entry->last];
}

/* Applies the penalties that have a function `find`. */
static void fold_others(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    lzs_token_table_clear(&e->found);
    for (size_t p = 0; p < LZS_N_PENALTIES; p++) {
        if (!lzs_penalties[p]->find || !h->watches[p].index.window) continue;
        for (uint32_t i = 0; i < e->found.n; i++) e->found.entries[i].count = 0;
        lzs_penalties[p]->find(&e->found, h, params, log2_vocab);
        for (uint32_t i = 0; i < e->found.n; i++) {
            lzs_token_entry *entry = &e->found.entries[i];
            if (!entry->count) continue;
            lzs_edit *edit = edit_of_found(e, h, entry);
            edit->bias = lzs_finite(edit->bias - lzs_penalties[p]->price(params, entry->count));
        }
    }
}

static void add_logit_bias(lzs_edit_list *e, const lzs_history *h, const lzs_params *params) {
    for (size_t i = 0; i < params->n_logit_bias; i++) {
        int32_t token = params->logit_bias[i].token, at = lzs_token_table_find(&h->table, token);
        float bias = params->logit_bias[i].bias;
        if (at < 0) {
            int32_t entry = lzs_token_table_find(&e->found, token);
            if (entry >= 0) at = e->found.entries[entry].last;
        }
        if (at < 0) {
            at = (int32_t)e->n;
            e->edits[e->n++] = (lzs_edit){token, 1.0f, 0.0f};
        }
        e->edits[at].bias = bias == -INFINITY ? bias : lzs_finite(e->edits[at].bias + bias);
        e->biased[i] = at;
    }
}

const lzs_edit *lzs_edit_list_find(const lzs_edit_list *e, const lzs_history *h, const lzs_params *params,
                                   int32_t token) {
    int32_t at = lzs_token_table_find(&h->table, token);
    if (at >= 0) return &e->edits[at];
    at = lzs_token_table_find(&e->found, token);
    if (at >= 0 && e->found.entries[at].last >= 0) return &e->edits[e->found.entries[at].last];
    size_t place = lzs_find_token(params->logit_bias, params->n_logit_bias, sizeof *params->logit_bias, token);
    return place < params->n_logit_bias ? &e->edits[e->biased[place]] : NULL;
}

/* Multiplies each edit by the share of the token's bytes that the grammar leaves free. */
static lzs_status scale(lzs_edit_list *e, lzs_grammar *grammar, int32_t place) {
    for (size_t i = 0; i < e->n; i++) {
        lzs_edit *edit = &e->edits[i];
        if (edit->repeat == 1.0f && edit->bias == 0.0f) continue;
        float share;
        lzs_status status = lzs_grammar_free_share(grammar, place, edit->token, &share);
        if (status != LZS_OK) return status;
        *edit = lzs_scaled_edit(*edit, share);
    }
    return LZS_OK;
}

lzs_status lzs_edit_list_make(lzs_edit_list *e, const lzs_history *h, const lzs_params *params, float log2_vocab,
                              lzs_grammar *grammar, int32_t place) {
    if (h->reach) lzs_paper_match_all(&e->paper, h, params, log2_vocab);
    fold_windows(e, h, params);
    if (e->most_found) fold_others(e, h, params, log2_vocab);
    for (size_t i = 0; params->n_exempt && i < e->n; i++) {
        int32_t token = e->edits[i].token;
        bool exempt = lzs_find_token(params->exempt, params->n_exempt, sizeof token, token) < params->n_exempt;
        if (exempt) e->edits[i] = (lzs_edit){token, 1.0f, 0.0f};
    }
    if (grammar) {
        lzs_status status = scale(e, grammar, place);
        if (status != LZS_OK) return status;
    }
    add_logit_bias(e, h, params);
    e->valid = true;
    return LZS_OK;
}
