/* launch.h - the arguments of a kernel launch, and how they give each row's arguments. */
#ifndef LZS_CUDA_LAUNCH_H
#define LZS_CUDA_LAUNCH_H

#include "fold.h"
#include "pick.h"

/* A slot in device memory. One copy writes the slot and its lists together, so a failed copy leaves the old slot and
 * lists. */
typedef struct lzs_batch_slot {
    lzs_pick_settings pick;
    lzs_fold_settings fold;
    int32_t has_plan; /* the slot has a plan's edits and position; else they come from the history */
    int32_t n_edits;
    uint64_t position;
} lzs_batch_slot;

/* All pointers are to device memory. */
typedef struct lzs_launch {
    lzs_batch_step step;
    int32_t n_vocab, n_slots;
    uint32_t max_edits, n_table; /* slots of a hash table */
    const char *slots;   /* (n_slots) each a lzs_batch_slot, then the edits of its plan, or the lists of its parameters */
    size_t slot_bytes;
    /* Scratch memory, (max_rows) of each */
    lzs_folded *folded;
    lzs_edit *edits;      /* (max_edits) */
    uint32_t *used;       /* (max_edits) */
    lzs_fold_slot *table; /* (n_table) */
    lzs_row_state *states;
    int32_t n_shares, share_size; /* of each row of this step */
} lzs_launch;

/* The number of a row's slot, or -1 if the row has none. */
LZS_DEVICE static inline int32_t lzs_slot_of_row(const lzs_launch *l, int32_t row) {
    const int32_t slot = l->step.slots ? l->step.slots[row] : row;
    return slot >= 0 && slot < l->n_slots ? slot : -1;
}

LZS_DEVICE static inline const lzs_batch_slot *lzs_slot_at(const lzs_launch *l, int32_t slot) {
    return (const lzs_batch_slot *)(const void *)(l->slots + (size_t)slot * l->slot_bytes);
}

/* The most tokens of a history of n tokens that can get an edit. */
LZS_DEVICE static inline size_t lzs_most_edits(const lzs_fold_settings *f, int32_t n) {
    int32_t window = f->count_window > f->lz_window ? f->count_window : f->lz_window;
    if (f->dry_window > window) window = f->dry_window;
    return (size_t)(n < window ? n : window) + f->params.n_logit_bias;
}

/* Clears the state of a row, and makes the row's edits from its history. */
LZS_BODY void lzs_launch_fold(lzs_fold_shared *s, const lzs_launch *l, int32_t at) {
    const int32_t slot = lzs_slot_of_row(l, at);
    const lzs_fold_slot none = {0, 0, 0, 0, 0, 0, 0};
    LZS_BEGIN(230) {
        lzs_clear_row(&l->states[at], tid);
        for (uint32_t i = tid; i < LZS_FOLD_SLOTS; i += LZS_THREADS) s->slots[i] = none;
    }
    LZS_END
    if (slot < 0 || lzs_slot_at(l, slot)->pick.status != LZS_OK || lzs_slot_at(l, slot)->has_plan) return;
    const size_t edits = (size_t)at * l->max_edits;
    const lzs_fold_settings *settings = &lzs_slot_at(l, slot)->fold;
    const bool given = l->step.histories != NULL;
    const int32_t start = given && l->step.starts ? l->step.starts[at] : 0, end = given ? l->step.lengths[at] : 0;
    const bool looks = settings->lz_window || settings->dry_window || settings->count_window;
    lzs_folded folded = {0, LZS_EINVAL};
    if ((given || !looks) && start >= 0 && start <= end && end <= l->step.history_stride) {
        const int32_t *history = given ? l->step.histories + (size_t)at * (size_t)l->step.history_stride + start : NULL;
        const bool small = 2 * lzs_most_edits(settings, end - start) <= LZS_FOLD_SLOTS;
        lzs_fold_row row = {settings,         history,      end - start, l->edits + edits, l->used + edits,
                            l->max_edits, s->slots, LZS_FOLD_SLOTS};
        if (small) { /* compiled by itself, since atomic operations on shared memory are faster */
            folded = lzs_fold_row_edits(s, &row);
        } else {
            row.slots = l->table + (size_t)at * l->n_table;
            row.n_slots = l->n_table;
            folded = lzs_fold_row_edits(s, &row);
        }
    }
    LZS_BEGIN(240) {
        if (tid == 0) l->folded[at] = folded;
    }
    LZS_END
}

/* Returns a row before its edits are known. */
LZS_DEVICE static inline lzs_pick_row lzs_row_of_launch(const lzs_launch *l, int32_t at) {
    const int32_t slot = lzs_slot_of_row(l, at);
    const size_t size = l->step.dtype == LZS_F32 ? sizeof(float) : sizeof(uint16_t);
    const lzs_batch_slot *held = lzs_slot_at(l, slot < 0 ? 0 : slot);
    return (lzs_pick_row){&held->pick,
                          slot < 0 ? LZS_EINVAL : held->pick.status,
                          (const char *)l->step.logits + (size_t)at * (size_t)l->step.row_stride * size,
                          l->step.dtype,
                          l->n_vocab,
                          l->step.masks ? l->step.masks + (size_t)at * (size_t)l->step.mask_stride : NULL,
                          NULL,
                          0,
                          held->position,
                          l->n_shares,
                          l->share_size,
                          l->states + at};
}

/* Completes a row by its edits, after lzs_launch_fold has made them. */
LZS_DEVICE static inline void lzs_edits_of_launch(const lzs_launch *l, int32_t at, lzs_pick_row *row) {
    if (row->status != LZS_OK) return;
    const lzs_batch_slot *held = lzs_slot_at(l, lzs_slot_of_row(l, at));
    if (held->has_plan) {
        row->edits = (const lzs_edit *)(const void *)(held + 1);
        row->n_edits = held->n_edits;
        return;
    }
    row->status = l->step.positions ? l->folded[at].status : LZS_EINVAL;
    row->edits = l->edits + (size_t)at * l->max_edits;
    row->n_edits = l->folded[at].n_edits;
    if (l->step.positions) row->position = (uint64_t)l->step.positions[at];
}

/* Writes the token of a row, after all its steps. One thread calls this. */
LZS_DEVICE static inline void lzs_launch_end(const lzs_launch *l, const lzs_pick_row *row, int32_t at) {
    const lzs_picked picked = lzs_picked_of(row);
    l->step.tokens[at] = picked.token;
    l->step.statuses[at] = picked.status;
}

#endif
