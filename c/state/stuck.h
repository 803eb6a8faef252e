/* stuck.h - the detector of texts that say nothing new any more, though they do not repeat with a period. */
#ifndef LZS_STUCK_H
#define LZS_STUCK_H

#include "../include/lzsampler.h"

#define LZS_STUCK_UNDO 512 /* tokens that a rewind takes back one by one; for more the text is read anew */

/* What the tokens so far come to. */
typedef struct lzs_stuck_score {
    uint32_t decided; /* tokens that are known to be new or old; fewer than an n-gram come after them */
    uint32_t start;   /* the first token of the stretch that the score counts; meaningless while it is 0 */
    int32_t score;
} lzs_stuck_score;

typedef struct lzs_stuck_detector {
    int32_t ngram, min_count, threshold, weight, window;
    uint32_t n;      /* tokens that the index and the score know: all, or those up to the one that completed `found` */
    uint32_t n_undo; /* tokens that can be taken back one by one */
    int shift;       /* 64 less the bits of a bucket's number */
    lzs_stuck found; /* its end is 0 while there is none */
    lzs_stuck_score now;
    lzs_stuck_score *before; /* (LZS_STUCK_UNDO) token i: what there was before it, at i % LZS_STUCK_UNDO */
    uint32_t *heads;         /* (n_buckets) where the last n-gram of each bucket ends, as a number of tokens; 0: none */
    uint32_t *links;         /* (n_links) the n-gram that ends with token i: the end of the one before it in its
                              * bucket */
    uint32_t n_buckets, n_links;
} lzs_stuck_detector;

lzs_stuck_detector *lzs_stuck_new(const lzs_params *params); /* one block, which free() frees */
void lzs_stuck_copy(lzs_stuck_detector *to, const lzs_stuck_detector *from); /* both of the same parameters */
void lzs_stuck_clear(lzs_stuck_detector *d);
size_t lzs_stuck_memory(const lzs_stuck_detector *d);
/* After a token was accepted: `tokens` are the n accepted ones. */
void lzs_stuck_accept(lzs_stuck_detector *d, const int32_t *tokens, uint64_t n);
/* When all but n of the `tokens` are taken back: those that are taken back must be there still. */
void lzs_stuck_rewind(lzs_stuck_detector *d, const int32_t *tokens, uint64_t n);

#endif
