/* sampler.c - our sampler as a member of llama.cpp's chain.
 *
 * What llama.cpp requires of a sampler (llama-sampler.cpp): `name` must be set, although llama.h says that it can be
 * NULL. `apply` may be called twice for a token, so only `accept` may change the state. `free` must free ctx alone,
 * because libllama deletes the struct that its own llama_sampler_init made. Earlier samplers may have truncated and
 * reordered the candidates, so a token is found by its id, never by its index. If no token is selected, llama.cpp
 * aborts the process. So if we cannot pick a token (nothing allowed, NaN), we select the candidate with the highest
 * logit, and change nothing else. The error is kept for lzs_chain_sampler_status.
 */
#include "../sampler.h"

#include <math.h>
#include <string.h>

#include "../room.h"
#include "chain.h"

void lzs_chain_context_free(chain_context *c) {
    if (!c) return;
    if (!c->borrows) lzs_sampler_free(c->sampler);
    lzs_graph_free(c->graph);
    free(c->row);
    free(c);
}

static lzs_status context_new(const lzs_sampler *sampler, int32_t kind, lzs_llama_sampler_init init,
                              chain_context **out) {
    chain_context *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return LZS_ENOMEM;
    c->init = init;
    c->kind = kind;
    lzs_status status = lzs_sampler_clone(sampler, &c->sampler);
    if (status == LZS_OK && kind == LZS_CHAIN_SAMPLER) {
        c->row = lzs_room(NULL, (size_t)sampler->n_vocab, sizeof *c->row);
        if (!c->row) status = LZS_ENOMEM;
    }
    if (status != LZS_OK) {
        lzs_chain_context_free(c);
        return status;
    }
    *out = c;
    return LZS_OK;
}

lzs_status lzs_chain_make(chain_context *c, const lzs_llama_sampler_i *members, void **made) {
    *made = c->init(members, c);
    if (*made) return LZS_OK;
    lzs_chain_context_free(c);
    return LZS_ENOMEM;
}

/* ---- penalties: edits, and what a grammar or a mask forbids ---- */

const char *lzs_chain_penalties_name(const lzs_llama_sampler *sampler) {
    (void)sampler;
    return "lz-penalties";
}

/* Sets the logits of tokens that the grammar or a mask forbids to -inf. If no candidate is allowed, the status becomes
 * LZS_EMASKED, but libllama still picks a token. */
static void apply_mask(chain_context *c, lzs_llama_token_data_array *candidates) {
    const uint32_t *allowed;
    lzs_status status = lzs_state_allowed(&c->sampler->state, &allowed);
    if (status != LZS_OK) {
        lzs_remember(c, status);
        return;
    }
    if (!allowed) return;
    bool any = false;
    for (size_t i = 0; i < candidates->size; i++) {
        lzs_llama_token_data *candidate = &candidates->data[i];
        uint32_t token = (uint32_t)candidate->id;
        bool is_known = candidate->id >= 0 && candidate->id < c->sampler->n_vocab;
        if (!is_known || !(allowed[token / 32] >> (token % 32) & 1)) candidate->logit = -INFINITY;
        any |= candidate->logit > -INFINITY;
    }
    if (!any) lzs_remember(c, LZS_EMASKED);
    candidates->sorted = false;
}

static void apply_edits(chain_context *c, lzs_llama_token_data_array *candidates) {
    bool sign_aware = c->sampler->params.sign_aware;
    size_t n, done = 0;
    const lzs_edit *edits;
    lzs_remember(c, lzs_sampler_edits(c->sampler, &edits, &n));
    if (n == 0) return;
    for (; done < n; done++) { /* as long as each id is the index of its candidate, no other candidate is read */
        size_t token = (size_t)edits[done].token;
        if (token >= candidates->size || candidates->data[token].id != edits[done].token) break;
        float *logit = &candidates->data[token].logit;
        *logit = lzs_apply_edit(&edits[done], *logit, sign_aware);
    }
    for (size_t i = 0; done < n && i < candidates->size; i++) {
        lzs_llama_token_data *candidate = &candidates->data[i];
        const lzs_edit *edit = lzs_sampler_edit_of(c->sampler, candidate->id);
        if (edit && edit >= edits + done) candidate->logit = lzs_apply_edit(edit, candidate->logit, sign_aware);
    }
    candidates->sorted = false;
}

void lzs_chain_penalties_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    chain_context *c = sampler->ctx;
    apply_edits(c, candidates);
    apply_mask(c, candidates);
}

/* ---- sampler: the whole pipeline ---- */

static const char *sampler_name(const lzs_llama_sampler *sampler) {
    (void)sampler;
    return "lz-sampler";
}

/* Writes the candidates' logits into c->row. Other tokens, and candidates whose logit is NaN, get -inf. */
static lzs_status scatter(chain_context *c, const lzs_llama_token_data_array *candidates) {
    for (int32_t t = 0; t < c->sampler->n_vocab; t++) c->row[t] = -INFINITY;
    for (size_t i = 0; i < candidates->size; i++) {
        lzs_llama_token_data candidate = candidates->data[i];
        if (candidate.id < 0 || candidate.id >= c->sampler->n_vocab) return LZS_EINVAL;
        if (candidate.logit == candidate.logit) {
            c->row[candidate.id] = candidate.logit;
        } else {
            lzs_remember(c, LZS_ENAN);
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

/* Keeps the candidates whose logit in the processed row is not -inf, in the same order. The kept candidates get the
 * logits of this row, and probabilities by softmax. */
static void keep_candidates(const float *row, int32_t token, lzs_llama_token_data_array *candidates) {
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

static void sampler_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    chain_context *c = sampler->ctx;
    if (candidates->size == 0) return;
    int32_t token = -1;
    lzs_plan plan;
    lzs_status status = scatter(c, candidates);
    if (status == LZS_OK) status = lzs_sampler_plan(c->sampler, &plan);
    if (status == LZS_OK) status = lzs_backend_sample_and_process(c->sampler->backend, c->row, &plan, &token);
    if (status == LZS_OK) {
        keep_candidates(c->row, token, candidates);
    } else {
        select_best(candidates);
        lzs_remember(c, status);
    }
}

/* ---- both kinds ---- */

void lzs_chain_accept(lzs_llama_sampler *sampler, int32_t token) {
    chain_context *c = sampler->ctx;
    if (c->borrows) return;
    lzs_remember(c, lzs_accept(c->sampler, token));
}

void lzs_chain_reset(lzs_llama_sampler *sampler) {
    chain_context *c = sampler->ctx;
    if (!c->borrows) lzs_sampler_reset(c->sampler);
    c->status = LZS_OK;
}

/* Without this member, llama_sampler_copy would replace the context of `to` by a clone's context. The lzs_sampler
 * inside would then be a different object, and a graph sampler would have no graph. */
void lzs_chain_copy_state(const lzs_llama_sampler *from, lzs_llama_sampler *to) {
    const chain_context *a = from->ctx;
    chain_context *b = to->ctx;
    if (b->borrows) return;
    b->status = a->status;
    lzs_remember(b, lzs_sampler_copy(b->sampler, a->sampler));
}

void lzs_chain_free(lzs_llama_sampler *sampler) {
    lzs_chain_context_free(sampler->ctx);
}

static const lzs_llama_sampler_i penalties_interface = {
    .name = lzs_chain_penalties_name,
    .accept = lzs_chain_accept,
    .apply = lzs_chain_penalties_apply,
    .reset = lzs_chain_reset,
    .clone = lzs_chain_clone,
    .free = lzs_chain_free,
    .copy_state = lzs_chain_copy_state,
};
static const lzs_llama_sampler_i sampler_interface = {
    .name = sampler_name,
    .accept = lzs_chain_accept,
    .apply = sampler_apply,
    .reset = lzs_chain_reset,
    .clone = lzs_chain_clone,
    .free = lzs_chain_free,
    .copy_state = lzs_chain_copy_state,
};

static const lzs_llama_sampler_i *interface_of(int32_t kind) {
    return kind == LZS_CHAIN_PENALTIES ? &penalties_interface : &sampler_interface;
}

lzs_llama_sampler *lzs_chain_clone(const lzs_llama_sampler *sampler) {
    const chain_context *from = sampler->ctx;
    chain_context *c;
    void *clone;
    if (context_new(from->sampler, from->kind, from->init, &c) != LZS_OK) return NULL;
    c->status = from->status;
    return lzs_chain_make(c, interface_of(from->kind), &clone) == LZS_OK ? clone : NULL;
}

lzs_status lzs_chain_sampler_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init,
                                 void **chain_sampler) {
    *chain_sampler = NULL;
    if (!llama_sampler_init || kind < LZS_CHAIN_PENALTIES || kind > LZS_CHAIN_SAMPLER) return LZS_EINVAL;
    lzs_llama_sampler_init init; /* ISO C has no cast from object to function pointer */
    memcpy(&init, &llama_sampler_init, sizeof init);
    chain_context *c;
    lzs_status status = context_new(sampler, kind, init, &c);
    return status == LZS_OK ? lzs_chain_make(c, interface_of(kind), chain_sampler) : status;
}

lzs_sampler *lzs_chain_sampler_inner(void *chain_sampler) {
    chain_context *c = ((lzs_llama_sampler *)chain_sampler)->ctx;
    return c->sampler;
}

lzs_status lzs_chain_sampler_status(void *chain_sampler) {
    chain_context *c = ((lzs_llama_sampler *)chain_sampler)->ctx;
    lzs_status status = c->status;
    c->status = LZS_OK;
    return status;
}
