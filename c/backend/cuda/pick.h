/* pick.h - picks the token of a row by one block of threads: edits, mask, truncation and draw as docs/determinism.md
 * specifies. */
#ifndef LZS_CUDA_PICK_H
#define LZS_CUDA_PICK_H

#include "race.h"

typedef struct lzs_picked {
    int32_t token, status; /* the token is -1 unless the status is LZS_OK */
} lzs_picked;

LZS_BODY lzs_picked lzs_pick_row_token(lzs_pick_shared *s, const lzs_pick_row *row) {
    lzs_picked picked = {-1, row->settings.status};
    if (picked.status != LZS_OK) return picked;
    const lzs_groups all = {0, lzs_groups_of(row->n)};
    const lzs_share whole = row->n_shares ? lzs_sum_of_shares(row) : lzs_read_groups(&s->read, row, all);
    const lzs_row_top top = lzs_top_of_row(s, row, whole);
    picked.status = top.status;
    picked.token = top.token;
    if (top.status != LZS_OK || row->settings.greedy) return picked;
    const float max = lzs_key_float(top.key);
    picked.token = lzs_race_row(s, row, lzs_truncate_row(s, row, max), max, top.token);
    return picked;
}

#endif
