/* pick.h - picks the token of a row by some blocks of threads: edits, mask, truncation and draw as docs/determinism.md
 * specifies. The blocks take steps, between which they wait for each other. */
#ifndef LZS_CUDA_PICK_H
#define LZS_CUDA_PICK_H

#include "race.h"

typedef struct lzs_picked {
    int32_t token, status; /* the token is -1 unless the status is LZS_OK */
} lzs_picked;

/* What a block knows before its first step. */
LZS_DEVICE static inline lzs_search lzs_first_search(void) {
    return (lzs_search){LZS_STAGE_READ, 0.0f, {LZS_KEY_LEAST, INT32_MAX}, false, 0, -1, 0, 0, 0, -1};
}

/* Makes the block's next step. Returns the search with the stage of the step that follows; LZS_STAGE_DONE ends it. */
LZS_BODY lzs_search lzs_row_step(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f) {
    if (f.stage <= LZS_STAGE_EDIT && row->status != LZS_OK) {
        f.stage = LZS_STAGE_DONE;
        return f;
    }
    if (f.stage == LZS_STAGE_READ) {
        lzs_read_share(s, row, share);
        f.stage = LZS_STAGE_EDIT;
        return f;
    }
    if (f.stage == LZS_STAGE_EDIT) {
        lzs_edit_share(s, row, share);
        f.stage = LZS_STAGE_TOP;
        return f;
    }
    if (f.stage == LZS_STAGE_LIST) return lzs_list_bin(s, row, share, f);
    if (f.stage == LZS_STAGE_RACE || lzs_status_of(row->state) != LZS_OK) {
        f.stage = LZS_STAGE_DONE;
        return f;
    }
    f.max = lzs_key_float(row->state->top);
    const uint32_t n = f.stage == LZS_STAGE_CUT && f.bin < LZS_CUDA_BINS ? row->state->histograms[f.turn & 1].n_listed : 0;
    if (row->settings->greedy) {
        f.cut.key = row->state->top;
        f.stage = LZS_STAGE_RACE;
    } else if (n > LZS_CUDA_LIST) {
        f = lzs_finer(row, f);
        f.stage = LZS_STAGE_LIST;
    } else {
        if (n) f.cut = lzs_cut_of_list(s, row, &f, n);
        f = lzs_next_cut(row, f);
    }
    if (f.stage == LZS_STAGE_LIST) {
        lzs_add_to_bins(s, row, lzs_share_of(row, share), &f);
    } else {
        lzs_race_share(s, row, lzs_share_of(row, share), &f);
    }
    return f;
}

/* The token of a row, after all its blocks' last steps. */
LZS_DEVICE static inline lzs_picked lzs_picked_of(const lzs_pick_row *row) {
    lzs_picked picked = {-1, row->status};
    if (picked.status == LZS_OK) picked.status = lzs_status_of(row->state);
    if (picked.status == LZS_OK) picked.token = (int32_t)(uint32_t)row->state->winner;
    return picked;
}

#endif
