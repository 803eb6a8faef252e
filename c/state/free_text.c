/* free_text.c - the free tokens of a sequence, for penalties that look at free tokens only. */
#include "free_text.h"

#include <string.h>

#include "../room.h"

lzs_status lzs_free_text_init(lzs_free_text *text, const lzs_history_shape *shape, const lzs_kernels *kernels) {
    *text = (lzs_free_text){0};
    return lzs_history_init(&text->history, shape, kernels);
}

/* Makes room for n accepted tokens. */
static lzs_status reserve(lzs_free_text *text, size_t n) {
    if (n <= text->capacity) return LZS_OK;
    size_t capacity = n > 2 * text->capacity ? n + 64 : 2 * text->capacity;
    int32_t *before = lzs_room(text->before, capacity, sizeof *before);
    if (!before) return LZS_ENOMEM;
    text->before = before;
    text->capacity = capacity;
    return LZS_OK;
}

lzs_status lzs_free_text_copy(lzs_free_text *to, const lzs_free_text *from) {
    lzs_free_text_clear(to);
    lzs_status status = reserve(to, (size_t)from->position);
    if (status == LZS_OK) status = lzs_history_copy(&to->history, &from->history);
    if (status != LZS_OK) return status;
    if (from->position) memcpy(to->before, from->before, (size_t)from->position * sizeof *to->before);
    to->position = from->position;
    return LZS_OK;
}

void lzs_free_text_free(lzs_free_text *text) {
    lzs_history_free(&text->history);
    free(text->before);
}

void lzs_free_text_clear(lzs_free_text *text) {
    lzs_history_clear(&text->history);
    text->position = 0;
}

size_t lzs_free_text_memory(const lzs_free_text *text) {
    return lzs_history_memory(&text->history) + text->capacity * sizeof *text->before;
}

lzs_status lzs_free_text_add(lzs_free_text *text, int32_t token, bool is_free) {
    lzs_status status = reserve(text, (size_t)text->position + 1);
    int32_t before = (int32_t)text->history.n;
    if (status == LZS_OK && is_free) status = lzs_history_append(&text->history, &token, 1);
    if (status == LZS_OK) text->before[text->position++] = before;
    return status;
}

void lzs_free_text_rewind(lzs_free_text *text, uint64_t position) {
    if (position >= text->position) return;
    lzs_history_rewind(&text->history, text->history.n - (size_t)text->before[position]);
    text->position = position;
}
