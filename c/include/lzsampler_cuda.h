/* lzsampler_cuda.h - the tokens of batches of rows on a CUDA device: bit for bit those of lzs_sample, whatever a row's
 * place in the batch is.
 *
 * This is a library of its own (liblzsampler_cuda.so, by `make cuda`), which nothing else needs. NOT YET RUN OR
 * MEASURED ON A GPU: its kernels are tested on the CPU, thread by thread (docs/cuda.md).
 *
 *     lzs_batch_shape shape = {.size = sizeof shape, .n_vocab = 151936, .n_slots = 64, .max_rows = 64,
 *                              .max_edits = 4096, .max_listed = 64};
 *     lzs_batch *batch;
 *     char problem[LZS_PROBLEM_SIZE];
 *     if (lzs_batch_new(&shape, &batch, problem) != LZS_OK) return puts(problem);
 *     lzs_batch_set_params(batch, 0, &params, stream);          // a sequence begins: slot 0 is its
 *     lzs_batch_sample(batch, &step, n_rows, stream);           // a step of all, which may be captured in a CUDA graph
 *
 * A slot holds the settings of a sequence, and a seed, so that a sequence keeps its draws when it changes its row.
 * Pointers of a step are device memory, and `stream` is a cudaStream_t (NULL is the default stream). lzs_batch_sample
 * only launches two kernels, or four where several blocks of threads have one row: it allocates nothing, copies nothing
 * and waits for nothing, and reads histories, lengths and positions when the kernels run. Use a batch from one thread
 * at a time, and its steps in one stream, or after each other: they share scratch memory.
 */
#ifndef LZSAMPLER_CUDA_H
#define LZSAMPLER_CUDA_H

#include "lzsampler_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LZS_PROBLEM_SIZE 256 /* bytes of the line that says what is wrong */

typedef enum lzs_dtype { LZS_F32 = 0, LZS_BF16 = 1, LZS_F16 = 2 } lzs_dtype;

typedef struct lzs_batch lzs_batch;

/* What a batch has room for. All memory is allocated by lzs_batch_new: about max_rows * (n_vocab / 4 + max_edits * 84
 * to 148) + n_slots * (the larger of max_edits * 12 and max_listed * 8) bytes. */
typedef struct lzs_batch_shape {
    uint32_t size;      /* sizeof(lzs_batch_shape) */
    int32_t device;     /* the number of the CUDA device */
    int32_t n_vocab;    /* logits of a row, 1..LZS_MAX_VOCAB */
    int32_t n_slots;    /* sequences that have settings at a time, at least 1 */
    int32_t max_rows;   /* of a step, at least 1 */
    int32_t max_edits;  /* of a row, 0..n_vocab: lzs_edits_max always suffices, and a row that needs more answers
                         * LZS_ESPACE */
    int32_t max_listed; /* tokens of all lists of one slot (exempt, logit_bias, dry_breakers) and words of its sets
                         * (lz_separators, lz_commas: (n_vocab + 31) / 32 each) together, >= 0 */
    int32_t blocks;     /* of threads that read one row, 1 to 64; 0: as many as the device can run at a time, if the
                         * rows are few and long. The token does not depend on it. */
} lzs_batch_shape;

/* One step of some sequences. Row i is that of sequence slots[i]. All pointers are device memory. */
typedef struct lzs_batch_step {
    uint32_t size;             /* sizeof(lzs_batch_step) */
    int32_t dtype;             /* lzs_dtype of the logits */
    const void *logits;        /* (n_rows) rows of n_vocab; only read */
    int64_t row_stride;        /* logits from one row to the next, at least n_vocab */
    const int32_t *slots;      /* (n_rows) or NULL: row i has slot i */
    const int32_t *histories;  /* (n_rows) rows of tokens, oldest first; NULL if no slot has penalties that look at
                                * them */
    int64_t history_stride;    /* tokens from one row to the next */
    const int32_t *starts;     /* (n_rows) or NULL for 0: the first token of the row that the penalties look at, such as
                                * the length of the prompt */
    const int32_t *lengths;    /* (n_rows) tokens of each row, those before the start included; NULL without
                                * histories */
    const int64_t *positions;  /* (n_rows) accepted tokens, which key the draw; NULL if all slots have plans, whose own
                                * it is */
    const uint32_t *masks;     /* (n_rows) rows as in lzs_plan, or NULL: everything is allowed */
    int64_t mask_stride;       /* words from one row to the next, at least (n_vocab + 31) / 32 */
    int32_t *tokens;           /* (n_rows) the picked ones; -1 if the status is not LZS_OK */
    int32_t *statuses;         /* (n_rows) lzs_status */
} lzs_batch_step;

/* Makes a batch. LZS_EINVAL, LZS_ENOMEM, or LZS_EDEVICE if there is no device, driver or code for it, or if the kernels
 * were built so that they round otherwise than the CPU; `problem`, which may be NULL, then has one line of
 * LZS_PROBLEM_SIZE bytes at most. */
LZS_API lzs_status lzs_batch_new(const lzs_batch_shape *shape, lzs_batch **batch, char *problem);

/* Waits for the device first. */
LZS_API void lzs_batch_free(lzs_batch *batch);

/* What was wrong with the last call that failed: one line. */
LZS_API const char *lzs_batch_problem(const lzs_batch *batch);

/* The bytes that a batch holds on the device. */
LZS_API size_t lzs_batch_memory(const lzs_batch *batch);

/* Both of the next two leave a slot as it was when they fail.
 *
 * Settings of a slot, whose penalties the device finds in the histories of its steps; `history`, `structure` (which
 * needs the grammar that a sampler has: lzs_batch_set_plan), the loop and stuck detectors are not looked at. Everything
 * is copied before this returns. LZS_EINVAL for what lzs_params_invalid names; LZS_ESPACE if its lists and sets have
 * more than max_listed items. Not for a stream that is being captured. */
LZS_API lzs_status lzs_batch_set_params(lzs_batch *batch, int32_t slot, const lzs_params *params, void *stream);

/* A step of a slot as a plan, made by a sampler on the host: settings, edits, seed and position, but not the mask,
 * which is part of the step. It stays in force until the next one. Everything is copied before this returns. LZS_ESPACE
 * where it has more than max_edits edits. Not for a stream that is being captured. */
LZS_API lzs_status lzs_batch_set_plan(lzs_batch *batch, int32_t slot, const lzs_plan *plan, void *stream);

/* Picks a token for each of n_rows rows (1..max_rows). LZS_EINVAL for a step that cannot be right, before anything is
 * launched, and LZS_EDEVICE if the device refuses the launch, such as for a stream that was destroyed; the batch
 * stays as it was. That pointers are memory of this device is not checked. What is wrong with one row is in its status:
 * LZS_EINVAL for a slot that is out of range or has no settings, a history or position that is missing, and a token or
 * edit outside the vocabulary. */
LZS_API lzs_status lzs_batch_sample(lzs_batch *batch, const lzs_batch_step *step, int32_t n_rows, void *stream);

#ifdef __cplusplus
}
#endif
#endif
