/* lzsampler_plan.h - one sampling step as plain data, for engines with many sequences: edits of logits, plans and
 * backends.
 *
 * Three layers share the work. The state of a sequence holds its tokens and no logits. A plan holds what one step
 * needs: which logits change and how, which tokens are allowed, the truncation, the seed and the position. A backend
 * turns rows of logits and plans into tokens. An engine makes a plan for each sequence and gives all plans to one
 * backend.
 */
#ifndef LZSAMPLER_PLAN_H
#define LZSAMPLER_PLAN_H

#include "lzsampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* The change that all penalties together make to the logit x of one token: x becomes (x > 0 ? x / repeat : x * repeat)
 * + bias. (If sign_aware is 0, x becomes x / repeat + bias.) A finite logit stays finite, except that a bias of -inf
 * makes the logit -inf. */
typedef struct lzs_edit {
    int32_t token;
    float repeat;
    float bias;
} lzs_edit;

/* All that a backend needs to know of one step besides the logits. A plan can be stored, sent, replayed or put into a
 * batch. The arrays `edits` and `mask` belong to whoever made the plan. A backend returns LZS_EINVAL if a number is out
 * of range, an edited token is not in the vocabulary, or two edits have the same token. A backend does not check that
 * each `repeat` is positive and normal and each `bias` finite or -inf; lzs_plan_read does. */
typedef struct lzs_plan {
    int32_t n_vocab;
    int32_t sign_aware;
    const lzs_edit *edits; /* (n_edits) in any order, at most one for each token; some may change nothing */
    size_t n_edits;
    const uint32_t *mask; /* ((n_vocab + 31) / 32) words, least significant bit first, 1 = allowed; NULL allows all */
    float temperature;
    int32_t temperature_last;
    int32_t top_k;
    float top_p;
    float min_p;
    int32_t ties;
    uint64_t seed;
    uint64_t position; /* number of accepted tokens; position and seed fix the noise of the draw */
} lzs_plan;

typedef struct lzs_backend lzs_backend;

/* ---- the next step of a sampler ---- */

/* Returns the *n edits of the next step in any order, at most one for each token. Some edits may change nothing (repeat
 * 1, bias 0). The array is valid until the sampler changes, and may be NULL when *n is 0. If a grammar fails there are
 * no edits: lzs_sampler_plan gives the status. */
LZS_API const lzs_edit *lzs_edits(lzs_sampler *sampler, size_t *n);

/* Returns the greatest number of edits that a step with these parameters can have. */
LZS_API size_t lzs_edits_max(const lzs_params *params, int32_t n_vocab);

/* Gives the plan of the next step. The plan's arrays are valid until the sampler changes. LZS_EMASKED if a rewind went
 * back to a mask that is no longer known (see lzs_set_mask). */
LZS_API lzs_status lzs_sampler_plan(lzs_sampler *sampler, lzs_plan *plan);

/* ---- a backend: it turns rows of logits and plans into tokens ---- */

/* Makes a backend: scratch memory for rows of up to n_vocab logits and plans of up to max_edits edits. A backend keeps
 * nothing between calls, so all samplers of a thread can share one backend. */
LZS_API lzs_status lzs_backend_new(int32_t n_vocab, size_t max_edits, lzs_backend **backend);
LZS_API void lzs_backend_free(lzs_backend *backend);

/* Returns the number of bytes that a backend holds. */
LZS_API size_t lzs_backend_memory(const lzs_backend *backend);

/* Makes a sampler that uses the caller's backend. The backend must outlive the sampler. LZS_ESPACE if the backend has
 * no room for n_vocab logits and lzs_edits_max edits. */
LZS_API lzs_status lzs_sampler_new_shared(int32_t n_vocab, const lzs_params *params, lzs_backend *backend,
                                          lzs_sampler **sampler);

/* Picks a token for each of n rows: tokens[i] is picked from rows[i] by plans[i]. statuses[i] becomes the row's status
 * (`statuses` may be NULL). A row that fails gets token -1, and does not affect other rows. Returns the first status
 * that is not LZS_OK. */
LZS_API lzs_status lzs_backend_sample(lzs_backend *backend, const float *const *rows, const lzs_plan *plans, size_t n,
                                      int32_t *tokens, lzs_status *statuses);

/* These functions do what lzs_distribution and lzs_process do, for a plan instead of a sampler. LZS_ESPACE with *n = 0
 * means that the backend is too small. */
LZS_API lzs_status lzs_backend_distribution(lzs_backend *backend, const float *row, const lzs_plan *plan, int32_t *ids,
                                            float *probabilities, size_t capacity, size_t *n);
LZS_API lzs_status lzs_backend_process(lzs_backend *backend, const float *row, const lzs_plan *plan, float *out);

/* ---- plans as bytes, for another process with the same byte order and library version ---- */

/* lzs_plan_write writes lzs_plan_size bytes (LZS_ESPACE if `capacity` is less). The arrays of the plan that
 * lzs_plan_read makes point into `bytes`, whose address must be a multiple of 8. lzs_plan_read checks everything:
 * LZS_EINVAL means that the bytes are not a plan. */
LZS_API size_t lzs_plan_size(const lzs_plan *plan);
LZS_API lzs_status lzs_plan_write(const lzs_plan *plan, void *bytes, size_t capacity);
LZS_API lzs_status lzs_plan_read(const void *bytes, size_t n, lzs_plan *plan);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
