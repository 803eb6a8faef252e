/* kept.c - a mask in the form that needs the least memory. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

static uint32_t count_bits(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return ((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
}

static size_t count_tokens(const uint32_t *words, size_t n) {
    uint32_t count = 0; /* of at most 2^31 tokens */
    for (size_t i = 0; i < n; i++) count += count_bits(words[i]);
    return count;
}

/* Writes the first `room` numbers of the bits that differ from those of `other`. */
static void list_tokens(const uint32_t *words, size_t n_words, uint32_t other, uint32_t *tokens, uint32_t room) {
    uint32_t n = 0;
    for (size_t i = 0; i < n_words; i++) {
        uint32_t wanted = words[i] ^ other;
        for (uint32_t bit = 0; wanted && n < room; wanted >>= 1, bit++) { /* not those behind the last token */
            if (wanted & 1) tokens[n++] = (uint32_t)i * 32 + bit;
        }
    }
}

lzs_status lzs_kept_make(const lzs_vocabulary *v, const uint32_t *words, lzs_kept_mask *made) {
    size_t allowed = count_tokens(words, v->n_words), forbidden = (size_t)v->n_vocab - allowed;
    lzs_kept_mask mask = {LZS_KEPT_WORDS, (uint32_t)v->n_words, NULL};
    if (allowed < v->n_words) mask = (lzs_kept_mask){LZS_KEPT_ALLOWED, (uint32_t)allowed, NULL};
    if (forbidden < v->n_words) mask = (lzs_kept_mask){LZS_KEPT_FORBIDDEN, (uint32_t)forbidden, NULL};
    mask.data = malloc((mask.n ? mask.n : 1) * sizeof *mask.data);
    if (!mask.data) return LZS_ENOMEM;
    if (mask.form == LZS_KEPT_WORDS) {
        memcpy(mask.data, words, v->n_words * sizeof *words);
    } else {
        list_tokens(words, v->n_words, mask.form == LZS_KEPT_ALLOWED ? 0 : UINT32_MAX, mask.data, mask.n);
    }
    *made = mask;
    return LZS_OK;
}

lzs_status lzs_kept_list(const uint32_t *tokens, size_t n, lzs_kept_mask *made) {
    lzs_kept_mask mask = {LZS_KEPT_ALLOWED, (uint32_t)n, malloc((n ? n : 1) * sizeof *tokens)};
    if (!mask.data) return LZS_ENOMEM;
    if (n) memcpy(mask.data, tokens, n * sizeof *tokens);
    *made = mask;
    return LZS_OK;
}

void lzs_kept_write(const lzs_vocabulary *v, const lzs_kept_mask *mask, uint32_t *words) {
    if (mask->form == LZS_KEPT_WORDS) {
        memcpy(words, mask->data, v->n_words * sizeof *words);
        return;
    }
    memset(words, mask->form == LZS_KEPT_ALLOWED ? 0 : 0xFF, v->n_words * sizeof *words);
    for (uint32_t i = 0; i < mask->n; i++) words[mask->data[i] / 32] ^= UINT32_C(1) << (mask->data[i] % 32);
    if (mask->form == LZS_KEPT_FORBIDDEN && v->n_vocab % 32) words[v->n_words - 1] &= (UINT32_C(1) << (v->n_vocab % 32)) - 1;
}
