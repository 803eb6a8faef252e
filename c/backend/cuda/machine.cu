/* machine.cu - the kernels, and the CUDA runtime that starts them.
 *
 * A block of 1,024 threads works on one row, or on a share of a row. Build with -fmad=false -ftz=false -prec-div=true:
 * then every operation is rounded by itself (docs/determinism.md). `make cuda` checks that the machine code has no
 * fused operation.
 */
#define _Static_assert static_assert

#include <cuda_runtime.h>

#include "machine.h"

extern "C" __global__ void __launch_bounds__(1024, 1) lzs_fold_kernel(const __grid_constant__ lzs_launch launch) {
    __shared__ lzs_fold_shared shared;
    lzs_launch_fold(&shared, &launch, (int32_t)blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(1024, 1) lzs_read_kernel(const __grid_constant__ lzs_launch launch) {
    __shared__ lzs_read_shared shared;
    lzs_launch_read(&shared, &launch, (int32_t)blockIdx.y, (int32_t)blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(1024, 1) lzs_weigh_kernel(const __grid_constant__ lzs_launch launch) {
    __shared__ lzs_read_shared shared;
    lzs_launch_weigh(&shared, &launch, (int32_t)blockIdx.y, (int32_t)blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(1024, 1) lzs_pick_kernel(const __grid_constant__ lzs_launch launch) {
    __shared__ lzs_pick_shared shared;
    lzs_launch_pick(&shared, &launch, (int32_t)blockIdx.x);
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

int32_t lzs_machine_processors(int32_t device) {
    int n = 0;
    return cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device) == cudaSuccess ? n : 0;
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

const char *lzs_machine_launch(int32_t device, const lzs_launch *launch, int32_t n_rows, void *stream) {
    const lzs_on_device on(device);
    if (on.problem) return on.problem;
    cudaGetLastError(); /* clears an older error, which would look like this launch's error */
    const cudaStream_t in = (cudaStream_t)stream;
    lzs_fold_kernel<<<(unsigned)n_rows, 1024, 0, in>>>(*launch);
    if (launch->n_shares) {
        const dim3 blocks((unsigned)launch->n_shares, (unsigned)n_rows);
        lzs_read_kernel<<<blocks, 1024, 0, in>>>(*launch);
        lzs_weigh_kernel<<<blocks, 1024, 0, in>>>(*launch);
    }
    lzs_pick_kernel<<<(unsigned)n_rows, 1024, 0, in>>>(*launch);
    return line_of(cudaGetLastError());
}
