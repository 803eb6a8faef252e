/* lzsampler_plan.h - a step as plain data, for engines with many sequences: the edits of logits, plans, and backends.
 *
 * Three layers share the work. The state of a sequence knows its tokens and no logits. A plan holds what one step
 * needs: which logits change and how, which tokens are allowed, the truncation, the seed and the position. A backend
 * turns rows of logits and plans into tokens. An engine makes a plan for each sequence and gives all of them to one
 * backend.
 */
#ifndef LZSAMPLER_PLAN_H
#define LZSAMPLER_PLAN_H

#include "lzsampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* What all penalties together do to one token's logit: x -> (x > 0 ? x / repeat : x * repeat) + bias. A finite logit
 * stays finite, but a bias of -inf makes it -inf. */
typedef struct lzs_edit {
    int32_t token;
    float repeat;
    float bias;
} lzs_edit;

/* All that a backend needs to know of one step besides the logits. It can be stored, sent, replayed or put into a
 * batch. The two arrays belong to whoever made the plan. A backend answers LZS_EINVAL if a number is out of range, or
 * if an edited token is not in the vocabulary or is edited twice. It trusts that `repeat` is positive and normal, and
 * that `bias` is finite or -inf; lzs_plan_read checks these too. */
typedef struct lzs_plan {
    int32_t n_vocab;
    int32_t sign_aware;
    const lzs_edit *edits; /* (n_edits) each token at most once, in any order; some may change nothing */
    size_t n_edits;
    const uint32_t *mask; /* ((n_vocab + 31) / 32) words, least significant bit first, 1 = allowed; NULL allows all */
    float temperature;
    int32_t temperature_last;
    int32_t top_k;
    float top_p;
    float min_p;
    int32_t ties;
    uint64_t seed;
    uint64_t position; /* accepted tokens: together with the seed it keys the draw */
} lzs_plan;

typedef struct lzs_backend lzs_backend;

/* ---- what a sampler says of the next step ---- */

/* The edits of the current history, each token at most once, in any order; some may change nothing (repeat 1, bias 0).
 * Valid until the sampler changes; may be NULL when *n is 0. There are none if a grammar fails: lzs_sampler_plan gives
 * the status. */
LZS_API const lzs_edit *lzs_edits(lzs_sampler *sampler, size_t *n);

/* The most edits that a step with these parameters can have. */
LZS_API size_t lzs_edits_max(const lzs_params *params, int32_t n_vocab);

/* The plan of the next step. Its arrays are valid until the sampler changes. LZS_EMASKED if a mask is in force that is
 * no longer known (see lzs_set_mask). */
LZS_API lzs_status lzs_sampler_plan(lzs_sampler *sampler, lzs_plan *plan);

/* ---- a backend: rows of logits and plans -> tokens ---- */

/* Scratch memory for rows of up to n_vocab logits and plans of up to max_edits edits. It keeps nothing between calls,
 * so all samplers of a thread can share one. */
LZS_API lzs_status lzs_backend_new(int32_t n_vocab, size_t max_edits, lzs_backend **backend);
LZS_API void lzs_backend_free(lzs_backend *backend);

/* The bytes that a backend holds. */
LZS_API size_t lzs_backend_memory(const lzs_backend *backend);

/* A sampler that uses a backend of yours, which must outlive it. LZS_ESPACE if the backend has less room than n_vocab
 * logits and lzs_edits_max edits. */
LZS_API lzs_status lzs_sampler_new_shared(int32_t n_vocab, const lzs_params *params, lzs_backend *backend,
                                          lzs_sampler **sampler);

/* Picks a token for each of n rows: tokens[i] from rows[i] by plans[i], with statuses[i] (`statuses` may be NULL). A
 * row that fails has token -1 and does not disturb the others. Returns the first status that is not LZS_OK. */
LZS_API lzs_status lzs_backend_sample(lzs_backend *backend, const float *const *rows, const lzs_plan *plans, size_t n,
                                      int32_t *tokens, lzs_status *statuses);

/* lzs_distribution and lzs_process by a plan. LZS_ESPACE with *n = 0 means that the backend is too small. */
LZS_API lzs_status lzs_backend_distribution(lzs_backend *backend, const float *row, const lzs_plan *plan, int32_t *ids,
                                            float *probabilities, size_t capacity, size_t *n);
LZS_API lzs_status lzs_backend_process(lzs_backend *backend, const float *row, const lzs_plan *plan, float *out);

/* ---- plans as bytes, for another process of the same byte order and the same version of the library ---- */

/* lzs_plan_write needs lzs_plan_size bytes (LZS_ESPACE). The plan that lzs_plan_read makes points into the bytes, which
 * must begin at a multiple of 8. It is checked whole: LZS_EINVAL means that the bytes are no plan. */
LZS_API size_t lzs_plan_size(const lzs_plan *plan);
LZS_API lzs_status lzs_plan_write(const lzs_plan *plan, void *bytes, size_t capacity);
LZS_API lzs_status lzs_plan_read(const void *bytes, size_t n, lzs_plan *plan);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
