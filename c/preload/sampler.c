/* sampler.c - llama.cpp's DRY sampler and lzsampler's penalties as one member of a chain.
 *
 * The tokens that a server accepts before it first applies a sampler are the prompt. No backend_* members: llama.cpp
 * then runs this sampler and all after it on the CPU. */
#include "sampler.h"

#include <stdio.h>
#include <stdlib.h>

#include "../llama/chain.h"

typedef struct preload_context {
    const lzs_libllama *l;
    lzs_llama_sampler *first;
    lzs_known_vocabulary *vocabulary;
    chain_context penalties;
    bool has_applied; /* the prompt is over */
} preload_context;

static const char *preload_name(const lzs_llama_sampler *sampler) {
    (void)sampler;
    return "dry+lz";
}

static void preload_accept(lzs_llama_sampler *sampler, int32_t token) {
    preload_context *c = sampler->ctx;
    c->l->accept(c->first, token);
    if (c->has_applied) {
        lzs_remember(&c->penalties, lzs_accept(c->penalties.sampler, token));
    } else {
        lzs_remember(&c->penalties, lzs_prime(c->penalties.sampler, &token, 1));
    }
}

static void preload_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    preload_context *c = sampler->ctx;
    lzs_llama_sampler penalties = {NULL, &c->penalties};
    c->has_applied = true;
    c->l->apply(c->first, candidates);
    lzs_chain_penalties_apply(&penalties, candidates);
}

static void preload_reset(lzs_llama_sampler *sampler) {
    preload_context *c = sampler->ctx;
    c->has_applied = false;
    c->l->reset(c->first);
    lzs_sampler_reset(c->penalties.sampler);
}

static void preload_free(lzs_llama_sampler *sampler) {
    preload_context *c = sampler->ctx;
    if (!c) return;
    if (c->penalties.status != LZS_OK) {
        fprintf(stderr, "lzsampler: a text lacks some penalties: %s\n", lzs_strerror(c->penalties.status));
    }
    c->l->free(c->first);
    lzs_sampler_free(c->penalties.sampler);
    lzs_vocabulary_give_back(c->vocabulary);
    free(c);
}

static lzs_llama_sampler *preload_clone(const lzs_llama_sampler *sampler);

/* Called by llama_sampler_copy of llama.cpp from August 2026 on. As there, `to` also gets the settings of `from`. */
static void preload_copy_state(const lzs_llama_sampler *from, lzs_llama_sampler *to) {
    const preload_context *a = from->ctx;
    preload_context *b = to->ctx;
    b->l->copy(a->first, b->first);
    b->has_applied = a->has_applied;
    if (lzs_sampler_copy(b->penalties.sampler, a->penalties.sampler) == LZS_OK) return;
    lzs_sampler *clone; /* settings that a copy cannot change differ */
    lzs_status status = lzs_sampler_clone(a->penalties.sampler, &clone);
    lzs_remember(&b->penalties, status);
    if (status != LZS_OK) return;
    lzs_sampler_free(b->penalties.sampler);
    b->penalties.sampler = clone;
    lzs_vocabulary_share(a->vocabulary);
    lzs_vocabulary_give_back(b->vocabulary);
    b->vocabulary = a->vocabulary;
}

static const lzs_llama_sampler_i interface = {
    .name = preload_name,
    .accept = preload_accept,
    .apply = preload_apply,
    .reset = preload_reset,
    .clone = preload_clone,
    .free = preload_free,
    .copy_state = preload_copy_state,
};

static lzs_status make(preload_context whole, lzs_llama_sampler **made) {
    preload_context *c = malloc(sizeof *c);
    if (c) *c = whole;
    *made = c ? c->l->init(&interface, c) : NULL;
    if (*made) return LZS_OK;
    free(c);
    return LZS_ENOMEM;
}

static lzs_llama_sampler *preload_clone(const lzs_llama_sampler *sampler) {
    const preload_context *from = sampler->ctx;
    preload_context c = *from;
    lzs_llama_sampler *clone = NULL;
    if (lzs_sampler_clone(from->penalties.sampler, &c.penalties.sampler) != LZS_OK) return NULL;
    c.first = from->l->clone(from->first);
    if (c.first && make(c, &clone) == LZS_OK) {
        lzs_vocabulary_share(c.vocabulary);
        return clone;
    }
    if (c.first) from->l->free(c.first);
    lzs_sampler_free(c.penalties.sampler);
    return NULL;
}

lzs_status lzs_preload_sampler_new(const lzs_libllama *l, lzs_llama_sampler *first, lzs_known_vocabulary *vocabulary,
                                   const lzs_params *params, lzs_llama_sampler **made) {
    preload_context c = {.l = l, .first = first, .vocabulary = vocabulary};
    lzs_status status = lzs_sampler_new(vocabulary->n_vocab, params, &c.penalties.sampler);
    if (status == LZS_OK) status = make(c, made);
    if (status != LZS_OK) lzs_sampler_free(c.penalties.sampler);
    return status;
}
