/* cuda_fibers.h - a block whose threads each have a stack of their own and wait for each other at every barrier, as on a GPU: slower
 * than the loops of the twin, and any barrier can be left out. They take turns, so what runs between two barriers runs undisturbed. */
#ifndef LZS_TESTS_CUDA_FIBERS_H
#define LZS_TESTS_CUDA_FIBERS_H

#include <ucontext.h>

#include "cuda_case.h"

enum { FIBERS = 32, FIBER_STACK = 1 << 17 };

static struct {
    ucontext_t scheduler, threads[FIBERS];
    char stacks[FIBERS][FIBER_STACK];
    bool done[FIBERS];
    enum { FIBER_READ, FIBER_WEIGH, FIBER_PICK, FIBER_FOLD } kernel;
    const lzs_pick_row *row;
    const lzs_fold_row *fold;
    int32_t share;
    lzs_read_shared read_shared;
    lzs_pick_shared pick_shared;
    lzs_fold_shared fold_shared;
    lzs_picked picked[FIBERS];
    lzs_folded folded[FIBERS];
} block;

static void fiber_waits(void) {
    uint32_t tid = lzs_the_twin.tid;
    swapcontext(&block.threads[tid], &block.scheduler);
    lzs_the_twin.tid = tid;
}

static void fiber_runs(void) {
    uint32_t tid = lzs_the_twin.tid;
    switch (block.kernel) {
    case FIBER_READ: lzs_read_share(&block.read_shared, block.row, block.share); break;
    case FIBER_WEIGH: lzs_weigh_share(&block.read_shared, block.row, block.share); break;
    case FIBER_PICK: block.picked[tid] = lzs_pick_row_token(&block.pick_shared, block.row); break;
    case FIBER_FOLD: block.folded[tid] = lzs_fold_row_edits(&block.fold_shared, block.fold); break;
    }
    block.done[tid] = true;
}

static __attribute__((noinline)) void begin(uint32_t tid) {
    ucontext_t *thread = &block.threads[tid];
    block.done[tid] = false;
    getcontext(thread);
    thread->uc_stack.ss_sp = block.stacks[tid];
    thread->uc_stack.ss_size = FIBER_STACK;
    thread->uc_link = &block.scheduler;
    makecontext(thread, fiber_runs, 0);
}

static __attribute__((noinline)) void turn(uint32_t tid) {
    lzs_the_twin.tid = tid;
    swapcontext(&block.scheduler, &block.threads[tid]);
}

/* Thread number `at` in the order of this round. */
static uint32_t thread_at(uint32_t at) {
    const lzs_twin *t = &lzs_the_twin;
    if (t->order == LZS_TWIN_FORWARD) return at;
    if (t->order == LZS_TWIN_BACKWARD) return FIBERS - 1 - at;
    return (at * (t->shuffle >> 8 | 1u) + (t->shuffle >> 16)) % FIBERS;
}

/* Runs all threads from barrier to barrier. Returns false where some end while others wait. */
static bool block_runs(void) {
    lzs_twin *t = &lzs_the_twin;
    t->threads = FIBERS;
    t->wait = fiber_waits;
    memset(&block.read_shared, 0xA5, sizeof block.read_shared);
    memset(&block.pick_shared, 0xA5, sizeof block.pick_shared);
    memset(&block.fold_shared, 0xA5, sizeof block.fold_shared);
    for (uint32_t i = 0; i < FIBERS; i++) begin(i);
    uint32_t n_done = 0;
    while (n_done == 0) {
        t->shuffle = t->shuffle * 1664525u + 1013904223u;
        t->turn++;
        for (uint32_t i = 0; i < FIBERS; i++) turn(thread_at(i));
        for (uint32_t i = 0; i < FIBERS; i++) n_done += block.done[i];
    }
    t->wait = NULL;
    return n_done == FIBERS;
}

static void fibers_read(const lzs_pick_row *row, int32_t share) {
    block.kernel = FIBER_READ;
    block.row = row;
    block.share = share;
    if (!block_runs()) memset(&row->shares[share], 0xA5, sizeof *row->shares);
}

static void fibers_weigh(const lzs_pick_row *row, int32_t share) {
    block.kernel = FIBER_WEIGH;
    block.row = row;
    block.share = share;
    if (!block_runs()) memset(&row->shares[share], 0xA5, sizeof *row->shares);
}

static lzs_picked fibers_pick(const lzs_pick_row *row) {
    const lzs_picked failed = {-2, -2};
    block.kernel = FIBER_PICK;
    block.row = row;
    if (!block_runs()) return failed;
    for (uint32_t i = 1; i < FIBERS; i++) {
        if (memcmp(&block.picked[i], &block.picked[0], sizeof failed) != 0) return failed;
    }
    return block.picked[0];
}

static lzs_folded fibers_fold(const lzs_fold_row *row) {
    const lzs_folded failed = {-2, -2};
    block.kernel = FIBER_FOLD;
    block.fold = row;
    if (!block_runs()) return failed;
    for (uint32_t i = 1; i < FIBERS; i++) {
        if (memcmp(&block.folded[i], &block.folded[0], sizeof failed) != 0) return failed;
    }
    return block.folded[0];
}

#endif
