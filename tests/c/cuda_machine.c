/* cuda_machine.c - device 0 is the CPU: its memory is the heap, and its kernels are run by the twin. */
#include "cuda_machine.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cuda/twin.h"

cuda_machine the_cuda_machine = {.room = {264, 115712}}; /* of an H100 */

static const char *call(void) {
    return ++the_cuda_machine.n_calls == the_cuda_machine.fails_at ? "the device failed" : NULL;
}

const char *lzs_machine_find(int32_t device) {
    return device ? "there is no CUDA device of this number" : NULL;
}

const char *lzs_machine_room(int32_t device, lzs_room *room) {
    (void)device;
    *room = the_cuda_machine.room;
    return NULL;
}

void *lzs_machine_allocate(int32_t device, size_t bytes) {
    (void)device;
    if (the_cuda_machine.is_full) return NULL;
    the_cuda_machine.n_blocks++;
    void *memory = malloc(bytes ? bytes : 1);
    if (memory) memset(memory, 0xA5, bytes);
    return memory;
}

void lzs_machine_free(int32_t device, void *memory) {
    (void)device;
    the_cuda_machine.n_blocks--;
    free(memory);
}

const char *lzs_machine_wait(int32_t device) {
    (void)device;
    return call();
}

const char *lzs_machine_probe(int32_t device, void *memory, lzs_probe *found) {
    (void)device;
    memset(memory, 0xA5, sizeof *found);
    *found = lzs_probe_of(LZS_PROBE_X, LZS_PROBE_Y, LZS_PROBE_LEAST);
    if (the_cuda_machine.is_fused) found->sum = 0x1p-24f;
    if (the_cuda_machine.flushes) found->half = 0.0f;
    return call();
}

const char *lzs_machine_copy(int32_t device, void *to, const void *from, size_t bytes, void *stream) {
    (void)device;
    (void)stream;
    const char *line = call();
    if (!line) memcpy(to, from, bytes);
    return line;
}

const char *lzs_machine_clear(int32_t device, void *memory, size_t bytes, void *stream) {
    (void)device;
    (void)stream;
    const char *line = call();
    if (!line) memset(memory, 0, bytes);
    return line;
}

const char *lzs_machine_launch(int32_t device, const lzs_launch *launch, int32_t n_rows, int32_t rows_at_once, void *stream) {
    (void)device;
    (void)stream;
    const char *line = call();
    the_cuda_machine.n_shares = launch->n_shares;
    the_cuda_machine.share_size = launch->share_size;
    the_cuda_machine.rows_at_once = rows_at_once;
    if (!line) lzs_twin_launch(launch, n_rows);
    return line;
}
