/* machine.h - what a batch needs of the machine that it runs on: a CUDA device (machine.cu), or the CPU for tests
 * (tests/c/cuda_machine.c). Functions return NULL when all is well, else one line that says what is wrong. */
#ifndef LZS_CUDA_MACHINE_H
#define LZS_CUDA_MACHINE_H

#include "launch.h"
#include "probe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether there is such a device, and code for it. */
const char *lzs_machine_find(int32_t device);
/* How many blocks it can run at a time; 0 where that is not known. */
int32_t lzs_machine_processors(int32_t device);
/* The others work on this device. NULL where memory runs out. */
void *lzs_machine_allocate(int32_t device, size_t bytes);
void lzs_machine_free(int32_t device, void *memory);
/* Waits for all that the device has been given. */
const char *lzs_machine_wait(int32_t device);
/* Makes a probe on the device, with room for it in its `memory`. */
const char *lzs_machine_probe(int32_t device, void *memory, lzs_probe *found);
/* Both are in order with what the stream does; `from` may change as soon as the copy returns. */
const char *lzs_machine_copy(int32_t device, void *to, const void *from, size_t bytes, void *stream);
const char *lzs_machine_clear(int32_t device, void *memory, size_t bytes, void *stream);
/* Finds the edits of n_rows rows and picks their tokens; n_rows is at most LZS_CUDA_SPLIT_ROWS where rows have shares. */
const char *lzs_machine_launch(int32_t device, const lzs_launch *launch, int32_t n_rows, void *stream);

#ifdef __cplusplus
}
#endif
#endif
