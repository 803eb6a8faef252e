/* settings.c - makes the kernels' settings from a plan or from parameters. The host computes everything here that
 * depends on no logit. */
#include "settings.h"

#include "../../penalty/dry.h"
#include "../../penalty/paper.h"
#include "../backend.h"

lzs_pick_settings lzs_pick_settings_of(const lzs_plan *plan) {
    lzs_pick_settings p = {.status = LZS_EINVAL};
    if (lzs_plan_invalid(plan)) return p;
    const float t = plan->temperature > 0.0f ? plan->temperature : 1.0f;
    p.status = LZS_OK;
    p.sign_aware = plan->sign_aware;
    p.keep_ties = plan->ties == LZS_TIES_KEEP;
    p.greedy = plan->temperature == 0.0f;
    p.scale = lzs_temperature_scale(t);
    p.cut_scale = lzs_temperature_scale(plan->temperature_last ? 1.0f : t);
    p.top_k = plan->top_k;
    p.min_p_limit = plan->min_p > 0.0f ? -lzs_log2(plan->min_p > FLT_MIN ? plan->min_p : FLT_MIN) : INFINITY;
    p.top_p = plan->top_p < 1.0f ? (uint64_t)((double)plan->top_p * 4294967296.0 + 0.5) : LZS_TOP_P_OFF;
    p.seed = plan->seed;
    return p;
}

lzs_fold_settings lzs_fold_settings_of(const lzs_params *params, int32_t n_vocab) {
    const size_t counted = lzs_count_window(params);
    return (lzs_fold_settings){.params = *params,
                               .n_vocab = n_vocab,
                               .log2_vocab = lzs_log2((float)n_vocab),
                               .lz_window = params->lz_penalty > 0.0f || params->lz_run_penalty > 0.0f ? params->lz_window : 0,
                               .dry_window = lzs_dry_window(params),
                               .count_window = counted < INT32_MAX ? (int32_t)counted : INT32_MAX};
}
