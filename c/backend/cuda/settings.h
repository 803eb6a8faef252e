/* settings.h - makes the kernels' settings from a plan or from parameters, on the host. */
#ifndef LZS_CUDA_SETTINGS_H
#define LZS_CUDA_SETTINGS_H

#include "fold.h"
#include "pick.h"

/* Returns the truncation and the draw of a plan, and ignores the plan's edits, mask and position. If a number is out of
 * range, the status in the result is LZS_EINVAL. */
lzs_pick_settings lzs_pick_settings_of(const lzs_plan *plan);

/* `params` must be valid and complete. Their lists must be sorted, with one bias per token. The result points to these
 * lists and does not copy them. */
lzs_fold_settings lzs_fold_settings_of(const lzs_params *params, int32_t n_vocab);

#endif
