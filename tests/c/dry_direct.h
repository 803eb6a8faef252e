/* dry_direct.h - the DRY penalty by comparing the end of the text with every earlier place in the window: what penalty/dry.c
 * must find with its index. */
#ifndef LZS_TESTS_DRY_DIRECT_H
#define LZS_TESTS_DRY_DIRECT_H

#include <stdbool.h>
#include <stdlib.h>

#include "lzsampler.h"

static inline bool dry_breaks(const lzs_params *p, int32_t token) {
    for (size_t i = 0; i < p->n_dry_breakers; i++) {
        if (p->dry_breakers[i] == token) return true;
    }
    return false;
}

/* For each token of the vocabulary the length of the longest repetition that it would extend, or 0 when it is not
 * penalised. `tokens` is the whole history. */
static inline void dry_lengths(const lzs_params *p, const int32_t *tokens, int32_t n, int32_t n_vocab, int32_t *lengths) {
    int32_t window = p->dry_penalty_last_n < 0 ? LZS_MAX_WINDOW : p->dry_penalty_last_n;
    int32_t start = n > window ? n - window : 0;
    for (int32_t t = 0; t < n_vocab; t++) lengths[t] = 0;
    for (int32_t next = start + 1; next < n; next++) { /* tokens[next] followed what may be repeated now */
        int32_t length = 0;
        while (next - length > start && tokens[next - 1 - length] == tokens[n - 1 - length] &&
               !dry_breaks(p, tokens[n - 1 - length])) {
            length++;
        }
        if (length == 0 || length < p->dry_allowed_length || dry_breaks(p, tokens[next])) continue;
        if (length > lengths[tokens[next]]) lengths[tokens[next]] = length;
    }
}

#endif
