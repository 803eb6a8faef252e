/* arithmetic.h - the float functions that decide a token, made of single IEEE operations only.
 *
 * They use no libm, no fused multiply-add and no reassociation, so that a result has the same bits on every CPU, in every
 * vector width and on a GPU (docs/determinism.md). The polynomials are minimax fits with the coefficients rounded to
 * float; the errors stated were measured against double over 4 million points of the interval.
 */
#ifndef LZS_ARITHMETIC_H
#define LZS_ARITHMETIC_H

#ifdef __FAST_MATH__
#  error "lzsampler needs IEEE arithmetic: build without -ffast-math (and -Ofast), or a seed's tokens differ by machine"
#endif
/* Most compilers fuse a * b + c by default, which rounds once instead of twice. */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#  pragma fp_contract(off)
#endif

#include <float.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "floats must be evaluated as floats: on x86-32 build with -msse2 -mfpmath=sse");

static inline uint32_t lzs_float_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float lzs_bits_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Into the finite floats; NaN stays NaN. A ternary is two instructions where fminf and fmaxf are calls. */
static inline float lzs_finite(float x) {
    float low = x < -FLT_MAX ? -FLT_MAX : x;
    return low > FLT_MAX ? FLT_MAX : low;
}

/* Unsigned key with the order of the floats; -0 and +0 share a key. NaN has none: callers refuse it first. */
static inline uint32_t lzs_key(float x) {
    uint32_t u = lzs_float_bits(x + 0.0f); /* -0 + 0 = +0 */
    return u ^ ((u >> 31) ? 0xffffffffu : 0x80000000u);
}

static inline float lzs_key_float(uint32_t key) {
    return lzs_bits_float(key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu));
}

/* log2(1 + x) for x in [-1/3, 1/3], relative error 1.5e-7, also near 0. */
static inline float lzs_log2_1p(float x) {
    float q = 0x1.9f4d50p-3f;
    q = q * x + -0x1.c71be4p-3f;
    q = q * x + 0x1.9d492ep-3f;
    q = q * x + -0x1.e4f056p-3f;
    q = q * x + 0x1.27a3eep-2f;
    q = q * x + -0x1.7172d2p-2f;
    q = q * x + 0x1.ec6ffep-2f;
    q = q * x + -0x1.715456p-1f;
    q = q * x + 0x1.715476p+0f;
    return q * x;
}

/* log2(v) for normal v > 0; exact at powers of two. v = m * 2^e with m in [2/3, 4/3). */
static inline float lzs_log2(float v) {
    uint32_t bits = lzs_float_bits(v);
    int32_t e = (int32_t)(bits - 0x3f2aaaabu) >> 23; /* 0x3f2aaaab = 2/3 */
    float m = lzs_bits_float(bits - ((uint32_t)e << 23));
    return (float)e + lzs_log2_1p(m - 1.0f);
}

/* 2^g for g in [-1/2, 1/2], relative error 1.1e-7; never above 1 for g <= 0. */
static inline float lzs_exp2_half(float g) {
    float p = 0x1.41fbbap-13f;
    p = p * g + 0x1.5f3e54p-10f;
    p = p * g + 0x1.3b2d4cp-7f;
    p = p * g + 0x1.c6aee8p-5f;
    p = p * g + 0x1.ebfbdcp-3f;
    p = p * g + 0x1.62e430p-1f;
    return p * g + 1.0f;
}

/* floor(2^31 * 2^-y) for y >= 0 (also +inf): the integer weight that top-p sums. 0 from y = 31.5 on. */
static inline uint32_t lzs_weight(float y) {
    if (!(y < 31.5f)) return 0;
    uint32_t n = (uint32_t)(y + 0.5f);
    float v = lzs_exp2_half((float)n - y);
    return ((uint32_t)(v * 0x1p30f) << 1) >> n; /* v has 24 bits, so v * 2^30 is an integer */
}

/* 2^-y as a double, for y >= 0: what probabilities are made of. 0 from y = 125.5 on, so that a float holds it too. */
static inline double lzs_exp2_neg(float y) {
    if (!(y < 125.5f)) return 0.0;
    uint32_t n = (uint32_t)(y + 0.5f);
    double v = (double)lzs_exp2_half((float)n - y);
    uint64_t scale_bits = (uint64_t)(1023 - n) << 52; /* 2^-n */
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    return v * scale;
}

/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits from a counter
 * and a key, so that a draw depends on where it is used and on nothing before it. */
static inline void lzs_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
