/* lzsampler_llama.h - lzsampler inside llama.cpp: samplers for its chain, and a fast way to sample under its grammars.
 *
 * Nothing here links to llama.cpp. The caller passes the addresses of the functions that are needed from its own
 * libllama. Structs that may grow with llama.cpp begin with `size`, which is their size in the caller's header:
 * LZS_EINVAL for one that this library does not know.
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
    LZS_CHAIN_PENALTIES = 0, /* changes logits as the penalties say, and forbids what grammar and masks do not allow,
                              * anywhere in a chain */
    LZS_CHAIN_SAMPLER = 1    /* runs the whole pipeline and selects a token, so it ends a chain */
} lzs_chain_kind;

/* Makes a `llama_sampler *` that holds a clone of `sampler`. `llama_sampler_init` is the address of that function in
 * the libllama which will own the result, since libllama frees what its own function made. */
LZS_API lzs_status lzs_chain_sampler_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init,
                                         void **chain_sampler);

/* The clone inside, borrowed: it lives as long as the llama_sampler. llama_sampler_copy changes what it holds, as
 * lzs_sampler_copy does: LZS_EINVAL is the status of a target that differs in a [fixed] parameter, and stays as it
 * was. */
LZS_API lzs_sampler *lzs_chain_sampler_inner(void *chain_sampler);

/* Returns the first error since the last call of this function, and clears it: llama.cpp's interface cannot return
 * one. */
LZS_API lzs_status lzs_chain_sampler_status(void *chain_sampler);

/* ---- the graph sampler: penalties and masks where the logits are ----
 *
 * llama.cpp lets a chain that llama_set_sampler has set work in the graph of the model, on the device that computes the
 * logits (llama.cpp of August 2026 and later; experimental there). Our sampler is a few operations of that graph:
 * before a decode the CPU makes the edits of the position and uploads them, as up to max_history tokens with two
 * numbers each, and the graph applies them. A mask is uploaded as a row of biases. What comes back is either the edited
 * rows, from which the CPU picks, or the best token alone. Several outputs of one sequence, which a draft needs, each
 * get the edits of their own position.
 *
 * The numbers are those of the CPU, operation by operation, where the device rounds as IEEE 754 says, as llama.cpp's
 * CPU backend does; but a logit that an edit takes out of the range of floats becomes infinite here. */

/* Addresses of functions of one libllama and of the libggml that belongs to it. */
typedef struct lzs_graph_functions {
    uint32_t size; /* sizeof(lzs_graph_functions) */
    void *llama_sampler_init, *llama_get_sampled_token_ith, *llama_get_sampled_logits_ith, *llama_get_sampled_probs_ith;
    void *ggml_init, *ggml_free, *ggml_tensor_overhead, *ggml_nelements;
    void *ggml_new_tensor_1d, *ggml_reshape_1d, *ggml_reshape_2d, *ggml_get_rows, *ggml_set_rows;
    void *ggml_add, *ggml_sub, *ggml_mul, *ggml_div, *ggml_step, *ggml_argmax, *ggml_sum, *ggml_scale_bias,
        *ggml_arange;
    void *ggml_set_input, *ggml_backend_tensor_set, *ggml_backend_buft_get_device, *ggml_backend_dev_supports_op;
} lzs_graph_functions;

/* What a graph sampler leaves to the graph besides the edits. */
typedef enum lzs_graph_kind {
    LZS_GRAPH_ROWS = 0,  /* nothing: the edited rows come back, and lzs_graph_step picks from them */
    LZS_GRAPH_BEST = 1,  /* the best token, which comes back alone: for temperature 0 */
    LZS_GRAPH_CHAIN = 2  /* what llama.cpp's own samplers do, which follow in the chain. The sampler is a clone, as that
                          * of an LZS_CHAIN_PENALTIES sampler, which this is, too, where llama.cpp runs the chain on the
                          * CPU */
} lzs_graph_kind;

/* Makes a `llama_sampler *` that edits logits in the graph, to be the first of a chain that is given to
 * llama_set_sampler once. Of `sampler` there is a clone in kind LZS_GRAPH_CHAIN; otherwise it is borrowed, and its
 * state at each decode counts. max_history: the most tokens of the history, as the context allows. has_mask: whether
 * masks go into the graph; in kind LZS_GRAPH_ROWS masks are applied all the same without, on the CPU; in the others
 * LZS_EINVAL is what lzs_graph_step or lzs_chain_sampler_status then says. They say so, too, of a step whose edits
 * divide logits after `sign_aware` has changed. LZS_EINVAL for LZS_GRAPH_BEST with 2^24 tokens or more, which floats
 * cannot count. */
LZS_API lzs_status lzs_graph_sampler_new(lzs_sampler *sampler, const lzs_graph_functions *functions, int32_t kind,
                                         int32_t max_history, int32_t has_mask, void **graph_sampler);

/* Whether the device of the context that it was set in has all operations: 0 before llama_set_sampler, and where it has
 * not. */
LZS_API int32_t lzs_graph_supported(const void *graph_sampler);

/* The block whose rows are decoded next, each with the edits of its position; NULL: one row, with those of the
 * sampler. */
LZS_API void lzs_graph_set_block(void *graph_sampler, const lzs_speculation *speculation);

/* lzs_step with output `index` of the context's last decode, as llama_get_logits_ith counts them. Its edits are applied
 * already. LZS_EINVAL where llama.cpp has none, and in kind LZS_GRAPH_BEST at another temperature than 0. An error of
 * making the edits is reported here, too. */
LZS_API lzs_status lzs_graph_step(void *graph_sampler, void *context, int32_t index, int32_t *token, int32_t *looping);

/* lzs_verify with the outputs 0 to n_rows - 1 of the context's last decode. */
LZS_API lzs_status lzs_graph_verify(void *graph_sampler, lzs_speculation *speculation, void *context, size_t n_rows,
                                    lzs_verified *verified);

/* A decode loop, a call a token, for a language in which every call costs more than a pick. The addresses are those of
 * one libllama's llama_decode and llama_get_logits_ith; context and sampler are borrowed. */
typedef struct lzs_llama_loop {
    uint32_t size; /* sizeof(lzs_llama_loop) */
    void *context; /* llama_context */
    void *decode;
    void *get_logits_ith;
    lzs_sampler *sampler;
    void *graph_sampler; /* NULL, or that which is set in the context, which borrows the same sampler */
    int32_t token;   /* in: the token to decode; out: the one picked after it, or -1 */
    int32_t looping; /* as lzs_step says */
    int32_t decoded; /* what llama_decode returned; 0 is success */
    double decode_seconds, logits_seconds, sampling_seconds; /* the time in llama_decode, in llama_get_logits_ith and in
                                                              * lzs_step, added up over the calls */
} lzs_llama_loop;

/* Decodes `token` after the context's tokens and runs lzs_step, or lzs_graph_step, on its logits. LZS_EINVAL when
 * llama_decode fails, and when there are no logits; else fails as lzs_step does. In all these cases the sampler is as
 * it was. */
LZS_API lzs_status lzs_llama_step(lzs_llama_loop *loop);

/* A context, and the addresses of two functions of its libllama. It stays where it is until the context is freed, which
 * asks it. */
typedef struct lzs_llama_decoder {
    void *context;            /* llama_context */
    void *decode;             /* llama_decode */
    void *set_abort_callback; /* llama_set_abort_callback */
    int32_t is_asked;         /* 0 before the first decode, which sets the callback: llama.cpp logs each time that it is
                               * set */
    int32_t stopped;          /* any thread sets it to end a decode; it stays until it is set to 0 */
} lzs_llama_decoder;

/* llama_decode of a `llama_batch`, which ends with status 2 within a batch, on devices that ask, once `stopped` is not
 * 0. catches: the signals, by bits (1 SIGINT, 2 SIGTERM, 4 SIGHUP), that set `stopped` to their number until the decode
 * ends and do nothing else; for the main thread alone, and no effect on Windows. What the decode had finished stays in
 * the context. */
LZS_API int32_t lzs_llama_decode(lzs_llama_decoder *decoder, const void *batch, int32_t catches);

/* Picks tokens with a chain under a grammar, in the order of llama.cpp's common_sampler: the chain picks, the grammar
 * is asked about that token alone, and only when it refuses does it mask the candidates and the chain picks again. Then
 * both accept the token. */
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

/* Chain and grammar are borrowed; the grammar is not part of the chain. The rest says how the chain begins, and is what
 * makes sampling fast; 0, NULL and 0 are always right.
 *
 * n_head: how many samplers at the beginning of the chain only change logits (penalties, logit bias, ours). penalties:
 * if exactly one of these changes anything and it is an LZS_CHAIN_PENALTIES sampler, that one; otherwise NULL. n_best:
 * how many of the best candidates the next sampler keeps: k of a top-k, 1 of a greedy one; 0 if it does otherwise.
 *
 * For the chain [ours, top-k 40, temperature, dist] that is 1, ours, 40. LZS_EINVAL when the chain has fewer than
 * n_head samplers. */
LZS_API lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain,
                                         void *grammar,
                                         void *penalties, int32_t n_head, int32_t n_best, lzs_llama_grammar **out);
LZS_API void lzs_llama_grammar_free(lzs_llama_grammar *grammar);

/* LZS_EINVAL when llama.cpp has no logits at this index; LZS_EMASKED when the grammar allows no token. */
LZS_API lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *grammar, void *context, int32_t index, int32_t *token);

/* How many picks the grammar refused. */
LZS_API uint64_t lzs_llama_grammar_refused(const lzs_llama_grammar *grammar);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
