/* all_texts.h - a walk of a sampler through all texts of some letters, up to 16 tokens long. */
#ifndef ALL_TEXTS_H
#define ALL_TEXTS_H

#include "check.h"
#include "sampler.h"

/* Goes from one text to the next in the order of a dictionary, by a rewind to where they differ. `check` gets the
 * sampler and the n tokens that it has, after each token and each rewind. */
static inline void walk_all_texts(lzs_sampler *s, int32_t n_letters, int32_t length,
                                  void (*check)(lzs_sampler *s, const int32_t *tokens, int32_t n, int32_t n_vocab)) {
    int32_t text[16] = {0}, at = 0;
    for (;;) {
        while (at < length) {
            CHECK(lzs_accept(s, text[at]) == LZS_OK);
            at++;
            check(s, text, at, n_letters);
        }
        int32_t same = length;
        while (same > 0 && text[same - 1] == n_letters - 1) text[--same] = 0;
        if (same == 0) break;
        text[--same]++;
        CHECK(lzs_rewind(s, (size_t)(length - same)) == LZS_OK);
        at = same;
        check(s, text, at, n_letters);
    }
}

#endif
