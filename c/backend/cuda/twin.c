/* twin.c - runs the kernels' bodies on the CPU. As on a GPU, shared memory holds garbage when a block begins. */
#include "twin.h"

#include <stdlib.h>

lzs_twin lzs_the_twin = {.threads = 32};

/* The blocks of a row, each with shared memory of its own, take their steps one after another. */
static void run_steps(const lzs_pick_row *row) {
    const size_t size = sizeof(lzs_pick_shared) + (size_t)row->share_size * sizeof(float);
    lzs_search *searches = malloc((size_t)row->n_shares * sizeof *searches);
    char *shared = malloc((size_t)row->n_shares * size);
    if (!searches || !shared) abort();
    memset(shared, 0xA5, (size_t)row->n_shares * size);
    for (int32_t i = 0; i < row->n_shares; i++) searches[i] = lzs_first_search();
    for (bool forward = true; searches[0].stage != LZS_STAGE_DONE; forward = !forward) { /* blocks may come in any order */
        for (int32_t i = 0; i < row->n_shares; i++) {
            const int32_t at = forward ? i : row->n_shares - 1 - i;
            lzs_pick_shared *own = (lzs_pick_shared *)(void *)(shared + (size_t)at * size);
            searches[at] = lzs_run_step(own, row, at, searches[at]);
        }
    }
    free(shared);
    free(searches);
}

lzs_search (*lzs_run_step)(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f) = lzs_twin_step;

lzs_search lzs_twin_step(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f) {
    return lzs_row_step(s, row, share, f);
}

lzs_picked lzs_twin_pick(const lzs_pick_row *row) {
    lzs_the_twin.lossy_at = NULL;
    for (uint32_t tid = 0; tid < lzs_the_twin.threads; tid++) lzs_clear_row(row->state, tid);
    run_steps(row);
    return lzs_picked_of(row);
}

lzs_folded lzs_twin_fold(const lzs_fold_row *row) {
    static lzs_fold_shared shared;
    memset(&shared, 0xA5, sizeof shared);
    return lzs_fold_row_edits(&shared, row);
}

void lzs_twin_launch(const lzs_launch *launch, int32_t n_rows) {
    static lzs_fold_shared fold;
    for (int32_t i = n_rows - 1; i >= 0; i--) { /* a GPU may run blocks in any order */
        memset(&fold, 0xA5, sizeof fold);
        lzs_launch_fold(&fold, launch, i);
    }
    for (int32_t i = 0; i < n_rows; i++) {
        lzs_pick_row row = lzs_row_of_launch(launch, i);
        lzs_edits_of_launch(launch, i, &row);
        run_steps(&row);
        lzs_launch_end(launch, &row, i);
    }
}
