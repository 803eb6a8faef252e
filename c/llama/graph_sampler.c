/* graph_sampler.c - our sampler in a chain that llama.cpp runs in its graph (llama_sampler_i's backend_* members).
 *
 * llama.cpp (llama-sampler.cpp, llama-graph.cpp, llama-context.cpp) calls backend_init once, with the buffer type of
 * the device. For each graph that it builds, it calls backend_reset once, and then backend_apply for each output row.
 * Before each run of the last built graph, it calls backend_set_input if the graph has outputs. The results stay in the
 * context until the next decode. The inputs must hold valid token ids even after an error, since ggml ends the process
 * if a row does not exist.
 */
#include "../sampler.h"

#include <math.h>
#include <stdlib.h>

#include "../verify/speculation.h"
#include "chain.h"

static bool backend_init(lzs_llama_sampler *sampler, void *buffer_type, uint32_t most_outputs) {
    chain_context *c = sampler->ctx;
    return lzs_graph_fits(c->graph, buffer_type, most_outputs);
}

/* If there are candidates, an earlier sampler has dropped tokens, and a token id is not the index of its logit. */
static void backend_apply(lzs_llama_sampler *sampler, void *context, void *graph, lzs_llama_sampler_data *data) {
    (void)graph;
    chain_context *c = sampler->ctx;
    if (data->candidates) {
        lzs_remember(c, LZS_EINVAL);
    } else if (!lzs_graph_build(c->graph, context, data)) {
        lzs_remember(c, LZS_ESPACE);
    }
}

static void backend_reset(lzs_llama_sampler *sampler) {
    chain_context *c = sampler->ctx;
    lzs_graph_clear(c->graph);
}

/* Gives the plan of a row: the plan of the row's position in the block, or the sampler's own plan if there is no
 * block. */
static lzs_status plan_of(const chain_context *c, size_t row, lzs_plan *plan) {
    size_t n_drafted = 0;
    if (c->block) lzs_drafted(c->block, &n_drafted);
    if (lzs_graph_rows(c->graph) != n_drafted + 1) return LZS_EINVAL;
    return c->block ? lzs_drafted_plan(c->block, row, plan) : lzs_sampler_plan(c->sampler, plan);
}

static void backend_set_input(lzs_llama_sampler *sampler) {
    chain_context *c = sampler->ctx;
    bool masks_later = c->graph_kind == LZS_GRAPH_ROWS && !lzs_graph_settings_of(c->graph)->has_mask;
    for (size_t row = 0; row < lzs_graph_rows(c->graph); row++) {
        lzs_plan plan;
        lzs_status status = plan_of(c, row, &plan);
        if (status == LZS_OK && masks_later) plan.mask = NULL;
        lzs_status uploaded = lzs_graph_upload(c->graph, row, status == LZS_OK ? &plan : NULL);
        lzs_remember(c, status);
        lzs_remember(c, uploaded);
    }
}

static const lzs_llama_sampler_i graph_interface = {
    .name = lzs_chain_penalties_name,
    .accept = lzs_chain_accept,
    .apply = lzs_chain_penalties_apply,
    .reset = lzs_chain_reset,
    .clone = lzs_chain_clone,
    .free = lzs_chain_free,
    .backend_init = backend_init,
    .backend_apply = backend_apply,
    .backend_set_input = backend_set_input,
    .backend_reset = backend_reset,
    .copy_state = lzs_chain_copy_state,
};

lzs_status lzs_graph_sampler_new(lzs_sampler *sampler, const lzs_graph_functions *functions, int32_t kind,
                                 int32_t max_history, int32_t has_mask, void **graph_sampler) {
    *graph_sampler = NULL;
    if (kind < LZS_GRAPH_ROWS || kind > LZS_GRAPH_CHAIN || max_history < 0) return LZS_EINVAL;
    chain_context *c = calloc(1, sizeof *c);
    if (!c) return LZS_ENOMEM;
    size_t max_edits = lzs_edits_max(&sampler->params, sampler->n_vocab);
    size_t in_history = (size_t)max_history + sampler->params.n_logit_bias;
    lzs_graph_settings settings = {
        .n_vocab = sampler->n_vocab,
        .max_edits = max_edits < in_history ? max_edits : in_history,
        .has_mask = has_mask,
        .has_repeats = lzs_count_window(&sampler->params) > 0, /* if one of the repetition, frequency and presence
                                                                * penalties is on, a change of settings may make it
                                                                * divide */
        .sign_aware = sampler->params.sign_aware,
        .takes_best = kind == LZS_GRAPH_BEST,
    };
    c->kind = LZS_CHAIN_PENALTIES;
    c->graph_kind = kind;
    c->borrows = kind != LZS_GRAPH_CHAIN;
    lzs_status status = lzs_graph_new(functions, &settings, &c->graph);
    if (status == LZS_OK && c->borrows) {
        c->sampler = sampler;
    } else if (status == LZS_OK) {
        status = lzs_sampler_clone(sampler, &c->sampler);
    }
    if (status != LZS_OK) {
        lzs_chain_context_free(c);
        return status;
    }
    c->init = lzs_graph_calls_of(c->graph)->sampler_init;
    return lzs_chain_make(c, &graph_interface, graph_sampler);
}

static chain_context *context_of(const void *graph_sampler) {
    return ((const lzs_llama_sampler *)graph_sampler)->ctx;
}

int32_t lzs_graph_supported(const void *graph_sampler) {
    return lzs_graph_is_supported(context_of(graph_sampler)->graph);
}

void lzs_graph_set_block(void *graph_sampler, const lzs_speculation *speculation) {
    context_of(graph_sampler)->block = speculation;
}

/* ---- results of the graph ---- */

/* Gives the best token of an output. */
static lzs_status best(const chain_context *c, void *context, int32_t index, int32_t *token) {
    const lzs_graph_calls *f = lzs_graph_calls_of(c->graph);
    *token = -1;
    if (c->sampler->params.temperature != 0.0f) return LZS_EINVAL;
    int32_t picked = f->sampled_token(context, index);
    const float *logit = f->sampled_logits(context, index), *sum = f->sampled_probs(context, index);
    if (picked < 0 || picked >= c->sampler->n_vocab || !logit || !sum) return LZS_EINVAL;
    if (*sum != *sum || *logit != *logit) return LZS_ENAN;
    if (*logit == -INFINITY) return LZS_EMASKED;
    *token = picked;
    return LZS_OK;
}

static lzs_status pick(const chain_context *c, void *context, int32_t index, int32_t *token) {
    if (c->graph_kind == LZS_GRAPH_BEST) return best(c, context, index, token);
    const float *row = lzs_graph_calls_of(c->graph)->sampled_logits(context, index);
    if (!row) return LZS_EINVAL;
    lzs_plan plan;
    lzs_status status = lzs_sampler_plan(c->sampler, &plan);
    if (status != LZS_OK) return status;
    plan = lzs_plan_left(&plan, true, lzs_graph_settings_of(c->graph)->has_mask);
    return lzs_backend_sample(c->sampler->backend, &row, &plan, 1, token, NULL);
}

lzs_status lzs_graph_step(void *graph_sampler, void *context, int32_t index, int32_t *token, int32_t *looping) {
    chain_context *c = context_of(graph_sampler);
    *token = -1;
    lzs_status status = lzs_chain_sampler_status(graph_sampler); /* an error before the decode */
    if (status == LZS_OK) status = pick(c, context, index, token);
    lzs_status taken = lzs_take(c->sampler, *token, looping);
    if (status == LZS_OK) status = taken;
    if (status != LZS_OK) *token = -1;
    return status;
}

lzs_status lzs_graph_verify(void *graph_sampler, lzs_speculation *speculation, void *context, size_t n_rows,
                            lzs_verified *verified) {
    chain_context *c = context_of(graph_sampler);
    const lzs_graph_calls *f = lzs_graph_calls_of(c->graph);
    const float *rows[LZS_MAX_DRAFT + 1];
    int32_t tokens[LZS_MAX_DRAFT + 1];
    lzs_status statuses[LZS_MAX_DRAFT + 1];
    *verified = (lzs_verified){.token = -1};
    lzs_status status = lzs_chain_sampler_status(graph_sampler);
    if (status != LZS_OK) return status;
    if (n_rows > LZS_MAX_DRAFT + 1) return LZS_EINVAL;
    bool takes_best = c->graph_kind == LZS_GRAPH_BEST;
    for (size_t i = 0; i < n_rows; i++) {
        if (takes_best) {
            statuses[i] = best(c, context, (int32_t)i, &tokens[i]);
        } else {
            rows[i] = f->sampled_logits(context, (int32_t)i);
        }
    }
    lzs_target target = {.rows = rows, .is_edited = true, .is_masked = lzs_graph_settings_of(c->graph)->has_mask};
    if (takes_best) target = (lzs_target){.tokens = tokens, .statuses = statuses};
    return lzs_verify_target(speculation, &target, n_rows, verified);
}
