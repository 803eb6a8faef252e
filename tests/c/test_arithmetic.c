/* test_arithmetic.c - the float functions of arithmetic.h and noise.h against the C library in double, and Philox against
 * its authors' known answers. */
#include <math.h>

#include "backend/noise.h"
#include "check.h"

static double relative_error(double x, double exact) {
    return fabs(x - exact) / fabs(exact);
}

/* What a compiler may do to floats by flags that have no macro, above all clang's -ffp-contract=fast: each of these is one result
 * with IEEE operations, one after the other, and another without. */
static void test_flags(void) {
    volatile float one = 1.0f, small = 0x1p-12f, three = 3.0f, zero = 0.0f, huge = FLT_MAX;
    float x = one + small, product_sum = x * x - (one + 0x1p-11f);
    CHECK(product_sum == 0.0f); /* 2^-24 where the product is not rounded */
    x = zero;
    CHECK(lzs_float_bits(-x + 0.0f) == 0 && lzs_float_bits(-x) == 0x80000000u);
    x = small * small;
    CHECK((x + huge) - huge == 0.0f);
    float a = 5.0f * one, b = 7.0f * one, y = three;
    CHECK(a / y == 0x1.aaaaaap+0f && b / y == 0x1.2aaaaap+1f); /* 5 * (1 / 3) is more */
    x = huge * three;
    CHECK(x > FLT_MAX && x - x != x - x);
    x = FLT_MIN * small;
    CHECK(x > 0.0f && x * 0x1p12f == FLT_MIN);
}

static void test_keys(void) {
    static const float ladder[] = {-INFINITY, -FLT_MAX, -1.5f,    -1.0f, -FLT_MIN, -1e-45f, 0.0f,
                                   1e-45f,    FLT_MIN,  1.0f,     1.5f,  FLT_MAX,  INFINITY};
    size_t n = sizeof ladder / sizeof *ladder;
    for (size_t i = 0; i < n; i++) {
        CHECK(lzs_key_float(lzs_key(ladder[i])) == ladder[i]);
        if (i) CHECK(lzs_key(ladder[i - 1]) < lzs_key(ladder[i]));
    }
    CHECK(lzs_key(-0.0f) == lzs_key(0.0f));
    uint64_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        float x = lzs_bits_float((uint32_t)random_bits(&state)), y = lzs_bits_float((uint32_t)random_bits(&state));
        if (x != x || y != y) continue;
        CHECK((x < y) == (lzs_key(x) < lzs_key(y)) && (x == y) == (lzs_key(x) == lzs_key(y)));
        CHECK(lzs_key_float(lzs_key(x)) == x);
    }
}

static void test_log2(void) {
    for (int e = -126; e <= 127; e++) CHECK(lzs_log2(ldexpf(1.0f, e)) == (float)e);
    double worst = 0.0;
    /* every 1021st normal float: 2 million of them, all exponents and, as 1021 is prime, all parts of the mantissa */
    for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 1021) {
        float v = lzs_bits_float(bits);
        if (v == 1.0f) continue;
        double error = relative_error(lzs_log2(v), log2(v));
        if (error > worst) worst = error;
    }
    CHECK(worst < 3e-7);
    worst = 0.0;
    for (int i = 1; i <= 1000000; i++) { /* down to x = 3e-13, where 1 + x is 1 */
        float x = (float)(i / 3e6) * (i % 7 == 0 ? 1e-6f : 1.0f);
        double up = relative_error(lzs_log2_1p(x), log1p(x) / log(2.0));
        double down = relative_error(lzs_log2_1p(-x), log1p(-(double)x) / log(2.0));
        if (up > worst) worst = up;
        if (down > worst) worst = down;
    }
    CHECK(worst < 1.6e-7);
}

static void test_exp2(void) {
    double worst = 0.0;
    for (int i = -500000; i <= 500000; i++) {
        float g = (float)i * 1e-6f;
        double error = relative_error(lzs_exp2_half(g), exp2(g));
        if (error > worst) worst = error;
        if (g <= 0.0f) CHECK(lzs_exp2_half(g) <= 1.0f);
    }
    CHECK(worst < 1.2e-7);

    for (int n = 0; n <= 125; n++) CHECK(lzs_exp2_neg((float)n) == exp2(-n));
    CHECK(lzs_exp2_neg(125.5f) == 0.0 && lzs_exp2_neg(INFINITY) == 0.0);
    for (int i = 1; i < 1000000; i++) {
        float y = (float)i * 0.000125f;
        CHECK(relative_error(lzs_exp2_neg(y), exp2(-(double)y)) < 1.2e-7);
    }
}

/* All weights there are. In y = (i + f) / 16 the fractions f = k 2^-20 are finer than the rounding of f - LZS_WEIGHT_ORIGIN, so
 * that every other fraction has the weight of one of these, and a bit of y more halves a weight. */
static void test_weight(void) {
    enum { FINENESS = 1 << 20 };
    uint32_t last = 0x7fffffff;
    double low = 0.0, high = 0.0;
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < FINENESS; k++) {
            float y = (float)(i * FINENESS + k) * (0x1p-20f / 16.0f);
            uint32_t w = lzs_weight(y);
            CHECK(w <= last);
            last = w;
            if (k % 16) continue; /* the rest of what is checked depends little on the last bits */
            double error = (double)w / exp2(31.0 - (double)y) - 1.0;
            if (error < low) low = error;
            if (error > high) high = error;
            for (int n = 1; n < 32; n += 5) {
                float further = (float)n + y;
                CHECK(further - (float)n != y || lzs_weight(further) == w >> n);
            }
        }
    }
    CHECK(low > -6.5e-7 && high < 6.5e-7);
    CHECK(last >= lzs_weight(1.0f) && lzs_weight(1.0f) == lzs_weight(0.0f) >> 1);
    CHECK(lzs_weight(30.0f) == 1 && lzs_weight(31.0f) == 0 && lzs_weight(INFINITY) == 0 && lzs_weight(FLT_MAX) == 0);
    CHECK(lzs_weight(0x1p-149f) == lzs_weight(0.0f) && lzs_weight(0x1p-30f) == lzs_weight(0.0f));
}

static void test_philox(void) {
    /* the lines "philox4x32 10" of kat_vectors in the authors' Random123 */
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
         {0xffffffffu, 0xffffffffu},
         {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
         {0xa4093822u, 0x299f31d0u},
         {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        lzs_philox(known[i].counter, known[i].key, out);
        for (int j = 0; j < 4; j++) CHECK(out[j] == known[i].out[j]);
    }
}

static void check_exponential(double v) {
    float x = (float)v;
    double exact = -log1p(-(double)x) / log(2.0), noise = lzs_exponential(x);
    CHECK(isfinite(noise) && noise >= 0.0);
    /* the rounding of 1 - v to float (2^-25) matters where v is near 1: to late runners, which do not win */
    double rounding = x < 0.34 ? 0.0 : 0x1p-25 / ((1.0 - (double)x) * log(2.0));
    if (x <= 1.0f - 0x1p-22f) CHECK(fabs(noise - exact) < 4e-7 * exact + 1.1 * rounding);
}

static void test_noise(void) {
    uint64_t state = 2;
    for (int i = 0; i < 2000000; i++) check_exponential(random_unit(&state));
    for (int i = 1; i < 100000; i++) { /* the smallest and the largest, and both sides of the switch at v = 1/3 */
        check_exponential(i * 0x1p-32);
        check_exponential(1.0 - i * 0x1p-24);
        check_exponential(1.0 / 3.0 + (i - 50000) * 1e-7);
    }
    CHECK(lzs_exponential(1.0f) == lzs_exponential(1.0f - 0x1p-24f));
    CHECK(fabs(lzs_exponential(1.0f) - 24.0) < 1e-5);

    /* The smallest of 64 exponential noises is 64 times smaller; it grows with the word, whose low bits name the holder. */
    float before = 0.0f;
    for (uint64_t word = 0; word <= 0xffffffffu; word += 4099) {
        float minimum = lzs_group_minimum((uint32_t)word);
        CHECK(minimum >= before && minimum > 0.0f && lzs_group_holder((uint32_t)word) == word % 64);
        before = minimum;
    }
    CHECK(fabs(lzs_group_minimum(0xffffffffu) - 24.0 / 64.0) < 1e-6);
    CHECK(lzs_member_noise(0.25f, 0) >= 0.25f && lzs_member_noise(0.25f, 0xffffffffu) > 24.0f);
}

/* Every token has its place in one group, and only one. */
static void test_groups(void) {
    for (int32_t id = 0; id < 300000; id++) {
        uint32_t group = lzs_group_of(id), member = lzs_member_of(id);
        CHECK(member < LZS_GROUP && (int32_t)(LZS_GROUP * group + member) == id);
    }

    /* A token's noise from scratch is that of its group's words. */
    for (uint64_t seed = 0; seed < 5; seed++) {
        lzs_noise_key key = lzs_noise_key_of(seed << 33, 7 - seed);
        for (uint32_t group = 0; group < 33; group++) {
            uint32_t word = lzs_group_word(key, group);
            float minimum = lzs_group_minimum(word);
            for (uint32_t member = 0; member < LZS_GROUP; member++) {
                float noise = lzs_token_noise(key, (int32_t)(LZS_GROUP * group + member));
                CHECK(member == lzs_group_holder(word) ? noise == minimum : noise >= minimum);
            }
        }
    }
}

int main(void) {
    test_flags();
    test_keys();
    test_log2();
    test_exp2();
    test_weight();
    test_philox();
    test_noise();
    test_groups();
    return 0;
}
