/* lzs_sampler.c - the sampler's life, and the pipeline on one screen (lzs_sample, lzs_process, lzs_distribution).
 * Read this file first.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

const char *lzs_version(void) {
    return "0.1.0";
}

const char *lzs_kernels_name(void) {
    const lzs_kernels *kernels = lzs_kernels_best();
    return kernels ? kernels->name : "none";
}

float lzs_kernels_scan(const float *x, int32_t n) {
    const lzs_kernels *kernels = lzs_kernels_best();
    return kernels ? kernels->scan(x, n) : NAN;
}

const char *lzs_strerror(int status) {
    switch (status) {
    case LZS_OK: return "ok";
    case LZS_EINVAL: return "an argument or parameter is out of range";
    case LZS_ENOMEM: return "out of memory";
    case LZS_EMASKED: return "no token is allowed: every logit is -inf or masked";
    case LZS_ENAN: return "a logit is NaN";
    case LZS_ESPACE: return "the output arrays are too small";
    default: return "unknown status";
    }
}

/* ---- parameters ---- */

void lzs_params_init(lzs_params *params) {
    *params = (lzs_params){
        .size = sizeof *params,
        .lz_window = 512,
        .lz_buffer = 32,
        .lz_formula = LZS_LZ_RATE,
        .repetition_penalty = 1.0f,
        .repetition_method = LZS_MULTIPLICATIVE,
        .sign_aware = 1,
        .loop_min_pattern = 8,
        .loop_min_count = 8,
        .temperature = 1.0f,
        .top_p = 1.0f,
    };
}

static bool within(float x, float low, float high) {
    return x >= low && x <= high; /* false for NaN */
}

static bool choice(int32_t x, int32_t last) {
    return x >= 0 && x <= last;
}

static bool penalty(float x, int32_t method, float off) {
    return within(x, -FLT_MAX, FLT_MAX) && (method == LZS_SUBTRACTIVE || x >= FLT_MIN || x == off);
}

const char *lzs_params_invalid(const lzs_params *p, int32_t n_vocab) {
    if (p->size != sizeof *p) return "size";
    if (!within(p->lz_penalty, 0.0f, FLT_MAX)) return "lz_penalty";
    if (p->lz_window < 2 || p->lz_window > LZS_MAX_WINDOW) return "lz_window";
    if (p->lz_buffer < 1 || p->lz_buffer > LZS_MAX_BUFFER || p->lz_buffer >= p->lz_window) return "lz_buffer";
    if (!choice(p->lz_formula, LZS_LZ_CODELENGTH)) return "lz_formula";
    if (!choice(p->repetition_method, LZS_MULTIPLICATIVE)) return "repetition_method";
    if (!choice(p->frequency_method, LZS_MULTIPLICATIVE)) return "frequency_method";
    if (!choice(p->presence_method, LZS_MULTIPLICATIVE)) return "presence_method";
    if (!penalty(p->repetition_penalty, p->repetition_method, 1.0f)) return "repetition_penalty";
    if (!penalty(p->frequency_penalty, p->frequency_method, 0.0f)) return "frequency_penalty";
    if (!penalty(p->presence_penalty, p->presence_method, 0.0f)) return "presence_penalty";
    if (!choice(p->sign_aware, 1)) return "sign_aware";
    if (p->penalty_window < 0) return "penalty_window";
    if (!choice(p->history, LZS_HISTORY_ALL)) return "history";
    if (p->loop_max_pattern < 0) return "loop_max_pattern";
    if (p->loop_min_pattern < 1 || (p->loop_max_pattern && p->loop_min_pattern > p->loop_max_pattern)) {
        return "loop_min_pattern";
    }
    if (p->loop_min_count < 2) return "loop_min_count";
    if (p->loop_max_pattern > LZS_MAX_WINDOW / p->loop_min_count) return "loop_max_pattern";
    if (p->temperature != 0.0f && !within(p->temperature, LZS_MIN_TEMPERATURE, LZS_MAX_TEMPERATURE)) {
        return "temperature";
    }
    if (!choice(p->temperature_last, 1)) return "temperature_last";
    if (p->top_k < 0) return "top_k";
    if (!within(p->top_p, 0.0f, 1.0f)) return "top_p";
    if (!within(p->min_p, 0.0f, 1.0f)) return "min_p";
    if (!choice(p->ties, LZS_TIES_KEEP)) return "ties";
    if (!choice(p->pick, LZS_PICK_LLAMA_DIST)) return "pick";
    if (p->n_exempt && !p->exempt) return "exempt";
    for (size_t i = 0; i < p->n_exempt; i++) {
        if (p->exempt[i] < 0 || p->exempt[i] >= n_vocab) return "exempt";
    }
    return NULL;
}

/* ---- lifecycle ---- */

static int by_id(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static size_t mask_words(const lzs_sampler *s) {
    return ((size_t)s->n_vocab + 31) / 32;
}

/* What a sampler owns besides its history, which is there. */
static lzs_status allocate(lzs_sampler *s, const int32_t *exempt) {
    const lzs_params *p = &s->params;
    if (p->n_exempt) {
        s->exempt = malloc(p->n_exempt * sizeof *s->exempt);
        if (!s->exempt) return LZS_ENOMEM;
        memcpy(s->exempt, exempt, p->n_exempt * sizeof *s->exempt);
        qsort(s->exempt, p->n_exempt, sizeof *s->exempt, by_id);
    }
    s->params.exempt = s->exempt;
    if (p->pick == LZS_PICK_LLAMA_DIST) {
        s->dist = lzs_dist_new(s->n_vocab, p->seed);
        if (!s->dist) return LZS_ENOMEM;
    }
    if (p->loop_max_pattern) {
        s->detector = lzs_detector_new(p);
        if (!s->detector) return LZS_ENOMEM;
    }
    lzs_status status = lzs_edits_init(&s->edits, p, s->log2_vocab, s->history.n_reach);
    return status == LZS_OK ? lzs_edits_reserve(&s->edits, s->history.bag.capacity) : status;
}

lzs_status lzs_sampler_new(int32_t n_vocab, const lzs_params *params, lzs_sampler **sampler) {
    *sampler = NULL;
    const lzs_kernels *kernels = lzs_kernels_best();
    if (n_vocab < 1 || lzs_params_invalid(params, n_vocab) || !kernels) return LZS_EINVAL;
    lzs_sampler *s = calloc(1, sizeof *s);
    if (!s) return LZS_ENOMEM;
    s->params = *params;
    s->n_vocab = n_vocab;
    s->log2_vocab = lzs_log2((float)n_vocab);
    s->kernels = kernels;

    float off = params->repetition_method == LZS_MULTIPLICATIVE ? 1.0f : 0.0f;
    bool counts = params->repetition_penalty != off || params->frequency_penalty != 0.0f ||
                  params->presence_penalty != 0.0f;
    size_t count_window = !counts ? 0 : params->penalty_window ? (size_t)params->penalty_window : SIZE_MAX;
    bool lz = params->lz_penalty > 0.0f;
    lzs_status status = lzs_history_init(&s->history, lz ? params->lz_window : 0, lz ? params->lz_buffer : 0,
                                         count_window, n_vocab, s->kernels);
    if (status == LZS_OK) status = allocate(s, params->exempt);
    if (status != LZS_OK) {
        lzs_sampler_free(s);
        return status;
    }
    *sampler = s;
    return LZS_OK;
}

lzs_status lzs_sampler_clone(const lzs_sampler *from, lzs_sampler **clone) {
    *clone = NULL;
    lzs_sampler *s = malloc(sizeof *s);
    if (!s) return LZS_ENOMEM;
    *s = *from;
    s->exempt = NULL;
    s->mask = NULL;
    s->dist = NULL;
    s->detector = NULL;
    s->edits = (lzs_edits_buffer){0};
    lzs_status status = lzs_history_copy(&s->history, &from->history);
    if (status == LZS_OK) status = allocate(s, from->exempt);
    if (status == LZS_OK && from->masked) status = lzs_set_mask(s, from->mask, mask_words(from));
    if (status != LZS_OK) {
        lzs_sampler_free(s);
        return status;
    }
    if (s->detector) lzs_detector_copy(s->detector, from->detector);
    *clone = s;
    return LZS_OK;
}

void lzs_sampler_reset(lzs_sampler *s) {
    lzs_history_clear(&s->history);
    if (s->detector) lzs_detector_clear(s->detector);
    s->edits.valid = false;
    s->position = 0;
    s->masked = false;
}

void lzs_sampler_free(lzs_sampler *s) {
    if (!s) return;
    lzs_history_free(&s->history);
    lzs_edits_free(&s->edits);
    lzs_dist_free(s->dist);
    free(s->detector);
    free(s->exempt);
    free(s->mask);
    free(s);
}

int32_t lzs_n_vocab(const lzs_sampler *s) {
    return s->n_vocab;
}

uint64_t lzs_position(const lzs_sampler *s) {
    return s->position;
}

size_t lzs_memory(const lzs_sampler *s) {
    size_t bytes = sizeof *s + lzs_history_memory(&s->history) + lzs_edits_memory(&s->edits);
    bytes += s->params.n_exempt * sizeof *s->exempt;
    if (s->mask) bytes += mask_words(s) * sizeof *s->mask;
    if (s->dist) bytes += sizeof *s->dist + (size_t)s->n_vocab * sizeof *s->dist->order;
    if (s->detector) bytes += lzs_detector_memory(s->detector);
    return bytes;
}

/* ---- history ---- */

static lzs_status append(lzs_sampler *s, const int32_t *tokens, size_t n) {
    lzs_status status = lzs_history_append(&s->history, tokens, n);
    s->edits.valid = false;
    if (status != LZS_OK) return status;
    status = lzs_edits_reserve(&s->edits, s->history.bag.capacity);
    if (status != LZS_OK) lzs_history_rewind(&s->history, n);
    return status;
}

lzs_status lzs_prime(lzs_sampler *s, const int32_t *tokens, size_t n) {
    if (s->position > 0 || (n && !tokens)) return LZS_EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= s->n_vocab) return LZS_EINVAL;
    }
    return s->params.history == LZS_HISTORY_ALL ? append(s, tokens, n) : LZS_OK;
}

static const int32_t *accepted(const lzs_sampler *s) {
    return s->history.tokens + (s->history.n - s->position);
}

lzs_status lzs_accept(lzs_sampler *s, int32_t token) {
    if (token < 0 || token >= s->n_vocab) return LZS_EINVAL;
    lzs_status status = append(s, &token, 1);
    if (status != LZS_OK) return status;
    s->position++;
    if (s->detector) lzs_detector_accept(s->detector, accepted(s), s->position);
    return LZS_OK;
}

lzs_status lzs_rewind(lzs_sampler *s, size_t n) {
    if (n > s->position) return LZS_EINVAL;
    lzs_history_rewind(&s->history, n);
    s->position -= n;
    s->edits.valid = false;
    if (s->detector && n) lzs_detector_rewind(s->detector, accepted(s), s->position);
    return LZS_OK;
}

int lzs_loop_found(const lzs_sampler *s, lzs_loop *loop) {
    if (!s->detector || !s->detector->found.count) return 0;
    *loop = s->detector->found;
    return 1;
}

lzs_status lzs_set_mask(lzs_sampler *s, const uint32_t *words, size_t n_words) {
    if (words) {
        if (n_words != mask_words(s)) return LZS_EINVAL;
        if (!s->mask) s->mask = malloc(n_words * sizeof *s->mask);
        if (!s->mask) return LZS_ENOMEM;
        memcpy(s->mask, words, n_words * sizeof *s->mask);
    }
    s->masked = words != NULL;
    return LZS_OK;
}

/* ---- the pipeline ---- */

const lzs_edit *lzs_edits(lzs_sampler *s, size_t *n) {
    lzs_edits_make(&s->edits, &s->history, &s->params, s->log2_vocab);
    *n = s->edits.n;
    return s->edits.edits;
}

void lzs_patch(lzs_sampler *s, float *logits) {
    size_t n;
    const lzs_edit *edits = lzs_edits(s, &n);
    for (size_t i = 0; i < n; i++) {
        float *x = &logits[edits[i].token];
        s->edits.saved[i] = *x;
        *x = lzs_edit_apply(&edits[i], *x, s->params.sign_aware);
    }
}

void lzs_unpatch(lzs_sampler *s, float *logits) {
    for (size_t i = 0; i < s->edits.n; i++) logits[s->edits.edits[i].token] = s->edits.saved[i];
}

static lzs_status survive(const lzs_sampler *s, const float *logits, lzs_survivors *v) {
    lzs_row row = {logits, s->n_vocab, s->masked ? s->mask : NULL};
    return lzs_survive(s->kernels, &row, &s->params, v);
}

static bool stays(const lzs_survivors *v, int32_t id) {
    return lzs_inside(v->cut, lzs_key(v->row.x[id]), id) && lzs_allowed(v->row.mask, id);
}

lzs_status lzs_sample(lzs_sampler *s, float *logits, int32_t *token) {
    lzs_survivors v;
    lzs_patch(s, logits);
    lzs_status status = survive(s, logits, &v);
    if (status != LZS_OK) {
        *token = -1;
    } else if (s->params.temperature == 0.0f) {
        *token = v.top.argmax;
    } else if (s->dist) {
        *token = lzs_dist_pick(s->dist, &v, &s->params, s->position);
    } else {
        *token = lzs_race_pick(s->kernels, &v, &s->params, s->position);
    }
    lzs_unpatch(s, logits);
    return status;
}

lzs_status lzs_process(lzs_sampler *s, float *logits) {
    lzs_survivors v;
    lzs_patch(s, logits);
    lzs_status status = survive(s, logits, &v);
    if (status != LZS_OK) {
        lzs_unpatch(s, logits);
        return status;
    }
    float t = s->params.temperature > 0.0f ? s->params.temperature : 1.0f;
    for (int32_t i = 0; i < s->n_vocab; i++) {
        if (!stays(&v, i)) {
            logits[i] = -INFINITY;
        } else if (logits[i] <= FLT_MAX) { /* a token that stays is not cut by its own size */
            logits[i] = lzs_finite(logits[i] / t);
        }
    }
    return LZS_OK;
}

lzs_status lzs_distribution(lzs_sampler *s, float *logits, int32_t *ids, float *probabilities, size_t capacity,
                            size_t *n) {
    lzs_survivors v;
    *n = 0;
    lzs_patch(s, logits);
    lzs_status status = survive(s, logits, &v);
    if (status == LZS_OK) {
        float t = s->params.temperature;
        lzs_scale scale = {v.top.max, lzs_temperature_scale(t > 0.0f ? t : 1.0f)};
        double sum = 0.0; /* in order of ids: the same sum everywhere */
        for (int32_t i = 0; i < s->n_vocab; i++) {
            if (stays(&v, i)) {
                sum += lzs_exp2_neg(lzs_y(scale, logits[i]));
                ++*n;
            }
        }
        if (*n > capacity) status = LZS_ESPACE;
        size_t at = 0;
        for (int32_t i = 0; status == LZS_OK && i < s->n_vocab; i++) {
            if (stays(&v, i)) {
                ids[at] = i;
                probabilities[at++] = (float)(lzs_exp2_neg(lzs_y(scale, logits[i])) / sum);
            }
        }
    }
    lzs_unpatch(s, logits);
    return status;
}

/* ---- the LZ penalty by itself ---- */

lzs_status lzs_lz_bits(const int32_t *history, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                       int32_t formula, int32_t *tokens, float *bits, size_t capacity, size_t *n_written) {
    *n_written = 0;
    lzs_params params;
    lzs_params_init(&params);
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
                bits[*n_written] = -edits[i].bias; /* at strength 1 */
            }
            ++*n_written;
        }
        if (*n_written > capacity) status = LZS_ESPACE;
    }
    lzs_sampler_free(s);
    return status;
}
