/* test_draws.c - difficult rows, each with a plan of its own: every table of kernels picks the token that the definition
 * picks, from the row where it lies and from a copy at another alignment, gives the same distribution, and leaves the row
 * as it was.
 *
 * usage: test_draws [rows of 1 to 4,096 tokens] [rows of 151,936 tokens]
 */
#include "backend/backend.h"
#include "rows.h"

enum { SMALL = 4096, LARGE = 151936, MAX_EDITS = 300 };

static float row[LARGE], copy[LARGE + 16], kept[LARGE];
static uint32_t mask[LARGE / 32 + 1];
static lzs_edit edits[MAX_EDITS];
static int32_t ids[LARGE], first_ids[LARGE];
static float probabilities[LARGE], first_probabilities[LARGE];

static void draw(lzs_backend *b, int32_t n, row_kind kind, bool whole, uint64_t *state) {
    fill_row(row, n, kind, state);
    memcpy(kept, row, (size_t)n * sizeof *row);
    lzs_plan plan = random_plan(n, state);
    if (random_below(state, 3) == 0) {
        fill_mask(mask, n, state);
        plan.mask = mask;
    }
    plan.edits = edits;
    if (random_below(state, 2)) plan.n_edits = fill_edits(edits, MAX_EDITS, n, state);
    int32_t token, first = -1;
    lzs_status status, first_status = LZS_OK;
    size_t n_ids, n_first = 0;
    for (int t = 0; (b->kernels = lzs_kernels_at(t)); t++) {
        const float *x = row;
        if (t % 2 == 0) { /* a copy that is four bytes further on for each table */
            memcpy(copy + t + 1, row, (size_t)n * sizeof *row);
            x = copy + t + 1;
        }
        lzs_backend_sample(b, &x, &plan, 1, &token, &status);
        CHECK((status == LZS_OK) == (token >= 0 && token < n) && (status == LZS_OK || status == LZS_EMASKED));
        if (t == 0) first = token, first_status = status;
        CHECK(token == first && status == first_status);
        if (whole) {
            CHECK(lzs_backend_distribution(b, x, &plan, ids, probabilities, LARGE, &n_ids) == first_status);
            if (t == 0) {
                n_first = n_ids;
                memcpy(first_ids, ids, n_ids * sizeof *ids);
                memcpy(first_probabilities, probabilities, n_ids * sizeof *ids);
            }
            CHECK(n_ids == n_first && memcmp(ids, first_ids, n_ids * sizeof *ids) == 0);
            CHECK(memcmp(probabilities, first_probabilities, n_ids * sizeof *ids) == 0);
        }
        CHECK(memcmp(x, kept, (size_t)n * sizeof *x) == 0);
    }
}

int main(int argc, char **argv) {
    long n_small = argc > 1 ? atol(argv[1]) : 20000, n_large = argc > 2 ? atol(argv[2]) : 33;
    uint64_t state = 20260101;
    lzs_backend *b;
    CHECK(lzs_backend_new(LARGE, MAX_EDITS, &b) == LZS_OK);
    for (long i = 0; i < n_small; i++) {
        int32_t n = 1 + random_below(&state, i % 4 == 0 ? SMALL : i % 4 == 1 ? 1200 : 90);
        draw(b, n, (row_kind)(i % ROW_KINDS), i % 3 == 0, &state);
    }
    for (long i = 0; i < n_large; i++) draw(b, LARGE, (row_kind)(i % ROW_KINDS), i % 3 == 0, &state);
    int n_tables = 0;
    while (lzs_kernels_at(n_tables)) n_tables++;
    printf("%ld rows of up to %d tokens, %ld rows of %d tokens, %d tables\n", n_small, SMALL, n_large, LARGE, n_tables);
    lzs_backend_free(b);
    return 0;
}
