/* lzs_history.c - the tokens that penalties look at, with the LZ match index and the counts kept up to date.
 *
 * Match index: for each distance d, the length (at most `buffer`) of the common end of the history and of the history
 * without its last d tokens. When a token arrives, a length either grows by one or falls to 0, so accept is one pass
 * without branches; matches of other tokens than that are found by their lengths, not by looking. Lengths are capped at
 * the buffer, so a rewind needs no log: it compares again. The bag knows the distinct tokens of both windows, how often each
 * was counted and where it was last; `previous` chains the positions of a token, so that a rewind finds the one before.
 */
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

/* Tokens of the longer window: no more are distinct, but one that joins before another leaves. */
static size_t longer_window(const lzs_history *h) {
    return h->count_window > (size_t)h->n_reach ? h->count_window : (size_t)h->n_reach;
}

lzs_status lzs_history_init(lzs_history *h, int32_t window, int32_t buffer, size_t count_window, int32_t n_vocab,
                            const lzs_kernels *kernels) {
    *h = (lzs_history){0};
    h->kernels = kernels;
    h->buffer = buffer;
    h->count_window = count_window;
    if (window > buffer) {
        h->n_reach = window - buffer;
        h->len = calloc((size_t)h->n_reach, sizeof *h->len);
        if (!h->len) return LZS_ENOMEM;
    }
    size_t most = longer_window(h) < (size_t)n_vocab ? longer_window(h) : (size_t)n_vocab;
    return most && count_window <= LZS_MAX_WINDOW ? lzs_bag_reserve(&h->bag, most + 1) : LZS_OK; /* or as it grows */
}

/* Room for `capacity` tokens, with `previous` in the same block, and the n first ones of `from` in it. */
static lzs_status set_room(lzs_history *h, size_t capacity, const lzs_history *from) {
    size_t lists = h->n_reach ? 2 : 1;
    int32_t *room = malloc((capacity ? capacity : 1) * lists * sizeof *room);
    if (!room) return LZS_ENOMEM;
    if (from->n) memcpy(room, from->tokens, from->n * sizeof *room);
    if (from->n && h->n_reach) memcpy(room + capacity, from->previous, from->n * sizeof *room);
    h->tokens = room;
    h->previous = h->n_reach ? room + capacity : NULL;
    h->capacity = capacity;
    return LZS_OK;
}

lzs_status lzs_history_copy(lzs_history *to, const lzs_history *from) {
    *to = *from;
    to->tokens = to->previous = NULL;
    to->len = NULL;
    to->bag = (lzs_bag){0};
    lzs_status status = set_room(to, from->capacity, from);
    if (status != LZS_OK) return status;
    if (from->n_reach) {
        to->len = malloc((size_t)from->n_reach * sizeof *to->len);
        if (!to->len) return LZS_ENOMEM;
        memcpy(to->len, from->len, (size_t)from->n_reach * sizeof *to->len);
    }
    return lzs_bag_copy(&to->bag, &from->bag);
}

void lzs_history_free(lzs_history *h) {
    free(h->tokens);
    free(h->len);
    lzs_bag_free(&h->bag);
}

void lzs_history_clear(lzs_history *h) {
    h->n = 0;
    if (h->len) memset(h->len, 0, (size_t)h->n_reach * sizeof *h->len);
    lzs_bag_clear(&h->bag);
}

size_t lzs_history_memory(const lzs_history *h) {
    size_t bytes = h->capacity * sizeof *h->tokens + lzs_bag_memory(&h->bag);
    if (h->n_reach) bytes += h->capacity * sizeof *h->previous + (size_t)h->n_reach * sizeof *h->len;
    return bytes;
}

int32_t lzs_history_reach(const lzs_history *h) {
    if (h->n <= (size_t)h->buffer) return 0;
    return h->n - (size_t)h->buffer < (size_t)h->n_reach ? (int32_t)(h->n - (size_t)h->buffer) : h->n_reach;
}

/* Room for n more tokens, everywhere; whatever fails, the history is as it was. */
static lzs_status reserve(lzs_history *h, size_t n) {
    if (h->n + n > h->capacity) {
        int32_t *old = h->tokens;
        lzs_status status = set_room(h, h->n + n > 2 * h->capacity ? h->n + n + 64 : 2 * h->capacity, h);
        if (status != LZS_OK) return status;
        free(old);
    }
    size_t window = longer_window(h), most = h->bag.n + n;
    return lzs_bag_reserve(&h->bag, window < most ? window + 1 : most);
}

static void drop_if_idle(lzs_bag *bag, int32_t at) {
    if (bag->items[at].count == 0 && bag->items[at].last < 0) lzs_bag_remove(bag, at);
}

/* ---- counts ---- */

static void count_add(lzs_bag *bag, int32_t token) {
    bag->items[lzs_bag_take(bag, token)].count++;
}

static void count_remove(lzs_bag *bag, int32_t token) {
    int32_t at = lzs_bag_find(bag, token);
    bag->items[at].count--;
    drop_if_idle(bag, at);
}

/* ---- last positions ---- */

static void last_push(lzs_history *h) {
    int32_t position = (int32_t)(h->n - 1), leaving = position - h->n_reach;
    h->previous[position] = -1;
    if (position < h->buffer) return;
    int32_t at = lzs_bag_take(&h->bag, h->tokens[position]);
    h->previous[position] = h->bag.items[at].last;
    h->bag.items[at].last = position;
    if (leaving < h->buffer) return;
    at = lzs_bag_find(&h->bag, h->tokens[leaving]);
    if (h->bag.items[at].last != leaving) return;
    h->bag.items[at].last = -1;
    drop_if_idle(&h->bag, at);
}

/* After h->n went down by one. */
static void last_pop(lzs_history *h) {
    int32_t position = (int32_t)h->n, returning = position - h->n_reach;
    if (position < h->buffer) return;
    int32_t at = lzs_bag_find(&h->bag, h->tokens[position]), before = h->previous[position];
    h->bag.items[at].last = before >= returning ? before : -1;
    drop_if_idle(&h->bag, at);
    if (returning < h->buffer) return;
    at = lzs_bag_take(&h->bag, h->tokens[returning]);
    if (h->bag.items[at].last < 0) h->bag.items[at].last = returning;
}

/* ---- match lengths ---- */

static uint16_t match_length(const int32_t *end, size_t n, int32_t distance, int32_t cap) {
    size_t limit = n - (size_t)distance;
    if (limit > (size_t)cap) limit = (size_t)cap;
    size_t length = 0;
    while (length < limit && end[-1 - (ptrdiff_t)length] == end[-1 - (ptrdiff_t)length - distance]) length++;
    return (uint16_t)length;
}

static void rebuild_lengths(lzs_history *h) {
    for (int32_t d = 1; d <= h->n_reach; d++) {
        h->len[h->n_reach - d] = (size_t)d < h->n ? match_length(h->tokens + h->n, h->n, d, h->buffer) : 0;
    }
}

static void extend_lengths(lzs_history *h) {
    size_t before = h->n - 1;
    int32_t n = before < (size_t)h->n_reach ? (int32_t)before : h->n_reach;
    h->kernels->extend(h->len + h->n_reach - n, h->tokens + before - n, n, h->tokens[before], (uint16_t)h->buffer);
}

/* ---- changes ---- */

lzs_status lzs_history_append(lzs_history *h, const int32_t *tokens, size_t n) {
    lzs_status status = reserve(h, n);
    if (status != LZS_OK) return status;
    for (size_t i = 0; i < n; i++) {
        h->tokens[h->n++] = tokens[i];
        if (h->count_window) {
            count_add(&h->bag, tokens[i]);
            if (h->n > h->count_window) count_remove(&h->bag, h->tokens[h->n - 1 - h->count_window]);
        }
        if (h->n_reach) last_push(h);
    }
    if (h->n_reach && n == 1) {
        extend_lengths(h);
    } else if (h->n_reach && n > 1) {
        rebuild_lengths(h); /* a long prompt: comparing once is cheaper than one pass a token */
    }
    return LZS_OK;
}

void lzs_history_rewind(lzs_history *h, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h->n--;
        if (h->count_window) { /* the one that leaves makes room for the one that returns */
            count_remove(&h->bag, h->tokens[h->n]);
            if (h->n >= h->count_window) count_add(&h->bag, h->tokens[h->n - h->count_window]);
        }
        if (h->n_reach) last_pop(h);
    }
    if (n && h->n_reach) rebuild_lengths(h);
}
