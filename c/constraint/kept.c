/* kept.c - a mask in the form that needs the least memory. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

static uint32_t count_bits(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return ((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
}

lzs_status lzs_kept_make(const lzs_vocabulary *v, const uint32_t *words, lzs_kept_mask *made) {
    size_t allowed = 0;
    for (size_t i = 0; i < v->n_words; i++) allowed += count_bits(words[i]);
    size_t forbidden = (size_t)v->n_vocab - allowed;
    lzs_kept_mask mask = {LZS_KEPT_WORDS, (uint32_t)v->n_words, NULL};
    if (allowed < v->n_words) mask = (lzs_kept_mask){LZS_KEPT_ALLOWED, (uint32_t)allowed, NULL};
    if (forbidden < v->n_words) mask = (lzs_kept_mask){LZS_KEPT_FORBIDDEN, (uint32_t)forbidden, NULL};
    mask.data = malloc((mask.n ? mask.n : 1) * sizeof *mask.data);
    if (!mask.data) return LZS_ENOMEM;
    if (mask.form == LZS_KEPT_WORDS) {
        memcpy(mask.data, words, v->n_words * sizeof *words);
    } else {
        size_t n = 0;
        uint32_t other = mask.form == LZS_KEPT_ALLOWED ? 0 : UINT32_MAX;
        for (size_t i = 0; i < v->n_words; i++) {
            uint32_t wanted = words[i] ^ other;
            for (uint32_t bit = 0; wanted; wanted >>= 1, bit++) {
                if (wanted & 1 && n < mask.n) mask.data[n++] = (uint32_t)i * 32 + bit; /* not those behind the last token */
            }
        }
    }
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
