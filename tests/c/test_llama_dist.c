/* test_llama_dist.c - llama.cpp's generator at any position, and what its `dist` may pick. llama.cpp's own draws are
 * compared in Python. */
#include "backend/backend.h"
#include "check.h"
#include "state/llama_rng.c" /* mt_seed and mt_word are its own */

static void test_mt19937(void) {
    lzs_mt19937 rng;
    mt_seed(&rng, 5489); /* the default seed of std::mt19937, whose 10000th word the C++ standard states */
    CHECK(mt_word(&rng) == 3499211612u && mt_word(&rng) == 581869302u);
    for (int i = 2; i < 9999; i++) mt_word(&rng);
    CHECK(mt_word(&rng) == 4123659995u);
}

/* The number of a position is that of a generator that runs from the start, in whatever order positions are asked for. */
static void test_positions(void) {
    enum { N = 5000 };
    static double expected[N];
    lzs_mt19937 plain;
    lzs_llama_rng r;
    uint64_t state = 1;
    mt_seed(&plain, 7);
    for (int i = 0; i < N; i++) {
        double low = mt_word(&plain), high = mt_word(&plain);
        expected[i] = (low + high * 4294967296.0) / 18446744073709551616.0;
        CHECK(expected[i] >= 0.0 && expected[i] < 1.0);
    }
    for (int room = 0; room < 3; room++) { /* no states are kept, some, and all */
        lzs_llama_rng_init(&r, 7);
        if (room) CHECK(lzs_llama_rng_reserve(&r, room == 1 ? 1500 : N) == LZS_OK);
        for (int i = 0; i < N; i++) CHECK(lzs_llama_rng_uniform(&r, (uint64_t)i) == expected[i]);
        for (int i = 0; i < 300; i++) {
            uint64_t position = (uint64_t)random_below(&state, N);
            CHECK(lzs_llama_rng_uniform(&r, position) == expected[position]);
            CHECK(lzs_llama_rng_uniform(&r, position) == expected[position]);
        }
        lzs_llama_rng copy;
        lzs_llama_rng_init(&copy, 99);
        CHECK(lzs_llama_rng_copy(&copy, &r) == LZS_OK);
        for (int i = N - 1; i >= 0; i -= 333) CHECK(lzs_llama_rng_uniform(&copy, (uint64_t)i) == expected[i]);
        lzs_llama_rng_free(&copy);
        lzs_llama_rng_seed(&r, 8);
        CHECK(lzs_llama_rng_uniform(&r, 0) != expected[0]);
        lzs_llama_rng_seed(&r, 7);
        CHECK(lzs_llama_rng_uniform(&r, 4000) == expected[4000]);
        lzs_llama_rng_free(&r);
    }
}

/* Two words of ones are rounded up to 2^64; the number is below 1 nevertheless, as in libstdc++. */
static void test_the_largest_number(void) {
    lzs_llama_rng r;
    lzs_mt19937 ones = {.state = {0x12dd9bb3u, 0x12dd9bb3u}};
    lzs_llama_rng_init(&r, 1);
    r.rng = ones;
    CHECK(mt_word(&ones) == UINT32_MAX && mt_word(&ones) == UINT32_MAX);
    CHECK(lzs_llama_rng_uniform(&r, 0) == nextafter(1.0, 0.0));
    lzs_llama_rng_free(&r);
}

/* Far into a text, going back one token starts from a state that was kept, and is right. */
static void test_far_positions(void) {
    enum { FAR = 100000 };
    lzs_llama_rng r, fresh;
    lzs_llama_rng_init(&r, 3);
    CHECK(lzs_llama_rng_reserve(&r, FAR) == LZS_OK);
    lzs_llama_rng_init(&fresh, 3); /* it keeps nothing, so it runs the whole way */
    double last = lzs_llama_rng_uniform(&r, FAR), before = lzs_llama_rng_uniform(&r, FAR - 1);
    CHECK(r.n_kept == FAR / LZS_RNG_STEP + 1);
    CHECK(lzs_llama_rng_uniform(&fresh, FAR) == last && fresh.n_kept == 0);
    CHECK(lzs_llama_rng_uniform(&fresh, FAR - 1) == before);
    CHECK(r.draw == FAR - 1);
    lzs_mt19937 kept = r.kept[FAR / LZS_RNG_STEP]; /* so a replay begins at most LZS_RNG_STEP draws before */
    for (uint64_t i = FAR / LZS_RNG_STEP * LZS_RNG_STEP; i < FAR; i++) {
        mt_word(&kept);
        mt_word(&kept);
    }
    double low = mt_word(&kept), high = mt_word(&kept);
    CHECK((low + high * 4294967296.0) / 18446744073709551616.0 == last);
    lzs_llama_rng_free(&r);
    lzs_llama_rng_free(&fresh);
}

/* A token of probability 0 is never picked, whatever the number that decides. */
static void test_no_token_of_probability_0(void) {
    static const struct {
        float row[4], temperature;
        int likely; /* a bit for each token that has a probability above 0 */
    } cases[] = {
        {{INFINITY, 0.0f, 0.0f, -5.0f}, 1.0f, 1},
        {{0.0f, -5.0f, 0.0f, INFINITY}, 1.0f, 8}, /* a number of 0 must not stop at the first token */
        {{FLT_MAX, INFINITY, INFINITY, 3.0f}, 0.5f, 6},
        {{3e33f, -3e33f, -3e33f, -3e33f}, 1e-6f, 1},
        {{-3e33f, 3e33f, 2e33f, 3e33f}, 1e-6f, 10}, /* quotients that overflow: infinity - infinity */
        {{FLT_MAX, -FLT_MAX, 0.0f, -INFINITY}, 1e-6f, 1},
        {{-200.0f, -1000.0f, 0.0f, -INFINITY}, 1.0f, 4},
    };
    static const double uniforms[] = {0.0, 1e-300, 0.25, 0.5, 0.999, 1.0 - 0x1p-53};
    lzs_backend *b;
    CHECK(lzs_backend_new(4, 0, 4, &b) == LZS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int truncated = 0; truncated < 3; truncated++) {
            for (size_t u = 0; u < sizeof uniforms / sizeof *uniforms; u++) {
                const float *row = cases[i].row;
                float probabilities[4];
                int32_t ids[4], token;
                size_t n;
                lzs_status status;
                lzs_params p;
                lzs_plan plan;
                lzs_params_init(&p);
                p.pick = LZS_PICK_LLAMA_DIST;
                p.temperature = cases[i].temperature;
                p.top_k = truncated == 1 ? 3 : 0;
                p.min_p = truncated == 2 ? 1e-30f : 0.0f;
                lzs_plan_settings(&plan, 4, &p);
                plan.uniform = uniforms[u];
                CHECK(lzs_backend_sample(b, &row, &plan, 1, &token, &status) == LZS_OK);
                CHECK(token >= 0 && (cases[i].likely >> token & 1));
                CHECK(lzs_backend_distribution(b, row, &plan, ids, probabilities, 4, &n) == LZS_OK);
                for (size_t k = 0; k < n; k++) CHECK(ids[k] != token || probabilities[k] > 0.0f);
            }
        }
    }
    lzs_backend_free(b);
}

/* A backend with too short a list of candidates says so. */
static void test_too_many_candidates(void) {
    enum { V = 5000 };
    static float row[V];
    const float *rows[1] = {row};
    static const int32_t room[] = {0, LZS_LIST, V - 1, V, V + 1000};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) {
        lzs_backend *b;
        lzs_params p;
        lzs_plan plan;
        lzs_status status;
        int32_t token;
        lzs_params_init(&p);
        p.pick = LZS_PICK_LLAMA_DIST;
        lzs_plan_settings(&plan, V, &p);
        plan.uniform = 0.5;
        CHECK(lzs_backend_new(V, 0, room[i], &b) == LZS_OK);
        CHECK(lzs_backend_sample(b, rows, &plan, 1, &token, &status) == (room[i] < V ? LZS_ESPACE : LZS_OK));
        CHECK(token == (room[i] < V ? -1 : V / 2 - 1));
        plan.top_k = 1000;
        CHECK(lzs_backend_sample(b, rows, &plan, 1, &token, &status) == LZS_OK && token == 499);
        lzs_backend_free(b);
    }
}

int main(void) {
    test_mt19937();
    test_positions();
    test_the_largest_number();
    test_far_positions();
    test_no_token_of_probability_0();
    test_too_many_candidates();
    return 0;
}
