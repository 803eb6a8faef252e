/* test_pick.c - the race's promises and mt19937's known answers. Frequencies, and llama.cpp's own draws, are compared
 * in Python. */
#include "check.h"
#include "lzs_pick.c" /* mt_seed and mt_word are its own */

enum { N_VOCAB = 203 };

static void test_mt19937(void) {
    lzs_mt19937 rng;
    mt_seed(&rng, 5489); /* the default seed of std::mt19937, whose 10000th word the C++ standard states */
    CHECK(mt_word(&rng) == 3499211612u && mt_word(&rng) == 581869302u);
    for (int i = 2; i < 9999; i++) mt_word(&rng);
    CHECK(mt_word(&rng) == 4123659995u);
}

static void test_dist_is_a_function_of_the_position(void) {
    lzs_dist *dist = lzs_dist_new(1, 7);
    double first[400];
    for (uint64_t i = 0; i < 400; i++) {
        first[i] = dist_uniform(dist, i, 7);
        CHECK(first[i] >= 0.0 && first[i] < 1.0 && dist_uniform(dist, i, 7) == first[i]);
    }
    uint64_t state = 1;
    for (int i = 0; i < 300; i++) {
        uint64_t position = (uint64_t)random_below(&state, 400);
        CHECK(dist_uniform(dist, position, 7) == first[position]);
    }
    lzs_dist_free(dist);
    lzs_dist_free(NULL);
}

/* The race among what stays of a row. */
static int32_t pick(const float *x, const uint32_t *mask, lzs_cut cut, const lzs_params *p, uint64_t position) {
    static lzs_survivors v;
    lzs_row row = {x, N_VOCAB, mask};
    CHECK(lzs_survive(&lzs_kernels_scalar, &row, p, &v) == LZS_OK);
    v.cut = cut;
    int32_t token = lzs_race_pick(&lzs_kernels_scalar, &v, p, position);
    const lzs_kernels *kernels;
    for (int table = 1; (kernels = lzs_kernels_at(table)); table++) {
        CHECK(lzs_race_pick(kernels, &v, p, position) == token);
    }
    return token;
}

/* A token's draw depends on nothing but seed, position and id: take away any losers and the winner still wins. */
static void test_race_without_losers(void) {
    static float x[N_VOCAB];
    uint64_t state = 3;
    lzs_params p;
    lzs_params_init(&p);
    lzs_cut all = {lzs_key(-FLT_MAX), INT32_MAX};
    for (int r = 0; r < 2000; r++) {
        int32_t best = 0; /* never taken away, so that the others' y stay what they are */
        for (int32_t i = 0; i < N_VOCAB; i++) {
            x[i] = (float)(3.0 * random_unit(&state));
            if (x[i] > x[best]) best = i;
        }
        p.seed = random_bits(&state);
        uint64_t position = random_bits(&state);
        int32_t winner = pick(x, NULL, all, &p, position);
        CHECK(winner >= 0 && winner < N_VOCAB);
        uint32_t mask[(N_VOCAB + 31) / 32];
        for (size_t w = 0; w < sizeof mask / sizeof *mask; w++) mask[w] = (uint32_t)random_bits(&state);
        mask[winner / 32] |= 1u << (winner % 32);
        mask[best / 32] |= 1u << (best % 32);
        CHECK(pick(x, mask, all, &p, position) == winner);
        lzs_cut from_winner = {lzs_key(x[winner]), winner};
        CHECK(pick(x, mask, from_winner, &p, position) == winner);
        mask[winner / 32] &= ~(1u << (winner % 32));
        CHECK(pick(x, mask, all, &p, position) != winner);
    }
}

/* Every bit of the seed and of the position matters, and no two of them act alike. */
static void test_race_uses_all_bits(void) {
    static float x[N_VOCAB];
    lzs_params p;
    lzs_params_init(&p);
    lzs_cut all = {lzs_key(-FLT_MAX), INT32_MAX};
    uint64_t sums[129] = {0};
    for (int b = 0; b < 129; b++) { /* 64 bits of the seed, 64 of the position, and neither */
        for (uint64_t i = 0; i < 16; i++) {
            p.seed = (b < 64 ? (uint64_t)1 << b : 0) ^ (i << 32);
            uint64_t position = b >= 64 && b < 128 ? (uint64_t)1 << (b - 64) : 0;
            int32_t token = pick(x, NULL, all, &p, position);
            sums[b] = sums[b] * 1000003 + (uint64_t)token;
        }
        for (int c = 0; c < b; c++) CHECK(sums[c] != sums[b]);
    }
}

static void test_race_of_extremes(void) {
    static float x[N_VOCAB];
    lzs_params p;
    lzs_params_init(&p);
    lzs_cut all = {lzs_key(-FLT_MAX), INT32_MAX};
    int wins[N_VOCAB] = {0};
    for (int32_t i = 0; i < N_VOCAB; i++) x[i] = i % 2 ? 0.0f : -FLT_MAX;
    x[1] = x[3] = INFINITY;
    for (uint64_t i = 0; i < 1000; i++) wins[pick(x, NULL, all, &p, i)]++;
    CHECK(wins[1] + wins[3] == 1000 && wins[1] > 400 && wins[3] > 400);
    x[1] = x[3] = FLT_MAX; /* y of the others overflows to +inf */
    p.temperature = 1e-6f;
    for (uint64_t i = 0; i < 100; i++) {
        int32_t token = pick(x, NULL, all, &p, i);
        CHECK(token == 1 || token == 3);
    }
}

int main(void) {
    test_mt19937();
    test_dist_is_a_function_of_the_position();
    test_race_without_losers();
    test_race_uses_all_bits();
    test_race_of_extremes();
    return 0;
}
