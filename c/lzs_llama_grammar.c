/* lzs_llama_grammar.c - a token of llama.cpp's chain under a grammar, without running the grammar over the vocabulary.
 *
 * llama.cpp's grammar sampler follows every candidate's characters through the grammar: tens of milliseconds at today's
 * vocabularies. llama.cpp's own common_sampler_sample (common/sampling.cpp) picks a token first and asks the grammar
 * about that one; only when it is refused does it mask the candidates, and the chain picks again. This is that order
 * for hosts that hold a chain and a grammar apart. The chain's `apply` runs twice for a refused token, as there: a
 * random sampler draws again.
 *
 * Two more savings, exact but for the order of equal logits, which llama.cpp leaves open. When the chain's first
 * truncation keeps the k best (greedy: 1), its later links see those only: where nothing but our own link comes before,
 * the k best are found in the row of logits itself, and the array of candidates (12 bytes a token of the vocabulary) is
 * never filled. After a refusal the grammar is asked about the best candidates in order, until k of them are allowed;
 * fewer than k among the first LZS_SHORT_TOP_K: then about all.
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
    lzs_sampler *edits;                 /* borrowed: of the only link before truncation that does anything, or NULL */
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
                                 void *link, int32_t n_head, int32_t n_best, lzs_llama_grammar **out) {
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
    g->edits = link ? lzs_llama_link_sampler(link) : NULL;
    g->n_head = n_head;
    g->n_best = n_best <= LZS_SHORT_TOP_K ? n_best : 0;
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

/* The k best tokens of a row, best first; an empty list where that is not known at once (NaN, thousands of equals). */
static const lzs_list *best(lzs_llama_grammar *g, const float *x, int32_t k) {
    lzs_params params;
    lzs_params_init(&params);
    params.top_k = k;
    lzs_row row = {x, g->n_vocab, NULL};
    if (lzs_survive(lzs_kernels_best(), &row, &params, &g->survivors) != LZS_OK) g->survivors.list.n = 0;
    return &g->survivors.list;
}

/* What the chain's truncation would keep, without a grammar. */
static int32_t keep_best(lzs_llama_grammar *g, const float *x) {
    const lzs_list *list = best(g, x, g->n_best);
    for (int32_t i = 0; i < list->n; i++) {
        g->data[i] = (lzs_llama_token_data){lzs_packed_id(list->packed[i]), lzs_packed_x(list->packed[i]), 0.0f};
    }
    return list->n;
}

/* The same of those that the grammar allows; 0 when it allows fewer than n_best among the first. */
static int32_t keep_allowed(lzs_llama_grammar *g, const float *x) {
    int32_t n_kept = 0, n_asked = 0;
    for (int32_t k = 64; k <= LZS_SHORT_TOP_K && n_kept < g->n_best; k *= 4) {
        const lzs_list *list = best(g, x, k);
        for (; n_asked < list->n && n_kept < g->n_best; n_asked++) {
            int32_t id = lzs_packed_id(list->packed[n_asked]);
            if (allowed(g, id)) g->data[n_kept++] = (lzs_llama_token_data){id, x[id], 0.0f};
        }
    }
    return n_kept < g->n_best ? 0 : n_kept;
}

/* The logits after the first links. They are llama.cpp's own row, patched, or, where Python or llama.cpp's penalties have
 * a say, a copy of what those leave. NULL when a link reordered the candidates, which none of llama.cpp's does here. */
static float *after_head(lzs_llama_grammar *g, float *logits) {
    if (g->edits) {
        lzs_patch(g->edits, logits);
        return logits;
    }
    lzs_llama_token_data_array candidates = fresh(g, logits);
    for (int32_t i = 0; i < g->n_head; i++) g->apply(g->chain_get(g->chain, i), &candidates);
    if (candidates.size != (size_t)g->n_vocab) return NULL;
    for (int32_t i = 0; i < g->n_vocab; i++) {
        if (candidates.data[i].id != i) return NULL;
        g->row[i] = candidates.data[i].logit;
    }
    return g->row;
}

/* Picks among the n_best best (that the grammar allows); false when these are not known. */
static bool pick_of_best(lzs_llama_grammar *g, float *logits, bool under_grammar, int32_t *token) {
    if (!g->n_best) return false;
    float *x = after_head(g, logits);
    if (!x) return false;
    int32_t n_kept = under_grammar ? keep_allowed(g, x) : keep_best(g, x);
    if (g->edits) lzs_unpatch(g->edits, logits);
    if (!n_kept) return false;
    lzs_llama_token_data_array candidates = {g->data, (size_t)n_kept, -1, true};
    int32_t n = g->chain_n(g->chain);
    for (int32_t i = g->n_head; i < n; i++) g->apply(g->chain_get(g->chain, i), &candidates);
    return selected(&candidates, token);
}

static bool pick_of_all(lzs_llama_grammar *g, const float *logits, bool under_grammar, int32_t *token) {
    lzs_llama_token_data_array candidates = fresh(g, logits);
    if (under_grammar) g->apply(g->grammar, &candidates);
    g->apply(g->chain, &candidates);
    return selected(&candidates, token);
}

lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *g, void *context, int32_t index, int32_t *token) {
    *token = -1;
    float *logits = g->get_logits(context, index);
    if (!logits) return LZS_EINVAL;
    bool picked = g->edits && pick_of_best(g, logits, false, token); /* without `edits` it costs what the chain costs */
    if (!picked && !pick_of_all(g, logits, false, token)) return LZS_EINVAL;
    if (!allowed(g, *token)) {
        g->refused++;
        picked = pick_of_best(g, logits, true, token) || pick_of_all(g, logits, true, token);
        if (!picked || !allowed(g, *token)) {
            *token = -1;
            return LZS_EMASKED;
        }
    }
    g->accept(g->grammar, *token);
    g->accept(g->chain, *token);
    return LZS_OK;
}
