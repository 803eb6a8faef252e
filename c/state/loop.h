/* loop.h - the detector of loops at the end of the accepted tokens. */
#ifndef LZS_LOOP_H
#define LZS_LOOP_H

#include "../include/lzsampler.h"

#define LZS_LOOP_CLASSES 17 /* of periods, each up to twice the last one's: LZS_MAX_WINDOW / 2 is the longest */

typedef struct lzs_loop_class {
    int32_t first, last; /* periods */
    int32_t step;        /* tokens between two checkpoints, which lie at multiples of it */
    int32_t n, left;     /* length of the list of what is due, and how much of it is still to come */
    uint64_t checkpoint; /* accepted tokens at the last one */
} lzs_loop_class;

typedef struct lzs_detector {
    uint64_t next;  /* accepted tokens at which there is something to do; UINT64_MAX once a loop was found */
    lzs_loop found; /* its count is 0 while there is none */
    int32_t min_count, n_periods, n_classes;
    lzs_loop_class classes[LZS_LOOP_CLASSES];
    uint64_t due[]; /* (n_periods) the lists of the classes, one after the other */
} lzs_detector;

lzs_detector *lzs_detector_new(const lzs_params *params); /* one block, which free() frees */
void lzs_detector_copy(lzs_detector *to, const lzs_detector *from); /* both of the same parameters */
void lzs_detector_clear(lzs_detector *d);
size_t lzs_detector_memory(const lzs_detector *d);
/* After a token was accepted, or some were taken back: `tokens` are the n accepted ones. */
void lzs_detector_accept(lzs_detector *d, const int32_t *tokens, uint64_t n);
void lzs_detector_rewind(lzs_detector *d, const int32_t *tokens, uint64_t n);

#endif
