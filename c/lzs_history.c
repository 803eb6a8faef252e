/* lzs_history.c - the tokens that penalties look at, with the LZ match index and the counts kept up to date.
 *
 * Match index: len[d - 1] is the length, at most `buffer`, of the common end of the history and of the history without
 * its last d tokens. When a token arrives the entry of a distance either grows by one or falls to 0, so accept is one
 * pass without branches. Lengths are capped at the buffer, so a rewind needs no undo log: it compares again.
 */
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

lzs_status lzs_history_init(lzs_history *h, int32_t window, int32_t buffer, size_t count_window,
                            const lzs_kernels *kernels) {
    *h = (lzs_history){0};
    h->kernels = kernels;
    h->buffer = buffer;
    h->count_window = count_window;
    if (window > buffer) {
        h->n_len = window - buffer;
        h->len = calloc((size_t)h->n_len, sizeof *h->len);
        if (!h->len) return LZS_ENOMEM;
    }
    return count_window ? lzs_map_init(&h->count_index, 16) : LZS_OK;
}

/* A copy of `n` items with room for `capacity`; NULL without memory (never for an empty list). */
static void *copied(const void *items, size_t n, size_t capacity, size_t item) {
    void *copy = malloc((capacity ? capacity : 1) * item);
    if (copy && n) memcpy(copy, items, n * item);
    return copy;
}

lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from) {
    *to = *from;
    to->tokens = copied(from->tokens, from->n, from->capacity, sizeof *to->tokens);
    to->len = copied(from->len, (size_t)from->n_len, (size_t)from->n_len, sizeof *to->len);
    to->counts = copied(from->counts, from->n_counts, from->counts_capacity, sizeof *to->counts);
    to->count_index = (lzs_map){0};
    lzs_status status = from->count_window ? lzs_map_copy(&to->count_index, &from->count_index) : LZS_OK;
    return to->tokens && to->len && to->counts ? status : LZS_ENOMEM;
}

void lzs_history_free(lzs_history *h) {
    free(h->tokens);
    free(h->len);
    free(h->counts);
    lzs_map_free(&h->count_index);
}

void lzs_history_clear(lzs_history *h) {
    h->n = 0;
    h->n_counts = 0;
    if (h->len) memset(h->len, 0, (size_t)h->n_len * sizeof *h->len);
    if (h->count_window) lzs_map_clear(&h->count_index);
}

size_t lzs_history_memory(const lzs_history *h) {
    return h->capacity * sizeof *h->tokens + (size_t)h->n_len * sizeof *h->len +
           h->counts_capacity * sizeof *h->counts + lzs_map_memory(&h->count_index);
}

/* ---- counts ---- */

static void count_add(lzs_history *h, int32_t token) {
    int32_t at = lzs_map_find(&h->count_index, token);
    if (at >= 0) {
        h->counts[at].count++;
        return;
    }
    lzs_map_set(&h->count_index, token, (int32_t)h->n_counts);
    h->counts[h->n_counts++] = (struct lzs_count){token, 1};
}

static void count_remove(lzs_history *h, int32_t token) {
    int32_t at = lzs_map_find(&h->count_index, token);
    if (--h->counts[at].count > 0) return;
    lzs_map_remove(&h->count_index, token);
    struct lzs_count last = h->counts[--h->n_counts]; /* fill the gap with the last entry */
    if ((uint32_t)at != h->n_counts) {
        h->counts[at] = last;
        lzs_map_set(&h->count_index, last.token, at);
    }
}

/* ---- match index ---- */

static uint16_t match_length(const int32_t *end, size_t n, int32_t distance, int32_t cap) {
    size_t limit = n - (size_t)distance;
    if (limit > (size_t)cap) limit = (size_t)cap;
    size_t length = 0;
    while (length < limit && end[-1 - (ptrdiff_t)length] == end[-1 - (ptrdiff_t)length - distance]) length++;
    return (uint16_t)length;
}

static void rebuild_matches(lzs_history *h) {
    for (int32_t d = 1; d <= h->n_len; d++) {
        h->len[d - 1] = (size_t)d < h->n ? match_length(h->tokens + h->n, h->n, d, h->buffer) : 0;
    }
}

/* ---- public to c/ ---- */

static size_t grown(size_t capacity, size_t needed) {
    if (needed <= capacity) return capacity;
    return needed > 2 * capacity ? needed + 64 : 2 * capacity;
}

/* Room for n more tokens, in all lists; whatever fails, the history is as it was. */
static lzs_status reserve(lzs_history *h, size_t n) {
    size_t capacity = grown(h->capacity, h->n + n);
    if (capacity != h->capacity) {
        int32_t *tokens = realloc(h->tokens, capacity * sizeof *tokens);
        if (!tokens) return LZS_ENOMEM;
        h->tokens = tokens;
        h->capacity = capacity;
    }
    if (!h->count_window) return LZS_OK;
    size_t most = h->n + n < h->count_window ? h->n + n : h->count_window + 1; /* the new one joins before the old leaves */
    if (most > h->n_counts + n) most = h->n_counts + n;
    capacity = grown(h->counts_capacity, most);
    if (capacity != h->counts_capacity) {
        struct lzs_count *counts = realloc(h->counts, capacity * sizeof *counts);
        if (!counts) return LZS_ENOMEM;
        h->counts = counts;
        h->counts_capacity = (uint32_t)capacity;
    }
    return lzs_map_grow(&h->count_index, (uint32_t)h->counts_capacity);
}

lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n) {
    lzs_status status = reserve(h, n);
    if (status != LZS_OK) return status;
    for (size_t i = 0; i < n; i++) {
        h->tokens[h->n++] = tokens[i];
        if (h->count_window) {
            count_add(h, tokens[i]);
            if (h->n > h->count_window) count_remove(h, h->tokens[h->n - 1 - h->count_window]);
        }
    }
    if (!h->n_len) return LZS_OK;
    if (n == 1) {
        int32_t reach = h->n - 1 < (size_t)h->n_len ? (int32_t)(h->n - 1) : h->n_len;
        h->kernels->extend(h->len, h->tokens + h->n - 1, reach, (uint16_t)h->buffer);
    } else if (n > 1) {
        rebuild_matches(h); /* a long prompt: comparing once is cheaper than one pass a token */
    }
    return LZS_OK;
}

void lzs_history_rewind(lzs_history *h, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h->n--;
        if (!h->count_window) continue;
        /* the window never holds more than count_window tokens, so room for the returning one is free after this */
        count_remove(h, h->tokens[h->n]);
        if (h->n >= h->count_window) count_add(h, h->tokens[h->n - h->count_window]);
    }
    if (n && h->n_len) rebuild_matches(h);
}
