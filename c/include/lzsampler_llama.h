/* lzsampler_llama.h - lzsampler inside llama.cpp: samplers for its chain, decode loops, and fast sampling under its
 * grammars.
 *
 * This library does not link to llama.cpp: the caller passes the addresses of the functions that are needed. These are
 * functions of the caller's libllama. Structs that may grow with llama.cpp begin with `size`, the size of the struct in
 * the caller's header. A size that this library does not know gives LZS_EINVAL.
 */
#ifndef LZSAMPLER_LLAMA_H
#define LZSAMPLER_LLAMA_H

#include "lzsampler_verify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* The task of our sampler in llama.cpp's chain. */
typedef enum lzs_chain_kind {
    LZS_CHAIN_PENALTIES = 0, /* changes logits as penalties, grammar and masks say, anywhere in a chain */
    LZS_CHAIN_SAMPLER = 1    /* runs the whole pipeline and selects a token, so it ends a chain */
} lzs_chain_kind;

/* Makes a `llama_sampler *` that holds a clone of `sampler`. `llama_sampler_init` is the address of llama_sampler_init
 * in the libllama that will own and free the result. */
LZS_API lzs_status lzs_chain_sampler_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init,
                                         void **chain_sampler);

/* Returns the lzs_sampler inside, borrowed: it is valid as long as the llama_sampler exists. llama_sampler_copy copies
 * the lzs_sampler as lzs_sampler_copy does. If the two samplers differ in a [fixed] parameter, the target stays as it
 * was, and the target's status becomes LZS_EINVAL. */
LZS_API lzs_sampler *lzs_chain_sampler_inner(void *chain_sampler);

/* Returns the first error since the last call of this function, and clears it: llama.cpp's interface cannot return
 * errors. */
LZS_API lzs_status lzs_chain_sampler_status(void *chain_sampler);

/* ---- the graph sampler: penalties and masks on the device where the logits are ----
 *
 * A chain that the caller sets with llama_set_sampler runs in the graph of the model (in llama.cpp of August 2026 and
 * later, which calls it experimental). The graph sampler adds a few operations to this graph. Before a decode, the CPU
 * makes the edits of the position and uploads them: up to max_history tokens with two numbers each. The graph applies
 * the edits. A mask is uploaded as a row of biases. The graph returns the edited rows, or only the best token. To
 * verify a draft, one sequence has several outputs. Each output gets the edits of its own position.
 *
 * If the device rounds each operation as IEEE 754 says, the results equal those of the CPU. llama.cpp's CPU backend
 * rounds like this. One difference remains: a logit that an edit takes out of the range of floats becomes infinite
 * here. */

/* Addresses of functions of one libllama and of the libggml that belongs to it. */
typedef struct lzs_graph_functions {
    uint32_t size; /* sizeof(lzs_graph_functions) */
    void *llama_sampler_init, *llama_get_sampled_token_ith, *llama_get_sampled_logits_ith, *llama_get_sampled_probs_ith;
    void *ggml_init, *ggml_free, *ggml_tensor_overhead, *ggml_nelements;
    void *ggml_new_tensor_1d, *ggml_reshape_1d, *ggml_reshape_2d, *ggml_get_rows, *ggml_set_rows;
    void *ggml_add, *ggml_sub, *ggml_mul, *ggml_div, *ggml_step, *ggml_argmax, *ggml_sum, *ggml_scale_bias;
    void *ggml_arange;
    void *ggml_set_input, *ggml_backend_tensor_set, *ggml_backend_buft_get_device, *ggml_backend_dev_supports_op;
} lzs_graph_functions;

/* The task of the graph besides the edits. */
typedef enum lzs_graph_kind {
    LZS_GRAPH_ROWS = 0, /* nothing: the edited rows come back, and lzs_graph_step picks from these rows */
    LZS_GRAPH_BEST = 1, /* the graph finds the best token, and only this token comes back; for temperature 0 */
    LZS_GRAPH_CHAIN = 2 /* the graph runs the samplers of llama.cpp that follow in the chain. If the chain runs on the
                         * CPU, the graph sampler acts as an LZS_CHAIN_PENALTIES sampler */
} lzs_graph_kind;

/* Makes a `llama_sampler *` that edits logits in the graph. The graph sampler must be the first sampler of a chain, and
 * the chain must be set once with llama_set_sampler. Kind LZS_GRAPH_CHAIN clones `sampler`. The other kinds borrow
 * `sampler`, and use its state at each decode. max_history: the greatest number of tokens that the history can have,
 * such as the size of the context. has_mask: whether masks are applied in the graph. If has_mask is 0, LZS_GRAPH_ROWS
 * applies masks on the CPU; for the other kinds, a mask makes lzs_graph_step or lzs_chain_sampler_status return
 * LZS_EINVAL. These functions also return LZS_EINVAL if `sign_aware` has changed and an edit divides logits. LZS_EINVAL
 * for LZS_GRAPH_BEST and a vocabulary of 2^24 tokens or more, because floats cannot count so many. */
LZS_API lzs_status lzs_graph_sampler_new(lzs_sampler *sampler, const lzs_graph_functions *functions, int32_t kind,
                                         int32_t max_history, int32_t has_mask, void **graph_sampler);

/* Returns 1 if the graph sampler is set in a context whose device has all its operations; else 0. */
LZS_API int32_t lzs_graph_supported(const void *graph_sampler);

/* Sets the block whose rows are decoded next. Each row gets the edits of its position in the block. If `speculation` is
 * NULL, one row is decoded, with the edits of the sampler. */
LZS_API void lzs_graph_set_block(void *graph_sampler, const lzs_speculation *speculation);

/* Runs lzs_step with output `index` of the context's last decode, counted as in llama_get_logits_ith. LZS_EINVAL if
 * llama.cpp has no such output, or if the kind is LZS_GRAPH_BEST and the temperature is not 0. If making the edits
 * failed before the decode, this function returns that error. */
LZS_API lzs_status lzs_graph_step(void *graph_sampler, void *context, int32_t index, int32_t *token, int32_t *looping);

/* Runs lzs_verify with the outputs 0 to n_rows - 1 of the context's last decode. */
LZS_API lzs_status lzs_graph_verify(void *graph_sampler, lzs_speculation *speculation, void *context, size_t n_rows,
                                    lzs_verified *verified);

/* ---- decoding ---- */

/* A decode loop with one call for each token, for languages in which a call takes longer than picking a token. `decode`
 * and `get_logits_ith` are the addresses of llama_decode and llama_get_logits_ith of one libllama. Context and sampler
 * are borrowed. */
typedef struct lzs_llama_loop {
    uint32_t size; /* sizeof(lzs_llama_loop) */
    void *context; /* llama_context */
    void *decode;
    void *get_logits_ith;
    lzs_sampler *sampler;
    void *graph_sampler; /* NULL, or the graph sampler that is set in the context and borrows `sampler` */
    int32_t token;   /* in: the token to decode; out: the token picked after it, or -1 */
    int32_t looping; /* as in lzs_step */
    int32_t decoded; /* what llama_decode returned; 0 is success */
    double decode_seconds, logits_seconds, sampling_seconds; /* time in llama_decode, in llama_get_logits_ith and in
                                                              * lzs_step, summed over all calls */
} lzs_llama_loop;

/* Decodes `token` after the context's tokens, and runs lzs_step or lzs_graph_step on the logits of `token`. LZS_EINVAL
 * if llama_decode fails or there are no logits; else fails as lzs_step does. After an error the sampler is as it
 * was. */
LZS_API lzs_status lzs_llama_step(lzs_llama_loop *loop);

/* A context, and the addresses of two functions of its libllama. Do not move the struct until the context is freed:
 * llama.cpp reads `stopped` at its address. */
typedef struct lzs_llama_decoder {
    void *context;            /* llama_context */
    void *decode;             /* llama_decode */
    void *set_abort_callback; /* llama_set_abort_callback */
    int32_t is_asked;         /* set this to 0 before the first decode, which then sets the abort callback. Later
                               * decodes do not set the callback again, because llama.cpp logs each setting */
    int32_t stopped;          /* a flag that any thread may set to end a decode; it stays set until the caller sets it
                               * to 0 */
} lzs_llama_decoder;

/* Runs llama_decode with a `llama_batch`. Once `stopped` is not 0, the decode ends within the batch, with status 2, if
 * the device calls the abort callback. The part that the decode had finished stays in the context. catches: a bit set
 * of signals (1 SIGINT, 2 SIGTERM, 4 SIGHUP). Until the decode ends, each of these signals sets `stopped` to the number
 * of the signal and does nothing else. `catches` must be 0 except in the main thread, and has no effect on Windows. */
LZS_API int32_t lzs_llama_decode(lzs_llama_decoder *decoder, const void *batch, int32_t catches);

/* ---- a chain under a grammar ----
 *
 * These functions sample in the order of llama.cpp's common_sampler. The chain picks a token, and the grammar judges
 * only this token. If the grammar refuses this token, it masks the candidates, and the chain picks again. Then chain
 * and grammar accept the token. */

typedef struct lzs_llama_grammar lzs_llama_grammar;

/* Addresses of functions of one libllama. */
typedef struct lzs_llama_functions {
    uint32_t size;        /* sizeof(lzs_llama_functions) */
    void *get_logits_ith; /* llama_get_logits_ith */
    void *sampler_apply;  /* llama_sampler_apply */
    void *sampler_accept; /* llama_sampler_accept */
    void *chain_get;      /* llama_sampler_chain_get */
    void *chain_n;        /* llama_sampler_chain_n */
} lzs_llama_functions;

/* Chain and grammar are borrowed; the grammar is not part of the chain. `penalties`, `n_head` and `n_best` describe how
 * the chain begins, so that sampling is faster. NULL, 0 and 0 are always correct.
 *
 *   n_head: how many samplers at the beginning of the chain only change logits (penalties, logit bias, ours).
 *   penalties: the LZS_CHAIN_PENALTIES sampler, if the other of these n_head samplers change nothing;
 *       else NULL.
 *   n_best: how many candidates the sampler after these n_head keeps: k for a top-k sampler, 1 for a greedy
 *       sampler; else 0.
 *
 * For the chain [ours, top-k 40, temperature, dist], n_head is 1, `penalties` is ours and n_best is 40. LZS_EINVAL if
 * the chain has fewer than n_head samplers. */
LZS_API lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain,
                                         void *grammar, void *penalties, int32_t n_head, int32_t n_best,
                                         lzs_llama_grammar **out);
LZS_API void lzs_llama_grammar_free(lzs_llama_grammar *grammar);

/* Picks a token, and lets chain and grammar accept it. LZS_EINVAL if llama.cpp has no logits at this index; LZS_EMASKED
 * if the grammar allows no token. */
LZS_API lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *grammar, void *context, int32_t index, int32_t *token);

/* Returns how many picks the grammar has refused. */
LZS_API uint64_t lzs_llama_grammar_refused(const lzs_llama_grammar *grammar);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
