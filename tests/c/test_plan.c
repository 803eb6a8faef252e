/* test_plan.c - plans as bytes: what is read gives the same token on every table of kernels, bytes that are not a plan are
 * refused, and none of them leads the backend astray.
 *
 * usage: test_plan [plans]
 */
#include "backend/backend.h"
#include "rows.h"

enum { MAX_VOCAB = 4096, MAX_EDITS = 100, MAX_BYTES = 8192 };

static float row[MAX_VOCAB];
static lzs_edit edits[MAX_EDITS];
static uint32_t mask[MAX_VOCAB / 32 + 1];
static lzs_backend *backend;

static lzs_plan any_plan(int32_t n_vocab, uint64_t *state) {
    lzs_plan plan = random_plan(n_vocab, state);
    plan.edits = edits;
    if (random_below(state, 3)) plan.n_edits = fill_edits(edits, MAX_EDITS, n_vocab, state);
    if (random_below(state, 3) == 0) {
        fill_mask(mask, n_vocab, state);
        plan.mask = mask;
    }
    return plan;
}

static void check_equal(const lzs_plan *a, const lzs_plan *b) {
    CHECK(a->n_vocab == b->n_vocab && a->sign_aware == b->sign_aware && a->n_edits == b->n_edits);
    for (size_t i = 0; i < a->n_edits; i++) { /* read in the order of their tokens */
        size_t at = 0;
        CHECK(i == 0 || b->edits[i - 1].token < b->edits[i].token);
        while (at < a->n_edits && a->edits[at].token != b->edits[i].token) at++;
        CHECK(at < a->n_edits && memcmp(&a->edits[at], &b->edits[i], sizeof *a->edits) == 0);
    }
    CHECK(!a->mask == !b->mask);
    CHECK(!a->mask || memcmp(a->mask, b->mask, (size_t)((a->n_vocab + 31) / 32) * 4) == 0);
    CHECK(a->temperature == b->temperature && a->temperature_last == b->temperature_last && a->top_k == b->top_k);
    CHECK(a->top_p == b->top_p && a->min_p == b->min_p && a->ties == b->ties);
    CHECK(a->seed == b->seed && a->position == b->position);
}

/* Bytes of the plan, in memory that is exactly as long. */
static uint64_t *written(const lzs_plan *plan, size_t *n) {
    *n = lzs_plan_size(plan);
    uint64_t *bytes = malloc(*n);
    CHECK(bytes && *n > 0);
    memset(bytes, 0xa5, *n);
    CHECK(lzs_plan_write(plan, bytes, *n - 1) == LZS_ESPACE && lzs_plan_write(plan, bytes, 0) == LZS_ESPACE);
    CHECK(lzs_plan_write(plan, bytes, *n) == LZS_OK);
    return bytes;
}

static void test_random(long n_plans, uint64_t seed) {
    uint64_t state = seed;
    for (long i = 0; i < n_plans; i++) {
        int32_t n_vocab = 1 + random_below(&state, i % 5 ? 200 : MAX_VOCAB), token, first = -1;
        fill_row(row, n_vocab, (row_kind)(i % ROW_KINDS), &state);
        lzs_plan plan = any_plan(n_vocab, &state), read;
        const float *rows[1] = {row};
        lzs_status status, first_status;
        size_t n;
        uint64_t *bytes = written(&plan, &n);
        CHECK(lzs_plan_read(bytes, n, &read) == LZS_OK);
        check_equal(&plan, &read);
        backend->kernels = lzs_kernels_at(0);
        lzs_backend_sample(backend, rows, &plan, 1, &first, &first_status);
        for (int t = 0; (backend->kernels = lzs_kernels_at(t)); t++) {
            lzs_backend_sample(backend, rows, &read, 1, &token, &status);
            CHECK(token == first && status == first_status);
        }
        backend->kernels = lzs_kernels_best();
        free(bytes);
    }
}

/* Whatever the bytes, a plan is read whole or not at all, and what was read can be used. */
static bool use(const uint64_t *bytes, size_t n) {
    static int32_t ids[MAX_VOCAB];
    static float probabilities[MAX_VOCAB], out[MAX_VOCAB];
    lzs_plan plan, before;
    memset(&plan, 0x5a, sizeof plan);
    before = plan;
    if (lzs_plan_read(bytes, n, &plan) != LZS_OK) {
        CHECK(memcmp(&plan, &before, sizeof plan) == 0);
        return false;
    }
    CHECK(plan.n_vocab >= 1 && lzs_plan_size(&plan) == n);
    if (plan.n_vocab > MAX_VOCAB) return true;
    const float *rows[1] = {row};
    int32_t token;
    lzs_status status;
    size_t n_ids;
    lzs_backend_sample(backend, rows, &plan, 1, &token, &status);
    CHECK((status == LZS_OK) == (token >= 0 && token < plan.n_vocab));
    lzs_backend_distribution(backend, row, &plan, ids, probabilities, MAX_VOCAB, &n_ids);
    lzs_backend_process(backend, row, &plan, out);
    return true;
}

static void test_corrupted(uint64_t seed) {
    uint64_t state = seed;
    long n_read = 0, n_refused = 0;
    for (int i = 0; i < 300; i++) {
        int32_t n_vocab = 1 + random_below(&state, 200);
        fill_row(row, MAX_VOCAB, (row_kind)(i % ROW_KINDS), &state);
        lzs_plan plan = any_plan(n_vocab, &state);
        size_t n;
        uint64_t *bytes = written(&plan, &n);
        for (size_t k = 0; k < n; k += 1 + k / 40) { /* cut short, in memory that ends there */
            uint64_t *part = malloc(k ? k : 1);
            CHECK(part);
            memcpy(part, bytes, k);
            CHECK(!use(part, k));
            free(part);
        }
        for (int k = 0; k < 200; k++) { /* a bit, a byte, or a number of four bytes that is another */
            uint64_t *changed = malloc(n);
            CHECK(changed);
            memcpy(changed, bytes, n);
            size_t at = (size_t)random_below(&state, (int32_t)(k % 2 || n < 96 ? n : 96));
            uint32_t number = (uint32_t[]){0, 0xffffffffu, 0x80000000u, 0x7fc00000u, 0x7f800000u, 1}[random_below(&state, 6)];
            if (k % 3 == 0) {
                ((unsigned char *)changed)[at] ^= (unsigned char)(1u << random_below(&state, 8));
            } else if (k % 3 == 1) {
                ((unsigned char *)changed)[at] = (unsigned char)random_bits(&state);
            } else {
                memcpy((char *)changed + at / 4 * 4, &number, 4);
            }
            if (use(changed, n)) n_read++;
            else n_refused++;
            free(changed);
        }
        free(bytes);
    }
    CHECK(n_read > 1000 && n_refused > 1000);
}

/* The fields of a plan, one after the other out of range. */
static void test_refused(void) {
    lzs_params p;
    lzs_plan plan;
    uint64_t bytes[MAX_BYTES / 8];
    lzs_params_init(&p);
    lzs_plan_settings(&plan, 40, &p);
    plan.edits = edits;
    edits[0] = (lzs_edit){39, 1.5f, -INFINITY};
    edits[1] = (lzs_edit){0, FLT_MIN, FLT_MAX};
    plan.n_edits = 2;
#define REFUSED(field, value) \
    do { \
        lzs_plan bad = plan; \
        const float *rows[1] = {row}; \
        int32_t token; \
        lzs_status status; \
        bad.field = value; \
        CHECK(lzs_plan_write(&bad, bytes, sizeof bytes) == LZS_EINVAL); \
        CHECK(lzs_backend_sample(backend, rows, &bad, 1, &token, &status) == LZS_EINVAL && token == -1); \
    } while (0)
    REFUSED(n_vocab, 0);
    REFUSED(n_vocab, LZS_MAX_VOCAB + 1);
    REFUSED(sign_aware, 2);
    REFUSED(edits, NULL);
    REFUSED(n_edits, 41);
    REFUSED(temperature, 1e-9f);
    REFUSED(temperature, NAN);
    REFUSED(temperature_last, -1);
    REFUSED(top_k, -1);
    REFUSED(top_p, 1.5f);
    REFUSED(min_p, -0.5f);
    REFUSED(ties, 2);
#undef REFUSED
    static const lzs_edit bad_edits[] = {{40, 1.0f, 0.0f}, {-1, 1.0f, 0.0f}, {5, 0.0f, 0.0f}, {5, NAN, 0.0f},
                                         {5, INFINITY, 0.0f}, {5, 1.0f, NAN}, {5, 1.0f, INFINITY}, {39, 1.0f, 0.0f}};
    lzs_plan read;
    for (size_t i = 0; i < sizeof bad_edits / sizeof *bad_edits; i++) { /* the last one has a token twice */
        edits[1] = bad_edits[i];
        CHECK(lzs_plan_write(&plan, bytes, sizeof bytes) == LZS_OK);
        CHECK(lzs_plan_read(bytes, lzs_plan_size(&plan), &read) == LZS_EINVAL);
    }
    edits[1] = (lzs_edit){5, 1.0f, 0.0f};
    CHECK(lzs_plan_write(&plan, bytes, sizeof bytes) == LZS_OK);
    CHECK(lzs_plan_read(bytes, lzs_plan_size(&plan), &read) == LZS_OK);
    CHECK(lzs_plan_read(bytes, lzs_plan_size(&plan) + 4, &read) == LZS_EINVAL); /* what follows is not a plan's */
    CHECK(lzs_plan_read(NULL, 0, &read) == LZS_EINVAL);
    uint64_t head[9]; /* of a plan whose edits take 3 * 2^32 bytes, which is 0 in 32 bits */
    memcpy(head, bytes, sizeof head);
    ((int32_t *)head)[2] = LZS_MAX_VOCAB;
    head[2] = LZS_MAX_VOCAB;
    CHECK(lzs_plan_read(head, sizeof head, &read) == LZS_EINVAL);
    memmove((char *)bytes + 4, bytes, lzs_plan_size(&plan));
    CHECK(lzs_plan_read((char *)bytes + 4, lzs_plan_size(&plan), &read) == LZS_EINVAL); /* not at a multiple of 8 */
}

/* A sampler's own plan says all that the sampler knows: the backend picks what lzs_sample picks. */
static void test_of_a_sampler(void) {
    uint64_t state = 5;
    lzs_params p;
    lzs_sampler *s;
    lzs_params_init(&p);
    p.lz_penalty = 0.3f;
    p.lz_min_match = 2;
    p.dry_multiplier = 0.5f;
    p.repetition_penalty = 1.2f;
    p.top_k = 40;
    p.seed = 9;
    CHECK(lzs_sampler_new(300, &p, &s) == LZS_OK);
    for (int i = 0; i < 300; i++) {
        lzs_plan plan, read;
        lzs_status status;
        size_t n;
        int32_t token, replayed;
        const float *rows[1] = {row};
        fill_row(row, 300, ROW_NORMAL, &state);
        fill_mask(mask, 300, &state);
        CHECK(lzs_set_mask(s, i % 2, mask, 10) == LZS_OK && lzs_sampler_plan(s, &plan) == LZS_OK);
        uint64_t *bytes = written(&plan, &n);
        CHECK(lzs_plan_read(bytes, n, &read) == LZS_OK && read.position == (uint64_t)i && read.seed == 9);
        status = lzs_sample(s, row, &token);
        CHECK(lzs_accept(s, token < 0 ? 0 : token % 20) == LZS_OK); /* the plan outlives the step */
        lzs_status again;
        lzs_backend_sample(backend, rows, &read, 1, &replayed, &again);
        CHECK(replayed == token && again == status);
        free(bytes);
    }
    lzs_sampler_free(s);
}

int main(int argc, char **argv) {
    long n_plans = argc > 1 ? atol(argv[1]) : 30000;
    CHECK(lzs_backend_new(MAX_VOCAB, MAX_EDITS, &backend) == LZS_OK);
    test_random(n_plans, 1);
    for (uint64_t seed = 1; seed <= 3; seed++) test_corrupted(seed);
    test_refused();
    test_of_a_sampler();
    lzs_backend_free(backend);
    printf("%ld plans\n", n_plans);
    return 0;
}
