/* sampler.c - a sampler: the state of one sequence, settings, a backend, and the steps. Read this file first, then
 * backend/cpu.c. In comments on pointers, (n) is the number of items. (n of capacity) means n items in use and memory
 * for `capacity` items.
 */
#include "sampler.h"

#include <string.h>

#include "backend/arithmetic.h"
#include "backend/kernels.h"
#include "penalty/params.h"
#include "room.h"
#include "state/sorted_tokens.h"

const char *lzs_version(void) {
    return "0.1.0";
}

const char *lzs_kernels_name(void) {
    return lzs_kernels_best()->name;
}

uint64_t lzs_sequence_seed(uint64_t seed, uint64_t sequence) {
    return lzs_derived_seed(seed, sequence);
}

const char *lzs_strerror(int status) {
    switch (status) {
    case LZS_OK: return "ok";
    case LZS_EINVAL: return "an argument or parameter is out of range";
    case LZS_ENOMEM: return "out of memory";
    case LZS_EMASKED:
        return "no token is allowed: every logit is -inf or masked, or a rewind went back to a lost mask";
    case LZS_ENAN: return "a logit is NaN";
    case LZS_ESPACE: return "the output arrays or the backend's arrays are too small";
    case LZS_EFULL: return "the sequence is full: it has 2^31 - 1 tokens";
    case LZS_ELIMIT: return "a step of the grammar reached a limit";
    case LZS_EDEVICE: return "the CUDA device, its driver or its code failed";
    case LZS_EBUSY: return "another thread is using the sampler";
    default: return "unknown status";
    }
}

/* ---- creating and freeing ---- */

size_t lzs_edits_max(const lzs_params *params, int32_t n_vocab) {
    lzs_params p;
    if (!lzs_params_whole(params, &p)) return 0;
    size_t count = lzs_count_window(&p), paper = lzs_paper_is_on(&p) ? (size_t)p.lz_window : 0;
    size_t most = p.n_logit_bias + (count > paper ? count < SIZE_MAX / 2 ? count : SIZE_MAX / 2 : paper);
    for (const lzs_penalty *const *row = lzs_penalties; *row; row++) {
        if ((*row)->most) most += (*row)->most(&p);
    }
    return most < (size_t)n_vocab ? most : (size_t)n_vocab;
}

/* Makes a sampler from complete and valid settings, with the lists and sets of `classes`. The sampler takes over the
 * caller's use of `classes`; on failure this use is ended. Returns LZS_ENOMEM if `classes` is NULL, which says that its
 * allocation failed. */
static lzs_status make(int32_t n_vocab, const lzs_params *params, lzs_token_classes *classes, lzs_backend *shared,
                       lzs_sampler **sampler) {
    *sampler = NULL;
    lzs_sampler *s = classes ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        lzs_token_classes_leave(classes);
        return LZS_ENOMEM;
    }
    s->n_vocab = n_vocab;
    s->log2_vocab = lzs_log2((float)n_vocab);
    s->backend = shared;
    lzs_flag_give(&s->held);
    s->params = *params;
    s->classes = classes;
    lzs_token_classes_put(classes, &s->params);
    const lzs_history_shape shape = lzs_penalties_shape(&s->params, n_vocab);
    lzs_status status = lzs_state_init(&s->state, &s->params, &shape, lzs_kernels_best());
    const lzs_history *looked_at = lzs_state_looked_at(&s->state);
    if (status == LZS_OK) status = lzs_edit_list_init(&s->edits, &s->params, s->log2_vocab, looked_at);
    if (status == LZS_OK && !shared) {
        s->owns_backend = true;
        status = lzs_backend_new(n_vocab, lzs_edits_max(&s->params, n_vocab), &s->backend);
    }
    if (status != LZS_OK) {
        lzs_sampler_free(s);
        return status;
    }
    *sampler = s;
    return LZS_OK;
}

lzs_status lzs_sampler_new(int32_t n_vocab, const lzs_params *params, lzs_sampler **sampler) {
    *sampler = NULL;
    if (lzs_params_invalid(params, n_vocab)) return LZS_EINVAL;
    lzs_params whole;
    lzs_params_whole(params, &whole);
    return make(n_vocab, &whole, lzs_token_classes_new(&whole), NULL, sampler);
}

lzs_status lzs_sampler_new_shared(int32_t n_vocab, const lzs_params *params, lzs_backend *backend,
                                  lzs_sampler **sampler) {
    *sampler = NULL;
    if (!backend || lzs_params_invalid(params, n_vocab)) return LZS_EINVAL;
    lzs_params whole;
    lzs_params_whole(params, &whole);
    bool room = n_vocab <= backend->n_vocab && lzs_edits_max(&whole, n_vocab) <= backend->max_edits;
    return room ? make(n_vocab, &whole, lzs_token_classes_new(&whole), backend, sampler) : LZS_ESPACE;
}

/* Allocates memory for the edits of the present state. Call it after tokens were added, and after a copy. */
static lzs_status reserve_edits(lzs_sampler *s) {
    const lzs_history *looked_at = lzs_state_looked_at(&s->state);
    return lzs_edit_list_reserve(&s->edits, &s->params, looked_at, looked_at->n);
}

static lzs_status copy_state(lzs_sampler *to, const lzs_sampler *from) {
    to->edits.valid = false;
    lzs_status status = lzs_state_copy(&to->state, &from->state);
    if (status == LZS_OK) status = reserve_edits(to);
    if (status != LZS_OK) lzs_state_reset(&to->state);
    return status;
}

lzs_status lzs_sampler_clone(const lzs_sampler *from, lzs_sampler **clone) {
    lzs_backend *shared = from->owns_backend ? NULL : from->backend;
    lzs_status status = make(from->n_vocab, &from->params, lzs_token_classes_share(from->classes), shared, clone);
    if (status != LZS_OK) return status;
    status = copy_state(*clone, from);
    if (status == LZS_OK) return LZS_OK;
    lzs_sampler_free(*clone);
    *clone = NULL;
    return status;
}

lzs_status lzs_sampler_copy(lzs_sampler *to, const lzs_sampler *from) {
    if (to == from) return LZS_OK;
    if (to->n_vocab != from->n_vocab || !lzs_token_classes_equal(to->classes, from->classes)) return LZS_EINVAL;
    lzs_status status = lzs_sampler_set_params(to, &from->params);
    return status == LZS_OK ? copy_state(to, from) : status;
}

void lzs_sampler_reset(lzs_sampler *s) {
    lzs_state_reset(&s->state);
    s->edits.valid = false;
}

void lzs_sampler_free(lzs_sampler *s) {
    if (!s) return;
    lzs_state_free(&s->state);
    lzs_edit_list_free(&s->edits);
    if (s->owns_backend) lzs_backend_free(s->backend);
    lzs_token_classes_leave(s->classes);
    free(s);
}

/* ---- settings ---- */

lzs_status lzs_sampler_params(const lzs_sampler *s, lzs_params *params) {
    lzs_params known;
    uint32_t size = params->size;
    if (!lzs_params_whole(params, &known)) return LZS_EINVAL;
    memcpy(params, &s->params, size);
    params->size = size;
    return LZS_OK;
}

lzs_status lzs_sampler_set_params(lzs_sampler *s, const lzs_params *params) {
    lzs_params next;
    if (!lzs_params_whole(params, &next)) return LZS_EINVAL;
    lzs_token_classes_put(NULL, &next); /* the sampler's own lists are valid, and a check of these lists would be
                                         * slow */
    if (lzs_params_invalid(&next, s->n_vocab) || lzs_params_fixed(&next, &s->params)) return LZS_EINVAL;
    lzs_token_classes_put(s->classes, &next);
    lzs_edit_list_settings(&s->edits, &s->params, &next, s->log2_vocab);
    s->params = next;
    return LZS_OK;
}

void lzs_sampler_set_seed(lzs_sampler *s, uint64_t seed) {
    s->params.seed = seed;
}

int32_t lzs_n_vocab(const lzs_sampler *s) {
    return s->n_vocab;
}

uint64_t lzs_position(const lzs_sampler *s) {
    return s->state.position;
}

const int32_t *lzs_tokens(const lzs_sampler *s, size_t *n) {
    *n = s->state.history.n;
    return s->state.history.tokens;
}

size_t lzs_memory(const lzs_sampler *s) {
    size_t bytes = sizeof *s + lzs_state_memory(&s->state) + lzs_edit_list_memory(&s->edits, &s->params);
    bytes += lzs_token_classes_memory(s->classes);
    return s->owns_backend ? bytes + lzs_backend_memory(s->backend) : bytes;
}

/* ---- the sequence ---- */

static bool known(const lzs_sampler *s, int32_t token) {
    return token >= 0 && token < s->n_vocab;
}

lzs_status lzs_prime(lzs_sampler *s, const int32_t *tokens, size_t n) {
    if (s->state.position > 0 || (n && !tokens)) return LZS_EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (!known(s, tokens[i])) return LZS_EINVAL;
    }
    if (s->params.history != LZS_HISTORY_ALL) return LZS_OK;
    s->edits.valid = false;
    lzs_status status = lzs_state_prime(&s->state, tokens, n);
    if (status != LZS_OK) return status;
    status = reserve_edits(s);
    if (status != LZS_OK) lzs_state_unprime(&s->state, n);
    return status;
}

lzs_status lzs_accept(lzs_sampler *s, int32_t token) {
    if (!known(s, token)) return LZS_EINVAL;
    s->edits.valid = false;
    lzs_status status = lzs_state_accept(&s->state, token);
    if (status != LZS_OK) return status;
    status = reserve_edits(s);
    if (status != LZS_OK) lzs_state_rewind(&s->state, 1);
    return status;
}

lzs_status lzs_rewind(lzs_sampler *s, size_t n) {
    if (n > s->state.position) return LZS_EINVAL;
    if (n == 0) return LZS_OK;
    lzs_state_rewind(&s->state, n);
    s->edits.valid = false;
    return LZS_OK;
}

int lzs_loop_found(const lzs_sampler *s, lzs_loop *loop) {
    if (!s->state.detector || !s->state.detector->found.count) return 0;
    *loop = s->state.detector->found;
    return 1;
}

int lzs_stuck_found(const lzs_sampler *s, lzs_stuck *stuck) {
    if (!s->state.stuck || !s->state.stuck->found.end) return 0;
    *stuck = s->state.stuck->found;
    return 1;
}

static lzs_status set_mask(lzs_sampler *s, int32_t owner, const uint32_t *words, size_t n_words, bool borrow) {
    if (owner < 0 || owner >= LZS_MASK_OWNERS) return LZS_EINVAL;
    if (words && n_words != s->state.masks.n_words) return LZS_EINVAL;
    return lzs_masks_set(&s->state.masks, owner, words, borrow, s->state.position);
}

lzs_status lzs_set_mask(lzs_sampler *s, int32_t owner, const uint32_t *words, size_t n_words) {
    return set_mask(s, owner, words, n_words, false);
}

lzs_status lzs_borrow_mask(lzs_sampler *s, int32_t owner, const uint32_t *words, size_t n_words) {
    return set_mask(s, owner, words, n_words, true);
}

lzs_status lzs_sampler_set_grammar(lzs_sampler *s, lzs_grammar *grammar) {
    if (grammar && grammar->vocabulary->n_vocab != s->n_vocab) return LZS_EINVAL;
    s->edits.valid = false;
    return lzs_state_set_grammar(&s->state, grammar);
}

/* ---- a step ---- */

/* Returns the settings of penalties under a grammar, where lz_run_allowance is multiplied by LZS_GRAMMAR_ALLOWANCE. */
static lzs_params under_grammar(const lzs_params *params) {
    lzs_params wider = *params;
    wider.lz_run_allowance *= LZS_GRAMMAR_ALLOWANCE;
    return wider;
}

static lzs_status make_edits(lzs_sampler *s) {
    const lzs_history *looked_at = &s->state.history;
    lzs_grammar *grammar = s->state.cursor.grammar;
    int32_t place = LZS_DEAD;
    lzs_status status = LZS_OK;
    if (s->state.free_text) { /* lzs_state_look may now add tokens to free_text */
        status = lzs_state_look(&s->state);
        if (status == LZS_OK) status = reserve_edits(s);
        looked_at = lzs_state_looked_at(&s->state);
    }
    if (grammar && s->params.structure == LZS_STRUCTURE_OFF) grammar = NULL;
    if (status == LZS_OK && grammar) status = lzs_state_place(&s->state, &grammar, &place);
    if (status != LZS_OK) return status;
    if (!grammar) return lzs_edit_list_make(&s->edits, looked_at, &s->params, s->log2_vocab, NULL, place);
    const lzs_params params = under_grammar(&s->params);
    return lzs_edit_list_make(&s->edits, looked_at, &params, s->log2_vocab, grammar, place);
}

lzs_status lzs_sampler_edits(lzs_sampler *s, const lzs_edit **edits, size_t *n) {
    lzs_status status = s->edits.valid ? LZS_OK : make_edits(s);
    *n = status == LZS_OK ? s->edits.n : 0;
    *edits = status == LZS_OK ? s->edits.edits : NULL;
    return status;
}

const lzs_edit *lzs_edits(lzs_sampler *s, size_t *n) {
    bool made = s->edits.valid || make_edits(s) == LZS_OK;
    *n = made ? s->edits.n : 0;
    return made ? s->edits.edits : NULL;
}

static lzs_status plan_without_mask(lzs_sampler *s, lzs_plan *plan) {
    lzs_plan_settings(plan, s->n_vocab, &s->params);
    plan->position = s->state.position;
    return lzs_sampler_edits(s, &plan->edits, &plan->n_edits);
}

lzs_status lzs_sampler_plan(lzs_sampler *s, lzs_plan *plan) {
    lzs_status edited = plan_without_mask(s, plan);
    lzs_status status = lzs_state_allowed(&s->state, &plan->mask);
    return status == LZS_OK ? edited : status;
}

lzs_status lzs_forced(lzs_sampler *s, int32_t *token) {
    const uint32_t *mask;
    *token = -1;
    lzs_status status = lzs_state_allowed(&s->state, &mask);
    if (status != LZS_OK || !mask) return status;
    int32_t only = -1;
    for (size_t i = 0; i < s->state.masks.n_words; i++) {
        uint32_t word = mask[i];
        if (!word) continue;
        if (only >= 0 || word & (word - 1)) return LZS_OK;
        only = (int32_t)(32 * i);
        while (word >>= 1) only++;
    }
    if (only < 0 || only >= s->n_vocab) return LZS_OK;
    const lzs_logit_bias *biases = s->params.logit_bias; /* only a logit_bias of -inf forbids a token: penalties are
                                                          * finite */
    size_t n = s->params.n_logit_bias, at = lzs_find_token(biases, n, sizeof *biases, only);
    if (at == n || biases[at].bias > -INFINITY) *token = only;
    return LZS_OK;
}

/* Picks the best token without the grammar, for temperature 0 and a grammar engine that sets picks_first. If the
 * grammar allows this token, it is also the best allowed token, and is returned. Otherwise, and after any error,
 * returns -1. */
static int32_t picked_first(lzs_sampler *s, const float *logits) {
    lzs_grammar *grammar = s->state.cursor.grammar;
    if (!grammar || !grammar->engine.picks_first || s->params.temperature > 0.0f) return -1;
    lzs_plan plan;
    int32_t token, place, next = LZS_DEAD;
    lzs_status status = plan_without_mask(s, &plan);
    if (status == LZS_OK) status = lzs_masks_allowed(&s->state.masks, &plan.mask);
    if (status == LZS_OK) lzs_backend_sample(s->backend, &logits, &plan, 1, &token, &status);
    if (status == LZS_OK) status = lzs_state_place(&s->state, &grammar, &place);
    if (status == LZS_OK) status = lzs_grammar_accept(grammar, place, token, &next);
    return status == LZS_OK && next != LZS_DEAD ? token : -1;
}

lzs_status lzs_sample(lzs_sampler *s, const float *logits, int32_t *token) {
    lzs_plan plan;
    *token = picked_first(s, logits);
    if (*token >= 0) return LZS_OK;
    lzs_status status = lzs_sampler_plan(s, &plan);
    return status == LZS_OK ? lzs_backend_sample(s->backend, &logits, &plan, 1, token, &status) : status;
}

lzs_status lzs_take(lzs_sampler *s, int32_t token, int32_t *looping) {
    lzs_status status = token < 0 ? LZS_OK : lzs_accept(s, token);
    if (looping) {
        bool loops = s->state.detector && s->state.detector->found.count > 0;
        *looping = loops || (s->state.stuck && s->state.stuck->found.end > 0);
    }
    return status;
}

lzs_status lzs_step(lzs_sampler *s, const float *logits, int32_t *token, int32_t *looping) {
    lzs_status status = lzs_sample(s, logits, token);
    lzs_status taken = lzs_take(s, *token, looping);
    if (status == LZS_OK) status = taken;
    if (status != LZS_OK) *token = -1;
    return status;
}

lzs_status lzs_process(lzs_sampler *s, const float *logits, float *out) {
    lzs_plan plan;
    lzs_status status = lzs_sampler_plan(s, &plan);
    return status == LZS_OK ? lzs_backend_process(s->backend, logits, &plan, out) : status;
}

lzs_status lzs_distribution(lzs_sampler *s, const float *logits, int32_t *ids, float *probabilities, size_t capacity,
                            size_t *n) {
    lzs_plan plan;
    *n = 0;
    lzs_status status = lzs_sampler_plan(s, &plan);
    if (status != LZS_OK) return status;
    return lzs_backend_distribution(s->backend, logits, &plan, ids, probabilities, capacity, n);
}

lzs_status lzs_explain(lzs_sampler *s, const float *logits, const int32_t *tokens, size_t n, lzs_explanation *out) {
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= s->n_vocab) return LZS_EINVAL;
    }
    float *row = lzs_room(NULL, (size_t)s->n_vocab, sizeof *row);
    if (!row) return LZS_ENOMEM;
    lzs_plan plan;
    lzs_status status = lzs_sampler_plan(s, &plan);
    if (status == LZS_OK) status = lzs_backend_process(s->backend, logits, &plan, row);
    lzs_grammar *grammar = NULL;
    int32_t place = LZS_DEAD;
    bool scales = status == LZS_OK && s->params.structure != LZS_STRUCTURE_OFF;
    if (scales) status = lzs_state_place(&s->state, &grammar, &place);
    const lzs_params params = grammar ? under_grammar(&s->params) : s->params;
    for (size_t i = 0; status == LZS_OK && i < n; i++) {
        const lzs_edit *made = lzs_sampler_edit_of(s, tokens[i]);
        lzs_explanation e = lzs_explain_edit(lzs_state_looked_at(&s->state), &params, s->log2_vocab, tokens[i], made);
        if (grammar) status = lzs_grammar_free_share(grammar, place, tokens[i], &e.free_share);
        lzs_edit edit = {e.token, e.repeat, e.bias};
        e.allowed = lzs_allowed(plan.mask, e.token);
        e.logit = logits[e.token];
        e.edited = lzs_apply_edit(&edit, e.logit, plan.sign_aware);
        e.after = row[e.token];
        out[i] = e;
    }
    free(row);
    return status;
}

/* ---- threads ---- */

lzs_status lzs_hold(lzs_sampler *s) {
    return lzs_flag_take(&s->held) ? LZS_OK : LZS_EBUSY;
}

void lzs_release(lzs_sampler *s) {
    lzs_flag_give(&s->held);
}

/* Holds the sampler if it is free and has no grammar. (Other samplers may be using a grammar.) */
static bool hold_alone(lzs_sampler *s) {
    if (!lzs_flag_take(&s->held)) return false;
    if (!s->state.cursor.grammar) return true;
    lzs_flag_give(&s->held);
    return false;
}

int32_t lzs_try_sample(lzs_sampler *s, const float *logits) {
    int32_t token;
    if (!hold_alone(s)) return LZS_EBUSY;
    lzs_status status = lzs_sample(s, logits, &token);
    lzs_flag_give(&s->held);
    return status == LZS_OK ? token : status;
}

int64_t lzs_try_step(lzs_sampler *s, const float *logits) {
    int32_t token, looping;
    if (!hold_alone(s)) return LZS_EBUSY;
    lzs_status status = lzs_step(s, logits, &token, &looping);
    lzs_flag_give(&s->held);
    return status == LZS_OK ? 2 * (int64_t)token + looping : status;
}

lzs_status lzs_try_accept(lzs_sampler *s, int32_t token) {
    if (!lzs_flag_take(&s->held)) return LZS_EBUSY;
    lzs_status status = lzs_accept(s, token);
    lzs_flag_give(&s->held);
    return status;
}

/* ---- the paper's penalty alone ---- */

lzs_status lzs_lz_bits(const int32_t *history, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                       int32_t formula, int32_t *tokens, float *bits, size_t capacity, size_t *n_written) {
    *n_written = 0;
    lzs_params params;
    lzs_params_init(&params);
    params.lz_rule = LZS_RULE_PAPER;
    params.lz_penalty = 1.0f;
    params.lz_window = window;
    params.lz_buffer = buffer;
    params.lz_formula = formula;
    params.history = LZS_HISTORY_ALL;
    lzs_sampler *s;
    lzs_status status = lzs_sampler_new(n_vocab, &params, &s);
    if (status == LZS_OK) status = lzs_prime(s, history, n);
    if (status == LZS_OK) {
        size_t n_edits;
        const lzs_edit *edits = lzs_edits(s, &n_edits);
        for (size_t i = 0; i < n_edits; i++) {
            if (edits[i].bias == 0.0f) continue;
            if (*n_written < capacity) {
                tokens[*n_written] = edits[i].token;
                bits[*n_written] = -edits[i].bias; /* the number of bits, since the strength is 1 */
            }
            ++*n_written;
        }
        if (*n_written > capacity) status = LZS_ESPACE;
    }
    lzs_sampler_free(s);
    return status;
}
