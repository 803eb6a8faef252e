/* lzsampler_cuda.h - sampling of batches of rows on a CUDA device. Each row gets exactly the token that lzs_sample
 * picks, whatever the row's place in the batch.
 *
 * It is a separate library (liblzsampler_cuda.so, built by `make cuda`). No other library needs it. docs/cuda.md
 * says how it is tested and how fast it is.
 *
 *     lzs_batch_shape shape = {.size = sizeof shape, .n_vocab = 151936, .n_slots = 64, .max_rows = 64,
 *                              .max_edits = 4096, .max_listed = 64};
 *     lzs_batch *batch;
 *     char problem[LZS_PROBLEM_SIZE];
 *     if (lzs_batch_new(&shape, &batch, problem) != LZS_OK) return puts(problem);
 *     lzs_batch_set_params(batch, 0, &params, stream);          // a sequence begins: slot 0 is its
 *     lzs_batch_sample(batch, &step, n_rows, stream);           // a step of all, which may be captured in a CUDA graph
 *
 * A slot holds the settings and the seed of a sequence. So a sequence draws the same tokens when it moves to another
 * row. Pointers of a step are device memory, and `stream` is a cudaStream_t (NULL is the default stream).
 * lzs_batch_sample only launches two kernels. It allocates nothing, copies nothing and waits for nothing. The kernels
 * read histories, lengths and positions when they run. Use a batch from one thread at a time. Its steps share scratch
 * memory: run them in one stream, or one after another.
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

/* The sizes of a batch. All memory is allocated by lzs_batch_new: about max_rows * (12,400 + max_edits * 72 to
 * 128) + n_slots * (the larger of max_edits * 12 and max_listed * 8) bytes. */
typedef struct lzs_batch_shape {
    uint32_t size;      /* sizeof(lzs_batch_shape) */
    int32_t device;     /* the number of the CUDA device */
    int32_t n_vocab;    /* logits of a row, 1..LZS_MAX_VOCAB */
    int32_t n_slots;    /* sequences whose settings are held at a time, at least 1 */
    int32_t max_rows;   /* rows of a step, at least 1 */
    int32_t max_edits;  /* edits of a row, 0..n_vocab: lzs_edits_max always suffices. A row that needs more gets
                         * LZS_ESPACE */
    int32_t max_listed; /* items of all lists and sets of one slot, >= 0: the tokens of its lists (exempt, logit_bias,
                         * dry_breakers) plus the words of its sets (lz_separators, lz_commas: (n_vocab + 31) / 32
                         * each) */
} lzs_batch_shape;

/* One step of some sequences. Row i belongs to the sequence in slot slots[i]. All pointers are device memory. */
typedef struct lzs_batch_step {
    uint32_t size;             /* sizeof(lzs_batch_step) */
    int32_t dtype;             /* lzs_dtype of the logits */
    const void *logits;        /* (n_rows) rows of n_vocab logits; only read */
    int64_t row_stride;        /* logits from one row to the next, at least n_vocab */
    const int32_t *slots;      /* (n_rows) or NULL: row i has slot i */
    const int32_t *histories;  /* (n_rows) rows of tokens, oldest first; NULL if no slot has penalties that look at
                                * histories */
    int64_t history_stride;    /* tokens from one row to the next */
    const int32_t *starts;     /* (n_rows) offset of the first token that the penalties look at, such as the length of
                                * the prompt; NULL: 0 */
    const int32_t *lengths;    /* (n_rows) tokens of each history, the tokens before its start included; NULL without
                                * histories */
    const int64_t *positions;  /* (n_rows) number of accepted tokens, which with the seed fixes the noise of the draw;
                                * NULL if all slots have plans, which hold their positions */
    const uint32_t *masks;     /* (n_rows) masks as in lzs_plan; NULL: everything is allowed */
    int64_t mask_stride;       /* words from one row to the next, at least (n_vocab + 31) / 32 */
    int32_t *tokens;           /* (n_rows) the picked tokens; -1 if the row's status is not LZS_OK */
    int32_t *statuses;         /* (n_rows) lzs_status */
} lzs_batch_step;

/* Makes a batch. Fails with LZS_EINVAL, LZS_ENOMEM or LZS_EDEVICE. LZS_EDEVICE: there is no device, no driver or no
 * code for the device, the device has too little shared memory for a row, or the kernels round otherwise than the CPU.
 * After an error, `problem` (unless NULL) holds one line of at most LZS_PROBLEM_SIZE bytes. */
LZS_API lzs_status lzs_batch_new(const lzs_batch_shape *shape, lzs_batch **batch, char *problem);

/* Waits for the device, and frees the batch. */
LZS_API void lzs_batch_free(lzs_batch *batch);

/* Returns one line that says why the last call that failed did so. */
LZS_API const char *lzs_batch_problem(const lzs_batch *batch);

/* The bytes that a batch holds on the device. */
LZS_API size_t lzs_batch_memory(const lzs_batch *batch);

/* If lzs_batch_set_params or lzs_batch_set_plan fails, the slot stays as it was.
 *
 * Sets the settings of a slot. The device then computes the slot's penalties from the histories of its steps. Ignored
 * are `history`, the loop and stuck detectors, and `structure`, which needs a sampler with a grammar
 * (lzs_batch_set_plan). Everything is copied before this function returns. LZS_EINVAL for what lzs_params_invalid
 * names; LZS_ESPACE if the lists and sets have more than max_listed items. Do not call it for a stream that is being
 * captured. */
LZS_API lzs_status lzs_batch_set_params(lzs_batch *batch, int32_t slot, const lzs_params *params, void *stream);

/* Sets the plan of a slot's next step, which a sampler on the host has made: settings, edits, seed and position. The
 * plan's mask is ignored, since masks are part of lzs_batch_step. The plan stays in force until the slot gets another
 * plan or settings. Everything is copied before this function returns. LZS_ESPACE if the plan has more than max_edits
 * edits. Do not call it for a stream that is being captured. */
LZS_API lzs_status lzs_batch_set_plan(lzs_batch *batch, int32_t slot, const lzs_plan *plan, void *stream);

/* Picks a token for each of n_rows rows (1..max_rows). LZS_EINVAL for an invalid step: nothing is launched then.
 * LZS_EDEVICE if the device refuses the launch, such as for a stream that was destroyed. The batch stays as it was.
 * Nothing checks that the pointers are memory of this device. An error of one row is in the row's status: LZS_EINVAL if
 * the slot is out of range or has no settings, if a history or position is missing, or if a token or edit is outside
 * the vocabulary. */
LZS_API lzs_status lzs_batch_sample(lzs_batch *batch, const lzs_batch_step *step, int32_t n_rows, void *stream);

#ifdef __cplusplus
}
#endif
#endif
