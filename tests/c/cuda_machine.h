/* cuda_machine.h - the machine of machine.h on the CPU, which can be made to fail. */
#ifndef LZS_TESTS_CUDA_MACHINE_H
#define LZS_TESTS_CUDA_MACHINE_H

#include "backend/cuda/machine.h"

typedef struct cuda_machine {
    int n_blocks; /* of memory that are held */
    int n_calls;  /* copies, clears, launches, probes and waits so far */
    int fails_at; /* the number of the call that fails, from 1; 0: none */
    bool is_full; /* there is no memory */
    bool is_fused, flushes; /* products and sums are rounded together; denormals are 0 */
    lzs_room room;
    int32_t n_shares, share_size, rows_at_once; /* of the last launch */
} cuda_machine;

extern cuda_machine the_cuda_machine;

#endif
