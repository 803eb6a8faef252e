/* grammar.c - picks a token with llama.cpp's chain under a grammar, without running the grammar over the whole
 * vocabulary.
 *
 * llama.cpp's grammar sampler follows every candidate's characters through the grammar, which takes tens of
 * milliseconds at today's vocabularies. llama.cpp's own common_sampler_sample (common/sampling.cpp) picks a token
 * first, and asks the grammar only about this token. If the grammar refuses the token, the grammar masks the
 * candidates, and the chain picks again. This file does the same for hosts that keep chain and grammar separate. After
 * a refusal, a random sampler draws again, here as in llama.cpp.
 *
 * Two further shortcuts give the same result. (Only the order of equal logits, which llama.cpp does not define, may
 * differ.) If the chain's first truncation keeps the k best candidates (greedy keeps 1), the later samplers see only
 * these k. First shortcut: if only our own penalties come before the truncation, the k best are found in the row of
 * logits. Then the array of candidates (12 bytes for each token of the vocabulary) is not needed. Second shortcut:
 * after a refusal, the grammar judges the candidates from the best on, until it has allowed k of them. If the grammar
 * allows fewer than k of the first MOST_ASKED candidates, it judges all candidates.
 *
 * llama.cpp's functions may throw C++ exceptions through the functions of this file. So the functions of this file hold
 * no memory or lock across such a call, and only read the row of logits.
 */
#include <math.h>
#include <string.h>

#include "../include/lzsampler_llama.h"
#include "../room.h"
#include "../sampler.h"
#include "abi.h"

enum { FIRST_ASKED = 64, MOST_ASKED = LZS_LIST / 2 };

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
    lzs_llama_sampler *chain, *grammar; /* borrowed from the caller */
    lzs_sampler *penalties;             /* borrowed: the only sampler before the truncation that changes anything, or
                                         * NULL */
    lzs_backend *backend;
    int32_t n_head, n_best;
    uint64_t refused;
    lzs_llama_token_data *data; /* (n_vocab) candidates */
    float *row;                 /* (n_vocab) logits of the candidates, while the best candidates are searched */
};

/* ISO C has no cast from object to function pointer. */
static void set_function(void *to, void *const *from) {
    memcpy(to, from, sizeof *from);
}

lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain, void *grammar,
                                 void *penalties, int32_t n_head, int32_t n_best, lzs_llama_grammar **out) {
    *out = NULL;
    if (functions->size != sizeof *functions) return LZS_EINVAL;
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
    if (g->chain_n(g->chain) < n_head) {
        free(g);
        return LZS_EINVAL;
    }
    g->penalties = penalties ? lzs_chain_sampler_inner(penalties) : NULL;
    g->n_head = n_head;
    g->n_best = n_best <= MOST_ASKED ? n_best : 0;
    size_t n_edits = g->penalties ? lzs_edits_max(&g->penalties->params, n_vocab) : 0;
    lzs_status status = lzs_backend_new(n_vocab, n_edits, &g->backend);
    g->data = lzs_room(NULL, (size_t)n_vocab, sizeof *g->data);
    g->row = lzs_room(NULL, (size_t)n_vocab, sizeof *g->row);
    if (status != LZS_OK || !g->data || !g->row) {
        lzs_llama_grammar_free(g);
        return status != LZS_OK ? status : LZS_ENOMEM;
    }
    *out = g;
    return LZS_OK;
}

void lzs_llama_grammar_free(lzs_llama_grammar *g) {
    if (!g) return;
    lzs_backend_free(g->backend);
    free(g->data);
    free(g->row);
    free(g);
}

uint64_t lzs_llama_grammar_refused(const lzs_llama_grammar *g) {
    return g->refused;
}

/* Makes the candidates as llama_sampler_sample does. */
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

/* Puts into g->data the candidates that the chain's truncation would keep without a grammar, at most n_best. Returns
 * the number of candidates. */
static int32_t keep_best(lzs_llama_grammar *g, const float *x, const lzs_plan *plan) {
    int32_t n = lzs_backend_best(g->backend, x, plan, g->n_best);
    for (int32_t i = 0; i < n; i++) {
        uint64_t packed = g->backend->list.packed[i];
        g->data[i] = (lzs_llama_token_data){lzs_packed_id(packed), lzs_packed_x(packed), 0.0f};
    }
    return n;
}

/* As keep_best, but only for candidates that the grammar allows. Returns 0 if the grammar allows fewer than n_best of
 * the first MOST_ASKED candidates. */
static int32_t keep_allowed(lzs_llama_grammar *g, const float *x, const lzs_plan *plan) {
    int32_t n_kept = 0, n_asked = 0;
    for (int32_t k = FIRST_ASKED; k <= MOST_ASKED && n_kept < g->n_best; k *= 4) {
        int32_t n = lzs_backend_best(g->backend, x, plan, k);
        for (; n_asked < n && n_kept < g->n_best; n_asked++) {
            uint64_t packed = g->backend->list.packed[n_asked];
            int32_t id = lzs_packed_id(packed);
            if (allowed(g, id)) g->data[n_kept++] = (lzs_llama_token_data){id, lzs_packed_x(packed), 0.0f};
        }
    }
    return n_kept < g->n_best ? 0 : n_kept;
}

/* Returns the logits before the truncation. If only our penalties change logits, the result is llama.cpp's own row, and
 * *plan holds the edits and the mask. Otherwise the samplers before the truncation are applied to a copy, and *plan is
 * empty. Returns NULL if a sampler reordered the candidates; none of llama.cpp's samplers does so here. */
static const float *before_truncation(lzs_llama_grammar *g, const float *logits, lzs_plan *plan) {
    lzs_params params;
    if (g->penalties) return lzs_sampler_plan(g->penalties, plan) == LZS_OK ? logits : NULL;
    lzs_params_init(&params);
    lzs_plan_settings(plan, g->n_vocab, &params);
    lzs_llama_token_data_array candidates = fresh(g, logits);
    for (int32_t i = 0; i < g->n_head; i++) g->apply(g->chain_get(g->chain, i), &candidates);
    if (candidates.size != (size_t)g->n_vocab) return NULL;
    for (int32_t i = 0; i < g->n_vocab; i++) {
        if (candidates.data[i].id != i) return NULL;
        g->row[i] = candidates.data[i].logit;
    }
    return g->row;
}

/* Applies the rest of the chain to the n_best best candidates. If `under_grammar`, candidates that the grammar forbids
 * are left out first. Returns true if the chain was applied; *token is then the selected token, or -1. After false, the
 * caller must use pick_of_all. */
static bool pick_of_best(lzs_llama_grammar *g, const float *logits, bool under_grammar, int32_t *token) {
    if (!g->n_best) return false;
    lzs_plan plan;
    const float *x = before_truncation(g, logits, &plan);
    if (!x) return false;
    int32_t n_kept = under_grammar ? keep_allowed(g, x, &plan) : keep_best(g, x, &plan);
    if (!n_kept) return false;
    lzs_llama_token_data_array candidates = {g->data, (size_t)n_kept, -1, true};
    int32_t n = g->chain_n(g->chain);
    for (int32_t i = g->n_head; i < n; i++) g->apply(g->chain_get(g->chain, i), &candidates);
    if (!selected(&candidates, token)) *token = -1;
    return true;
}

static void pick_of_all(lzs_llama_grammar *g, const float *logits, bool under_grammar, int32_t *token) {
    lzs_llama_token_data_array candidates = fresh(g, logits);
    if (under_grammar) g->apply(g->grammar, &candidates);
    g->apply(g->chain, &candidates);
    if (!selected(&candidates, token)) *token = -1;
}

lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *g, void *context, int32_t index, int32_t *token) {
    *token = -1;
    const float *logits = g->get_logits(context, index);
    if (!logits) return LZS_EINVAL;
    /* without our penalties this shortcut takes as long as the chain */
    if (!g->penalties || !pick_of_best(g, logits, false, token)) pick_of_all(g, logits, false, token);
    if (*token < 0) return LZS_EINVAL;
    if (!allowed(g, *token)) {
        g->refused++;
        if (!pick_of_best(g, logits, true, token)) pick_of_all(g, logits, true, token);
        if (*token < 0 || !allowed(g, *token)) {
            *token = -1;
            return LZS_EMASKED;
        }
    }
    g->accept(g->grammar, *token);
    g->accept(g->chain, *token);
    return LZS_OK;
}
