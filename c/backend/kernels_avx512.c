/* kernels_avx512.c - vector operations of AVX-512 (F, BW, DQ, VL), 16 lanes; the kernels are in kernels_simd.h. */
#include <math.h>

#include "kernels.h"

#ifdef LZS_X86
#include <immintrin.h>

#define LZS_FN LZS_TARGET("avx512f,avx512bw,avx512dq,avx512vl,popcnt")
#define LZS_TABLE lzs_kernels_avx512
#define LZS_NAME "avx512"
#define V_COMPRESSES 1 /* 1 if v_compress takes only a few instructions */
#define V_TRIPLES 1 /* 1 if structs of three words are loaded and stored by permutes */
#define V_LANES 16
#define V_SHORTS 32

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

LZS_FN static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
LZS_FN static inline void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
LZS_FN static inline vi v_load_int(const int32_t *p) { return _mm512_loadu_si512(p); }
/* Returns p[index] for each lane. */
LZS_FN static inline vi v_look_up(const uint32_t *p, vi index) { return _mm512_i32gather_epi32(index, p, 4); }
LZS_FN static inline void v_store_int(int32_t *p, vi x) { _mm512_storeu_si512(p, x); }
LZS_FN static inline vf v_set(float x) { return _mm512_set1_ps(x); }
LZS_FN static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
LZS_FN static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
LZS_FN static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
LZS_FN static inline vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
LZS_FN static inline vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
LZS_FN static inline vm v_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
LZS_FN static inline vm v_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
LZS_FN static inline vm v_unordered(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
LZS_FN static inline vm v_and(vm a, vm b) { return (vm)(a & b); }
LZS_FN static inline vm v_or(vm a, vm b) { return (vm)(a | b); }
LZS_FN static inline vf v_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
LZS_FN static inline vm v_same_member(vi ids, vi words) { /* compares the lowest six bits of each lane */
    return _mm512_testn_epi32_mask(_mm512_xor_si512(ids, words), _mm512_set1_epi32(63));
}
LZS_FN static inline uint32_t v_bits(vm m) { return m; }
/* Loads the lanes whose bit is 1; the other lanes become -inf. */
LZS_FN static inline vf v_load_if(const float *p, uint32_t bits) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), (vm)bits, p);
}
/* Returns the lanes first, first + 1, ... */
LZS_FN static inline vi v_ids(int32_t first) {
    return _mm512_add_epi32(_mm512_set1_epi32(first),
                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
LZS_FN static inline vi v_set_int(int32_t x) { return _mm512_set1_epi32(x); }
LZS_FN static inline vi v_zero(void) { return _mm512_setzero_si512(); }
LZS_FN static inline vi v_truncate(vf x) { return _mm512_cvttps_epi32(x); }
LZS_FN static inline vf v_float(vi x) { return _mm512_cvtepi32_ps(x); }
/* Returns x - m, where m is the integer part of x. */
LZS_FN static inline vf v_fraction(vf x, vi m) {
    (void)m;
    return _mm512_reduce_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
/* Returns lzs_weight_table[lowest four bits] for each lane. */
LZS_FN static inline vf v_weight_table(vi m) { return _mm512_permutexvar_ps(m, _mm512_loadu_ps(lzs_weight_table)); }
LZS_FN static inline vi v_bits_of(vf x) { return _mm512_castps_si512(x); }
LZS_FN static inline vi v_shift_right_1(vi a) { return _mm512_srli_epi32(a, 1); }
LZS_FN static inline vi v_shift_right_4(vi a) { return _mm512_srli_epi32(a, 4); }
LZS_FN static inline vi v_shift_left_8(vi a) { return _mm512_slli_epi32(a, 8); }
LZS_FN static inline vi v_shift_right_8(vi a) { return _mm512_srli_epi32(a, 8); }
LZS_FN static inline vi v_shift_right_6(vi a) { return _mm512_srli_epi32(a, 6); }
LZS_FN static inline vi v_shift_right(vi a, vi n) { return _mm512_srlv_epi32(a, n); }
LZS_FN static inline vi v_add_int(vi a, vi b) { return _mm512_add_epi32(a, b); }
LZS_FN static inline vi v_sub_int(vi a, vi b) { return _mm512_sub_epi32(a, b); }
LZS_FN static inline vi v_add_where(vi a, vm m, vi b) {
    return _mm512_mask_add_epi32(a, m, a, b);
}
/* Returns the sum of all lanes in 64 bits. */
LZS_FN static inline uint64_t v_sum_wide(vi a) {
    __m512i odd = _mm512_srli_epi64(a, 32), even = _mm512_and_si512(a, _mm512_set1_epi64(0xffffffff));
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(odd, even));
}
/* Writes the lanes whose bit is set, contiguously. Always writes V_LANES lanes, of which the lanes
 * after the selected lanes are undefined. */
LZS_FN static inline void v_compress(uint32_t *p, vi a, uint32_t bits) {
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi32((vm)bits, a));
}
/* Returns the maxima of 16 vectors: lane k of the result is the greatest lane of x[k]. */
LZS_FN static inline vf v_maxima(const vf *x) {
    __m512 pairs[8], fours[4], eights[2];
    for (int i = 0; i < 8; i++) {
        pairs[i] = _mm512_max_ps(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]),
                                 _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));
    }
    for (int i = 0; i < 4; i++) {
        __m512d a = _mm512_castps_pd(pairs[2 * i]), b = _mm512_castps_pd(pairs[2 * i + 1]);
        __m512 low = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), high = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        fours[i] = _mm512_max_ps(low, high); /* the maxima of four vectors in each quarter */
    }
    for (int i = 0; i < 2; i++) {
        __m512 a = fours[2 * i], b = fours[2 * i + 1];
        eights[i] = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
    __m512 a = eights[0], b = eights[1];
    return _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}
LZS_FN static inline float v_greatest(vf x) { return _mm512_reduce_max_ps(x); }
/* Ten rounds of Philox on eight counters in lanes of 64 bits. The high and low words of a product can stay in one lane,
 * because the next product ignores the upper 32 bits. c[0] becomes words 0 and 1 of the results, c[1] becomes words 2
 * and 3. */
LZS_FN static inline void v_rounds(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, __m512i c[2]) {
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    const __m512i words = _mm512_set1_epi64(0xffffffff);
    __m512i c0 = c[0], c1 = _mm512_set1_epi64(position[0]), c2 = _mm512_set1_epi64(position[1]);
    __m512i c3 = _mm512_set1_epi64(domain);
    for (int round = 0; round < 10; round++) {
        __m512i a = _mm512_mul_epu32(c0, m0), b = _mm512_mul_epu32(c2, m1);
        c0 = _mm512_ternarylogic_epi64(_mm512_shuffle_epi32(b, 0xf5), c1, _mm512_set1_epi64((long long)keys[2 * round]),
                                       0x96); /* xor of the three operands */
        c2 = _mm512_ternarylogic_epi64(_mm512_shuffle_epi32(a, 0xf5), c3,
                                       _mm512_set1_epi64((long long)keys[2 * round + 1]), 0x96);
        c1 = b;
        c3 = a;
    }
    c[0] = _mm512_or_si512(_mm512_and_si512(c0, words), _mm512_slli_epi64(c1, 32));
    c[1] = _mm512_or_si512(_mm512_and_si512(c2, words), _mm512_slli_epi64(c3, 32));
}
/* Fills c with the random words of 4 * V_LANES tokens (or groups), in order, from number 4 * block on. */
LZS_FN static inline void v_philox(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, uint32_t block,
                                   vi c[4]) {
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (int half = 0; half < 2; half++) {
        __m512i w[2] = {_mm512_add_epi64(_mm512_set1_epi64(block + 8 * (uint32_t)half),
                                         _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7))};
        v_rounds(keys, position, domain, w);
        __m512i even = _mm512_unpacklo_epi64(w[0], w[1]); /* blocks 0, 2, 4, 6 */
        __m512i odd = _mm512_unpackhi_epi64(w[0], w[1]);  /* blocks 1, 3, 5, 7 */
        c[2 * half] = _mm512_permutex2var_epi64(even, first, odd);
        c[2 * half + 1] = _mm512_permutex2var_epi64(even, second, odd);
    }
}
/* Returns the random word of each id. */
LZS_FN static inline vi v_words(const uint64_t keys[20], const uint32_t position[2], uint32_t domain, vi ids) {
    __m256i words[2];
    for (int half = 0; half < 2; half++) {
        __m512i id = _mm512_cvtepu32_epi64(half ? _mm512_extracti64x4_epi64(ids, 1) : _mm512_castsi512_si256(ids));
        __m512i w[2] = {_mm512_srli_epi64(id, 2)};
        v_rounds(keys, position, domain, w);
        __m512i pair = _mm512_mask_mov_epi64(w[0], _mm512_test_epi64_mask(id, _mm512_set1_epi64(2)), w[1]);
        __m512i shift = _mm512_slli_epi64(_mm512_and_si512(id, _mm512_set1_epi64(1)), 5);
        words[half] = _mm512_cvtepi64_epi32(_mm512_srlv_epi64(pair, shift));
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(words[0]), words[1], 1);
}
LZS_FN static inline void v_extend(uint16_t *len, const int32_t *tokens, int32_t newest, uint16_t cap) {
    __m512i t = _mm512_set1_epi32(newest);
    /* The two masks are not joined by a shift and an or: for these operations, GCC 12 with UBSan spills 16 bits of a
     * mask and reloads 32 bits. */
    __mmask16 low = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(tokens), t);
    __mmask16 high = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(tokens + 16), t);
    __mmask32 equal = _mm512_kunpackw(high, low);
    __m512i l = _mm512_adds_epu16(_mm512_loadu_si512(len), _mm512_set1_epi16(1));
    _mm512_storeu_si512(len, _mm512_maskz_min_epu16(equal, l, _mm512_set1_epi16((short)cap)));
}
LZS_FN static inline uint32_t v_long_shorts(const uint16_t *len, uint16_t least) {
    return _mm512_cmpge_epu16_mask(_mm512_loadu_si512(len), _mm512_set1_epi16((short)least));
}
/* For v = m * 2^e with m in [2/3, 4/3), v_log2_exponent returns e and v_without_exponent returns m. */
LZS_FN static inline vi v_log2_exponent(vf v) {
    return _mm512_srai_epi32(_mm512_sub_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(LZS_TWO_THIRDS)), 23);
}
LZS_FN static inline vf v_without_exponent(vf v, vi e) {
    return _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_castps_si512(v), _mm512_slli_epi32(e, 23)));
}
/* Gives the tokens and last positions of 16 entries, which fill three vectors. */
LZS_FN static inline void v_load_entries(const lzs_token_entry *entries, vi *token, vi *last) {
    const __m512i token_01 = _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
    const __m512i token_2 = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
    const __m512i last_01 = _mm512_setr_epi32(2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
    const __m512i last_2 = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);
    const int32_t *words = &entries->token;
    __m512i a = _mm512_loadu_si512(words), b = _mm512_loadu_si512(words + 16), c = _mm512_loadu_si512(words + 32);
    *token = _mm512_permutex2var_epi32(_mm512_permutex2var_epi32(a, token_01, b), token_2, c);
    *last = _mm512_permutex2var_epi32(_mm512_permutex2var_epi32(a, last_01, b), last_2, c);
}
/* Stores 16 edits, each with a token, the factor 1 and a bias. In the permutes, index 16 + k selects the bias of edit
 * k. */
LZS_FN static inline void v_store_edits(lzs_edit *edits, vi token, vf bias) {
    const __m512i first = _mm512_setr_epi32(0, 0, 16, 1, 0, 17, 2, 0, 18, 3, 0, 19, 4, 0, 20, 5);
    const __m512i second = _mm512_setr_epi32(0, 21, 6, 0, 22, 7, 0, 23, 8, 0, 24, 9, 0, 25, 10, 0);
    const __m512i third = _mm512_setr_epi32(26, 11, 0, 27, 12, 0, 28, 13, 0, 29, 14, 0, 30, 15, 0, 31);
    const __m512i b = _mm512_castps_si512(bias), one = _mm512_castps_si512(_mm512_set1_ps(1.0f));
    int32_t *words = &edits->token;
    _mm512_storeu_si512(words, _mm512_mask_mov_epi32(_mm512_permutex2var_epi32(token, first, b), 0x2492, one));
    _mm512_storeu_si512(words + 16, _mm512_mask_mov_epi32(_mm512_permutex2var_epi32(token, second, b), 0x9249, one));
    _mm512_storeu_si512(words + 32, _mm512_mask_mov_epi32(_mm512_permutex2var_epi32(token, third, b), 0x4924, one));
}

#include "kernels_simd.h"
#endif
