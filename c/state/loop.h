/* loop.h - the detector of loops at the end of the accepted tokens. */
#ifndef LZS_LOOP_H
#define LZS_LOOP_H

#include "../include/lzsampler.h"

typedef struct lzs_loop_period {
    uint32_t due; /* accepted tokens at which a loop of this period can be complete; not before */
    int32_t next; /* the next period of the same bucket; -1: none */
    int32_t head; /* of the bucket with this number: its first period; -1: none */
} lzs_loop_period;

typedef struct lzs_detector {
    lzs_loop found; /* its count is 0 while there is none */
    int32_t min_pattern, min_count, n_periods;
    lzs_loop_period periods[]; /* (n_periods) periods[i] is min_pattern + i */
} lzs_detector;

lzs_detector *lzs_detector_new(const lzs_params *params); /* one block, which free() frees */
void lzs_detector_copy(lzs_detector *to, const lzs_detector *from); /* both of the same parameters */
void lzs_detector_clear(lzs_detector *d);
size_t lzs_detector_memory(const lzs_detector *d);
/* After a token was accepted, or some were taken back: `tokens` are the n accepted ones. */
void lzs_detector_accept(lzs_detector *d, const int32_t *tokens, uint64_t n);
void lzs_detector_rewind(lzs_detector *d, const int32_t *tokens, uint64_t n);

#endif
