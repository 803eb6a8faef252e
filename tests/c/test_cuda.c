/* test_cuda.c - the bodies of the CUDA kernels, run by their twin on the CPU with threads in several orders: the token and the
 * status of every difficult row are those of the scalar kernels, and the edits of every history those of a sampler.
 *
 * usage: test_cuda [rows] [histories]
 */
#include "cuda_case.h"

/* Kernels divide by integers, for the same bits. */
static void test_quotients(long n) {
    static const float edges[] = {0.0f, -0.0f, 1e-45f, -1e-45f, FLT_MIN, -FLT_MIN, 0x1.fffffcp-127f, 1.0f, -3.0f, FLT_MAX, -FLT_MAX};
    enum { N_EDGES = sizeof edges / sizeof *edges };
    uint64_t state = 3;
    for (long i = 0; i < n + N_EDGES * N_EDGES; i++) {
        float x = lzs_bits_float((uint32_t)random_bits(&state)), y = lzs_bits_float((uint32_t)random_bits(&state) & 0x7fffffffu);
        if (i % 3 == 0) y = lzs_bits_float(lzs_float_bits(y) & 0x7ff80000u); /* few bits: exact results and exact middles */
        if (i % 3 == 1) x = x * 1e-20f * y;                                  /* near the denormals */
        if (i >= n) x = edges[(i - n) % N_EDGES], y = edges[(i - n) / N_EDGES];
        if (!(x >= -FLT_MAX && x <= FLT_MAX) || !(y >= FLT_MIN && y <= FLT_MAX)) continue;
        volatile float direct = x / y;
        CHECK(lzs_float_bits(direct) == lzs_float_bits(lzs_quotient_of_integers(x, y)));
    }
}

static void test_halves(void) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        int exponent = (int)(h >> 10 & 31);
        double mantissa = h & 0x3ff, x = exponent ? ldexp(1024.0 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        float decoded = lzs_from_half((uint16_t)h);
        if (exponent == 31) x = mantissa ? NAN : INFINITY;
        CHECK(x != x ? decoded != decoded : decoded == (float)(h & 0x8000 ? -x : x));
        CHECK(lzs_float_bits(lzs_from_bfloat((uint16_t)h)) == h << 16);
    }
}

/* A history of far more tokens than edits costs a few swaps a token, and not a look at the whole table. */
static void test_full_table(void) {
    enum { N = 20000, CAPACITY = 2000, SLOTS = 4096 };
    static int32_t history[N];
    static lzs_edit edits[CAPACITY];
    static uint32_t used[CAPACITY];
    static lzs_fold_slot slots[SLOTS];
    lzs_params params;
    lzs_params_init(&params);
    params.presence_penalty = 1.0f;
    for (int32_t i = 0; i < N; i++) history[i] = i;
    const lzs_fold_settings settings = lzs_fold_settings_of(&params, N);
    const lzs_fold_row row = {&settings, history, N, edits, used, CAPACITY, slots, SLOTS};
    lzs_the_twin.threads = LZS_MAX_THREADS;
    lzs_the_twin.order = LZS_TWIN_FORWARD;
    lzs_the_twin.n_swaps = 0;
    CHECK(lzs_twin_fold(&row).status == LZS_ESPACE);
    CHECK(lzs_the_twin.n_swaps < 4 * N);
}

int main(int argc, char **argv) {
    long n_rows = argc > 1 ? atol(argv[1]) : 8000, n_histories = argc > 2 ? atol(argv[2]) : 4000;
    uint64_t state = 20260301;
    lzs_backend *b;
    test_quotients(n_rows * 100);
    test_halves();
    test_full_table();
    CHECK(lzs_backend_new(CUDA_VOCAB, CUDA_EDITS + 1, &b) == LZS_OK);
    b->kernels = &lzs_kernels_scalar;
    for (long i = 0; i < n_rows; i++) {
        int32_t n = 1 + random_below(&state, i % 64 == 0 ? CUDA_VOCAB : i % 8 == 0 ? 4096 : i % 4 == 1 ? 1200 : 90);
        choose_schedule(&state);
        CHECK(pick_agrees(b, n, (row_kind)(i % ROW_KINDS), &state));
    }
    for (int i = 0; i < 12; i++) {
        choose_schedule(&state);
        CHECK(tie_agrees(b, 1 + i % 3));
    }
    for (long i = 0; i < n_histories; i++) {
        choose_schedule(&state);
        CHECK(fold_agrees(&state));
    }
    printf("%ld rows, %ld histories\n", n_rows, n_histories);
    lzs_backend_free(b);
    return 0;
}
