/* pick.h - the token of a row: edits, mask, truncation and draw of docs/determinism.md by one block of threads. */
#ifndef LZS_CUDA_PICK_H
#define LZS_CUDA_PICK_H

#include "race.h"

typedef struct lzs_picked {
    int32_t token, status; /* the token is -1 unless the status is LZS_OK */
} lzs_picked;

LZS_BODY lzs_picked lzs_pick_row_token(lzs_pick_shared *s, const lzs_pick_row *row) {
    lzs_picked picked = {-1, row->settings.status};
    if (picked.status != LZS_OK) return picked;
    lzs_read_row(s, row);
    LZS_READ(20, uint32_t, problem, problem);
    LZS_READ(21, uint32_t, top, top);
    LZS_READ(22, uint32_t, argmax, argmax);
    if (problem & LZS_PROBLEM_EDIT) {
        picked.status = LZS_EINVAL;
    } else if (problem) {
        picked.status = LZS_ENAN;
    } else if (top == LZS_KEY_NEVER) {
        picked.status = LZS_EMASKED;
    } else if (row->settings.greedy) {
        picked.token = (int32_t)argmax;
    } else {
        const float max = lzs_key_float(top);
        picked.token = lzs_race_row(s, row, lzs_truncate_row(s, row, max), max, (int32_t)argmax);
    }
    return picked;
}

#endif
