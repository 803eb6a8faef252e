/* chain.h - what our samplers in llama.cpp's chains share (sampler.c, graph_sampler.c). */
#ifndef LZS_LLAMA_CHAIN_H
#define LZS_LLAMA_CHAIN_H

#include "../include/lzsampler_llama.h"
#include "abi.h"
#include "graph.h"

/* The `ctx` of our llama_samplers. */
typedef struct chain_context {
    lzs_sampler *sampler;
    bool borrows; /* whether `sampler` is borrowed; the owner of `sampler` then frees it and accepts tokens with it */
    lzs_llama_sampler_init init;
    int32_t kind;
    lzs_status status; /* the first error since the last lzs_chain_sampler_status */
    float *row;        /* (n_vocab) the candidates as a dense row; LZS_CHAIN_SAMPLER only */
    /* The following members are used only by graph samplers. */
    lzs_graph *graph;
    const lzs_speculation *block;
    int32_t graph_kind;
} chain_context;

static inline void lzs_remember(chain_context *c, lzs_status status) {
    if (c->status == LZS_OK) c->status = status;
}

/* Makes the llama_sampler that owns a context. On failure the context is freed. */
lzs_status lzs_chain_make(chain_context *c, const lzs_llama_sampler_i *members, void **made);
void lzs_chain_context_free(chain_context *c);

/* The members of lzs_llama_sampler_i that samplers of penalties share. */
const char *lzs_chain_penalties_name(const lzs_llama_sampler *sampler);
void lzs_chain_penalties_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates);
void lzs_chain_accept(lzs_llama_sampler *sampler, int32_t token);
void lzs_chain_reset(lzs_llama_sampler *sampler);
void lzs_chain_copy_state(const lzs_llama_sampler *from, lzs_llama_sampler *to);
void lzs_chain_free(lzs_llama_sampler *sampler);
/* Makes a sampler of the same kind, with a clone of the lzs_sampler inside. The clone of a graph sampler works on the
 * CPU only. */
lzs_llama_sampler *lzs_chain_clone(const lzs_llama_sampler *sampler);

#endif
