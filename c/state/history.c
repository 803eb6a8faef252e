/* history.c - the tokens of one sequence that the penalties look at, with everything that penalties count in them.
 *
 * The table holds the distinct tokens of both windows, how often each was counted and where it was last in reach of LZ;
 * `previous` chains the positions of a token, so that a rewind finds the one before without searching.
 */
#include "history.h"

#include <string.h>

#include "../room.h"
#include "sorted_tokens.h"

/* No more tokens than this are distinct in the windows, except that one may join before another leaves. */
static size_t most_distinct(const lzs_history *h, size_t n) {
    size_t reach = h->by_nearest ? (size_t)h->lz.window : 0, window = h->count_window > reach ? h->count_window : reach;
    size_t most = window < n ? window + 1 : n;
    return most < (size_t)h->n_vocab ? most : (size_t)h->n_vocab;
}

static lzs_breakers breakers_of(lzs_token_list list, int32_t window) {
    return (lzs_breakers){list.tokens, list.n, (size_t)window, 0, true};
}

lzs_status lzs_history_init(lzs_history *h, const lzs_history_shape *shape, const lzs_kernels *kernels) {
    int32_t left_out = shape->lz_by_nearest ? shape->lz_buffer : 0;
    *h = (lzs_history){.most = INT32_MAX,
                       .n_vocab = shape->n_vocab,
                       .kernels = kernels,
                       .buffer = left_out,
                       .by_nearest = shape->lz_by_nearest};
    h->lz = (lzs_match_index){.window = shape->lz_window - left_out, .cap = shape->lz_buffer};
    h->dry = (lzs_match_index){.window = shape->dry_window ? shape->dry_window - 1 : 0, .cap = UINT16_MAX};
    h->lz_breakers = breakers_of(shape->lz_breakers, shape->lz_buffer);
    h->dry_breakers = breakers_of(shape->dry_breakers, h->dry.window);
    h->count_window = shape->count_window;
    /* What a window bounds is there from the start; what a whole history needs grows with it. */
    lzs_status status = lzs_match_index_reserve(&h->lz, (size_t)h->lz.window);
    bool bounded = (h->by_nearest || h->count_window) && h->count_window <= LZS_MAX_WINDOW;
    if (status == LZS_OK && bounded) status = lzs_token_table_reserve(&h->table, most_distinct(h, SIZE_MAX));
    return status;
}

/* Makes room for `capacity` tokens, with `previous` in the same block, and copies those of `from` into it. */
static lzs_status set_room(lzs_history *h, size_t capacity, const lzs_history *from) {
    int32_t *room = lzs_room(NULL, capacity, (h->by_nearest ? 2 : 1) * sizeof *room);
    if (!room) return LZS_ENOMEM;
    if (from->n) memcpy(room, from->tokens, from->n * sizeof *room);
    if (from->n && h->by_nearest) memcpy(room + capacity, from->previous, from->n * sizeof *room);
    free(h->tokens);
    h->tokens = room;
    h->previous = h->by_nearest ? room + capacity : NULL;
    h->capacity = capacity;
    return LZS_OK;
}

lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from) {
    lzs_history_clear(to);
    lzs_status status = lzs_match_index_copy(&to->lz, &from->lz);
    if (status == LZS_OK) status = lzs_match_index_copy(&to->dry, &from->dry);
    if (status == LZS_OK) status = lzs_token_table_copy(&to->table, &from->table);
    if (status == LZS_OK && to->capacity < from->n) {
        status = set_room(to, from->capacity, from);
    } else if (status == LZS_OK && from->n) {
        memcpy(to->tokens, from->tokens, from->n * sizeof *to->tokens);
        if (to->by_nearest) memcpy(to->previous, from->previous, from->n * sizeof *to->previous);
    }
    if (status != LZS_OK) {
        lzs_history_clear(to);
        return status;
    }
    to->n = from->n;
    to->n_in_reach = from->n_in_reach;
    to->lz_breakers.unbroken = from->lz_breakers.unbroken;
    to->lz_breakers.exact = from->lz_breakers.exact;
    to->dry_breakers.unbroken = from->dry_breakers.unbroken;
    to->dry_breakers.exact = from->dry_breakers.exact;
    return LZS_OK;
}

void lzs_history_free(lzs_history *h) {
    free(h->tokens);
    lzs_match_index_free(&h->lz);
    lzs_match_index_free(&h->dry);
    lzs_token_table_free(&h->table);
}

void lzs_history_clear(lzs_history *h) {
    h->n = h->n_in_reach = h->lz_breakers.unbroken = h->dry_breakers.unbroken = 0;
    h->lz_breakers.exact = h->dry_breakers.exact = true;
    lzs_match_index_clear(&h->lz);
    lzs_match_index_clear(&h->dry);
    lzs_token_table_clear(&h->table);
}

size_t lzs_history_memory(const lzs_history *h) {
    size_t bytes = h->capacity * sizeof *h->tokens * (h->by_nearest ? 2 : 1) + lzs_token_table_memory(&h->table);
    return bytes + lzs_match_index_memory(&h->lz) + lzs_match_index_memory(&h->dry);
}

/* Makes room for n more tokens everywhere. On failure the history is as it was. */
static lzs_status reserve(lzs_history *h, size_t n) {
    if (n > h->most - h->n) return LZS_EFULL;
    if (h->n + n > h->capacity) {
        lzs_status status = set_room(h, h->n + n > 2 * h->capacity ? h->n + n + 64 : 2 * h->capacity, h);
        if (status != LZS_OK) return status;
    }
    if (h->dry.window) {
        lzs_status status = lzs_match_index_reserve(&h->dry, h->n + n);
        if (status != LZS_OK) return status;
    }
    if (!h->by_nearest && !h->count_window) return LZS_OK;
    /* one that joins may come before another leaves, and with it the table has n_vocab tokens at most */
    return lzs_token_table_reserve(&h->table, most_distinct(h, h->table.n + n));
}

static void drop_if_idle(lzs_token_table *table, int32_t at) {
    if (table->entries[at].count == 0 && table->entries[at].last < 0) lzs_token_table_remove(table, at);
}

/* ---- counts ---- */

static void count_add(lzs_token_table *table, int32_t token) {
    table->entries[lzs_token_table_take(table, token)].count++;
}

static void count_remove(lzs_token_table *table, int32_t token) {
    int32_t at = lzs_token_table_find(table, token);
    table->entries[at].count--;
    drop_if_idle(table, at);
}

/* ---- last positions ---- */

static void set_last(lzs_history *h, int32_t at, int32_t last) {
    lzs_token_entry *entry = &h->table.entries[at];
    h->n_in_reach += (last >= 0) - (entry->last >= 0);
    entry->last = last;
}

static void last_push(lzs_history *h) {
    int32_t position = (int32_t)(h->n - 1), leaving = position - h->lz.window;
    h->previous[position] = -1;
    if (position < h->buffer) return;
    int32_t at = lzs_token_table_take(&h->table, h->tokens[position]);
    h->previous[position] = h->table.entries[at].last;
    set_last(h, at, position);
    if (leaving < h->buffer) return;
    at = lzs_token_table_find(&h->table, h->tokens[leaving]);
    if (h->table.entries[at].last != leaving) return;
    set_last(h, at, -1);
    drop_if_idle(&h->table, at);
}

/* After h->n went down by one. */
static void last_pop(lzs_history *h) {
    int32_t position = (int32_t)h->n, returning = position - h->lz.window;
    if (position < h->buffer) return;
    int32_t at = lzs_token_table_find(&h->table, h->tokens[position]), before = h->previous[position];
    set_last(h, at, before >= returning ? before : -1);
    drop_if_idle(&h->table, at);
    if (returning < h->buffer) return;
    at = lzs_token_table_take(&h->table, h->tokens[returning]);
    if (h->table.entries[at].last < 0) set_last(h, at, returning);
}

/* ---- breakers ---- */

bool lzs_is_breaker(const lzs_breakers *b, int32_t token) {
    return lzs_listed(b->tokens, b->n, token);
}

static void push_breaker(lzs_breakers *b, int32_t token) {
    bool breaks = lzs_is_breaker(b, token);
    b->unbroken = breaks ? 0 : b->unbroken + 1;
    b->exact |= breaks;
}

/* After a rewind of n tokens. The search for a breaker ends behind the window, where it no longer matters. */
static void rewind_breakers(lzs_breakers *b, const lzs_history *h, size_t n) {
    if (b->exact && n <= b->unbroken) {
        b->unbroken -= n;
        return;
    }
    size_t most = h->n <= b->window + 1 ? h->n : b->window + 2;
    b->unbroken = 0;
    while (b->unbroken < most && !lzs_is_breaker(b, h->tokens[h->n - 1 - b->unbroken])) b->unbroken++;
    b->exact = b->unbroken < most || most == h->n;
}

/* ---- changes ---- */

lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n) {
    enum { FEW = 32 };
    lzs_status status = reserve(h, n);
    if (status != LZS_OK) return status;
    for (size_t i = 0; i < n; i++) {
        h->tokens[h->n++] = tokens[i];
        if (h->count_window) {
            count_add(&h->table, tokens[i]);
            if (h->n > h->count_window) count_remove(&h->table, h->tokens[h->n - 1 - h->count_window]);
        }
        if (h->by_nearest) last_push(h);
        if (h->lz.window) push_breaker(&h->lz_breakers, tokens[i]);
        if (h->dry.window) push_breaker(&h->dry_breakers, tokens[i]);
    }
    if (n <= FEW) {
        for (size_t length = h->n - n + 1; length <= h->n; length++) {
            if (h->lz.window) lzs_match_index_extend(&h->lz, h->kernels, h->tokens, length);
            if (h->dry.window) lzs_match_index_extend(&h->dry, h->kernels, h->tokens, length);
        }
    } else { /* computing the lengths once is cheaper than one pass for each token */
        if (h->lz.window) lzs_match_index_rebuild(&h->lz, h->tokens, h->n);
        if (h->dry.window) lzs_match_index_rebuild(&h->dry, h->tokens, h->n);
    }
    return LZS_OK;
}

void lzs_history_rewind(lzs_history *h, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h->n--;
        if (h->count_window) { /* the one that leaves makes room for the one that returns */
            count_remove(&h->table, h->tokens[h->n]);
            if (h->n >= h->count_window) count_add(&h->table, h->tokens[h->n - h->count_window]);
        }
        if (h->by_nearest) last_pop(h);
    }
    if (n == 0) return;
    if (h->lz.window) {
        lzs_match_index_rebuild(&h->lz, h->tokens, h->n);
        rewind_breakers(&h->lz_breakers, h, n);
    }
    if (h->dry.window) {
        lzs_match_index_rebuild(&h->dry, h->tokens, h->n);
        rewind_breakers(&h->dry_breakers, h, n);
    }
}
