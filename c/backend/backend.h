/* backend.h - the CPU backend: what may be picked from a row, and the draw.
 *
 * A row is only read. A mask excludes the edited tokens from the row, and an array beside the row holds their edited
 * logits. Every pass runs over the row and then over this array.
 */
#ifndef LZS_BACKEND_H
#define LZS_BACKEND_H

#include "../plan/plan.h"
#include "kernels.h"

/* The capacity of the list, in tokens. A top-k of up to LZS_LIST / 2 is taken out of the row in one pass. */
#define LZS_LIST 2048

struct lzs_backend {
    int32_t n_vocab; /* greatest size of a row */
    size_t max_edits;
    const lzs_kernels *kernels;
    uint32_t *allowed; /* (lzs_mask_words) mask of the allowed tokens that the plan does not edit */
    bool all_allowed;  /* whether all bits of `allowed` are set; a step without a mask begins with all bits set */
    float *values;     /* (max_edits) edited logits, -inf if the mask forbids the token */
    float *maxima;     /* (16 for each stretch) largest logit of each group, which the race replaces by a bound */
    float *best;       /* (number of stretches, rounded up to a multiple of 16) largest logit of each stretch */
    lzs_list list;
    union { /* scratch memory: each stage uses one member at a time */
        lzs_histogram *histogram;
        uint32_t *words; /* (16 for each stretch) random word of each group */
        uint64_t *room;  /* (LZS_LIST) memory for sorting */
    } scratch;
};

/* The tokens that may be picked. */
typedef struct lzs_candidates {
    lzs_row row; /* the unedited logits; the row's mask excludes the edited tokens */
    const lzs_edit *edits;
    const float *values; /* (n_edits) edited logits */
    int32_t n_edits;
    lzs_top top;
    lzs_softmax_scale scale; /* scale of the draw */
    lzs_cut cut;
    bool masked; /* whether the plan has a mask */
    bool listed; /* whether the backend's list holds all tokens that stay, in any order */
} lzs_candidates;

static inline float lzs_temperature_scale(float temperature) {
    return 0x1.715476p+0f / temperature; /* log2(e) / T */
}

/* Reads the row: computes the edited logits, the maxima and the truncation. Returns LZS_OK, LZS_EINVAL, LZS_ESPACE,
 * LZS_EMASKED or LZS_ENAN. After every call, also a failed one, the caller must call lzs_backend_end. */
lzs_status lzs_backend_begin(lzs_backend *b, const float *row, const lzs_plan *plan, lzs_candidates *c);
void lzs_backend_end(lzs_backend *b, const lzs_candidates *c);

/* Sets c->cut. If the list has room for all tokens that stay, fills the list (truncate.c). The plan's temperature must
 * not be 0. */
void lzs_truncate(lzs_backend *b, const lzs_plan *plan, lzs_candidates *c);

/* Writes the ids and logits of the first `capacity` tokens that stay, by ascending id. Returns the number of all tokens
 * that stay (collect.c). */
size_t lzs_collect(lzs_backend *b, const lzs_candidates *c, int32_t *ids, float *logits, size_t capacity);

/* Draws a token (race.c). */
int32_t lzs_race_pick(lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan);

/* Picks a token, and processes the row in place as lzs_backend_process does. */
lzs_status lzs_backend_sample_and_process(lzs_backend *b, float *row, const lzs_plan *plan, int32_t *token);

/* Applies the plan's edits and mask to a row, and fills the backend's list with the k best tokens, best first. k is at
 * most LZS_LIST / 2. Returns the number of tokens in the list, which is below k if fewer than k tokens are allowed.
 * Returns 0 after an error, or if thousands of logits are equal. */
int32_t lzs_backend_best(lzs_backend *b, const float *row, const lzs_plan *plan, int32_t k);

#endif
