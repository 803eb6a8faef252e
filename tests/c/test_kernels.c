/* test_kernels.c - every table of kernels that this CPU runs against the definition: the same bits, and nothing written
 * elsewhere. One body a kernel, run per table at boundary lengths. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "lzs_internal.h"

enum { MAX_N = 152000, GUARD = 64 };

static float logits[MAX_N + GUARD];
static uint32_t mask[(MAX_N + 31) / 32 + 1];
static uint64_t random_state = 1;

/* 0, 1, around each vector width and its multiples, blocks, and real vocabularies */
static const int32_t lengths[] = {0,  1,  2,  3,   4,   5,   7,   8,   9,   15,   16,   17,   23,   24,    25,    31,    32,    33,
                                  47, 48, 49, 63,  64,  65,  97,  127, 128, 129,  191,  192,  193,  255,   256,   257,   1023,  1024,
                                  1025, 3073, 4096, 5001, 32000, 50257, 128256, 151936};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, KINDS = 7 };

static const lzs_kernels *table;

static void fill(int32_t n, int kind) {
    for (int32_t i = 0; i < n; i++) {
        double u = random_unit(&random_state), v = random_unit(&random_state);
        float x = (float)(2.6 * sqrt(-2.0 * log(u + 1e-12)) * cos(6.283185307179586 * v));
        if (kind == 1) x = 0.0f;
        if (kind == 2) x = (float)(int32_t)x; /* ties, -0 among them */
        if (kind == 3 && u < 0.5) x = -INFINITY;
        if (kind == 4) x *= 1e-5f;
        if (kind == 5) x = i % 97 ? x * 1e30f : 3e38f;
        if (kind == 6 && random_below(&random_state, 50) == 0) x = INFINITY;
        logits[i] = x;
    }
    for (int32_t i = n; i < n + GUARD; i++) logits[i] = 1e38f; /* past the end: a kernel that looks here shows */
    for (int32_t w = 0; w <= n / 32; w++) mask[w] = (uint32_t)random_bits(&random_state);
}

static lzs_row row_of(int32_t n, bool masked) {
    return (lzs_row){logits, n, masked ? mask : NULL};
}

static bool equal_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static void test_scan_and_max(int32_t n, bool masked) {
    static lzs_blocks blocks, expected_blocks;
    lzs_row row = row_of(n, masked);
    CHECK(equal_bits(table->scan(logits, n), lzs_kernels_scalar.scan(logits, n)) || table->scan(logits, n) == 0.0f);
    blocks.size = 64;
    while ((n - 1) / blocks.size >= LZS_MAX_BLOCKS) blocks.size *= 2;
    blocks.n = n ? (n - 1) / blocks.size + 1 : 0;
    memset(blocks.maxima, 0x55, sizeof blocks.maxima);
    expected_blocks = blocks;
    lzs_top top, expected;
    table->max(&row, &blocks, &top);
    lzs_kernels_scalar.max(&row, &expected_blocks, &expected);
    CHECK(equal_bits(top.max, expected.max) && top.argmax == expected.argmax && top.nan == expected.nan);
    for (int32_t b = 0; b < LZS_MAX_BLOCKS; b++) {
        for (int l = 0; l < LZS_LANES; l++) CHECK(blocks.maxima[b][l] == expected_blocks.maxima[b][l]);
        if (b < blocks.n) CHECK(blocks.best[b] == expected_blocks.best[b]);
    }
}

static void test_nan(int32_t n) {
    static lzs_blocks blocks;
    if (n == 0) return;
    for (int try = 0; try < 3; try++) {
        int32_t at = try == 0 ? 0 : try == 1 ? n - 1 : random_below(&random_state, n);
        float kept = logits[at];
        logits[at] = NAN;
        lzs_top top;
        for (int masked = 0; masked < 2; masked++) {
            lzs_row row = row_of(n, masked);
            blocks.size = MAX_N / LZS_MAX_BLOCKS / 64 * 64 + 64;
            blocks.n = (n - 1) / blocks.size + 1;
            table->max(&row, &blocks, &top);
            CHECK(top.nan == lzs_allowed(row.mask, at));
        }
        logits[at] = kept;
    }
}

static void test_gather(int32_t n, bool masked) {
    static uint64_t packed[MAX_N + 1], expected_packed[MAX_N + 1];
    lzs_row row = row_of(n, masked);
    for (int try = 0; try < 6; try++) {
        float low = (float[]){-INFINITY, 0.0f, 3.0f, 6.0f, -1.0f, 1e38f}[try];
        float high = try == 4 ? 1.0f : INFINITY;
        int32_t capacity = try < 3 ? n : try * 5;
        int32_t from = n ? random_below(&random_state, n) / 64 * 64 : 0, to = n - random_below(&random_state, n - from + 1);
        lzs_list list = {packed, 0, capacity}, expected = {expected_packed, 0, capacity};
        packed[capacity] = 42;
        int32_t at = from, expected_at = from;
        do { /* a full list is emptied, and the gather goes on from where it says, aligned or not */
            list.n = expected.n = 0;
            at = table->gather(&row, at, to, low, high, &list);
            expected_at = lzs_kernels_scalar.gather(&row, expected_at, to, low, high, &expected);
            CHECK(at == expected_at && list.n == expected.n && packed[capacity] == 42);
            CHECK(memcmp(packed, expected_packed, (size_t)list.n * sizeof *packed) == 0);
        } while (at < to && capacity > 0);
    }
}

static float top_of(int32_t n) {
    float max = lzs_kernels_scalar.scan(logits, n);
    return max > -INFINITY ? max : 0.0f;
}

static void test_weigh(int32_t n, bool masked) {
    static struct {
        lzs_weights weights;
        uint64_t guard;
    } got, expected;
    static const struct {
        float from, limit, per_bit;
    } ranges[] = {{0, 16, 64}, {0, 32, 64}, {3, 6, 64}, {0, 0.015625f, 131072}, {2.25f, 2.265625f, 131072}};
    lzs_row row = row_of(n, masked);
    for (int r = 0; r < 5; r++) {
        for (int t = 0; t < 3; t++) {
            lzs_scale scale = {top_of(n), lzs_temperature_scale((float[]){1.0f, 0.3f, 1e5f}[t])};
            memset(&got, 0, sizeof got);
            got.weights = (lzs_weights){.from = ranges[r].from, .limit = ranges[r].limit, .per_bit = ranges[r].per_bit};
            got.guard = 42;
            expected = got;
            table->weigh(&row, scale, &got.weights);
            lzs_kernels_scalar.weigh(&row, scale, &expected.weights);
            CHECK(memcmp(&got, &expected, sizeof got) == 0);
        }
    }
}

static void test_race(int32_t n, bool masked) {
    lzs_row row = row_of(n, masked);
    for (int try = 0; try < 6; try++) {
        lzs_scale scale = {top_of(n), lzs_temperature_scale(try % 2 ? 0.5f : 1.0f)};
        lzs_cut cut = {lzs_key((float[]){-FLT_MAX, -FLT_MAX, 0.0f, 1.0f, 5.0f, scale.max}[try]), try < 3 ? INT32_MAX : n / 2};
        int32_t from = n ? random_below(&random_state, n) / 64 * 64 : 0, to = try < 2 ? n : n - random_below(&random_state, n - from + 1);
        lzs_race race = {{7, (uint32_t)try}, UINT64_C(0x123456789) + (uint32_t)try, INFINITY, -1}, expected = race;
        table->race(&row, from, to, cut, scale, &race);
        lzs_kernels_scalar.race(&row, from, to, cut, scale, &expected);
        CHECK(race.token == expected.token && equal_bits(race.score, expected.score));
    }
}

static void test_lengths(int32_t n) {
    static uint16_t len[MAX_N + 1], expected[MAX_N + 1];
    static int32_t tokens[MAX_N], indices[MAX_N + 1], expected_indices[MAX_N + 1];
    for (int32_t i = 0; i < n; i++) {
        tokens[i] = random_below(&random_state, 4);
        len[i] = expected[i] = (uint16_t)random_below(&random_state, 34);
    }
    len[n] = 4242;
    table->extend(len, tokens, n, 2, 33);
    lzs_kernels_scalar.extend(expected, tokens, n, 2, 33);
    CHECK(memcmp(len, expected, (size_t)n * sizeof *len) == 0 && len[n] == 4242);
    int32_t found = table->nonzero(len, n, indices);
    CHECK(found == lzs_kernels_scalar.nonzero(len, n, expected_indices));
    CHECK(memcmp(indices, expected_indices, (size_t)found * sizeof *indices) == 0);
}

int main(void) {
    int n_tables = 0;
    for (; (table = lzs_kernels_at(n_tables)); n_tables++) {
        for (int32_t l = 0; l < N_LENGTHS; l++) {
            int32_t n = lengths[l];
            for (int kind = 0; kind < KINDS && (n < 50000 || kind < 2); kind++) {
                fill(n, kind);
                for (int masked = 0; masked < 2; masked++) {
                    test_scan_and_max(n, masked);
                    test_gather(n, masked);
                    test_weigh(n, masked);
                    test_race(n, masked);
                }
                test_nan(n);
            }
            test_lengths(n);
        }
        printf("%s ", table->name);
    }
    printf("agree\n");
    CHECK(n_tables >= 1 && lzs_kernels_best());
    return 0;
}
