/* kernels_avx2.c - vector operations of AVX2 with BMI2 and POPCNT, 8 lanes; the kernels are in kernels_simd.h. */
#include <math.h>

#include "kernels.h"

#ifdef LZS_X86
#include <immintrin.h>

#define LZS_FN LZS_TARGET("avx2,bmi2,popcnt")
#define LZS_TABLE lzs_kernels_avx2
#define LZS_NAME "avx2"
#define V_COMPRESSES 0 /* 1 if v_compress takes only a few instructions */
#define V_LANES 8
#define V_SHORTS 16

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

LZS_FN static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
LZS_FN static inline void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
LZS_FN static inline vi v_load_int(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
/* Returns p[index] for each lane. */
LZS_FN static inline vi v_look_up(const uint32_t *p, vi index) {
    return _mm256_i32gather_epi32((const int *)p, index, 4);
}
LZS_FN static inline void v_store_int(int32_t *p, vi x) { _mm256_storeu_si256((__m256i *)p, x); }
LZS_FN static inline vf v_set(float x) { return _mm256_set1_ps(x); }
LZS_FN static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
LZS_FN static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
LZS_FN static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
LZS_FN static inline vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
LZS_FN static inline vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
LZS_FN static inline vm v_ge(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
LZS_FN static inline vm v_gt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
LZS_FN static inline vm v_unordered(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
LZS_FN static inline vm v_and(vm a, vm b) { return _mm256_and_ps(a, b); }
LZS_FN static inline vm v_or(vm a, vm b) { return _mm256_or_ps(a, b); }
LZS_FN static inline vf v_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
LZS_FN static inline vm v_same_member(vi ids, vi words) { /* compares the lowest six bits of each lane */
    __m256i differing = _mm256_and_si256(_mm256_xor_si256(ids, words), _mm256_set1_epi32(63));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(differing, _mm256_setzero_si256()));
}
LZS_FN static inline uint32_t v_bits(vm m) { return (uint32_t)_mm256_movemask_ps(m); }
LZS_FN static inline vm v_mask_of_bits(uint32_t bits) {
    __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each));
}
/* Loads the lanes whose bit is 1; the other lanes become -inf. */
LZS_FN static inline vf v_load_if(const float *p, uint32_t bits) {
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), _mm256_loadu_ps(p), v_mask_of_bits(bits));
}
/* Returns the lanes first, first + 1, ... */
LZS_FN static inline vi v_ids(int32_t first) {
    return _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LZS_FN static inline vi v_zero(void) { return _mm256_setzero_si256(); }
LZS_FN static inline vi v_truncate(vf x) { return _mm256_cvttps_epi32(x); }
LZS_FN static inline vf v_float(vi x) { return _mm256_cvtepi32_ps(x); }
/* Returns x - m, where m is the integer part of x. */
LZS_FN static inline vf v_fraction(vf x, vi m) { return _mm256_sub_ps(x, _mm256_cvtepi32_ps(m)); }
/* Returns lzs_weight_table[lowest four bits] for each lane. */
LZS_FN static inline vf v_weight_table(vi m) {
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(lzs_weight_table), m);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(lzs_weight_table + 8), m);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(m, 28))); /* bit 3 selects */
}
LZS_FN static inline vi v_bits_of(vf x) { return _mm256_castps_si256(x); }
LZS_FN static inline vi v_shift_right_1(vi a) { return _mm256_srli_epi32(a, 1); }
LZS_FN static inline vi v_shift_right_4(vi a) { return _mm256_srli_epi32(a, 4); }
LZS_FN static inline vi v_shift_left_8(vi a) { return _mm256_slli_epi32(a, 8); }
LZS_FN static inline vi v_shift_right_8(vi a) { return _mm256_srli_epi32(a, 8); }
LZS_FN static inline vi v_shift_right_6(vi a) { return _mm256_srli_epi32(a, 6); }
LZS_FN static inline vi v_shift_right(vi a, vi n) { return _mm256_srlv_epi32(a, n); }
LZS_FN static inline vi v_add_int(vi a, vi b) { return _mm256_add_epi32(a, b); }
LZS_FN static inline vi v_sub_int(vi a, vi b) { return _mm256_sub_epi32(a, b); }
LZS_FN static inline vi v_add_where(vi a, vm m, vi b) {
    return _mm256_add_epi32(a, _mm256_and_si256(_mm256_castps_si256(m), b));
}
/* Returns the sum of all lanes in 64 bits. */
LZS_FN static inline uint64_t v_sum_wide(vi a) {
    __m256i odd = _mm256_srli_epi64(a, 32), even = _mm256_and_si256(a, _mm256_set1_epi64x(0xffffffff));
    uint64_t s[4];
    _mm256_storeu_si256((__m256i *)s, _mm256_add_epi64(odd, even));
    return s[0] + s[1] + s[2] + s[3];
}
/* Writes the lanes whose bit is set, contiguously. Always writes V_LANES lanes, of which the lanes
 * after the selected lanes are undefined. */
LZS_FN static inline void v_compress(uint32_t *p, vi a, uint32_t bits) {
    uint64_t bytes = _pdep_u64(bits, 0x0101010101010101u) * 0xff; /* byte l is 0xff where bit l is set */
    __m128i order = _mm_cvtsi64_si128((long long)_pext_u64(0x0706050403020100u, bytes));
    _mm256_storeu_si256((__m256i *)p, _mm256_permutevar8x32_epi32(a, _mm256_cvtepu8_epi32(order)));
}
/* Returns the maxima of 8 vectors: lane k of the result is the greatest lane of x[k]. */
LZS_FN static inline vf v_maxima(const vf *x) {
    __m256 pairs[4], fours[2];
    for (int i = 0; i < 4; i++) {
        pairs[i] = _mm256_max_ps(_mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]),
                                 _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]));
    }
    for (int i = 0; i < 2; i++) {
        __m256d a = _mm256_castps_pd(pairs[2 * i]), b = _mm256_castps_pd(pairs[2 * i + 1]);
        __m256 low = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), high = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        fours[i] = _mm256_max_ps(low, high); /* the maxima of four vectors in each half */
    }
    __m256 low = _mm256_permute2f128_ps(fours[0], fours[1], 0x20);
    __m256 high = _mm256_permute2f128_ps(fours[0], fours[1], 0x31);
    return _mm256_max_ps(low, high);
}
LZS_FN static inline float v_greatest(vf x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}
/* Ten rounds of Philox on four counters in lanes of 64 bits. The high and low words of a product can stay in one lane,
 * because the next product ignores the upper 32 bits. c[0] becomes words 0 and 1 of the results, c[1] becomes words 2
 * and 3. */
LZS_FN static inline void v_rounds(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, __m256i c[2]) {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    const __m256i words = _mm256_set1_epi64x(0xffffffff);
    __m256i c0 = c[0], c1 = _mm256_set1_epi64x(position[0]), c2 = _mm256_set1_epi64x(position[1]);
    __m256i c3 = _mm256_set1_epi64x(domain);
    for (int round = 0; round < 10; round++) {
        __m256i a = _mm256_mul_epu32(c0, m0), b = _mm256_mul_epu32(c2, m1);
        c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_shuffle_epi32(b, 0xf5), c1),
                              _mm256_set1_epi64x((long long)keys[2 * round]));
        c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_shuffle_epi32(a, 0xf5), c3),
                              _mm256_set1_epi64x((long long)keys[2 * round + 1]));
        c1 = b;
        c3 = a;
    }
    c[0] = _mm256_or_si256(_mm256_and_si256(c0, words), _mm256_slli_epi64(c1, 32));
    c[1] = _mm256_or_si256(_mm256_and_si256(c2, words), _mm256_slli_epi64(c3, 32));
}
/* Fills c with the random words of 4 * V_LANES tokens (or groups), in order, from number 4 * block on. */
LZS_FN static inline void v_philox(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, uint32_t block,
                                   vi c[4]) {
    for (int half = 0; half < 2; half++) {
        __m256i w[2] = {_mm256_add_epi64(_mm256_set1_epi64x(block + 4 * (uint32_t)half),
                                         _mm256_setr_epi64x(0, 1, 2, 3))};
        v_rounds(keys, position, domain, w);
        __m256i even = _mm256_unpacklo_epi64(w[0], w[1]), odd = _mm256_unpackhi_epi64(w[0], w[1]); /* blocks 0 and 2;
                                                                                                    * blocks 1 and 3 */
        c[2 * half] = _mm256_permute2x128_si256(even, odd, 0x20);
        c[2 * half + 1] = _mm256_permute2x128_si256(even, odd, 0x31);
    }
}
/* Returns the random word of each id. */
LZS_FN static inline vi v_words(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, vi ids) {
    const __m256i low_words = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    __m256i words[2];
    for (int half = 0; half < 2; half++) {
        __m256i id = _mm256_cvtepu32_epi64(half ? _mm256_extracti128_si256(ids, 1) : _mm256_castsi256_si128(ids));
        __m256i w[2] = {_mm256_srli_epi64(id, 2)};
        v_rounds(keys, position, domain, w);
        __m256d second = _mm256_castsi256_pd(_mm256_slli_epi64(id, 62)); /* the second-lowest bit of the id becomes the
                                                                          * sign bit, which selects a pair of words */
        __m256i pair = _mm256_castpd_si256(_mm256_blendv_pd(_mm256_castsi256_pd(w[0]), _mm256_castsi256_pd(w[1]),
                                                            second));
        __m256i shift = _mm256_slli_epi64(_mm256_and_si256(id, _mm256_set1_epi64x(1)), 5);
        words[half] = _mm256_permutevar8x32_epi32(_mm256_srlv_epi64(pair, shift), low_words);
    }
    return _mm256_blend_epi32(words[0], words[1], 0xf0);
}
/* For v = m * 2^e with m in [2/3, 4/3), v_log2_exponent returns e and v_without_exponent returns m. */
LZS_FN static inline vi v_log2_exponent(vf v) {
    return _mm256_srai_epi32(_mm256_sub_epi32(_mm256_castps_si256(v), _mm256_set1_epi32(LZS_TWO_THIRDS)), 23);
}
LZS_FN static inline vf v_without_exponent(vf v, vi e) {
    return _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(v), _mm256_slli_epi32(e, 23)));
}
LZS_FN static inline void v_extend(uint16_t *len, const int32_t *tokens, int32_t newest, uint16_t cap) {
    __m256i t = _mm256_set1_epi32(newest);
    __m256i a = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)tokens), t);
    __m256i b = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(tokens + 8)), t);
    __m256i equal = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    __m256i l = _mm256_adds_epu16(_mm256_loadu_si256((const __m256i *)len), _mm256_set1_epi16(1));
    l = _mm256_min_epu16(l, _mm256_set1_epi16((short)cap));
    _mm256_storeu_si256((__m256i *)len, _mm256_and_si256(l, equal));
}
LZS_FN static inline uint32_t v_long_shorts(const uint16_t *len, uint16_t least) {
    __m256i l = _mm256_loadu_si256((const __m256i *)len);
    __m256i is_long = _mm256_cmpeq_epi16(_mm256_max_epu16(l, _mm256_set1_epi16((short)least)), l);
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(is_long), _mm256_extracti128_si256(is_long, 1));
    return (uint32_t)_mm_movemask_epi8(bytes);
}

#include "kernels_simd.h"
#endif
