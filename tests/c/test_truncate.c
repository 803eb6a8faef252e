/* test_truncate.c - the cuts of top-k, top-p and min-p where the answer can be read off, and what the cut and the list of
 * candidates promise each other. Random rows are compared with the oracle in test_backend.c. */
#include "oracle.h"
#include "rows.h"

enum { MAX_VOCAB = 6000 };

static float row[MAX_VOCAB];

/* Reads the row; the backend ends the step before this returns, and the list is the backend's still. */
static lzs_candidates candidates_of(lzs_backend *b, const lzs_plan *plan) {
    lzs_candidates c;
    CHECK(lzs_backend_begin(b, row, plan, &c) == LZS_OK);
    lzs_backend_end(b, &c);
    return c;
}

static lzs_plan plan_of(int32_t n_vocab) {
    lzs_params p;
    lzs_plan plan;
    lzs_params_init(&p);
    lzs_plan_settings(&plan, n_vocab, &p);
    return plan;
}

/* Where every weight is the same, the arithmetic is exact. */
static void test_flat(void) {
    static const struct {
        float top_p;
        int32_t kept;
    } cases[] = {{0.0f, 1}, {0.1f, 2}, {0.25f, 3}, {0.5f, 5}, {0.75f, 8}, {0.9f, 9}, {0.95f, 10}};
    lzs_backend *b;
    CHECK(lzs_backend_new(10, 0, &b) == LZS_OK);
    for (int32_t i = 0; i < 10; i++) row[i] = 1.5f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lzs_plan plan = plan_of(10);
        plan.top_p = cases[i].top_p;
        lzs_candidates c = candidates_of(b, &plan);
        int32_t kept = 0;
        for (int32_t t = 0; t < 10; t++) kept += lzs_inside(c.cut, lzs_key(row[t]), t);
        CHECK(kept == cases[i].kept && c.cut.id == kept - 1);
    }
    lzs_backend_free(b);
}

/* Where the whole row is as good as flat, top-k and top-p are decided by token ids, whatever the size. */
static void test_flat_rows_of_all_sizes(void) {
    lzs_backend *b;
    CHECK(lzs_backend_new(MAX_VOCAB, 0, &b) == LZS_OK);
    for (int32_t i = 0; i < MAX_VOCAB; i++) row[i] = -2.0f;
    for (int32_t n = 1; n <= MAX_VOCAB; n += 1 + n / 7) {
        for (int32_t k = 1; k <= n; k += 1 + k / 3) {
            lzs_plan plan = plan_of(n);
            plan.top_k = k;
            lzs_candidates c = candidates_of(b, &plan);
            CHECK(k == n || (c.cut.key == lzs_key(-2.0f) && c.cut.id == k - 1));
            plan.top_k = 0;
            plan.top_p = (float)k / (float)n;
            c = candidates_of(b, &plan);
            double exact = (double)plan.top_p * n; /* top_p is rounded to a fraction of 2^32 */
            CHECK(plan.top_p == 1.0f || (c.cut.id >= exact - 1.001 && c.cut.id <= exact + 0.001));
        }
    }
    lzs_backend_free(b);
}

/* A list has all that the cut keeps and nothing else. Without one, nothing may be taken for a list. */
static void test_list_and_cut(void) {
    static lzs_edit edits[100];
    uint64_t state = 11;
    lzs_backend *b;
    CHECK(lzs_backend_new(MAX_VOCAB, 100, &b) == LZS_OK);
    int n_listed = 0;
    const lzs_kernels *kernels;
    for (int t = 0; (kernels = lzs_kernels_at(t)); t++) {
        b->kernels = kernels;
        for (int r = 0; r < 60 * ROW_KINDS; r++) {
            int32_t n = 1 + random_below(&state, MAX_VOCAB), kept = 0;
            fill_row(row, n, (row_kind)(r % ROW_KINDS), &state);
            lzs_plan plan = random_plan(n, &state);
            if (plan.temperature == 0.0f) plan.temperature = 1.0f;
            if (r % 2) plan.top_k = 1 + random_below(&state, 100);
            plan.edits = edits;
            plan.n_edits = fill_edits(edits, 100, n, &state);
            lzs_candidates c;
            lzs_status status = lzs_backend_begin(b, row, &plan, &c);
            lzs_backend_end(b, &c);
            CHECK(status == LZS_OK || status == LZS_EMASKED);
            if (status != LZS_OK) continue;
            for (int32_t id = 0; id < n; id++) {
                float x = row[id];
                for (size_t i = 0; i < plan.n_edits; i++) {
                    if (edits[i].token == id) x = lzs_apply_edit(&edits[i], x, plan.sign_aware);
                }
                kept += lzs_inside(c.cut, lzs_key(x), id);
            }
            CHECK(kept >= 1 && c.listed == (b->list.n > 0));
            if (!c.listed) continue;
            n_listed++;
            CHECK(b->list.n == kept);
            for (int32_t i = 0; i < b->list.n; i++) {
                uint64_t packed = b->list.packed[i];
                CHECK(lzs_inside(c.cut, lzs_packed_key(packed), lzs_packed_id(packed)));
            }
        }
    }
    CHECK(n_listed > 100);
    lzs_backend_free(b);
}

/* The best tokens in their order, for a grammar. */
static void test_best(void) {
    static oracle o;
    static lzs_edit edits[100];
    uint64_t state = 12;
    lzs_backend *b;
    CHECK(lzs_backend_new(MAX_VOCAB, 100, &b) == LZS_OK);
    int n_found = 0;
    for (int r = 0; r < 20 * ROW_KINDS; r++) {
        int32_t n = 1 + random_below(&state, MAX_VOCAB), k = 1 + random_below(&state, 1024);
        fill_row(row, n, (row_kind)(r % ROW_KINDS), &state);
        lzs_plan plan = random_plan(n, &state);
        plan.edits = edits;
        plan.n_edits = fill_edits(edits, 100, n, &state);
        ask_oracle(&o, row, &plan);
        int32_t found = lzs_backend_best(b, row, &plan, k);
        if (k >= n || found == 0) continue; /* what is not cut is not listed */
        n_found++;
        CHECK(found == (k < o.n_allowed ? k : o.n_allowed));
        for (int32_t i = 0; i < found; i++) CHECK(lzs_packed_id(b->list.packed[i]) == o.order[i]);
    }
    CHECK(n_found > 50);
    lzs_backend_free(b);
}

int main(void) {
    test_flat();
    test_flat_rows_of_all_sizes();
    test_list_and_cut();
    test_best();
    return 0;
}
