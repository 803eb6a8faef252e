/* history.h - the tokens of one sequence that the penalties look at, with everything that penalties count in them. */
#ifndef LZS_HISTORY_H
#define LZS_HISTORY_H

#include "match_index.h"
#include "token_table.h"

/* Tokens that end matches, and how many tokens have come since the last one. */
typedef struct lzs_breakers {
    const int32_t *tokens; /* (n) ascending; borrowed */
    size_t n;
    size_t window;   /* more than these need not be known */
    size_t unbroken; /* tokens since the last breaker, or more than the window */
    bool exact;      /* it is the former */
} lzs_breakers;

typedef struct lzs_history {
    int32_t *tokens; /* (n) the whole history, oldest first: 4 bytes a token buy rewinds of any length */
    size_t n, capacity;
    size_t most; /* tokens that it takes: positions are 32-bit numbers */
    int32_t n_vocab;
    const lzs_kernels *kernels;

    /* The LZ penalty. Where it prices matches of length 1 (`by_nearest`), a position is in reach when a whole buffer precedes it
     * in the window: those at distance 1 to lz.window, which is lz_window - lz_buffer, that are not among the first `buffer`
     * tokens of the history. Else the whole window is in reach, and `buffer` is 0. */
    lzs_match_index lz;
    int32_t buffer;
    bool by_nearest;
    int32_t *previous; /* (n) the position before this one that had its token and was in reach then, or -1; in one block
                        * with the tokens; NULL unless by_nearest */
    lzs_breakers lz_breakers;

    /* DRY. A match may not contain a breaker. */
    lzs_match_index dry;
    lzs_breakers dry_breakers;

    size_t n_in_reach;     /* distinct tokens in reach of LZ, where it is by_nearest */
    size_t count_window;   /* tokens that the other penalties count; 0: none, SIZE_MAX: all */
    lzs_token_table table; /* the tokens that are counted or, where LZ is by_nearest, in reach */
} lzs_history;

/* Tokens in ascending order, which belong to the caller. */
typedef struct lzs_token_list {
    const int32_t *tokens; /* (n) */
    size_t n;
} lzs_token_list;

typedef struct lzs_history_shape {
    int32_t n_vocab;
    int32_t lz_window, lz_buffer; /* 0, 0 when LZ is off */
    bool lz_by_nearest;           /* matches of length 1 are priced */
    int32_t dry_window;           /* tokens DRY looks at; 0 when it is off */
    size_t count_window;
    lzs_token_list lz_breakers, dry_breakers;
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

/* The positions in reach of LZ have the distances 1 to this. */
static inline int32_t lzs_history_reach(const lzs_history *h) {
    if (h->n <= (size_t)h->buffer) return 0;
    return h->n - (size_t)h->buffer < (size_t)h->lz.window ? (int32_t)(h->n - (size_t)h->buffer) : h->lz.window;
}

/* The distances that DRY looks at are 1 to this: the token there has one before it in the window. */
static inline int32_t lzs_history_dry_reach(const lzs_history *h) {
    return h->n <= (size_t)h->dry.window ? (int32_t)h->n - 1 : h->dry.window;
}

bool lzs_is_breaker(const lzs_breakers *b, int32_t token);

/* What LZ counts of a common suffix of the history and of its beginning up to a distance: all of it where it covers the
 * distance, so that the text repeats itself without a gap, and otherwise what comes after the last breaker. */
static inline int32_t lzs_history_lz_suffix(const lzs_history *h, int32_t suffix, int32_t distance) {
    if (suffix >= distance || (size_t)suffix <= h->lz_breakers.unbroken) return suffix;
    return (int32_t)h->lz_breakers.unbroken;
}

#endif
