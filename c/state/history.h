/* history.h - the tokens of one sequence that the penalties look at, with everything that penalties count in them. */
#ifndef LZS_HISTORY_H
#define LZS_HISTORY_H

#include "token_table.h"
#include "watch.h"

enum { LZS_MAX_WATCHES = 8 };

typedef struct lzs_history {
    int32_t *tokens; /* (n) the whole history, oldest first: 4 bytes a token buy rewinds of any length */
    size_t n, capacity;
    size_t most; /* tokens that it takes: positions are 32-bit numbers */
    int32_t n_vocab;
    const lzs_kernels *kernels;

    lzs_watch watches[LZS_MAX_WATCHES]; /* one for each penalty, by its place among them; the first n_watches may be
                                         * on */
    size_t n_watches;

    /* The paper's rule. A position is in reach when a whole buffer precedes it in the window: those at distance 1 to
     * `reach`, which is lz_window - lz_buffer, that are not among the first `buffer` tokens of the history. */
    int32_t reach;     /* 0 when it is off */
    int32_t buffer;
    int32_t *previous; /* (n) the position before this one that had its token and was in reach then, or -1; in one block
                        * with the tokens; NULL when it is off */
    size_t n_in_reach;     /* distinct tokens in reach */
    size_t count_window;   /* tokens that the other penalties count; 0: none, SIZE_MAX: all */
    lzs_token_table table; /* the tokens that are counted or in reach */
} lzs_history;

typedef struct lzs_history_shape {
    int32_t n_vocab;
    int32_t reach, buffer; /* of the paper's rule; 0, 0 when it is off */
    size_t count_window;
    lzs_watch_shape watches[LZS_MAX_WATCHES]; /* (n_watches) */
    size_t n_watches;
} lzs_history_shape;

lzs_status lzs_history_init(lzs_history *h, const lzs_history_shape *shape, const lzs_kernels *kernels);
/* Makes `to`, a history of the same shape, equal to `from`; on failure `to` is an empty history. */
lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from);
void lzs_history_free(lzs_history *h);
void lzs_history_clear(lzs_history *h);
size_t lzs_history_memory(const lzs_history *h);
/* Appends n tokens. LZS_EFULL or LZS_ENOMEM, with nothing changed, when they do not fit. */
lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n);
/* Takes back the last n tokens; there are as many. */
void lzs_history_rewind(lzs_history *h, size_t n);

/* The positions in reach of the paper's rule have the distances 1 to this. */
static inline int32_t lzs_history_reach(const lzs_history *h) {
    if (h->n <= (size_t)h->buffer) return 0;
    return h->n - (size_t)h->buffer < (size_t)h->reach ? (int32_t)(h->n - (size_t)h->buffer) : h->reach;
}

/* The distances of a watch that hold a token are 1 to this. */
static inline int32_t lzs_watched(const lzs_history *h, const lzs_watch *w) {
    return h->n < (size_t)w->index.window ? (int32_t)h->n : w->index.window;
}

#endif
