/* twin.h - runs the kernels' bodies on the CPU: slow, for tests only. */
#ifndef LZS_CUDA_TWIN_H
#define LZS_CUDA_TWIN_H

#include "launch.h"
#include "settings.h"

lzs_picked lzs_twin_pick(const lzs_pick_row *row);
void lzs_twin_read(const lzs_pick_row *row, int32_t share);
void lzs_twin_weigh(const lzs_pick_row *row, int32_t share);
lzs_folded lzs_twin_fold(const lzs_fold_row *row);

/* Runs all kernels: one block for each row, and one block for each share of a row. */
void lzs_twin_launch(const lzs_launch *launch, int32_t n_rows);

#endif
