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
    const lzs_pick_row *row; /* NULL: the block folds */
    const lzs_fold_row *fold;
    int32_t share;
    lzs_pick_shared *pick_shared;
    lzs_fold_shared fold_shared;
    lzs_search before, searches[FIBERS];
    lzs_folded folded[FIBERS];
} block;

static void fiber_waits(void) {
    uint32_t tid = lzs_the_twin.tid;
    swapcontext(&block.threads[tid], &block.scheduler);
    lzs_the_twin.tid = tid;
}

static void fiber_runs(void) {
    uint32_t tid = lzs_the_twin.tid;
    if (block.row) {
        block.searches[tid] = lzs_row_step(block.pick_shared, block.row, block.share, block.before);
    } else {
        block.folded[tid] = lzs_fold_row_edits(&block.fold_shared, block.fold);
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
    for (uint32_t i = 0; i < FIBERS; i++) begin(i);
    uint32_t n_done = 0;
    while (n_done == 0) {
        t->shuffle = t->shuffle * 1664525u + 1013904223u;
        for (uint32_t i = 0; i < FIBERS; i++) turn(thread_at(i));
        for (uint32_t i = 0; i < FIBERS; i++) n_done += block.done[i];
    }
    t->wait = NULL;
    return n_done == FIBERS;
}

/* A step that fails ends the row. Its token is then wrong. */
static lzs_search fibers_step(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f) {
    block.row = row;
    block.share = share;
    block.pick_shared = s;
    block.before = f;
    bool fails = !block_runs();
    for (uint32_t i = 1; !fails && i < FIBERS; i++) {
        const lzs_search *a = &block.searches[0], *b = &block.searches[i];
        fails = a->stage != b->stage || a->cut.key != b->cut.key || a->cut.id != b->cut.id || a->bin != b->bin || a->target != b->target;
    }
    if (!fails) return block.searches[0];
    row->state->bad_edit = 2;
    f.stage = LZS_STAGE_DONE;
    return f;
}

static lzs_folded fibers_fold(const lzs_fold_row *row) {
    const lzs_folded failed = {-2, -2};
    block.row = NULL;
    memset(&block.fold_shared, 0xA5, sizeof block.fold_shared);
    block.fold = row;
    if (!block_runs()) return failed;
    for (uint32_t i = 1; i < FIBERS; i++) {
        if (memcmp(&block.folded[i], &block.folded[0], sizeof failed) != 0) return failed;
    }
    return block.folded[0];
}

#endif
