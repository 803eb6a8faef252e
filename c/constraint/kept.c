/* kept.c - stores a mask in the form that needs the least memory. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

#include "../atomics.h"

struct lzs_kept_base {
    lzs_kept_mask mask;
    lzs_users users;
};

static uint32_t count_bits(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return ((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
}

static size_t count_tokens(const uint32_t *words, size_t n) {
    uint32_t count = 0; /* does not overflow, because there are at most 2^31 tokens */
    for (size_t i = 0; i < n; i++) count += count_bits(words[i]);
    return count;
}

/* Lists the tokens whose bits differ from the bits of `other`, which is 0 or UINT32_MAX. Lists at most `room`
 * tokens. */
static void list_tokens(const uint32_t *words, size_t n_words, uint32_t other, uint32_t *tokens, uint32_t room) {
    uint32_t n = 0;
    for (size_t i = 0; i < n_words; i++) {
        uint32_t wanted = words[i] ^ other;
        /* the bits after the first `room` tokens are beyond the last token */
        for (; wanted && n < room; wanted &= wanted - 1) {
            tokens[n++] = (uint32_t)i * 32 + count_bits((wanted & (0 - wanted)) - 1);
        }
    }
}

lzs_status lzs_kept_make(const lzs_vocabulary *v, const uint32_t *words, lzs_kept_mask *made) {
    size_t allowed = count_tokens(words, v->n_words), forbidden = (size_t)v->n_vocab - allowed;
    lzs_kept_mask mask = {LZS_KEPT_WORDS, (uint32_t)v->n_words, NULL, NULL};
    if (allowed < v->n_words) mask = (lzs_kept_mask){LZS_KEPT_ALLOWED, (uint32_t)allowed, NULL, NULL};
    if (forbidden < v->n_words) mask = (lzs_kept_mask){LZS_KEPT_FORBIDDEN, (uint32_t)forbidden, NULL, NULL};
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
    lzs_kept_mask mask = {.form = LZS_KEPT_ALLOWED, .n = (uint32_t)n, .data = malloc((n ? n : 1) * sizeof *tokens)};
    if (!mask.data) return LZS_ENOMEM;
    if (n) memcpy(mask.data, tokens, n * sizeof *tokens);
    *made = mask;
    return LZS_OK;
}

static void add_tokens(const lzs_kept_mask *mask, uint32_t *words) {
    for (uint32_t i = 0; i < mask->n; i++) words[mask->data[i] / 32] |= UINT32_C(1) << (mask->data[i] % 32);
}

void lzs_kept_write(const lzs_vocabulary *v, const lzs_kept_mask *mask, uint32_t *words) {
    if (mask->form == LZS_KEPT_ADDED) {
        lzs_kept_write(v, &mask->base->mask, words);
        add_tokens(mask, words);
        return;
    }
    if (mask->form == LZS_KEPT_WORDS) {
        memcpy(words, mask->data, v->n_words * sizeof *words);
        return;
    }
    memset(words, mask->form == LZS_KEPT_ALLOWED ? 0 : 0xFF, v->n_words * sizeof *words);
    for (uint32_t i = 0; i < mask->n; i++) words[mask->data[i] / 32] ^= UINT32_C(1) << (mask->data[i] % 32);
    if (mask->form != LZS_KEPT_FORBIDDEN || v->n_vocab % 32 == 0) return;
    words[v->n_words - 1] &= (UINT32_C(1) << (v->n_vocab % 32)) - 1;
}

/* Adds all tokens except the tokens that a mask lists. */
static void add_others(const lzs_vocabulary *v, const lzs_kept_mask *mask, uint32_t *words) {
    uint32_t at = 0, n_vocab = (uint32_t)v->n_vocab;
    for (uint32_t word = 0; word < v->n_words; word++) {
        uint32_t allowed = n_vocab - 32 * word < 32 ? (UINT32_C(1) << (n_vocab % 32)) - 1 : UINT32_MAX;
        for (; at < mask->n && mask->data[at] / 32 == word; at++) allowed &= ~(UINT32_C(1) << (mask->data[at] % 32));
        words[word] |= allowed;
    }
}

void lzs_kept_write_more(const lzs_vocabulary *v, const lzs_kept_mask *mask, uint32_t *words) {
    if (mask->base) lzs_kept_write_more(v, &mask->base->mask, words);
    switch (mask->form) {
    case LZS_KEPT_FORBIDDEN: add_others(v, mask, words); break;
    case LZS_KEPT_WORDS:
        for (size_t i = 0; i < v->n_words; i++) words[i] |= mask->data[i];
        break;
    default: add_tokens(mask, words);
    }
}

/* ---- masks with several owners ---- */

lzs_status lzs_kept_add(lzs_kept_base *base, const uint32_t *tokens, size_t n, lzs_kept_mask *made) {
    lzs_status status = lzs_kept_list(tokens, n, made);
    if (status != LZS_OK) return status;
    made->form = LZS_KEPT_ADDED;
    made->base = base;
    lzs_users_add(&base->users);
    return LZS_OK;
}

void lzs_kept_free(lzs_kept_mask *mask) {
    free(mask->data);
    if (mask->base) lzs_kept_base_leave(mask->base);
}

lzs_kept_base *lzs_kept_base_new(const lzs_kept_mask *mask) {
    lzs_kept_base *base = malloc(sizeof *base);
    if (!base) return NULL;
    base->mask = *mask;
    lzs_users_begin(&base->users);
    return base;
}

const lzs_kept_mask *lzs_kept_base_mask(const lzs_kept_base *base) {
    return &base->mask;
}

void lzs_kept_base_leave(lzs_kept_base *base) {
    if (!lzs_users_leave(&base->users)) return;
    lzs_kept_free(&base->mask);
    free(base);
}
