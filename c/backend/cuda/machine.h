/* machine.h - the interface between a batch and the machine that runs it. The machine is a CUDA device (machine.cu) or,
 * for tests, the CPU (tests/c/cuda_machine.c). Functions that return a string return NULL on success, or else one line
 * that says what is wrong. */
#ifndef LZS_CUDA_MACHINE_H
#define LZS_CUDA_MACHINE_H

#include "launch.h"
#include "probe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that the device exists and that the library has code for it. */
const char *lzs_machine_find(int32_t device);
/* The blocks of lzs_pick_kernel that run at a time, if each has `bytes` bytes of shared memory, the most it may have. */
typedef struct lzs_room {
    int32_t n_blocks;
    size_t bytes;
} lzs_room;

const char *lzs_machine_room(int32_t device, lzs_room *room);
/* Allocates memory on the device. NULL if memory runs out. The functions below also work on the device that they are
 * given. */
void *lzs_machine_allocate(int32_t device, size_t bytes);
void lzs_machine_free(int32_t device, void *memory);
/* Waits until the device has finished all its work. */
const char *lzs_machine_wait(int32_t device);
/* Runs the probe on the device. `memory` is device memory with room for an lzs_probe. */
const char *lzs_machine_probe(int32_t device, void *memory, lzs_probe *found);
/* Copy and clear run in the order of the stream. The caller may change `from` as soon as lzs_machine_copy returns. */
const char *lzs_machine_copy(int32_t device, void *to, const void *from, size_t bytes, void *stream);
const char *lzs_machine_clear(int32_t device, void *memory, size_t bytes, void *stream);
/* Makes the edits of n_rows rows and picks their tokens, of some rows at a time. */
const char *lzs_machine_launch(int32_t device, const lzs_launch *launch, int32_t n_rows, int32_t rows_at_once,
                               void *stream);

#ifdef __cplusplus
}
#endif
#endif
