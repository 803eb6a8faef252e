/* lzs_llama.c - a sampler as a link of llama.cpp's chain.
 *
 * What llama.cpp asks of a link (llama-sampler.cpp): `name` must be set although llama.h says it can be NULL; `apply`
 * may be called twice a token and must not change state; `accept` alone does; `free` releases ctx only, because
 * libllama deletes the struct that its own llama_sampler_init made. Candidates may be truncated and reordered by
 * earlier links, so a token is found by its id, never by its index. The host aborts the process when no token is
 * selected: where we refuse to pick (nothing allowed, NaN) the link selects the best raw logit, leaves the array as
 * it came and keeps the status for lzs_llama_link_status.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"
#include "lzs_llama_abi.h"

typedef struct link_context {
    lzs_sampler *sampler;
    lzs_llama_sampler_init init;
    int32_t kind;
    lzs_status status; /* first error since the last lzs_llama_link_status */
    float *row;        /* (n_vocab) the candidates as a dense row; LZS_LINK_SAMPLER only */
} link_context;

static void context_free(link_context *c) {
    if (!c) return;
    lzs_sampler_free(c->sampler);
    free(c->row);
    free(c);
}

static lzs_status context_new(const lzs_sampler *sampler, int32_t kind, lzs_llama_sampler_init init,
                              link_context **out) {
    link_context *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return LZS_ENOMEM;
    c->init = init;
    c->kind = kind;
    lzs_status status = lzs_sampler_clone(sampler, &c->sampler);
    if (status == LZS_OK && kind == LZS_LINK_SAMPLER) {
        c->row = malloc((size_t)sampler->n_vocab * sizeof *c->row);
        if (!c->row) status = LZS_ENOMEM;
    }
    if (status != LZS_OK) {
        context_free(c);
        return status;
    }
    *out = c;
    return LZS_OK;
}

static void remember(link_context *c, lzs_status status) {
    if (c->status == LZS_OK) c->status = status;
}

/* ---- penalties: edits only ---- */

static const char *penalties_name(const lzs_llama_sampler *link) {
    (void)link;
    return "lz-penalties";
}

static void penalties_apply(lzs_llama_sampler *link, lzs_llama_token_data_array *candidates) {
    link_context *c = link->ctx;
    bool sign_aware = c->sampler->params.sign_aware;
    size_t n, done = 0;
    const lzs_edit *edits = lzs_edits(c->sampler, &n);
    if (n == 0) return;
    for (; done < n; done++) { /* as long as ids are indices: no other candidate is looked at */
        size_t token = (size_t)edits[done].token;
        if (token >= candidates->size || candidates->data[token].id != edits[done].token) break;
        float *logit = &candidates->data[token].logit;
        *logit = lzs_edit_apply(&edits[done], *logit, sign_aware);
    }
    for (size_t i = 0; done < n && i < candidates->size; i++) {
        lzs_llama_token_data *candidate = &candidates->data[i];
        int32_t at = lzs_bag_find(&c->sampler->history.bag, candidate->id); /* edit i is that of item i */
        if (at >= (int32_t)done) candidate->logit = lzs_edit_apply(&edits[at], candidate->logit, sign_aware);
    }
    candidates->sorted = false;
}

/* ---- sampler: the whole pipeline ---- */

static const char *sampler_name(const lzs_llama_sampler *link) {
    (void)link;
    return "lz-sampler";
}

/* The candidates as a row, -inf where a token is none of them. A NaN becomes no candidate. */
static lzs_status scatter(link_context *c, const lzs_llama_token_data_array *candidates) {
    for (int32_t t = 0; t < c->sampler->n_vocab; t++) c->row[t] = -INFINITY;
    for (size_t i = 0; i < candidates->size; i++) {
        lzs_llama_token_data candidate = candidates->data[i];
        if (candidate.id < 0 || candidate.id >= c->sampler->n_vocab) return LZS_EINVAL;
        if (candidate.logit == candidate.logit) {
            c->row[candidate.id] = candidate.logit;
        } else {
            remember(c, LZS_ENAN);
        }
    }
    return LZS_OK;
}

static void select_best(lzs_llama_token_data_array *candidates) {
    int64_t best = 0;
    for (size_t i = 1; i < candidates->size; i++) {
        float x = candidates->data[i].logit, y = candidates->data[best].logit;
        if (x > y || y != y) best = (int64_t)i;
    }
    candidates->selected = best;
}

/* Keeps the candidates that the processed row keeps, in their order, with its logits and their softmax. */
static void keep_survivors(const float *row, int32_t token, lzs_llama_token_data_array *candidates) {
    lzs_llama_token_data *data = candidates->data;
    size_t kept = 0;
    float max = -INFINITY;
    for (size_t i = 0; i < candidates->size; i++) {
        float logit = row[data[i].id];
        if (!(logit > -INFINITY)) continue;
        if (data[i].id == token) candidates->selected = (int64_t)kept;
        if (logit > max) max = logit;
        data[kept++] = (lzs_llama_token_data){data[i].id, logit, 0.0f};
    }
    double sum = 0.0;
    for (size_t i = 0; i < kept; i++) {
        data[i].p = data[i].logit == max ? 1.0f : expf(data[i].logit - max);
        sum += data[i].p;
    }
    for (size_t i = 0; i < kept; i++) data[i].p = (float)(data[i].p / sum);
    candidates->size = kept;
    candidates->sorted = false;
}

static void sampler_apply(lzs_llama_sampler *link, lzs_llama_token_data_array *candidates) {
    link_context *c = link->ctx;
    if (candidates->size == 0) return;
    int32_t token = -1;
    lzs_status status = scatter(c, candidates);
    if (status == LZS_OK) status = lzs_sample(c->sampler, c->row, &token);
    if (status == LZS_OK) status = lzs_process(c->sampler, c->row);
    if (status == LZS_OK && c->row[token] > -INFINITY) {
        keep_survivors(c->row, token, candidates);
    } else {
        select_best(candidates);
        remember(c, status);
    }
}

/* ---- both ---- */

static void link_accept(lzs_llama_sampler *link, int32_t token) {
    link_context *c = link->ctx;
    remember(c, lzs_accept(c->sampler, token));
}

static void link_reset(lzs_llama_sampler *link) {
    link_context *c = link->ctx;
    lzs_sampler_reset(c->sampler);
    c->status = LZS_OK;
}

static void link_free(lzs_llama_sampler *link) {
    context_free(link->ctx);
}

static lzs_llama_sampler *link_clone(const lzs_llama_sampler *link) {
    const link_context *from = link->ctx;
    link_context *c;
    if (context_new(from->sampler, from->kind, from->init, &c) != LZS_OK) return NULL;
    c->status = from->status;
    lzs_llama_sampler *clone = from->init(link->iface, c);
    if (!clone) context_free(c);
    return clone;
}

static const lzs_llama_sampler_i penalties_interface = {
    penalties_name, link_accept, penalties_apply, link_reset, link_clone, link_free, {0},
};
static const lzs_llama_sampler_i sampler_interface = {
    sampler_name, link_accept, sampler_apply, link_reset, link_clone, link_free, {0},
};

lzs_status lzs_llama_link_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init, void **link) {
    *link = NULL;
    if (!llama_sampler_init || kind < LZS_LINK_PENALTIES || kind > LZS_LINK_SAMPLER) return LZS_EINVAL;
    lzs_llama_sampler_init init; /* ISO C has no cast from object to function pointer */
    memcpy(&init, &llama_sampler_init, sizeof init);
    link_context *c;
    lzs_status status = context_new(sampler, kind, init, &c);
    if (status != LZS_OK) return status;
    *link = c->init(kind == LZS_LINK_PENALTIES ? &penalties_interface : &sampler_interface, c);
    if (*link) return LZS_OK;
    context_free(c);
    return LZS_ENOMEM;
}

lzs_sampler *lzs_llama_link_sampler(void *link) {
    link_context *c = ((lzs_llama_sampler *)link)->ctx;
    return c->sampler;
}

lzs_status lzs_llama_link_status(void *link) {
    link_context *c = ((lzs_llama_sampler *)link)->ctx;
    lzs_status status = c->status;
    c->status = LZS_OK;
    return status;
}
