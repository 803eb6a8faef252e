/* kept.c - a mask in the form that needs the least memory. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

static uint32_t count_bits(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return ((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
}

/* Words of which many are alike: most of a mask allows nothing, or everything. */
enum { BLOCK = 16 };

static bool is_alike(const uint32_t *words, uint32_t word) {
    uint32_t other = 0;
    for (size_t i = 0; i < BLOCK; i++) other |= words[i] ^ word;
    return !other;
}

static size_t count_tokens(const uint32_t *words, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        if (i + BLOCK <= n && is_alike(words + i, words[i] ? UINT32_MAX : 0)) {
            count += words[i] ? 32 * BLOCK : 0;
            i += BLOCK;
        } else {
            count += count_bits(words[i++]);
        }
    }
    return count;
}

/* Writes the first `room` numbers of the bits that differ from those of `other`. */
static void list_tokens(const uint32_t *words, size_t n_words, uint32_t other, uint32_t *tokens, uint32_t room) {
    uint32_t n = 0;
    for (size_t i = 0; i < n_words;) {
        if (i + BLOCK <= n_words && words[i] == other && is_alike(words + i, other)) {
            i += BLOCK;
            continue;
        }
        uint32_t wanted = words[i] ^ other;
        for (uint32_t bit = 0; wanted; wanted >>= 1, bit++) {
            if (wanted & 1 && n < room) tokens[n++] = (uint32_t)i * 32 + bit; /* not those behind the last token */
        }
        i++;
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
