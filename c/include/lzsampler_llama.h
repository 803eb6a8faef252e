/* lzsampler_llama.h - lzsampler inside llama.cpp: samplers for its chain, decode loops, and fast sampling under its
 * grammars.
 *
 * Nothing here links to llama.cpp: you pass the addresses of the functions that are needed from your libllama. Structs
 * that may grow with llama.cpp begin with `size`, their size in your header. A size that this library does not know
 * gives LZS_EINVAL.
 */
#ifndef LZSAMPLER_LLAMA_H
#define LZSAMPLER_LLAMA_H

#include "lzsampler_verify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* What a sampler of llama.cpp's chain does. */
typedef enum lzs_chain_kind {
    LZS_CHAIN_PENALTIES = 0, /* changes logits as penalties, grammar and masks say, anywhere in a chain */
    LZS_CHAIN_SAMPLER = 1    /* runs the whole pipeline and selects a token, so it ends a chain */
} lzs_chain_kind;

/* Makes a `llama_sampler *` that holds a clone of `sampler`. `llama_sampler_init` is the address of that function in
 * the libllama that will own the result, since libllama frees what its own function made. */
LZS_API lzs_status lzs_chain_sampler_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init,
                                         void **chain_sampler);

/* The clone inside, borrowed: it lives as long as the llama_sampler. llama_sampler_copy changes it as lzs_sampler_copy
 * does. A target that differs in a [fixed] parameter stays as it was, and its status becomes LZS_EINVAL. */
LZS_API lzs_sampler *lzs_chain_sampler_inner(void *chain_sampler);

/* Returns the first error since the last call of this function, and clears it: llama.cpp's interface cannot return
 * one. */
LZS_API lzs_status lzs_chain_sampler_status(void *chain_sampler);

/* ---- the graph sampler: penalties and masks on the device that has the logits ----
 *
 * A chain that llama_set_sampler has set works in the graph of the model (llama.cpp of August 2026 and later;
 * experimental there). Our sampler is a few operations of that graph. Before a decode the CPU makes the edits of the
 * position and uploads them, as up to max_history tokens with two numbers each; the graph applies them. A mask is
 * uploaded as a row of biases. The edited rows come back, or the best token alone. Each of several outputs of one
 * sequence, which a draft needs, gets the edits of its position.
 *
 * The numbers are those of the CPU, operation by operation, if the device rounds as IEEE 754 says. llama.cpp's CPU
 * backend does. But a logit that an edit takes out of the range of floats becomes infinite here. */

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

/* What the graph does besides the edits. */
typedef enum lzs_graph_kind {
    LZS_GRAPH_ROWS = 0, /* nothing: the edited rows come back, and lzs_graph_step picks from them */
    LZS_GRAPH_BEST = 1, /* it finds the best token, which comes back alone: for temperature 0 */
    LZS_GRAPH_CHAIN = 2 /* it runs llama.cpp's own samplers, which follow in the chain; on the CPU this is an
                         * LZS_CHAIN_PENALTIES sampler */
} lzs_graph_kind;

/* Makes a `llama_sampler *` that edits logits in the graph, to be the first of a chain that llama_set_sampler gets
 * once. Kind LZS_GRAPH_CHAIN clones `sampler`; the others borrow it, and its state at each decode counts. max_history:
 * the most tokens of the history, as the context allows. has_mask: whether masks go into the graph. Without it
 * LZS_GRAPH_ROWS applies masks on the CPU; for the other kinds a mask makes lzs_graph_step or lzs_chain_sampler_status
 * answer LZS_EINVAL. So do edits that divide logits after `sign_aware` has changed. LZS_EINVAL for LZS_GRAPH_BEST with
 * 2^24 tokens or more, which floats cannot count. */
LZS_API lzs_status lzs_graph_sampler_new(lzs_sampler *sampler, const lzs_graph_functions *functions, int32_t kind,
                                         int32_t max_history, int32_t has_mask, void **graph_sampler);

/* Whether the device of the context that it is set in has all operations; 0 before llama_set_sampler. */
LZS_API int32_t lzs_graph_supported(const void *graph_sampler);

/* The block whose rows are decoded next, each with the edits of its position; NULL: one row, with those of the
 * sampler. */
LZS_API void lzs_graph_set_block(void *graph_sampler, const lzs_speculation *speculation);

/* lzs_step with output `index` of the context's last decode, as llama_get_logits_ith counts them. LZS_EINVAL if
 * llama.cpp has no such output, and in kind LZS_GRAPH_BEST at another temperature than 0. It also reports errors of
 * making the edits. */
LZS_API lzs_status lzs_graph_step(void *graph_sampler, void *context, int32_t index, int32_t *token, int32_t *looping);

/* lzs_verify with the outputs 0 to n_rows - 1 of the context's last decode. */
LZS_API lzs_status lzs_graph_verify(void *graph_sampler, lzs_speculation *speculation, void *context, size_t n_rows,
                                    lzs_verified *verified);

/* ---- decoding ---- */

/* A decode loop with one call a token, for a language in which a call costs more than a pick. The addresses are those
 * of one libllama's llama_decode and llama_get_logits_ith; context and sampler are borrowed. */
typedef struct lzs_llama_loop {
    uint32_t size; /* sizeof(lzs_llama_loop) */
    void *context; /* llama_context */
    void *decode;
    void *get_logits_ith;
    lzs_sampler *sampler;
    void *graph_sampler; /* NULL, or the one that is set in the context and borrows the same sampler */
    int32_t token;   /* in: the token to decode; out: the one picked after it, or -1 */
    int32_t looping; /* as lzs_step says */
    int32_t decoded; /* what llama_decode returned; 0 is success */
    double decode_seconds, logits_seconds, sampling_seconds; /* in llama_decode, llama_get_logits_ith and lzs_step,
                                                              * summed over the calls */
} lzs_llama_loop;

/* Decodes `token` after the context's tokens, and runs lzs_step or lzs_graph_step on its logits. LZS_EINVAL if
 * llama_decode fails or there are no logits; else fails as lzs_step does. After an error the sampler is as it was. */
LZS_API lzs_status lzs_llama_step(lzs_llama_loop *loop);

/* A context, and the addresses of two functions of its libllama. Keep it at its address until you free the context,
 * which asks it. */
typedef struct lzs_llama_decoder {
    void *context;            /* llama_context */
    void *decode;             /* llama_decode */
    void *set_abort_callback; /* llama_set_abort_callback */
    int32_t is_asked;         /* 0 before the first decode, which sets the callback; llama.cpp logs each time it is
                               * set */
    int32_t stopped;          /* any thread sets it to end a decode; it stays until it is set to 0 */
} lzs_llama_decoder;

/* llama_decode of a `llama_batch`. On devices that ask, it ends within a batch with status 2 once `stopped` is not 0.
 * catches: the signals, by bits (1 SIGINT, 2 SIGTERM, 4 SIGHUP), that set `stopped` to their number until the decode
 * ends and do nothing else. They are for the main thread alone, and have no effect on Windows. What the decode had
 * finished stays in the context. */
LZS_API int32_t lzs_llama_decode(lzs_llama_decoder *decoder, const void *batch, int32_t catches);

/* ---- a chain under a grammar ----
 *
 * In the order of llama.cpp's common_sampler, the chain picks, and the grammar judges that token alone. If the
 * grammar refuses the token, it masks the candidates, and the chain picks again. Then both accept the token. */

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

/* Chain and grammar are borrowed; the grammar is not part of the chain. The rest says how the chain begins, which makes
 * sampling fast; 0, NULL and 0 are always right.
 *
 *   n_head: how many samplers at the beginning of the chain only change logits (penalties, logit bias, ours).
 *   penalties: the LZS_CHAIN_PENALTIES sampler, if it is the only one of these that changes anything; else NULL.
 *   n_best: how many of the best candidates the next sampler keeps: k of a top-k, 1 of a greedy one; else 0.
 *
 * For the chain [ours, top-k 40, temperature, dist] that is 1, ours, 40. LZS_EINVAL if the chain has fewer than n_head
 * samplers. */
LZS_API lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain,
                                         void *grammar, void *penalties, int32_t n_head, int32_t n_best,
                                         lzs_llama_grammar **out);
LZS_API void lzs_llama_grammar_free(lzs_llama_grammar *grammar);

/* LZS_EINVAL if llama.cpp has no logits at this index; LZS_EMASKED if the grammar allows no token. */
LZS_API lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *grammar, void *context, int32_t index, int32_t *token);

/* How many picks the grammar refused. */
LZS_API uint64_t lzs_llama_grammar_refused(const lzs_llama_grammar *grammar);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
