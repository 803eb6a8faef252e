/* probe.h - whether a machine rounds as the CPU does: each operation by itself, and without flushing denormals to zero
 * (docs/determinism.md). */
#ifndef LZS_CUDA_PROBE_H
#define LZS_CUDA_PROBE_H

#include <stdbool.h>

#include "../arithmetic.h"

typedef struct lzs_probe {
    float sum; /* the machine's results of x * x + y and of least / 2 */
    float half;
} lzs_probe;

/* x * x is halfway between two floats, and rounds to -y: with rounding x * x + y is 0. Half of the least normal float
 * is denormal. */
#define LZS_PROBE_X (1.0f + 0x1p-12f)
#define LZS_PROBE_Y (-1.0f - 0x1p-11f)
#define LZS_PROBE_LEAST 0x1p-126f

LZS_DEVICE static inline lzs_probe lzs_probe_of(float x, float y, float least) {
    return (lzs_probe){x * x + y, least * 0.5f};
}

static inline bool lzs_probe_is_right(lzs_probe found) {
    return found.sum == 0.0f && found.half == 0x1p-127f;
}

#endif
