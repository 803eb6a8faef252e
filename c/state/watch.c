/* watch.c - a watch, which compares the end of the text with earlier text for one penalty. */
#include "watch.h"

#include <string.h>

#include "../room.h"
#include "sorted_tokens.h"

bool lzs_is_separator(const lzs_separators *s, int32_t token) {
    return lzs_in_set(s->set, token) || lzs_listed(s->tokens, s->n, token);
}

void lzs_watch_init(lzs_watch *w, const lzs_watch_shape *shape) {
    *w = (lzs_watch){.index = {.window = shape->window, .cap = shape->cap}, .separators = shape->separators};
}

lzs_status lzs_watch_reserve(lzs_watch *w, size_t n) {
    if (n > w->capacity) {
        size_t capacity = n > 2 * w->capacity ? n + 64 : 2 * w->capacity;
        uint16_t *since = lzs_room(w->since, capacity, sizeof *since);
        if (!since) return LZS_ENOMEM;
        w->since = since;
        w->capacity = capacity;
    }
    return lzs_match_index_reserve(&w->index, n);
}

lzs_status lzs_watch_copy(lzs_watch *to, const lzs_watch *from, size_t n) {
    lzs_status status = lzs_match_index_copy(&to->index, &from->index);
    if (status != LZS_OK || !n) return status;
    if (to->capacity < n) {
        uint16_t *since = lzs_room(to->since, from->capacity, sizeof *since);
        if (!since) return LZS_ENOMEM;
        to->since = since;
        to->capacity = from->capacity;
    }
    memcpy(to->since, from->since, n * sizeof *to->since);
    return LZS_OK;
}

void lzs_watch_free(lzs_watch *w) {
    lzs_match_index_free(&w->index);
    free(w->since);
}

void lzs_watch_clear(lzs_watch *w) {
    lzs_match_index_clear(&w->index);
}

size_t lzs_watch_memory(const lzs_watch *w) {
    return lzs_match_index_memory(&w->index) + w->capacity * sizeof *w->since;
}

/* Returns the number of tokens since the last separator, after `token`. `since` is this number before `token`. */
static uint16_t since_after(const lzs_separators *s, int32_t since, int32_t token) {
    if (lzs_is_separator(s, token)) return 0;
    if (since + 1 < s->item && lzs_in_set(s->commas, token)) return 0;
    return since < UINT16_MAX ? (uint16_t)(since + 1) : UINT16_MAX;
}

void lzs_watch_extend(lzs_watch *w, const lzs_kernels *kernels, const int32_t *tokens, size_t n, size_t added) {
    enum { FEW = 32 };
    for (size_t i = n - added; i < n; i++) w->since[i] = since_after(&w->separators, lzs_unbroken(w, i), tokens[i]);
    if (added > FEW) { /* computing all lengths once is faster than one pass for each token */
        lzs_match_index_rebuild(&w->index, tokens, n);
        return;
    }
    for (size_t length = n - added + 1; length <= n; length++) {
        lzs_match_index_extend(&w->index, kernels, tokens, length);
    }
}

void lzs_watch_rewind(lzs_watch *w, const int32_t *tokens, size_t n) {
    lzs_match_index_rebuild(&w->index, tokens, n);
}
