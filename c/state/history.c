/* history.c - the tokens of one sequence that the penalties look at, with their counts, positions and matches.
 *
 * The table has an entry for each distinct token that lies in the counted window or in reach of LZS_RULE_PAPER
 * (history.h). An entry holds the token's count and its last position in reach. `previous` chains the positions of a
 * token. So a rewind finds the previous position of a token without searching.
 */
#include "history.h"

#include <string.h>

#include "../room.h"

/* The greatest number of entries that the table needs: one more than a window has tokens, since a new token is added
 * before the oldest token leaves. */
static size_t most_distinct(const lzs_history *h, size_t n) {
    size_t reach = (size_t)h->reach, window = h->count_window > reach ? h->count_window : reach;
    size_t most = window < n ? window + 1 : n;
    return most < (size_t)h->n_vocab ? most : (size_t)h->n_vocab;
}

lzs_status lzs_history_init(lzs_history *h, const lzs_history_shape *shape, const lzs_kernels *kernels) {
    *h = (lzs_history){.most = INT32_MAX,
                       .n_vocab = shape->n_vocab,
                       .kernels = kernels,
                       .reach = shape->reach,
                       .buffer = shape->buffer,
                       .count_window = shape->count_window};
    for (size_t i = 0; i < shape->n_watches; i++) {
        if (!shape->watches[i].window) continue;
        lzs_watch_init(&h->watches[i], &shape->watches[i]);
        h->n_watches = i + 1; /* the watches after the last watch that is on are never read */
    }
    /* If the windows bound the size of the table, allocate it now. If the whole history counts, the table grows with
     * the history. */
    bool bounded = (h->reach || h->count_window) && h->count_window <= LZS_MAX_WINDOW;
    return bounded ? lzs_token_table_reserve(&h->table, most_distinct(h, SIZE_MAX)) : LZS_OK;
}

/* Makes room for `capacity` tokens, with `previous` in the same block, and copies the tokens and `previous` of `from`
 * into it. */
static lzs_status set_room(lzs_history *h, size_t capacity, const lzs_history *from) {
    int32_t *room = lzs_room(NULL, capacity, (h->reach ? 2 : 1) * sizeof *room);
    if (!room) return LZS_ENOMEM;
    if (from->n) memcpy(room, from->tokens, from->n * sizeof *room);
    if (from->n && h->reach) memcpy(room + capacity, from->previous, from->n * sizeof *room);
    free(h->tokens);
    h->tokens = room;
    h->previous = h->reach ? room + capacity : NULL;
    h->capacity = capacity;
    return LZS_OK;
}

lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from) {
    lzs_history_clear(to);
    lzs_status status = LZS_OK;
    for (size_t i = 0; i < to->n_watches && status == LZS_OK; i++) {
        if (to->watches[i].index.window) status = lzs_watch_copy(&to->watches[i], &from->watches[i], from->n);
    }
    if (status == LZS_OK) status = lzs_token_table_copy(&to->table, &from->table);
    if (status == LZS_OK && to->capacity < from->n) {
        status = set_room(to, from->capacity, from);
    } else if (status == LZS_OK && from->n) {
        memcpy(to->tokens, from->tokens, from->n * sizeof *to->tokens);
        if (to->reach) memcpy(to->previous, from->previous, from->n * sizeof *to->previous);
    }
    if (status != LZS_OK) {
        lzs_history_clear(to);
        return status;
    }
    to->n = from->n;
    to->n_in_reach = from->n_in_reach;
    return LZS_OK;
}

void lzs_history_free(lzs_history *h) {
    free(h->tokens);
    for (size_t i = 0; i < h->n_watches; i++) lzs_watch_free(&h->watches[i]);
    lzs_token_table_free(&h->table);
}

void lzs_history_clear(lzs_history *h) {
    h->n = h->n_in_reach = 0;
    for (size_t i = 0; i < h->n_watches; i++) lzs_watch_clear(&h->watches[i]);
    lzs_token_table_clear(&h->table);
}

size_t lzs_history_memory(const lzs_history *h) {
    size_t bytes = h->capacity * sizeof *h->tokens * (h->reach ? 2 : 1) + lzs_token_table_memory(&h->table);
    for (size_t i = 0; i < h->n_watches; i++) bytes += lzs_watch_memory(&h->watches[i]);
    return bytes;
}

/* Makes room for n more tokens in all arrays, watches and the table. On failure the history is as it was. */
static lzs_status reserve(lzs_history *h, size_t n) {
    if (n > h->most - h->n) return LZS_EFULL;
    if (h->n + n > h->capacity) {
        lzs_status status = set_room(h, h->n + n > 2 * h->capacity ? h->n + n + 64 : 2 * h->capacity, h);
        if (status != LZS_OK) return status;
    }
    for (size_t i = 0; i < h->n_watches; i++) {
        lzs_status status = h->watches[i].index.window ? lzs_watch_reserve(&h->watches[i], h->n + n) : LZS_OK;
        if (status != LZS_OK) return status;
    }
    if (!h->reach && !h->count_window) return LZS_OK;
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
    int32_t position = (int32_t)(h->n - 1), leaving = position - h->reach;
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

/* Undoes last_push; the caller has already lowered h->n by 1. */
static void last_pop(lzs_history *h) {
    int32_t position = (int32_t)h->n, returning = position - h->reach;
    if (position < h->buffer) return;
    int32_t at = lzs_token_table_find(&h->table, h->tokens[position]), before = h->previous[position];
    set_last(h, at, before >= returning ? before : -1);
    drop_if_idle(&h->table, at);
    if (returning < h->buffer) return;
    at = lzs_token_table_take(&h->table, h->tokens[returning]);
    if (h->table.entries[at].last < 0) set_last(h, at, returning);
}

/* ---- changes ---- */

lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n) {
    lzs_status status = reserve(h, n);
    if (status != LZS_OK) return status;
    for (size_t i = 0; i < n; i++) {
        h->tokens[h->n++] = tokens[i];
        if (h->count_window) {
            count_add(&h->table, tokens[i]);
            if (h->n > h->count_window) count_remove(&h->table, h->tokens[h->n - 1 - h->count_window]);
        }
        if (h->reach) last_push(h);
    }
    for (size_t i = 0; i < h->n_watches; i++) {
        if (h->watches[i].index.window) lzs_watch_extend(&h->watches[i], h->kernels, h->tokens, h->n, n);
    }
    return LZS_OK;
}

void lzs_history_rewind(lzs_history *h, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h->n--;
        if (h->count_window) { /* remove first: the removed token frees its entry for the token that returns to the
                                * window */
            count_remove(&h->table, h->tokens[h->n]);
            if (h->n >= h->count_window) count_add(&h->table, h->tokens[h->n - h->count_window]);
        }
        if (h->reach) last_pop(h);
    }
    if (n == 0) return;
    for (size_t i = 0; i < h->n_watches; i++) {
        if (h->watches[i].index.window) lzs_watch_rewind(&h->watches[i], h->tokens, h->n);
    }
}
