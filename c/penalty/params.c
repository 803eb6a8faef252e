/* params.c - the settings of a sampler: defaults, ranges, and what may change between steps. */
#include "params.h"

#include <string.h>

#include "../plan/ranges.h"
#include "penalty.h"

/* The size of lzs_params in the first version of the header. Fields of later versions follow. */
#define FIRST_SIZE offsetof(lzs_params, logit_bias)
#define MAX_NGRAM 64 /* limit of stuck_ngram, because each accepted token costs a hash of so many tokens */

static void set_defaults(lzs_params *params) {
    *params = (lzs_params){
        .size = sizeof *params,
        .loop_min_pattern = 8,
        .loop_min_count = 8,
        .stuck_ngram = 12,
        .stuck_min_count = 3,
        .stuck_weight = 4,
        .stuck_window = 4096,
        .structure = LZS_STRUCTURE_SCALE,
        .temperature = 1.0f,
        .top_p = 1.0f,
    };
    for (const lzs_penalty *const *row = lzs_penalties; *row; row++) (*row)->set_defaults(params);
}

void lzs_params_init_size(lzs_params *params, size_t size) {
    lzs_params defaults;
    set_defaults(&defaults);
    memset(params, 0, size); /* fields that only a header newer than this library has are 0, which is off */
    memcpy(params, &defaults, size < sizeof defaults ? size : sizeof defaults);
    params->size = (uint32_t)size;
}

bool lzs_params_whole(const lzs_params *given, lzs_params *whole) {
    set_defaults(whole);
    if (given->size < FIRST_SIZE || given->size > sizeof *whole) return false;
    memcpy(whole, given, given->size);
    whole->size = sizeof *whole;
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
    const char *name = NULL;
    if (!lzs_params_whole(given, p)) return "size";
    if (n_vocab < 1 || n_vocab > LZS_MAX_VOCAB) return "n_vocab";
    for (const lzs_penalty *const *row = lzs_penalties; *row && !name; row++) name = (*row)->invalid(p, n_vocab);
    if (name) return name;
    if (!lzs_choice(p->history, LZS_HISTORY_ALL)) return "history";
    if (p->loop_max_pattern < 0) return "loop_max_pattern";
    if (p->loop_min_pattern < 1 || (p->loop_max_pattern && p->loop_min_pattern > p->loop_max_pattern)) {
        return "loop_min_pattern";
    }
    if (p->loop_min_count < 2) return "loop_min_count";
    if (p->loop_max_pattern > LZS_MAX_WINDOW / p->loop_min_count) return "loop_max_pattern";
    name = lzs_sampling_invalid(p);
    if (name) return name;
    if (!lzs_tokens_valid(p->exempt, p->n_exempt, n_vocab)) return "exempt";
    if (!biases(p->logit_bias, p->n_logit_bias, n_vocab)) return "logit_bias";
    if (!lzs_choice(p->stuck_threshold, LZS_MAX_WINDOW)) return "stuck_threshold";
    if (p->stuck_ngram < 1 || p->stuck_ngram > MAX_NGRAM) return "stuck_ngram";
    if (p->stuck_min_count < 2) return "stuck_min_count";
    if (!lzs_choice(p->stuck_weight, LZS_MAX_WINDOW)) return "stuck_weight";
    if (p->stuck_window < 1 || p->stuck_window > LZS_MAX_WINDOW) return "stuck_window";
    if (!lzs_choice(p->structure, LZS_STRUCTURE_FREE)) return "structure";
    return NULL;
}

const char *lzs_params_fixed(const lzs_params *given, const lzs_params *other) {
    lzs_params whole, another, *a = &whole, *b = &another;
    const char *name = NULL;
    if (!lzs_params_whole(given, a) || !lzs_params_whole(other, b)) return "size";
    for (const lzs_penalty *const *row = lzs_penalties; *row && !name; row++) name = (*row)->fixed(a, b);
    if (name) return name;
    if (a->history != b->history) return "history";
    if (a->loop_max_pattern != b->loop_max_pattern) return "loop_max_pattern";
    if (a->loop_min_pattern != b->loop_min_pattern) return "loop_min_pattern";
    if (a->loop_min_count != b->loop_min_count) return "loop_min_count";
    if (a->stuck_threshold != b->stuck_threshold) return "stuck_threshold";
    if (a->stuck_ngram != b->stuck_ngram) return "stuck_ngram";
    if (a->stuck_min_count != b->stuck_min_count) return "stuck_min_count";
    if (a->stuck_weight != b->stuck_weight) return "stuck_weight";
    if (a->stuck_window != b->stuck_window) return "stuck_window";
    return (a->structure == LZS_STRUCTURE_FREE) != (b->structure == LZS_STRUCTURE_FREE) ? "structure" : NULL;
}
