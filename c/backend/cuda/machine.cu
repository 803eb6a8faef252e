/* machine.cu - the kernels, and the CUDA runtime that starts them.
 *
 * The blocks of a row wait for each other, so all blocks of lzs_pick_kernel must run at the same time. A cooperative
 * launch ensures that: it starts no more blocks than fit on the device, and each of them works on some rows.
 *
 * Build with -fmad=false -ftz=false -prec-div=true: then every operation is rounded by itself (docs/determinism.md).
 * `make cuda` checks that the machine code has no fused operation.
 */
#define _Static_assert static_assert

#include <cuda_runtime.h>

#include "machine.h"

enum { FOLD_THREADS = 512, PICK_THREADS = 512, PICK_BLOCKS = 2, LINE = 128 }; /* PICK_BLOCKS: on a processor at a time */

/* Waits until all blocks of a row have called this `times` times. What they wrote before can be read after it. */
static __device__ void wait_for_row(const lzs_pick_row *row, uint32_t times) {
    if (row->n_shares == 1) return;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t arrived;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&row->state->arrived) : "memory");
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(&row->state->arrived) : "memory");
        } while (arrived < times * (uint32_t)row->n_shares);
    }
    __syncthreads();
}

/* From 9.0 on, lzs_pick_kernel begins while lzs_fold_kernel runs, and waits here for its end. */
static __device__ void wait_for_fold() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ void let_pick_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Lets the L2 cache read a block's share of a row, all at once. While a block works on a row, its next one is read. */
static __device__ void fetch(const lzs_launch *l, int32_t at, int32_t share) {
    const size_t size = l->step.dtype == LZS_F32 ? sizeof(float) : sizeof(uint16_t), n = (size_t)l->n_vocab * size;
    const char *row = (const char *)l->step.logits + (size_t)at * (size_t)l->step.row_stride * size;
    const size_t each = (size_t)l->share_size * size, from = (size_t)share * each, to = from + each < n ? from + each : n;
    for (size_t i = from + threadIdx.x * LINE; i < to; i += blockDim.x * LINE) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(row + i));
    }
}

extern "C" __global__ void __launch_bounds__(FOLD_THREADS, 2) lzs_fold_kernel(const __grid_constant__ lzs_launch launch) {
    extern __shared__ lzs_four memory[];
    let_pick_begin();
    lzs_launch_fold((lzs_fold_shared *)memory, &launch, (int32_t)blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(PICK_THREADS, PICK_BLOCKS)
    lzs_pick_kernel(const __grid_constant__ lzs_launch launch, int32_t n_rows) {
    extern __shared__ lzs_four memory[];
    lzs_pick_shared *shared = (lzs_pick_shared *)memory;
    const int32_t share = (int32_t)blockIdx.x % launch.n_shares, at_once = (int32_t)gridDim.x / launch.n_shares;
    fetch(&launch, (int32_t)blockIdx.x / launch.n_shares, share);
    for (int32_t at = (int32_t)blockIdx.x / launch.n_shares; at < n_rows; at += at_once) {
        lzs_pick_row row = lzs_row_of_launch(&launch, at);
        lzs_search search = lzs_first_search();
        for (uint32_t times = 1; search.stage != LZS_STAGE_DONE; times++) {
            search = lzs_row_step(shared, &row, share, search);
            if (search.stage == LZS_STAGE_EDIT) {
                if (at + at_once < n_rows) fetch(&launch, at + at_once, share);
                wait_for_fold();
                lzs_edits_of_launch(&launch, at, &row);
                times--;
            } else if (search.stage != LZS_STAGE_DONE) {
                wait_for_row(&row, times);
            }
        }
        if (share == 0 && threadIdx.x == 0) lzs_launch_end(&launch, &row, at);
    }
    wait_for_fold(); /* where no row had edits to wait for */
}

extern "C" __global__ void lzs_probe_kernel(float x, float y, float least, lzs_probe *found) {
    *found = lzs_probe_of(x, y, least);
}

static const char *line_of(cudaError_t error) {
    if (error == cudaSuccess) return NULL;
    cudaGetLastError(); /* clears the error, or else the next caller that asks, such as torch, takes it for its own */
    if (error == cudaErrorInvalidResourceHandle) return "the stream was destroyed, or is one of another device";
    return cudaGetErrorString(error);
}

/* Makes `device` this thread's current device while a function runs. `problem` says why if it cannot. */
struct lzs_on_device {
    int before;
    bool moved;
    const char *problem;
    explicit lzs_on_device(int device) : before(device), moved(false), problem(line_of(cudaGetDevice(&before))) {
        if (problem || before == device) return;
        problem = line_of(cudaSetDevice(device));
        moved = !problem;
    }
    ~lzs_on_device() {
        if (moved) cudaSetDevice(before);
    }
};

const char *lzs_machine_find(int32_t device) {
    int n = 0;
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
        cudaGetLastError();
        return "there is no CUDA device, or its driver is older than the CUDA that this was built with: see nvidia-smi";
    }
    if (error != cudaSuccess) return line_of(error);
    if (device < 0 || device >= n) return "there is no CUDA device of this number";
    const lzs_on_device on(device);
    if (on.problem) return on.problem;
    cudaFuncAttributes attributes;
    const cudaError_t code = cudaFuncGetAttributes(&attributes, (const void *)lzs_pick_kernel);
    if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction) {
        cudaGetLastError();
        return "the kernels were not built for this device: make cuda CUDA_ARCHS=... with its compute capability";
    }
    return line_of(code);
}

const char *lzs_machine_room(int32_t device, lzs_room *room) {
    const lzs_on_device on(device);
    if (on.problem) return on.problem;
    int processors = 0, all = 0, most = 0, reserved = 0, blocks = 0;
    cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!error) error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (!error) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (!error) error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
    const int each = all / PICK_BLOCKS - reserved, bytes = each < most ? each : most;
    const void *kernel = (const void *)lzs_pick_kernel, *fold = (const void *)lzs_fold_kernel;
    if (!error) error = cudaFuncSetAttribute(fold, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(lzs_fold_shared));
    if (!error) error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (!error) error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, PICK_THREADS, (size_t)bytes);
    room->n_blocks = processors * blocks;
    room->bytes = (size_t)bytes;
    return line_of(error);
}

void *lzs_machine_allocate(int32_t device, size_t bytes) {
    const lzs_on_device on(device);
    void *memory = NULL;
    return on.problem || line_of(cudaMalloc(&memory, bytes)) ? NULL : memory;
}

void lzs_machine_free(int32_t device, void *memory) {
    const lzs_on_device on(device);
    if (!on.problem) line_of(cudaFree(memory));
}

const char *lzs_machine_wait(int32_t device) {
    const lzs_on_device on(device);
    return on.problem ? on.problem : line_of(cudaDeviceSynchronize());
}

const char *lzs_machine_probe(int32_t device, void *memory, lzs_probe *found) {
    const lzs_on_device on(device);
    if (on.problem) return on.problem;
    lzs_probe_kernel<<<1, 1>>>(LZS_PROBE_X, LZS_PROBE_Y, LZS_PROBE_LEAST, (lzs_probe *)memory);
    const char *line = line_of(cudaGetLastError());
    return line ? line : line_of(cudaMemcpy(found, memory, sizeof *found, cudaMemcpyDeviceToHost));
}

/* Before this function returns, the driver has copied pageable memory into memory of its own. */
const char *lzs_machine_copy(int32_t device, void *to, const void *from, size_t bytes, void *stream) {
    const lzs_on_device on(device);
    return on.problem ? on.problem : line_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, (cudaStream_t)stream));
}

const char *lzs_machine_clear(int32_t device, void *memory, size_t bytes, void *stream) {
    const lzs_on_device on(device);
    return on.problem ? on.problem : line_of(cudaMemsetAsync(memory, 0, bytes, (cudaStream_t)stream));
}

const char *lzs_machine_launch(int32_t device, const lzs_launch *launch, int32_t n_rows, int32_t rows_at_once, void *stream) {
    const lzs_on_device on(device);
    if (on.problem) return on.problem;
    cudaGetLastError(); /* clears an older error, which would look like this launch's error */
    const cudaStream_t in = (cudaStream_t)stream;
    lzs_fold_kernel<<<(unsigned)n_rows, FOLD_THREADS, sizeof(lzs_fold_shared), in>>>(*launch);
    const cudaError_t error = cudaGetLastError();
    if (error) return line_of(error);
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(launch->n_shares * rows_at_once));
    config.blockDim = dim3(PICK_THREADS);
    config.dynamicSmemBytes = sizeof(lzs_pick_shared) + (size_t)launch->share_size * sizeof(float);
    config.stream = in;
    config.attrs = attributes;
    config.numAttrs = 2;
    return line_of(cudaLaunchKernelEx(&config, lzs_pick_kernel, *launch, n_rows));
}
