/* backend.h - the CPU backend: what may be picked from a row, and the draw.
 *
 * A row is only read. The tokens that a plan edits are taken out of it by a mask, and their edited logits are kept in
 * an array beside it; every pass runs over the row and then over the edited logits.
 */
#ifndef LZS_BACKEND_H
#define LZS_BACKEND_H

#include "../plan/plan.h"
#include "kernels.h"

/* A top-k of up to half of this is taken out of the row at once. */
#define LZS_LIST 2048

struct lzs_backend {
    int32_t n_vocab; /* of the largest rows */
    size_t max_edits;
    const lzs_kernels *kernels;
    uint32_t *allowed; /* (words of the vocabulary) the tokens of a step that no edit names */
    bool all_allowed;  /* whether all its bits are set, which a step without a mask begins with */
    float *values;     /* (max_edits) edited logits, -inf if the mask forbids the token */
    float *maxima;     /* (16 a stretch) of the groups; the race puts bounds in their place */
    float *best;       /* (stretches, rounded up to a multiple of 16) */
    lzs_list list;
    union { /* scratch memory, of which each stage uses one member at a time */
        lzs_histogram *histogram;
        uint32_t *words; /* (16 a stretch) words of the groups */
        uint64_t *room;  /* (LZS_LIST) for sorting */
    } scratch;
};

/* What may be picked. */
typedef struct lzs_candidates {
    lzs_row row; /* the logits that no edit touches; the mask leaves the others out */
    const lzs_edit *edits;
    const float *values; /* (n_edits) */
    int32_t n_edits;
    lzs_top top;
    lzs_softmax_scale scale; /* of the pick */
    lzs_cut cut;
    bool masked; /* the plan has a mask */
    bool listed; /* the backend's list has all tokens that stay, in any order */
} lzs_candidates;

static inline float lzs_temperature_scale(float temperature) {
    return 0x1.715476p+0f / temperature; /* log2(e) / T */
}

/* Reads the row: edited logits, maxima, truncation. LZS_EINVAL, LZS_ESPACE, LZS_EMASKED, LZS_ENAN. Every call
 * is followed by lzs_backend_end, also after an error. */
lzs_status lzs_backend_begin(lzs_backend *b, const float *row, const lzs_plan *plan, lzs_candidates *c);
void lzs_backend_end(lzs_backend *b, const lzs_candidates *c);

/* Sets c->cut, and fills the list if it can (truncate.c). The plan's temperature is not 0. */
void lzs_truncate(lzs_backend *b, const lzs_plan *plan, lzs_candidates *c);

/* All that stays, by token id: the first `capacity` ids and logits. Returns their number (collect.c). */
size_t lzs_collect(lzs_backend *b, const lzs_candidates *c, int32_t *ids, float *logits, size_t capacity);

/* The draw (race.c). */
int32_t lzs_race_pick(lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan);

/* Picks a token and turns the row into what lzs_backend_process makes of it, in one go. */
lzs_status lzs_backend_sample_and_process(lzs_backend *b, float *row, const lzs_plan *plan, int32_t *token);

/* The k best tokens of a row after the plan's edits and mask, best first, in the backend's list; at most LZS_LIST / 2.
 * Fewer if fewer are allowed; 0 if they cannot be found directly (NaN, thousands of equal logits). */
int32_t lzs_backend_best(lzs_backend *b, const float *row, const lzs_plan *plan, int32_t k);

#endif
