/* lzs_llama_grammar.c - a token of llama.cpp's chain under a grammar, without running the grammar over the vocabulary.
 *
 * llama.cpp's grammar sampler follows every candidate's characters through the grammar: tens of milliseconds at today's
 * vocabularies. llama.cpp's own common_sampler_sample (common/sampling.cpp) picks a token first and asks the grammar
 * about that one; only when it is refused does it mask the candidates, and the chain picks again. This is that order
 * for hosts that hold a chain and a grammar apart. The chain's `apply` runs twice for a refused token, as there: a
 * random sampler draws again.
 *
 * After a refusal even the mask is rarely needed for all: when the chain's first truncation keeps the k best (greedy:
 * 1), the grammar is asked about the best candidates in order until k of them are allowed. Fewer than k among the first
 * LZS_SHORT_TOP_K: then about all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"
#include "lzs_llama_abi.h"

typedef float *(*get_logits_fn)(void *context, int32_t index);
typedef void (*apply_fn)(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates);
typedef void (*accept_fn)(lzs_llama_sampler *sampler, int32_t token);
typedef lzs_llama_sampler *(*chain_get_fn)(lzs_llama_sampler *chain, int32_t index);
typedef int (*chain_n_fn)(const lzs_llama_sampler *chain);

struct lzs_llama_grammar {
    int32_t n_vocab;
    get_logits_fn get_logits;
    apply_fn apply;
    accept_fn accept;
    chain_get_fn chain_get;
    chain_n_fn chain_n;
    lzs_llama_sampler *chain, *grammar; /* borrowed */
    int32_t n_head, n_best;
    uint64_t refused;
    lzs_llama_token_data *data; /* (n_vocab) candidates */
    float *row;                 /* (n_vocab) their logits, while the best are looked for */
    lzs_survivors survivors;    /* in here, not on the stack: links of the host run below us */
};

/* ISO C has no cast from object to function pointer. */
static void set_function(void *to, void *const *from) {
    memcpy(to, from, sizeof *from);
}

lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain, void *grammar,
                                 int32_t n_head, int32_t n_best, lzs_llama_grammar **out) {
    *out = NULL;
    if (n_vocab < 1 || !chain || !grammar || n_head < 0 || n_best < 0 || !functions->get_logits_ith ||
        !functions->sampler_apply || !functions->sampler_accept || !functions->chain_get || !functions->chain_n) {
        return LZS_EINVAL;
    }
    lzs_llama_grammar *g = calloc(1, sizeof *g);
    if (!g) return LZS_ENOMEM;
    g->n_vocab = n_vocab;
    set_function(&g->get_logits, &functions->get_logits_ith);
    set_function(&g->apply, &functions->sampler_apply);
    set_function(&g->accept, &functions->sampler_accept);
    set_function(&g->chain_get, &functions->chain_get);
    set_function(&g->chain_n, &functions->chain_n);
    g->chain = chain;
    g->grammar = grammar;
    g->n_head = n_head;
    g->n_best = n_best;
    g->data = malloc((size_t)n_vocab * sizeof *g->data);
    g->row = malloc((size_t)n_vocab * sizeof *g->row);
    if (!g->data || !g->row) {
        lzs_llama_grammar_free(g);
        return LZS_ENOMEM;
    }
    *out = g;
    return LZS_OK;
}

void lzs_llama_grammar_free(lzs_llama_grammar *g) {
    if (!g) return;
    free(g->data);
    free(g->row);
    free(g);
}

uint64_t lzs_llama_grammar_refused(const lzs_llama_grammar *g) {
    return g->refused;
}

/* The candidates as llama_sampler_sample makes them. */
static lzs_llama_token_data_array fresh(lzs_llama_grammar *g, const float *logits) {
    for (int32_t t = 0; t < g->n_vocab; t++) g->data[t] = (lzs_llama_token_data){t, logits[t], 0.0f};
    return (lzs_llama_token_data_array){g->data, (size_t)g->n_vocab, -1, false};
}

static bool selected(const lzs_llama_token_data_array *candidates, int32_t *token) {
    if (candidates->selected < 0 || (size_t)candidates->selected >= candidates->size) return false;
    *token = candidates->data[candidates->selected].id;
    return true;
}

static bool allowed(lzs_llama_grammar *g, int32_t token) {
    lzs_llama_token_data one = {token, 1.0f, 0.0f};
    lzs_llama_token_data_array candidates = {&one, 1, -1, false};
    g->apply(g->grammar, &candidates);
    return one.logit > -INFINITY;
}

/* Leaves the n_best best candidates that the grammar allows, best first; false when there are fewer among the first. */
static bool keep_best(lzs_llama_grammar *g, lzs_llama_token_data_array *candidates) {
    const lzs_kernels *kernels = lzs_kernels_best();
    lzs_params params;
    lzs_params_init(&params);
    if (!kernels || candidates->size != (size_t)g->n_vocab) return false;
    for (int32_t i = 0; i < g->n_vocab; i++) {
        if (candidates->data[i].id != i) return false; /* a link before truncation that reorders: none of llama.cpp's */
        g->row[i] = candidates->data[i].logit;
    }
    lzs_row row = {g->row, g->n_vocab, NULL};
    int32_t n_kept = 0, n_asked = 0;
    for (params.top_k = 64; params.top_k <= LZS_SHORT_TOP_K && n_kept < g->n_best; params.top_k *= 4) {
        if (lzs_survive(kernels, &row, &params, &g->survivors) != LZS_OK) return false; /* NaN, or nothing but -inf */
        const lzs_list *list = &g->survivors.list;
        for (; n_asked < list->n && n_kept < g->n_best; n_asked++) {
            int32_t id = lzs_packed_id(list->packed[n_asked]);
            if (allowed(g, id)) g->data[n_kept++] = (lzs_llama_token_data){id, g->row[id], 0.0f};
        }
    }
    if (n_kept < g->n_best) return false;
    *candidates = (lzs_llama_token_data_array){g->data, (size_t)n_kept, -1, true};
    return true;
}

/* The pick after a refusal: of the candidates that the grammar allows. */
static bool pick_allowed(lzs_llama_grammar *g, const float *logits, int32_t *token) {
    lzs_llama_token_data_array candidates = fresh(g, logits);
    if (g->n_best > 0 && g->n_best <= LZS_SHORT_TOP_K) {
        for (int32_t i = 0; i < g->n_head; i++) g->apply(g->chain_get(g->chain, i), &candidates);
        if (keep_best(g, &candidates)) {
            int32_t n = g->chain_n(g->chain);
            for (int32_t i = g->n_head; i < n; i++) g->apply(g->chain_get(g->chain, i), &candidates);
            return selected(&candidates, token);
        }
        candidates = fresh(g, logits);
    }
    g->apply(g->grammar, &candidates);
    g->apply(g->chain, &candidates);
    return selected(&candidates, token);
}

lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *g, void *context, int32_t index, int32_t *token) {
    *token = -1;
    const float *logits = g->get_logits(context, index);
    if (!logits) return LZS_EINVAL;
    lzs_llama_token_data_array candidates = fresh(g, logits);
    g->apply(g->chain, &candidates);
    if (!selected(&candidates, token)) return LZS_EINVAL;
    if (!allowed(g, *token)) {
        g->refused++;
        if (!pick_allowed(g, logits, token) || !allowed(g, *token)) {
            *token = -1;
            return LZS_EMASKED;
        }
    }
    g->accept(g->grammar, *token);
    g->accept(g->chain, *token);
    return LZS_OK;
}
