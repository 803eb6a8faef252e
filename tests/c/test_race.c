/* test_race.c - the promises of the race: its lists, its groups and a plain race of every token pick the same, losers do
 * not matter, and every bit of seed and position does. Frequencies are tested in noise_statistics.c and in Python. */
#include "oracle.h"
#include "rows.h"

enum { N_VOCAB = 203, LARGE = 50000 };

static lzs_backend *backend;
static float x[N_VOCAB];

/* What all tables of kernels pick. */
static int32_t pick_of(const float *row, const lzs_plan *plan) {
    int32_t token = -1, first = -1;
    for (int t = 0; (backend->kernels = lzs_kernels_at(t)); t++) {
        lzs_status status;
        CHECK(lzs_backend_sample(backend, &row, plan, 1, &token, &status) == LZS_OK);
        if (t == 0) first = token;
        CHECK(token == first);
    }
    return first;
}

static lzs_plan plan_of(int32_t n_vocab, uint64_t seed, uint64_t position) {
    lzs_params p;
    lzs_plan plan;
    lzs_params_init(&p);
    p.seed = seed;
    lzs_plan_settings(&plan, n_vocab, &p);
    plan.position = position;
    return plan;
}

/* The same tokens stay by a top-k, which makes a list, and by a mask, which leaves them to the groups. */
static void test_list_and_groups(void) {
    static float row[LARGE];
    static uint32_t mask[LARGE / 32 + 1];
    static oracle o;
    static lzs_edit edits[40];
    uint64_t state = 1;
    for (int r = 0; r < 300; r++) {
        int32_t n = 1 + random_below(&state, r % 3 ? LARGE : 3000);
        fill_row(row, n, (row_kind)(r % ROW_KINDS), &state);
        lzs_plan plan = plan_of(n, random_bits(&state), random_bits(&state));
        plan.temperature = (float[]){0.3f, 1.0f, 4.0f}[random_below(&state, 3)];
        plan.edits = edits;
        plan.n_edits = fill_edits(edits, 40, n, &state);
        plan.top_k = 1 + random_below(&state, 100); /* below and above what is run token by token */
        ask_oracle(&o, row, &plan);
        if (o.status != LZS_OK) continue;
        int32_t token = pick_of(row, &plan);
        CHECK(token == o.token);
        memset(mask, 0, sizeof mask);
        for (int32_t i = 0; i < o.n_kept; i++) mask[o.order[i] / 32] |= 1u << (o.order[i] % 32);
        plan.mask = mask;
        plan.top_k = 0;
        CHECK(pick_of(row, &plan) == token);
        plan.mask = NULL; /* without truncation: mostly other tokens win, as the direct race says */
        ask_oracle(&o, row, &plan);
        CHECK(pick_of(row, &plan) == o.token);
    }
}

/* A token's noise depends on nothing but seed, position and id: take away any losers and the winner still wins, in a
 * smaller vocabulary, too. */
static void test_race_without_losers(void) {
    uint64_t state = 3;
    for (int r = 0; r < 2000; r++) {
        int32_t best = 0; /* never taken away, so that the others' gaps stay what they are */
        for (int32_t i = 0; i < N_VOCAB; i++) {
            x[i] = (float)(3.0 * random_unit(&state));
            if (x[i] > x[best]) best = i;
        }
        lzs_plan plan = plan_of(N_VOCAB, random_bits(&state), random_bits(&state));
        int32_t winner = pick_of(x, &plan);
        CHECK(winner >= 0 && winner < N_VOCAB);
        uint32_t mask[(N_VOCAB + 31) / 32];
        for (size_t w = 0; w < sizeof mask / sizeof *mask; w++) mask[w] = (uint32_t)random_bits(&state);
        mask[winner / 32] |= 1u << (winner % 32);
        mask[best / 32] |= 1u << (best % 32);
        plan.mask = mask;
        CHECK(pick_of(x, &plan) == winner);
        int32_t last = winner > best ? winner : best;
        plan.n_vocab = last + 1 + random_below(&state, N_VOCAB - last);
        CHECK(pick_of(x, &plan) == winner);
        plan.n_vocab = N_VOCAB;
        mask[winner / 32] &= ~(1u << (winner % 32));
        if (winner != best) CHECK(pick_of(x, &plan) != winner);
    }
}

/* Every bit of the seed and of the position matters, and no two of them act alike. */
static void test_race_uses_all_bits(void) {
    uint64_t sums[129] = {0};
    for (int32_t i = 0; i < N_VOCAB; i++) x[i] = 0.0f;
    for (int b = 0; b < 129; b++) { /* 64 bits of the seed, 64 of the position, and neither */
        for (uint64_t i = 0; i < 16; i++) {
            uint64_t seed = (b < 64 ? (uint64_t)1 << b : 0) ^ (i << 32);
            lzs_plan plan = plan_of(N_VOCAB, seed, b >= 64 && b < 128 ? (uint64_t)1 << (b - 64) : 0);
            sums[b] = sums[b] * 1000003 + (uint64_t)pick_of(x, &plan);
        }
        for (int c = 0; c < b; c++) CHECK(sums[c] != sums[b]);
    }
}

static void test_race_of_extremes(void) {
    int wins[N_VOCAB] = {0};
    for (int32_t i = 0; i < N_VOCAB; i++) x[i] = i % 2 ? 0.0f : -FLT_MAX;
    x[1] = x[3] = INFINITY;
    for (uint64_t i = 0; i < 1000; i++) {
        lzs_plan plan = plan_of(N_VOCAB, 0, i);
        wins[pick_of(x, &plan)]++;
    }
    CHECK(wins[1] + wins[3] == 1000 && wins[1] > 400 && wins[3] > 400);
    x[1] = x[3] = FLT_MAX; /* the others' gaps overflow to infinity */
    for (uint64_t i = 0; i < 100; i++) {
        lzs_plan plan = plan_of(N_VOCAB, 0, i);
        plan.temperature = 1e-6f;
        int32_t token = pick_of(x, &plan);
        CHECK(token == 1 || token == 3);
    }
}

int main(void) {
    CHECK(lzs_backend_new(LARGE, 40, &backend) == LZS_OK);
    test_list_and_groups();
    test_race_without_losers();
    test_race_uses_all_bits();
    test_race_of_extremes();
    lzs_backend_free(backend);
    return 0;
}
