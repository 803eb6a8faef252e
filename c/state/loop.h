/* loop.h - the detector of loops at the end of the accepted tokens. */
#ifndef LZS_LOOP_H
#define LZS_LOOP_H

#include "../include/lzsampler.h"

typedef struct lzs_loop_period {
    uint32_t due; /* number of accepted tokens at which a loop of this period can first be complete */
    int32_t next; /* index of the next period in the same bucket; -1: none */
    int32_t head; /* the entry is also a bucket, and this is the index of the bucket's first period; -1: none */
} lzs_loop_period;

typedef struct lzs_detector {
    lzs_loop found; /* found.count is 0 while no loop is found */
    int32_t min_pattern, min_count, n_periods;
    lzs_loop_period periods[]; /* (n_periods) periods[i] is for the period min_pattern + i */
} lzs_detector;

lzs_detector *lzs_detector_new(const lzs_params *params); /* free the detector with free() */
void lzs_detector_copy(lzs_detector *to, const lzs_detector *from); /* both must have the same parameters */
void lzs_detector_clear(lzs_detector *d);
size_t lzs_detector_memory(const lzs_detector *d);
/* Update the detector after a token was accepted, or after tokens were taken back. `tokens` holds the n accepted
 * tokens. */
void lzs_detector_accept(lzs_detector *d, const int32_t *tokens, uint64_t n);
void lzs_detector_rewind(lzs_detector *d, const int32_t *tokens, uint64_t n);

#endif
