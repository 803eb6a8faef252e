/* settings.h - what the kernels need of a plan or of parameters, made on the host. */
#ifndef LZS_CUDA_SETTINGS_H
#define LZS_CUDA_SETTINGS_H

#include "fold.h"
#include "pick.h"

/* The truncation and the draw of a plan; its edits, mask and position are not looked at. The status is LZS_EINVAL if a number
 * is out of range. */
lzs_pick_settings lzs_pick_settings_of(const lzs_plan *plan);

/* `params` are valid and whole; their lists are sorted, with one bias a token, and stay where they are. */
lzs_fold_settings lzs_fold_settings_of(const lzs_params *params, int32_t n_vocab);

#endif
