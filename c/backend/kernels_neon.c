/* kernels_neon.c - vector operations of Advanced SIMD on 64-bit Arm, 4 lanes; the kernels are in kernels_simd.h. */
#include <math.h>
#include <string.h>

#include "kernels.h"

#ifdef LZS_NEON
#include <arm_neon.h>

#define LZS_FN
#define LZS_TABLE lzs_kernels_neon
#define LZS_NAME "neon"
#define V_COMPRESSES 0 /* 1 if v_compress takes only a few instructions */
#define V_LANES 4
#define V_SHORTS 8

typedef float32x4_t vf;
typedef uint32x4_t vi;
typedef uint32x4_t vm;

/* Vectors are loaded from arrays, because MSVC does not accept a list of lanes as an initializer. */
static const uint32_t v_each_bit[4] = {1, 2, 4, 8};

static inline vf v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, vf x) { vst1q_f32(p, x); }
static inline vi v_load_int(const int32_t *p) { return vreinterpretq_u32_s32(vld1q_s32(p)); }
/* Returns p[index] for each lane. */
static inline vi v_look_up(const uint32_t *p, vi index) {
    const uint32_t words[4] = {p[vgetq_lane_u32(index, 0)], p[vgetq_lane_u32(index, 1)], p[vgetq_lane_u32(index, 2)],
                               p[vgetq_lane_u32(index, 3)]};
    return vld1q_u32(words);
}
static inline void v_store_int(int32_t *p, vi x) { vst1q_u32((uint32_t *)p, x); }
static inline vf v_set(float x) { return vdupq_n_f32(x); }
static inline vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf v_min(vf a, vf b) { return vminq_f32(a, b); }
static inline vf v_max(vf a, vf b) { return vmaxnmq_f32(a, b); } /* if one operand is NaN, returns the other */
static inline vm v_ge(vf a, vf b) { return vcgeq_f32(a, b); }
static inline vm v_gt(vf a, vf b) { return vcgtq_f32(a, b); }
static inline vm v_and(vm a, vm b) { return vandq_u32(a, b); }
static inline vm v_or(vm a, vm b) { return vorrq_u32(a, b); }
static inline vm v_unordered(vf a, vf b) {
    return vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)));
}
static inline vf v_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
static inline vm v_same_member(vi ids, vi words) { /* compares the lowest six bits of each lane */
    return vmvnq_u32(vtstq_u32(veorq_u32(ids, words), vdupq_n_u32(63)));
}
static inline uint32_t v_bits(vm m) {
    return vaddvq_u32(vandq_u32(m, vld1q_u32(v_each_bit)));
}
static inline vm v_mask_of_bits(uint32_t bits) {
    return vtstq_u32(vdupq_n_u32(bits), vld1q_u32(v_each_bit));
}
/* Loads the lanes whose bit is 1; the other lanes become -inf. */
static inline vf v_load_if(const float *p, uint32_t bits) {
    return vbslq_f32(v_mask_of_bits(bits), vld1q_f32(p), vdupq_n_f32(-INFINITY));
}
/* Returns the lanes first, first + 1, ... */
static inline vi v_ids(int32_t first) {
    static const uint32_t each[4] = {0, 1, 2, 3};
    return vaddq_u32(vdupq_n_u32((uint32_t)first), vld1q_u32(each));
}
static inline vi v_zero(void) { return vdupq_n_u32(0); }
static inline vi v_truncate(vf x) { return vreinterpretq_u32_s32(vcvtq_s32_f32(x)); }
static inline vf v_float(vi x) { return vcvtq_f32_s32(vreinterpretq_s32_u32(x)); }
/* Returns x - m, where m is the integer part of x. */
static inline vf v_fraction(vf x, vi m) { return vsubq_f32(x, v_float(m)); }
/* Returns lzs_weight_table[lowest four bits] for each lane, by a table look-up for each of the lane's four bytes. */
static inline vf v_weight_table(vi m) {
    uint32x4_t first = vmulq_u32(vandq_u32(m, vdupq_n_u32(15)), vdupq_n_u32(0x04040404));
    uint8x16_t at = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100)));
    return vreinterpretq_f32_u8(vqtbl4q_u8(vld1q_u8_x4((const uint8_t *)lzs_weight_table), at));
}
static inline vi v_bits_of(vf x) { return vreinterpretq_u32_f32(x); }
static inline vi v_shift_right_1(vi a) { return vshrq_n_u32(a, 1); }
static inline vi v_shift_right_4(vi a) { return vshrq_n_u32(a, 4); }
static inline vi v_shift_left_8(vi a) { return vshlq_n_u32(a, 8); }
static inline vi v_shift_right_8(vi a) { return vshrq_n_u32(a, 8); }
static inline vi v_shift_right_6(vi a) { return vshrq_n_u32(a, 6); }
/* Returns a >> n, which is 0 from n = 32 on. The instruction reads only the low byte of n. */
static inline vi v_shift_right(vi a, vi n) {
    uint32x4_t shifted = vshlq_u32(a, vnegq_s32(vreinterpretq_s32_u32(n)));
    return vandq_u32(shifted, vcltq_u32(n, vdupq_n_u32(32)));
}
static inline vi v_add_int(vi a, vi b) { return vaddq_u32(a, b); }
static inline vi v_sub_int(vi a, vi b) { return vsubq_u32(a, b); }
static inline vi v_add_where(vi a, vm m, vi b) { return vaddq_u32(a, vandq_u32(b, m)); }
/* Returns the sum of all lanes in 64 bits. */
static inline uint64_t v_sum_wide(vi a) { return vaddlvq_u32(a); }
/* Writes the lanes whose bit is set, contiguously. Always writes V_LANES lanes, of which the lanes
 * after the selected lanes are undefined. Stores bytes, because p may point to floats. */
static inline void v_compress(uint32_t *p, vi a, uint32_t bits) {
    uint32_t lanes[4];
    vst1q_u32(lanes, a);
    for (; bits; bits &= bits - 1) memcpy(p++, &lanes[lzs_lowest_bit(bits)], sizeof *p);
}
/* Returns the maxima of 4 vectors: lane k of the result is the greatest lane of x[k]. */
static inline vf v_maxima(const vf *x) {
    return vpmaxnmq_f32(vpmaxnmq_f32(x[0], x[1]), vpmaxnmq_f32(x[2], x[3]));
}
static inline float v_greatest(vf x) { return vmaxnmvq_f32(x); }
/* Gives the high word and the low word of each lane's product with m. */
static inline void v_multiply(vi a, uint32_t m, vi *high, vi *low) {
    uint32x2_t factor = vdup_n_u32(m);
    uint32x4_t first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), factor));
    uint32x4_t second = vreinterpretq_u32_u64(vmull_u32(vget_high_u32(a), factor));
    *low = vuzp1q_u32(first, second);
    *high = vuzp2q_u32(first, second);
}
/* Ten rounds of Philox on the four counters of c[0]. Afterwards c[k] holds word k of each counter's result. */
static inline void v_rounds(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, vi c[4]) {
    c[1] = vdupq_n_u32(position[0]);
    c[2] = vdupq_n_u32(position[1]);
    c[3] = vdupq_n_u32(domain);
    for (int round = 0; round < 10; round++) {
        uint32x4_t high0, low0, high1, low1;
        v_multiply(c[0], 0xD2511F53u, &high0, &low0);
        v_multiply(c[2], 0xCD9E8D57u, &high1, &low1);
        c[0] = veorq_u32(veorq_u32(high1, c[1]), vdupq_n_u32((uint32_t)keys[2 * round]));
        c[2] = veorq_u32(veorq_u32(high0, c[3]), vdupq_n_u32((uint32_t)keys[2 * round + 1]));
        c[1] = low1;
        c[3] = low0;
    }
}
/* Fills c with the random words of 4 * V_LANES tokens (or groups), in order, from number 4 * block on. */
static inline void v_philox(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, uint32_t block,
                            vi c[4]) {
    c[0] = v_ids((int32_t)block);
    v_rounds(keys, position, domain, c);
    uint32x4_t a = vtrn1q_u32(c[0], c[1]), b = vtrn2q_u32(c[0], c[1]); /* words 0 and 1: `a` has those of blocks 0 and
                                                                        * 2, `b` those of blocks 1 and 3 */
    uint32x4_t d = vtrn1q_u32(c[2], c[3]), e = vtrn2q_u32(c[2], c[3]);
    c[0] = vcombine_u32(vget_low_u32(a), vget_low_u32(d));
    c[1] = vcombine_u32(vget_low_u32(b), vget_low_u32(e));
    c[2] = vcombine_u32(vget_high_u32(a), vget_high_u32(d));
    c[3] = vcombine_u32(vget_high_u32(b), vget_high_u32(e));
}
/* Returns the random word of each id. */
static inline vi v_words(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, vi ids) {
    vi c[4] = {vshrq_n_u32(ids, 2)};
    v_rounds(keys, position, domain, c);
    vm odd = vtstq_u32(ids, vdupq_n_u32(1)), second = vtstq_u32(ids, vdupq_n_u32(2));
    return vbslq_u32(second, vbslq_u32(odd, c[3], c[2]), vbslq_u32(odd, c[1], c[0]));
}
/* For v = m * 2^e with m in [2/3, 4/3), v_log2_exponent returns e and v_without_exponent returns m. */
static inline vi v_log2_exponent(vf v) {
    int32x4_t above = vreinterpretq_s32_u32(vsubq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(LZS_TWO_THIRDS)));
    return vreinterpretq_u32_s32(vshrq_n_s32(above, 23));
}
static inline vf v_without_exponent(vf v, vi e) {
    return vreinterpretq_f32_u32(vsubq_u32(vreinterpretq_u32_f32(v), vshlq_n_u32(e, 23)));
}
static inline void v_extend(uint16_t *len, const int32_t *tokens, int32_t newest, uint16_t cap) {
    int32x4_t t = vdupq_n_s32(newest);
    uint16x4_t a = vmovn_u32(vceqq_s32(vld1q_s32(tokens), t)), b = vmovn_u32(vceqq_s32(vld1q_s32(tokens + 4), t));
    uint16x8_t longer = vminq_u16(vqaddq_u16(vld1q_u16(len), vdupq_n_u16(1)), vdupq_n_u16(cap));
    vst1q_u16(len, vandq_u16(longer, vcombine_u16(a, b)));
}
static inline uint32_t v_long_shorts(const uint16_t *len, uint16_t least) {
    static const uint16_t each[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    return vaddvq_u16(vandq_u16(vcgeq_u16(vld1q_u16(len), vdupq_n_u16(least)), vld1q_u16(each)));
}

#include "kernels_simd.h"
#endif
