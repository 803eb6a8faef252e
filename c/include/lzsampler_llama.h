/* lzsampler_llama.h - lzsampler inside llama.cpp: samplers for its chain, and a fast way to sample under its grammars.
 *
 * Nothing here links to llama.cpp. The caller passes the addresses of the functions that are needed from its own libllama.
 */
#ifndef LZSAMPLER_LLAMA_H
#define LZSAMPLER_LLAMA_H

#include "lzsampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* What a sampler of llama.cpp's chain does. */
typedef enum lzs_chain_kind {
    LZS_CHAIN_PENALTIES = 0, /* changes logits as the penalties say, and forbids what a grammar does not allow (with the masks,
                              * where there is one), anywhere in a chain */
    LZS_CHAIN_SAMPLER = 1    /* runs the whole pipeline and selects a token, so it ends a chain */
} lzs_chain_kind;

/* Makes a `llama_sampler *` that holds a clone of `sampler`. `llama_sampler_init` is the address of that function in the
 * libllama which will own the result, since libllama frees what its own function made. */
LZS_API lzs_status lzs_chain_sampler_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init,
                                         void **chain_sampler);

/* The clone inside, borrowed: it lives as long as the llama_sampler. */
LZS_API lzs_sampler *lzs_chain_sampler_inner(void *chain_sampler);

/* Returns the first error since the last call of this function, and clears it: llama.cpp's interface cannot return one. */
LZS_API lzs_status lzs_chain_sampler_status(void *chain_sampler);

/* A decode loop, a call a token, for a language in which every call costs more than a pick. The addresses are those of one
 * libllama's llama_decode and llama_get_logits_ith; context and sampler are borrowed. */
typedef struct lzs_llama_loop {
    void *context; /* llama_context */
    void *decode;
    void *get_logits_ith;
    lzs_sampler *sampler;
    int32_t token;   /* in: the token to decode; out: the one picked after it, or -1 */
    int32_t looping; /* as lzs_step says */
    int32_t decoded; /* what llama_decode returned; 0 is success */
    double decode_seconds, logits_seconds, sampling_seconds; /* the time in llama_decode, in llama_get_logits_ith and in
                                                              * lzs_step, added up over the calls */
} lzs_llama_loop;

/* Decodes `token` after the context's tokens and runs lzs_step on its logits. LZS_EINVAL when llama_decode fails, and when
 * there are no logits; else fails as lzs_step does. In all these cases the sampler is as it was. */
LZS_API lzs_status lzs_llama_step(lzs_llama_loop *loop);

/* Picks tokens with a chain under a grammar, in the order of llama.cpp's common_sampler: the chain picks, the grammar is
 * asked about that token alone, and only when it refuses does it mask the candidates and the chain picks again. Then both
 * accept the token. */
typedef struct lzs_llama_grammar lzs_llama_grammar;

/* Addresses of functions of one libllama. */
typedef struct lzs_llama_functions {
    void *get_logits_ith; /* llama_get_logits_ith */
    void *sampler_apply;  /* llama_sampler_apply */
    void *sampler_accept; /* llama_sampler_accept */
    void *chain_get;      /* llama_sampler_chain_get */
    void *chain_n;        /* llama_sampler_chain_n */
} lzs_llama_functions;

/* Chain and grammar are borrowed; the grammar is not part of the chain. The rest says how the chain begins, and is what makes
 * sampling fast; 0, NULL and 0 are always right.
 *
 * n_head: how many samplers at the beginning of the chain only change logits (penalties, logit bias, ours).
 * penalties: if exactly one of these changes anything and it is an LZS_CHAIN_PENALTIES sampler, that one; otherwise NULL.
 * n_best: how many of the best candidates the next sampler keeps: k of a top-k, 1 of a greedy one; 0 if it does otherwise.
 *
 * For the chain [ours, top-k 40, temperature, dist] that is 1, ours, 40. LZS_EINVAL when the chain has fewer than n_head
 * samplers. */
LZS_API lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain, void *grammar,
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
