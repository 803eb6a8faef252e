/* test_backend.c - rows and plans through the backend against the oracle, which sorts the row and draws for every token:
 * the token, the distribution and the processed row must be the same to the last bit, for every table of kernels.
 *
 * usage: test_backend [random rows of each size class, in percent of what ctest runs]
 */
#include "oracle.h"
#include "rows.h"

enum { MAX_VOCAB = 20000 }; /* more than the list of candidates holds */

static oracle expected;
static float row[MAX_VOCAB], kept[MAX_VOCAB];
static lzs_edit edits[MAX_VOCAB];
static uint32_t mask[MAX_VOCAB / 32 + 1];

static void check_plan(lzs_backend *b, const lzs_plan *plan) {
    static int32_t ids[MAX_VOCAB], expected_ids[MAX_VOCAB];
    static float probabilities[MAX_VOCAB], expected_probabilities[MAX_VOCAB], out[MAX_VOCAB];
    size_t bytes = (size_t)plan->n_vocab * sizeof *row, n, n_expected = 0;
    ask_oracle(&expected, row, plan);
    if (expected.status == LZS_OK) n_expected = oracle_distribution(&expected, plan, expected_ids, expected_probabilities);
    for (int t = 0; (b->kernels = lzs_kernels_at(t)); t++) {
        const float *rows[1] = {row};
        int32_t token = 42;
        lzs_status status = LZS_EINVAL;
        CHECK(lzs_backend_sample(b, rows, plan, 1, &token, &status) == expected.status && status == expected.status);
        CHECK(token == expected.token);
        CHECK(lzs_backend_distribution(b, row, plan, ids, probabilities, MAX_VOCAB, &n) == expected.status);
        CHECK(n == n_expected);
        CHECK(n == 0 || memcmp(ids, expected_ids, n * sizeof *ids) == 0);
        CHECK(n == 0 || memcmp(probabilities, expected_probabilities, n * sizeof *probabilities) == 0);
        for (int32_t i = 0; i < plan->n_vocab; i++) out[i] = 42.0f;
        CHECK(lzs_backend_process(b, row, plan, out) == expected.status);
        for (int32_t i = 0; i < plan->n_vocab; i++) {
            CHECK(out[i] == (expected.status == LZS_OK ? oracle_processed(&expected, plan, i) : 42.0f));
        }
        memcpy(out, row, bytes); /* the row itself may be the output */
        CHECK(lzs_backend_process(b, out, plan, out) == expected.status);
        for (int32_t i = 0; expected.status == LZS_OK && i < plan->n_vocab; i++) {
            CHECK(out[i] == oracle_processed(&expected, plan, i));
        }
        CHECK(memcmp(row, kept, bytes) == 0);
    }
    b->kernels = lzs_kernels_best();
    if (n_expected > 1) {
        ids[n_expected - 1] = -7;
        CHECK(lzs_backend_distribution(b, row, plan, ids, probabilities, n_expected - 1, &n) == LZS_ESPACE);
        CHECK(n == n_expected && ids[n_expected - 1] == -7);
    }
}

static void test_random(int32_t n_vocab, int n_rows, uint64_t seed) {
    uint64_t state = seed;
    lzs_backend *b;
    CHECK(lzs_backend_new(n_vocab, (size_t)n_vocab, &b) == LZS_OK);
    for (int r = 0; r < n_rows; r++) {
        fill_row(row, n_vocab, (row_kind)(r % ROW_KINDS), &state);
        if (random_below(&state, 50) == 0) row[random_below(&state, n_vocab)] = NAN;
        memcpy(kept, row, (size_t)n_vocab * sizeof *row);
        bool masked = random_below(&state, 2);
        if (masked) fill_mask(mask, n_vocab, &state);
        for (int i = 0; i < 4; i++) {
            lzs_plan plan = random_plan(n_vocab, &state);
            if (masked) plan.mask = mask;
            plan.edits = edits;
            if (i % 2) plan.n_edits = fill_edits(edits, (size_t)n_vocab, n_vocab, &state);
            check_plan(b, &plan);
        }
    }
    /* The backend knows whether anything is left of a mask or of edits. */
    for (int32_t w = 0; b->all_allowed && w < (n_vocab + 31) / 32; w++) CHECK(b->allowed[w] == 0xffffffffu);
    lzs_backend_free(b);
}

/* One backend serves rows of every size up to its own, in any order. */
static void test_smaller_rows(void) {
    uint64_t state = 5;
    lzs_backend *b;
    CHECK(lzs_backend_new(5000, 100, &b) == LZS_OK);
    for (int r = 0; r < 200; r++) {
        int32_t n_vocab = 1 + random_below(&state, r % 2 ? 5000 : 70);
        fill_row(row, n_vocab, (row_kind)(r % ROW_KINDS), &state);
        memcpy(kept, row, (size_t)n_vocab * sizeof *row);
        lzs_plan plan = random_plan(n_vocab, &state);
        plan.edits = edits;
        plan.n_edits = fill_edits(edits, 100, n_vocab, &state);
        check_plan(b, &plan);
    }
    lzs_backend_free(b);
}

/* A batch gives each row what it gets alone, and a row that fails does not disturb the others. */
static void test_batch(void) {
    enum { N = 64, V = 700 };
    static float many[N][V];
    static lzs_edit many_edits[N][20];
    static uint32_t many_masks[N][V / 32 + 1];
    uint64_t state = 6;
    lzs_backend *b;
    CHECK(lzs_backend_new(V, 19, &b) == LZS_OK);
    for (int round = 0; round < 30; round++) {
        const float *rows[N];
        lzs_plan plans[N];
        int32_t tokens[N], token;
        lzs_status statuses[N], status, first = LZS_OK;
        for (int i = 0; i < N; i++) {
            fill_row(many[i], V, (row_kind)(i % ROW_KINDS), &state);
            plans[i] = random_plan(V - i, &state);
            plans[i].edits = many_edits[i];
            plans[i].n_edits = fill_edits(many_edits[i], 19, V - i, &state);
            if (i % 3 == 0) {
                fill_mask(many_masks[i], V, &state);
                plans[i].mask = many_masks[i];
            }
            rows[i] = many[i];
        }
        rows[random_below(&state, N)] = NULL;
        many[random_below(&state, N)][0] = NAN;
        plans[random_below(&state, N)].n_edits = 20; /* more than there is room for */
        plans[random_below(&state, N)].n_vocab = V + 1;
        plans[random_below(&state, N)].top_p = 1.5f;
        lzs_status all = lzs_backend_sample(b, rows, plans, N, tokens, statuses);
        for (int i = 0; i < N; i++) {
            lzs_backend_sample(b, &rows[i], &plans[i], 1, &token, &status);
            CHECK(token == tokens[i] && status == statuses[i] && (token >= 0) == (status == LZS_OK));
            if (first == LZS_OK) first = status;
        }
        CHECK(all == first && first != LZS_OK);
    }
    CHECK(lzs_backend_sample(b, NULL, NULL, 0, NULL, NULL) == LZS_OK);
    lzs_backend_free(b);
}

static void test_arguments(void) {
    lzs_backend *b = (lzs_backend *)&b;
    CHECK(lzs_backend_new(0, 0, &b) == LZS_EINVAL && b == NULL);
    CHECK(lzs_backend_new(-1, 0, &b) == LZS_EINVAL);
    CHECK(lzs_backend_new(LZS_MAX_VOCAB + 1, 0, &b) == LZS_EINVAL && b == NULL);
    if (SIZE_MAX == UINT32_MAX) { /* where a list of so many tokens takes twice the memory that there can be */
        CHECK(lzs_backend_new(LZS_MAX_VOCAB, LZS_MAX_VOCAB, &b) == LZS_ENOMEM && b == NULL);
    }
    lzs_backend_free(NULL);

    static const lzs_edit three[] = {{0, 1.0f, 1.0f}, {1, 1.0f, 1.0f}, {2, 1.0f, 1.0f}};
    float x[4] = {0.0f, 1.0f, 2.0f, 3.0f}, out[4] = {7.0f, 7.0f, 7.0f, 7.0f}, probabilities[4];
    int32_t ids[4];
    size_t n;
    lzs_params p;
    lzs_plan plan;
    lzs_params_init(&p);
    lzs_plan_settings(&plan, 4, &p);
    plan.edits = three;
    plan.n_edits = 3;
    CHECK(lzs_backend_new(4, 2, &b) == LZS_OK);
    CHECK(lzs_backend_process(b, x, &plan, out) == LZS_ESPACE && out[0] == 7.0f);
    CHECK(lzs_backend_distribution(b, x, &plan, ids, probabilities, 4, &n) == LZS_ESPACE && n == 0);
    plan.n_edits = 2;
    CHECK(lzs_backend_process(b, x, &plan, out) == LZS_OK && out[0] == 1.0f && out[2] == 2.0f);
    CHECK(lzs_backend_process(b, NULL, &plan, out) == LZS_EINVAL);
    lzs_backend_free(b);
}

/* Many edited tokens that share one logit, in no order of ids: which of them stay is decided by id alone. */
static void test_equal_edited(void) {
    enum { N = 20000 };
    uint64_t state = 77;
    lzs_backend *b;
    CHECK(lzs_backend_new(N, N, &b) == LZS_OK);
    for (int round = 0; round < 4; round++) {
        for (int32_t i = 0; i < N; i++) {
            row[i] = kept[i] = round % 2 ? 1.0f : (float)random_unit(&state);
            edits[i] = (lzs_edit){(int32_t)((int64_t)i * 7919 % N), 1.0f, 0.0f};
        }
        lzs_plan plan = {.n_vocab = N, .sign_aware = 1, .edits = edits, .temperature = 1.0f, .top_p = 0.37f, .seed = 5};
        plan.n_edits = round < 2 ? N : N / 3;
        for (size_t i = 0; i < plan.n_edits; i++) edits[i].bias = 1e9f; /* beside which the logits vanish */
        if (round == 3) plan.top_k = 9000;
        check_plan(b, &plan);
    }
    lzs_backend_free(b);
}

/* All weights as large as the short sums take them, in a stretch of equal tokens far below the best. */
static void test_equal_weights(void) {
    enum { N = 2048 };
    lzs_backend *b;
    CHECK(lzs_backend_new(N, 0, &b) == LZS_OK);
    for (int step = 0; step < 60; step++) { /* gaps of 2 to 8 bits */
        float gap = (2.0f + 0.1f * (float)step) * 0.6931472f;
        for (int32_t i = 0; i < N; i++) row[i] = kept[i] = i == 700 ? gap : 0.0f;
        lzs_plan plan = {.n_vocab = N, .sign_aware = 1, .temperature = 1.0f, .top_p = 0.9f, .seed = 1};
        check_plan(b, &plan);
        const float *rows[1] = {row};
        int32_t token;
        CHECK(lzs_backend_sample(b, rows, &plan, 1, &token, NULL) == LZS_OK && token == expected.token);
    }
    lzs_backend_free(b);
}

/* Rows in which the groups that top-p's guess looks at are unlike all others, so that the guess is far off, to either side, and
 * expects tokens where there are none. */
static void test_misleading_groups(void) {
    enum { N = 12000 };
    uint64_t state = 77;
    lzs_backend *b;
    CHECK(lzs_backend_new(N, 0, &b) == LZS_OK);
    for (int round = 0; round < 80; round++) {
        float depths[2], spreads[2];
        for (int k = 0; k < 2; k++) {
            depths[k] = 3.0f + 0.5f * (float)random_below(&state, 16);
            spreads[k] = (float[]){0.05f, 0.5f, 2.0f, 6.0f}[random_below(&state, 4)];
        }
        for (int32_t i = 0; i < N; i++) {
            int32_t stretch = i / LZS_STRETCH, group = i % LZS_STRETCH / LZS_GROUP;
            bool looked_at = group == stretch * 7 % LZS_STRETCH_GROUPS;
            float below = depths[looked_at] + spreads[looked_at] * (float)random_below(&state, 1 << 20) * 0x1p-20f;
            row[i] = kept[i] = i % LZS_GROUP == 5 ? -3.0f : -below;
        }
        lzs_plan plan = {.n_vocab = N, .sign_aware = 1, .temperature = 1.0f, .seed = 9};
        plan.top_p = 0.05f + 0.06f * (float)random_below(&state, 16);
        check_plan(b, &plan);
    }
    lzs_backend_free(b);
}

/* A backend does not read or write where a plan that was made by hand points outside. */
static void test_bad_edits(void) {
    static const int32_t bad[] = {-1, 100, INT32_MAX, INT32_MIN, 6};
    uint32_t words[] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
    lzs_backend *b;
    CHECK(lzs_backend_new(100, 10, &b) == LZS_OK);
    for (int32_t i = 0; i < 100; i++) row[i] = kept[i] = 1.0f;
    for (int i = 0; i < 10; i++) {
        lzs_edit two[] = {{6, 1.0f, -1.0f}, {bad[i % 5], 1.0f, -1.0f}};
        lzs_plan plan = {.n_vocab = 100, .sign_aware = 1, .edits = two, .n_edits = 2, .temperature = 1.0f, .top_p = 1.0f};
        plan.mask = i < 5 ? NULL : words;
        const float *rows[1] = {row};
        int32_t token = 42;
        size_t n = 42;
        CHECK(lzs_backend_sample(b, rows, &plan, 1, &token, NULL) == LZS_EINVAL && token == -1);
        CHECK(lzs_backend_distribution(b, row, &plan, NULL, NULL, 0, &n) == LZS_EINVAL && n == 0);
        two[1].token = 7;
        check_plan(b, &plan); /* and is as it was afterwards */
        CHECK(lzs_backend_distribution(b, row, &plan, NULL, NULL, 0, &n) == LZS_ESPACE && n == 100);
    }
    lzs_backend_free(b);
}

int main(int argc, char **argv) {
    int percent = argc > 1 ? atoi(argv[1]) : 100;
    for (int32_t n = 1; n <= 70; n++) test_random(n, 4 * ROW_KINDS * percent / 100, (uint64_t)n);
    test_random(500, 20 * ROW_KINDS * percent / 100, 500);
    test_random(2049, 8 * ROW_KINDS * percent / 100, 2049);
    test_random(MAX_VOCAB, 2 * ROW_KINDS * percent / 100, MAX_VOCAB);
    test_smaller_rows();
    test_batch();
    test_arguments();
    test_bad_edits();
    test_equal_edited();
    test_equal_weights();
    test_misleading_groups();
    return 0;
}
