/* twin.c - runs the kernels' bodies on the CPU. As on a GPU, shared memory holds garbage when a block begins. */
#include "twin.h"

lzs_twin lzs_the_twin = {.threads = 32};

lzs_picked lzs_twin_pick(const lzs_pick_row *row) {
    static lzs_pick_shared shared;
    memset(&shared, 0xA5, sizeof shared);
    return lzs_pick_row_token(&shared, row);
}

void lzs_twin_read(const lzs_pick_row *row, int32_t share) {
    static lzs_read_shared shared;
    memset(&shared, 0xA5, sizeof shared);
    lzs_read_share(&shared, row, share);
}

void lzs_twin_weigh(const lzs_pick_row *row, int32_t share) {
    static lzs_read_shared shared;
    memset(&shared, 0xA5, sizeof shared);
    lzs_weigh_share(&shared, row, share);
}

lzs_folded lzs_twin_fold(const lzs_fold_row *row) {
    static lzs_fold_shared shared;
    memset(&shared, 0xA5, sizeof shared);
    return lzs_fold_row_edits(&shared, row);
}

void lzs_twin_launch(const lzs_launch *launch, int32_t n_rows) {
    static lzs_fold_shared fold;
    static lzs_read_shared read;
    static lzs_pick_shared pick;
    for (int32_t i = n_rows - 1; i >= 0; i--) { /* a GPU may run blocks in any order */
        memset(&fold, 0xA5, sizeof fold);
        lzs_launch_fold(&fold, launch, i);
    }
    for (int32_t i = n_rows * launch->n_shares - 1; i >= 0; i--) {
        memset(&read, 0xA5, sizeof read);
        lzs_launch_read(&read, launch, i / launch->n_shares, i % launch->n_shares);
    }
    for (int32_t i = 0; i < n_rows * launch->n_shares; i++) {
        memset(&read, 0xA5, sizeof read);
        lzs_launch_weigh(&read, launch, i / launch->n_shares, i % launch->n_shares);
    }
    for (int32_t i = 0; i < n_rows; i++) {
        memset(&pick, 0xA5, sizeof pick);
        lzs_launch_pick(&pick, launch, i);
    }
}
