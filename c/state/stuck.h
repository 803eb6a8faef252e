/* stuck.h - the detector of stuck texts, in which nearly all tokens repeat earlier text, even if without a period. */
#ifndef LZS_STUCK_H
#define LZS_STUCK_H

#include "../include/lzsampler.h"

#define LZS_STUCK_UNDO 512 /* greatest number of tokens that a rewind takes back one by one; a longer rewind reads the
                            * text anew */

typedef struct lzs_stuck_score {
    uint32_t decided; /* number of tokens at the beginning of the text that are known to be new or old; fewer than
                       * `ngram` tokens follow */
    uint32_t start;   /* the first token of the stretch that the score counts; undefined while the score is 0 */
    int32_t score;
} lzs_stuck_score;

typedef struct lzs_stuck_detector {
    int32_t ngram, min_count, threshold, weight, window;
    uint32_t n;      /* number of tokens that index and score contain; both end at the token at which the text became
                      * stuck */
    uint32_t n_undo; /* number of tokens that can be taken back one by one */
    int shift;       /* 64 minus the number of bits of a bucket's index */
    lzs_stuck found; /* found.end is 0 while no stretch is found */
    lzs_stuck_score now;
    lzs_stuck_score *before; /* (LZS_STUCK_UNDO) the score before token i is at i % LZS_STUCK_UNDO */
    uint32_t *heads;         /* (n_buckets) end of the last n-gram of each bucket, as a number of tokens; 0: none */
    uint32_t *links;         /* (n_links) links[i % n_links] is for the n-gram that ends with token i: the end of the
                              * n-gram before it in the same bucket */
    uint32_t n_buckets, n_links;
} lzs_stuck_detector;

lzs_stuck_detector *lzs_stuck_new(const lzs_params *params); /* free the detector with free() */
void lzs_stuck_copy(lzs_stuck_detector *to, const lzs_stuck_detector *from); /* both must have the same parameters */
void lzs_stuck_clear(lzs_stuck_detector *d);
size_t lzs_stuck_memory(const lzs_stuck_detector *d);
/* Updates the score after a token was accepted. `tokens` holds the n accepted tokens. */
void lzs_stuck_accept(lzs_stuck_detector *d, const int32_t *tokens, uint64_t n);
/* Takes back all but the first n tokens. `tokens` must still hold the tokens that are taken back. */
void lzs_stuck_rewind(lzs_stuck_detector *d, const int32_t *tokens, uint64_t n);

#endif
