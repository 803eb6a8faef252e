/* twin.h - runs the kernels' bodies on the CPU: slow, for tests only. */
#ifndef LZS_CUDA_TWIN_H
#define LZS_CUDA_TWIN_H

#include "launch.h"
#include "settings.h"

lzs_search lzs_twin_step(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f);
lzs_folded lzs_twin_fold(const lzs_fold_row *row);

/* What runs a step of a block: lzs_twin_step, unless a test says otherwise. */
extern lzs_search (*lzs_run_step)(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f);

/* Clears a row's state and runs its steps in all its blocks. */
lzs_picked lzs_twin_pick(const lzs_pick_row *row);

/* Runs all kernels. */
void lzs_twin_launch(const lzs_launch *launch, int32_t n_rows);

#endif
