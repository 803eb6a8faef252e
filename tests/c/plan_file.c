/* plan_file.c - plans that leave the process: one run writes them to a file with the tokens that it picks, another one, with
 * other kernels, reads them and must pick the same.
 *
 * usage: plan_file write|read <file> [plans]
 */
#include "backend/backend.h"
#include "rows.h"

enum { MAX_VOCAB = 4096, MAX_EDITS = 200 };

static float row[MAX_VOCAB];
static lzs_edit edits[MAX_EDITS];
static uint32_t mask[MAX_VOCAB / 32 + 1];

/* Rows are not in the file: both runs make them of the same random numbers. */
static lzs_plan next_plan(long i, uint64_t *state) {
    int32_t n_vocab = 1 + random_below(state, i % 4 ? 300 : MAX_VOCAB);
    fill_row(row, n_vocab, (row_kind)(i % ROW_KINDS), state);
    lzs_plan plan = random_plan(n_vocab, state);
    plan.edits = edits;
    if (random_below(state, 2)) plan.n_edits = fill_edits(edits, MAX_EDITS, n_vocab, state);
    if (random_below(state, 3) == 0) {
        fill_mask(mask, n_vocab, state);
        plan.mask = mask;
    }
    return plan;
}

int main(int argc, char **argv) {
    CHECK(argc > 2 && (strcmp(argv[1], "write") == 0 || strcmp(argv[1], "read") == 0));
    bool writes = argv[1][0] == 'w';
    long n_plans = argc > 3 ? atol(argv[3]) : 20000, n_picked = 0;
    FILE *file = fopen(argv[2], writes ? "wb" : "rb");
    lzs_backend *b;
    uint64_t state = 1;
    CHECK(file && lzs_backend_new(MAX_VOCAB, MAX_EDITS, &b) == LZS_OK);
    for (long i = 0; i < n_plans; i++) {
        static uint64_t bytes[1 << 12];
        const float *rows[1] = {row};
        lzs_plan made = next_plan(i, &state), plan = made;
        uint64_t size = lzs_plan_size(&made);
        int32_t token, written_token;
        lzs_status status;
        CHECK(size <= sizeof bytes);
        if (writes) {
            CHECK(lzs_plan_write(&made, bytes, sizeof bytes) == LZS_OK);
            CHECK(fwrite(&size, sizeof size, 1, file) == 1 && fwrite(bytes, (size_t)size, 1, file) == 1);
        } else {
            uint64_t stored;
            CHECK(fread(&stored, sizeof stored, 1, file) == 1 && stored == size);
            CHECK(fread(bytes, (size_t)size, 1, file) == 1);
            memset(edits, 0x5a, sizeof edits); /* the plan is the one of the file */
            memset(mask, 0x5a, sizeof mask);
            CHECK(lzs_plan_read(bytes, (size_t)size, &plan) == LZS_OK);
        }
        lzs_backend_sample(b, rows, &plan, 1, &token, &status);
        n_picked += status == LZS_OK;
        if (writes) {
            CHECK(fwrite(&token, sizeof token, 1, file) == 1);
        } else {
            CHECK(fread(&written_token, sizeof written_token, 1, file) == 1 && written_token == token);
        }
    }
    CHECK(n_picked > n_plans / 2 && fclose(file) == 0);
    printf("%ld plans %s with the %s kernels, ", n_plans, writes ? "written" : "read", lzs_kernels_name());
    printf("%ld tokens\n", n_picked);
    lzs_backend_free(b);
    return 0;
}
