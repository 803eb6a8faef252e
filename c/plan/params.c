/* params.c - the settings of a sampler: defaults, ranges, and what may change between steps. */
#include "params.h"

#include <float.h>
#include <string.h>

#include "../state/state.h"

/* The struct of the first interface; later fields follow it. */
#define FIRST_SIZE offsetof(lzs_params, logit_bias)
#define MAX_NGRAM 64 /* each token that is accepted costs a hash of as many */

static const lzs_params defaults = {
    .size = sizeof(lzs_params),
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
    .dry_base = 1.75f,
    .dry_allowed_length = 2,
    .dry_penalty_last_n = -1,
    .stuck_ngram = 12,
    .stuck_min_count = 3,
    .stuck_weight = 4,
    .stuck_window = 4096,
};

void lzs_params_init_size(lzs_params *params, size_t size) {
    memset(params, 0, size); /* what a newer header has behind our fields is off */
    memcpy(params, &defaults, size < sizeof defaults ? size : sizeof defaults);
    params->size = (uint32_t)size;
}

bool lzs_params_whole(const lzs_params *given, lzs_params *whole) {
    *whole = defaults;
    if (given->size < FIRST_SIZE || given->size > sizeof *whole) return false;
    memcpy(whole, given, given->size);
    whole->size = sizeof *whole;
    return true;
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

static bool tokens(const int32_t *list, size_t n, int32_t n_vocab) {
    if (n && !list) return false;
    for (size_t i = 0; i < n; i++) {
        if (list[i] < 0 || list[i] >= n_vocab) return false;
    }
    return true;
}

static bool biases(const lzs_logit_bias *list, size_t n, int32_t n_vocab) {
    if (n && !list) return false;
    for (size_t i = 0; i < n; i++) {
        if (list[i].token < 0 || list[i].token >= n_vocab || !(list[i].bias <= FLT_MAX)) return false;
    }
    return true;
}

const char *lzs_params_invalid(const lzs_params *given, int32_t n_vocab) {
    lzs_params whole, *p = &whole;
    if (!lzs_params_whole(given, p)) return "size";
    if (n_vocab < 1 || n_vocab > LZS_MAX_VOCAB) return "n_vocab";
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
    if (!tokens(p->exempt, p->n_exempt, n_vocab)) return "exempt";
    if (!biases(p->logit_bias, p->n_logit_bias, n_vocab)) return "logit_bias";
    if (!within(p->dry_multiplier, 0.0f, FLT_MAX)) return "dry_multiplier";
    if (!within(p->dry_base, 1.0f, FLT_MAX)) return "dry_base";
    if (p->dry_allowed_length < 0 || p->dry_allowed_length > UINT16_MAX) return "dry_allowed_length";
    if (p->dry_penalty_last_n < -1 || p->dry_penalty_last_n > LZS_MAX_WINDOW) return "dry_penalty_last_n";
    if (!tokens(p->dry_breakers, p->n_dry_breakers, n_vocab)) return "dry_breakers";
    if (!choice(p->stuck_threshold, LZS_MAX_WINDOW)) return "stuck_threshold";
    if (p->stuck_ngram < 1 || p->stuck_ngram > MAX_NGRAM) return "stuck_ngram";
    if (p->stuck_min_count < 2) return "stuck_min_count";
    if (!choice(p->stuck_weight, LZS_MAX_WINDOW)) return "stuck_weight";
    if (p->stuck_window < 1 || p->stuck_window > LZS_MAX_WINDOW) return "stuck_window";
    return NULL;
}

const char *lzs_params_fixed(const lzs_params *given, const lzs_params *other) {
    lzs_params whole, another, *a = &whole, *b = &another;
    if (!lzs_params_whole(given, a) || !lzs_params_whole(other, b)) return "size";
    if ((a->lz_penalty > 0.0f) != (b->lz_penalty > 0.0f)) return "lz_penalty";
    if (a->lz_window != b->lz_window) return "lz_window";
    if (a->lz_buffer != b->lz_buffer) return "lz_buffer";
    if (!lzs_count_window(a) != !lzs_count_window(b)) return "repetition_penalty";
    if (lzs_count_window(a) != lzs_count_window(b)) return "penalty_window";
    if (a->history != b->history) return "history";
    if (a->loop_max_pattern != b->loop_max_pattern) return "loop_max_pattern";
    if (a->loop_min_pattern != b->loop_min_pattern) return "loop_min_pattern";
    if (a->loop_min_count != b->loop_min_count) return "loop_min_count";
    if (a->pick != b->pick) return "pick";
    if (!lzs_dry_window(a) != !lzs_dry_window(b)) return "dry_multiplier";
    if (lzs_dry_window(a) != lzs_dry_window(b)) return "dry_penalty_last_n";
    if (a->stuck_threshold != b->stuck_threshold) return "stuck_threshold";
    if (a->stuck_ngram != b->stuck_ngram) return "stuck_ngram";
    if (a->stuck_min_count != b->stuck_min_count) return "stuck_min_count";
    if (a->stuck_weight != b->stuck_weight) return "stuck_weight";
    return a->stuck_window != b->stuck_window ? "stuck_window" : NULL;
}
