/* arithmetic.h - the float functions on which the choice of a token depends, made of single IEEE operations only.
 *
 * The functions use no libm, no fused multiply-add and no reassociation. So a result has the same bits on every CPU, in
 * every vector width and on a GPU (docs/determinism.md). The polynomials are minimax fits whose coefficients are
 * rounded to float. The errors stated below were measured against double precision at 4 million points of each
 * interval.
 */
#ifndef LZS_ARITHMETIC_H
#define LZS_ARITHMETIC_H

/* GCC has a macro for each part of -ffast-math, and MSVC has a macro for /fp:fast. clang has macros only for
 * -ffast-math as a whole and for -ffinite-math-only. */
#if defined(__FAST_MATH__) || defined(__NO_SIGNED_ZEROS__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || defined(_M_FP_FAST)
#  error "lzsampler needs IEEE arithmetic: build without -ffast-math, its parts and /fp:fast"
#endif
/* Most compilers by default fuse a * b + c into one operation, which rounds once instead of twice. For nvcc,
 * -fmad=false prevents fusing. clang's first pragma undoes the parts of -ffast-math. Neither pragma overrides
 * -ffp-contract=fast: with that flag test_arithmetic fails. */
#if defined(__CUDACC__)
#elif defined(__clang__)
#  pragma clang diagnostic push
#  pragma clang diagnostic ignored "-Wignored-pragmas" /* WebAssembly does not know the pragma */
#  pragma float_control(precise, on)
#  pragma clang diagnostic pop
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#  pragma fp_contract(off)
#endif

#include <float.h>
#include <stdint.h>
#include <string.h>

/* Marks functions that CUDA kernels use, too (cuda/). */
#ifdef __CUDACC__
#  define LZS_DEVICE __device__
#else
#  define LZS_DEVICE
#endif

_Static_assert(FLT_EVAL_METHOD == 0, "floats must be evaluated as floats: on x86-32 build with -msse2 -mfpmath=sse");

LZS_DEVICE static inline uint32_t lzs_float_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

LZS_DEVICE static inline float lzs_bits_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Clamps x to the finite floats. NaN stays NaN. Each ternary compiles to two instructions, while fminf and fmaxf may be
 * calls. */
LZS_DEVICE static inline float lzs_finite(float x) {
    float low = x < -FLT_MAX ? -FLT_MAX : x;
    return low > FLT_MAX ? FLT_MAX : low;
}

/* x / y for finite x and positive normal y, computed with integers. On a GPU lzs_quotient calls this function. */
LZS_DEVICE static inline float lzs_quotient_of_integers(float x, float y) {
    const uint32_t sign = lzs_float_bits(x) & 0x80000000u, magnitude = lzs_float_bits(x) & 0x7fffffffu;
    uint32_t mx = magnitude & 0x7fffffu, my = (lzs_float_bits(y) & 0x7fffffu) | 0x800000u;
    int32_t exponent = (int32_t)(magnitude >> 23);
    if (magnitude == 0) return x;
    if (exponent) {
        mx |= 0x800000u;
    } else { /* x is denormal */
        for (exponent = 1; !(mx & 0x800000u); exponent--) mx <<= 1;
    }
    exponent += 127 - (int32_t)(lzs_float_bits(y) >> 23);
    if (mx < my) {
        mx <<= 1;
        exponent--;
    }
    if (exponent > 254) return lzs_bits_float(sign | 0x7f800000u);
    const uint64_t numerator = (uint64_t)mx << 25;
    const uint64_t quotient = numerator / my; /* 26 bits, two more than a float has; a remainder sets the last bit of
                                               * q */
    const uint32_t q = (uint32_t)quotient | (quotient * my != numerator);
    int32_t shift = exponent > 0 ? 2 : 3 - exponent; /* number of bits of q below the float's last bit */
    if (shift > 28) shift = 28;
    const uint32_t left = q & ((1u << shift) - 1), half = 1u << (shift - 1);
    uint32_t rounded = q >> shift;
    rounded += left > half || (left == half && (rounded & 1));
    return lzs_bits_float(sign | (exponent > 0 ? ((uint32_t)(exponent - 1) << 23) + rounded : rounded));
}

/* x / y for finite x and positive normal y. CUDA divides floats with fused multiply-adds. With integer division, the
 * kernels have no fused operations at all, so the build can check that none is there. */
LZS_DEVICE static inline float lzs_quotient(float x, float y) {
#ifdef __CUDACC__
    return lzs_quotient_of_integers(x, y);
#else
    return x / y;
#endif
}

/* Returns the key of x, an unsigned integer. Keys have the order of the floats. -0 and +0 share a key. NaN has no key:
 * callers must refuse NaN first. */
LZS_DEVICE static inline uint32_t lzs_key(float x) {
    uint32_t u = lzs_float_bits(x + 0.0f); /* -0 + 0 = +0 */
    return u ^ ((u >> 31) ? 0xffffffffu : 0x80000000u);
}

LZS_DEVICE static inline float lzs_key_float(uint32_t key) {
    return lzs_bits_float(key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu));
}

#define LZS_LOG2_FACTORS 9
LZS_DEVICE static const float lzs_log2_factors[LZS_LOG2_FACTORS] = {
    0x1.9f4d50p-3f,  -0x1.c71be4p-3f, 0x1.9d492ep-3f,  -0x1.e4f056p-3f, 0x1.27a3eep-2f,
    -0x1.7172d2p-2f, 0x1.ec6ffep-2f,  -0x1.715456p-1f, 0x1.715476p+0f,
};

/* log2(1 + x) for x in [-1/3, 1/3], relative error 1.5e-7, also near 0. */
LZS_DEVICE static inline float lzs_log2_1p(float x) {
    const float *f = lzs_log2_factors;
    float q = f[0] * x + f[1];
    q = q * x + f[2];
    q = q * x + f[3];
    q = q * x + f[4];
    q = q * x + f[5];
    q = q * x + f[6];
    q = q * x + f[7];
    q = q * x + f[8];
    return q * x;
}

#define LZS_TWO_THIRDS 0x3f2aaaab /* the bits of 2/3 as a float */

/* log2(v) for normal v > 0; exact at powers of two. v = m * 2^e with m in [2/3, 4/3). */
LZS_DEVICE static inline float lzs_log2(float v) {
    uint32_t bits = lzs_float_bits(v);
    int32_t e = (int32_t)(bits - LZS_TWO_THIRDS) >> 23;
    float m = lzs_bits_float(bits - ((uint32_t)e << 23));
    return (float)e + lzs_log2_1p(m - 1.0f);
}

/* 2^g for g in [-1/2, 1/2], relative error 1.1e-7; never above 1 for g <= 0. The probabilities of lzs_distribution are
 * computed with this function. */
LZS_DEVICE static inline float lzs_exp2_half(float g) {
    float p = 0x1.41fbbap-13f;
    p = p * g + 0x1.5f3e54p-10f;
    p = p * g + 0x1.3b2d4cp-7f;
    p = p * g + 0x1.c6aee8p-5f;
    p = p * g + 0x1.ebfbdcp-3f;
    p = p * g + 0x1.62e430p-1f;
    return p * g + 1.0f;
}

/* For y = n + (i + f) / 16 with integers n and i < 16 and f in [0, 1), the weight is 2^31 * 2^(-i/16) * 2^(-f/16) >> n.
 * The parabola (f - ORIGIN)^2 + LEAST approximates 2^(-f/16), up to a constant factor. Entry i of the table is 2^31 *
 * 2^(-i/16) divided by this factor. The relative error of the parabola grows from -4.3e-7 at f = 0 to 4.3e-7 at f = 1.
 * So the weight does not grow where y passes from f = 1 to f = 0 of the next i. */
LZS_DEVICE static const float lzs_weight_table[16] = {
    0x1.e16d76p+20f, 0x1.cd0442p+20f, 0x1.b97896p+20f, 0x1.a6c10ep+20f, 0x1.94d4aap+20f, 0x1.83aad0p+20f,
    0x1.733b3ep+20f, 0x1.637e0ep+20f, 0x1.546bb2p+20f, 0x1.45fcecp+20f, 0x1.382acap+20f, 0x1.2aeeaap+20f,
    0x1.1e4230p+20f, 0x1.121f44p+20f, 0x1.068010p+20f, 0x1.f6be00p+19f,
};
#define LZS_WEIGHT_ORIGIN 0x1.795cc8p+4f
#define LZS_WEIGHT_LEAST 0x1.0a624cp+9f

/* The integer weight that top-p sums: about 2^31 * 2^-y, rounded down, for y >= 0 (also +inf). Before rounding, the
 * relative error is below 6.5e-7. The weight never grows with y, is below 2^31, and is 0 from y = 31 on. `table` is
 * lzs_weight_table, or a copy of it. */
LZS_DEVICE static inline uint32_t lzs_weight_by(const float table[16], float y) {
    float s = y * 16.0f;
    s = s < 496.0f ? s : 496.0f;
#ifdef __CUDACC__
    const float shifted = __fadd_rd(s, 0x1p23f); /* conversions are slow: the integer part is in the lowest bits */
    const uint32_t m = lzs_float_bits(shifted) & 511u;
    float d = (s - (shifted - 0x1p23f)) - LZS_WEIGHT_ORIGIN;
#else
    uint32_t m = (uint32_t)s;
    float d = (s - (float)m) - LZS_WEIGHT_ORIGIN;
#endif
    float v = (d * d + LZS_WEIGHT_LEAST) * table[m & 15];
    return lzs_float_bits(v) << 7 >> (m >> 4); /* v is 2^30 or more and below 2^31, so this shift makes it an integer */
}

LZS_DEVICE static inline uint32_t lzs_weight(float y) {
    return lzs_weight_by(lzs_weight_table, y);
}

/* 2^-y as a double, for y >= 0: the unnormalized probability. The result is 0 from y = 125.5 on, so a float can hold
 * every result. */
LZS_DEVICE static inline double lzs_exp2_neg(float y) {
    if (!(y < 125.5f)) return 0.0;
    uint32_t n = (uint32_t)(y + 0.5f);
    double v = (double)lzs_exp2_half((float)n - y);
    uint64_t scale_bits = (uint64_t)(1023 - n) << 52; /* 2^-n */
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    return v * scale;
}

/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits from a counter and
 * a key. The bits depend on nothing else, so a draw does not depend on earlier draws. */
LZS_DEVICE static inline void lzs_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
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
