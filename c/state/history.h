/* history.h - the tokens of one sequence that the penalties look at, with their counts, positions and matches. */
#ifndef LZS_HISTORY_H
#define LZS_HISTORY_H

#include "token_table.h"
#include "watch.h"

enum { LZS_MAX_WATCHES = 8 };

typedef struct lzs_history {
    int32_t *tokens; /* (n) tokens of the whole history, oldest first, so that rewinds of any length are possible */
    size_t n, capacity;
    size_t most; /* greatest number of tokens; positions are 32-bit numbers */
    int32_t n_vocab;
    const lzs_kernels *kernels;

    lzs_watch watches[LZS_MAX_WATCHES]; /* watches of the penalties, by number of the penalty; only the first n_watches
                                         * can be on */
    size_t n_watches;

    /* The following fields are for LZS_RULE_PAPER. A position is in reach if a whole buffer precedes it within the
     * window. So its distance is 1 to `reach` (lz_window - lz_buffer), and the history has at least `buffer` tokens
     * before the position. */
    int32_t reach;     /* greatest distance in reach; 0 when the rule is off */
    int32_t buffer;
    int32_t *previous; /* (n) previous[i]: the last position before i that holds the same token as i and was in reach at
                        * i; -1: none. The array is in one block of memory with `tokens`; NULL when the rule is off */
    size_t n_in_reach;     /* number of distinct tokens in reach */
    size_t count_window;   /* number of last tokens in which repetition, frequency and presence penalties count;
                            * SIZE_MAX: all */
    lzs_token_table table; /* the tokens that are counted or in reach */
} lzs_history;

/* The settings with which a history is made. */
typedef struct lzs_history_shape {
    int32_t n_vocab;
    int32_t reach, buffer; /* as in lzs_history; both 0 when LZS_RULE_PAPER is off */
    size_t count_window;
    lzs_watch_shape watches[LZS_MAX_WATCHES]; /* (n_watches) shapes of the watches, by number of the penalty */
    size_t n_watches;
} lzs_history_shape;

lzs_status lzs_history_init(lzs_history *h, const lzs_history_shape *shape, const lzs_kernels *kernels);
/* Makes `to`, a history of the same shape, equal to `from`; on failure `to` is an empty history. */
lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from);
void lzs_history_free(lzs_history *h);
void lzs_history_clear(lzs_history *h);
size_t lzs_history_memory(const lzs_history *h);
/* Appends n tokens. LZS_EFULL or LZS_ENOMEM if the tokens do not fit; nothing has then changed. */
lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n);
/* Takes back the last n tokens. The history must have at least n tokens. */
void lzs_history_rewind(lzs_history *h, size_t n);

/* For LZS_RULE_PAPER: the greatest distance of a position in reach; 0: no position is in reach. */
static inline int32_t lzs_history_reach(const lzs_history *h) {
    if (h->n <= (size_t)h->buffer) return 0;
    return h->n - (size_t)h->buffer < (size_t)h->reach ? (int32_t)(h->n - (size_t)h->buffer) : h->reach;
}

/* The greatest distance of a watch at which the history has a token. */
static inline int32_t lzs_watched(const lzs_history *h, const lzs_watch *w) {
    return h->n < (size_t)w->index.window ? (int32_t)h->n : w->index.window;
}

#endif
