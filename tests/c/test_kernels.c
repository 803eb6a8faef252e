/* test_kernels.c - every table of kernels that this CPU runs against the definition: the same bits, and nothing written
 * elsewhere. One body for each kernel runs with every table, at the lengths where
 * vectors and stretches end. */
#include <math.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"
#include "penalty/paper.h"

enum { MAX_N = 152000, GUARD = 64 };

static float logits[MAX_N + GUARD];
static uint32_t mask[(MAX_N + 31) / 32 + 1];
static uint64_t random_state = 1;

/* 0, 1, around each vector width and its multiples, stretches, and real vocabularies */
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

enum { MAX_GROUPS = (MAX_N / LZS_STRETCH + 1) * LZS_STRETCH_GROUPS };

static void test_max(int32_t n, bool masked) {
    static float maxima[MAX_GROUPS + 1], expected_maxima[MAX_GROUPS + 1], best[MAX_GROUPS], expected_best[MAX_GROUPS];
    lzs_row row = row_of(n, masked);
    int32_t n_stretches = lzs_stretches(n), n_groups = n_stretches * LZS_STRETCH_GROUPS;
    maxima[n_groups] = 42.0f;
    best[n_stretches] = 42.0f;
    CHECK(!table->max(&row, maxima, best));
    CHECK(!lzs_kernels_scalar.max(&row, expected_maxima, expected_best));
    for (int32_t g = 0; g < n_groups; g++) CHECK(maxima[g] == expected_maxima[g]);
    for (int32_t s = 0; s < n_stretches; s++) CHECK(best[s] == expected_best[s]);
    CHECK(maxima[n_groups] == 42.0f && best[n_stretches] == 42.0f);
    for (int32_t g = 0; masked && g < n_groups; g++) CHECK(table->max_of_group(&row, g) == expected_maxima[g]);
}

static void test_nan(int32_t n) {
    static float maxima[MAX_GROUPS], best[MAX_GROUPS];
    for (int try = 0; try < 3; try++) {
        int32_t at = try == 0 ? 0 : try == 1 ? n - 1 : random_below(&random_state, n);
        float kept = logits[at];
        logits[at] = NAN;
        for (int masked = 0; masked < 2; masked++) {
            lzs_row row = row_of(n, masked);
            CHECK(table->max(&row, maxima, best) == lzs_allowed(row.mask, at));
        }
        logits[at] = kept;
    }
}

static void test_gather(int32_t n, bool masked) {
    static uint64_t packed[MAX_N + 1], expected_packed[MAX_N + 1];
    static float maxima[MAX_GROUPS], best[MAX_GROUPS];
    lzs_row row = row_of(n, masked);
    int32_t n_groups = lzs_stretches(n) * LZS_STRETCH_GROUPS;
    lzs_kernels_scalar.max(&row, maxima, best);
    for (int try = 0; try < 7; try++) {
        float low = (float[]){-INFINITY, 0.0f, 3.0f, 6.0f, -1.0f, 1e38f, -FLT_MAX}[try];
        float high = try == 4 ? 1.0f : INFINITY;
        int32_t capacity = try < 2 ? n : 16 << try;
        int32_t from = random_below(&random_state, n) / 64 * 64;
        lzs_list list = {packed, 0, capacity}, expected = {expected_packed, 0, capacity};
        packed[capacity] = 42;
        CHECK(table->count(maxima, n_groups, low) == lzs_kernels_scalar.count(maxima, n_groups, low));
        int32_t at = from, expected_at = from;
        do { /* a full list is emptied, and the gather goes on from where it says */
            list.n = expected.n = 0;
            at = table->gather(&row, maxima, at, low, high, &list);
            expected_at = lzs_kernels_scalar.gather(&row, maxima, expected_at, low, high, &expected);
            CHECK(at == expected_at && list.n == expected.n && packed[capacity] == 42);
            CHECK(memcmp(packed, expected_packed, (size_t)list.n * sizeof *packed) == 0);
        } while (at < n);
    }
}

/* The row's maximum, as a number that a scale can have. */
static float top_of(int32_t n) {
    float max = -INFINITY;
    for (int32_t i = 0; i < n; i++) max = logits[i] > max ? logits[i] : max;
    return max > -INFINITY ? max : 0.0f;
}

static void test_weigh(int32_t n, bool masked) {
    static struct {
        lzs_histogram histogram;
        uint64_t guard;
    } got, expected;
    static const struct {
        float from, limit, per_bit;
    } ranges[] = {{0, 16, 64}, {0, 32, 64}, {3, 6, 64}, {0, 0.015625f, 131072}, {2.25f, 2.265625f, 131072}};
    lzs_row row = row_of(n, masked);
    for (int r = 0; r < 5; r++) {
        for (int t = 0; t < 4; t++) {
            lzs_softmax_scale scale = {top_of(n), lzs_temperature_scale((float[]){1.0f, 0.3f, 1e5f, 1.0f}[t])};
            memset(&got, 0, sizeof got);
            got.histogram = (lzs_histogram){
                .from = ranges[r].from, .limit = ranges[r].limit, .per_bit = ranges[r].per_bit, .count = t == 3};
            got.guard = 42;
            expected = got;
            for (int32_t from = 0; from < n; from += LZS_STRETCH) {
                int32_t to = n - from < LZS_STRETCH ? n : from + LZS_STRETCH;
                table->weigh(&row, from, to, scale, &got.histogram);
                lzs_kernels_scalar.weigh(&row, from, to, scale, &expected.histogram);
            }
            CHECK(memcmp(&got, &expected, sizeof got) == 0);
        }
    }
}

/* Also far below the best token, on both sides of where short sums begin: of a flat row all weights are as large as they may be. */
static void test_sum(int32_t n, bool masked) {
    static const float limits[] = {0.0f, 1e-3f, 5.0f, 12.5f, 31.0f, 40.0f};
    static float maxima[MAX_GROUPS], best[MAX_GROUPS];
    lzs_row row = row_of(n, masked);
    lzs_kernels_scalar.max(&row, maxima, best);
    for (int t = 0; t < 12; t++) {
        lzs_softmax_scale scale = {top_of(n), lzs_temperature_scale((float[]){1.0f, 0.3f, 1e5f}[t % 3])};
        if (t >= 3 && fabsf(scale.max) < 1e6f) scale.max += (1.25f + 0.5f * (float)(t - 3)) / scale.scale;
        lzs_sums got = {3, 1}, expected = got;
        for (int32_t from = 0; from < n; from += LZS_STRETCH) {
            int32_t to = n - from < LZS_STRETCH ? n : from + LZS_STRETCH;
            table->sum(&row, maxima, from, to, scale, limits[t % 6], &got);
            lzs_kernels_scalar.sum(&row, maxima, from, to, scale, limits[t % 6], &expected);
        }
        CHECK(got.total == expected.total && got.above == expected.above);
    }
}

/* The words and bounds of all groups, and that no group is left out of the race which holds a token with such a score. */
static void test_bounds(int32_t n, bool masked, int try) {
    static uint32_t words[MAX_GROUPS + 1], expected_words[MAX_GROUPS];
    static float bounds[MAX_GROUPS + 1], expected_bounds[MAX_GROUPS], best[MAX_GROUPS];
    static int32_t groups[MAX_GROUPS + 17], expected_groups[MAX_GROUPS];
    static bool listed[MAX_GROUPS];
    lzs_noise_key key = lzs_noise_key_of(random_bits(&random_state), random_bits(&random_state));
    lzs_row row = row_of(n, masked);
    int32_t n_groups = lzs_stretches(n) * LZS_STRETCH_GROUPS;
    float low = (float[]){-FLT_MAX, 0.0f, 2.0f}[random_below(&random_state, 3)];
    lzs_kernels_scalar.max(&row, expected_bounds, best);
    float max = -INFINITY;
    for (int32_t s = 0; s < lzs_stretches(n); s++) max = best[s] > max ? best[s] : max;
    lzs_softmax_scale scale = {max, lzs_temperature_scale((float[]){1.0f, 0.5f, 1e-6f}[try % 3])};
    bool finite = fabsf(max) <= FLT_MAX;
    memcpy(bounds, expected_bounds, (size_t)n_groups * sizeof *bounds);
    words[n_groups] = 42;
    bounds[n_groups] = 42.0f;
    float least = table->bounds(key, n_groups, scale, low, words, bounds);
    float expected_least = lzs_kernels_scalar.bounds(key, n_groups, scale, low, expected_words, expected_bounds);
    CHECK(memcmp(words, expected_words, (size_t)n_groups * sizeof *words) == 0 && words[n_groups] == 42);
    CHECK(words[n_groups - 1] == lzs_group_word(key, (uint32_t)n_groups - 1));
    CHECK(least == expected_least && bounds[n_groups] == 42.0f);
    if (!finite) return;
    CHECK(memcmp(bounds, expected_bounds, (size_t)n_groups * sizeof *bounds) == 0);
    for (int s = 0; s < 4; s++) {
        float score = (float[]){FLT_MAX, 0.0f, -4.0f, -9.0f}[s], above = s == 2 ? -6.0f : -INFINITY;
        groups[n_groups + 16] = 42;
        int32_t found = table->contenders(bounds, n_groups, above, score, groups);
        CHECK(found == lzs_kernels_scalar.contenders(bounds, n_groups, above, score, expected_groups));
        CHECK(memcmp(groups, expected_groups, (size_t)found * sizeof *groups) == 0 && groups[n_groups + 16] == 42);
        memset(listed, 0, sizeof listed);
        for (int32_t i = 0; i < found; i++) listed[groups[i]] = true;
        found = table->contenders(bounds, n_groups, -INFINITY, above, groups);
        for (int32_t i = 0; i < found; i++) { /* the bounds up to one number and those above it are all bounds */
            CHECK(!listed[groups[i]]);
            listed[groups[i]] = true;
        }
        for (int32_t id = 0; id < n; id += 1 + n / 2000) {
            if (!lzs_allowed(row.mask, id) || !(logits[id] >= low)) continue;
            float own = lzs_gap_bits(scale, logits[id]) + lzs_log2(lzs_token_noise(key, id));
            CHECK(listed[lzs_group_of(id)] || own > score);
        }
    }
}

/* The race goes on from group to group: the same tokens wait, and the same one leads. Without waiting all tokens of the groups
 * run, also those of which a bound says that they cannot lead. */
static void test_open_and_run(int32_t n, bool masked) {
    static uint32_t words[MAX_GROUPS];
    lzs_row row = row_of(n, masked);
    for (int try = 0; try < 6; try++) {
        lzs_softmax_scale scale = {top_of(n), lzs_temperature_scale(try % 2 ? 0.5f : 1.0f)};
        lzs_cut cut = {lzs_key((float[]){-FLT_MAX, -FLT_MAX, 0.0f, 1.0f, 5.0f, scale.max}[try]), try < 3 ? INT32_MAX : n / 2};
        lzs_race race = {lzs_noise_key_of(7, (uint64_t)try), scale, INFINITY, -1}, expected = race, direct = race;
        for (int i = 0; i < 4; i++) {
            int32_t n_groups = lzs_stretches(n) * LZS_STRETCH_GROUPS;
            for (int32_t g = 0; g < n_groups; g++) words[g] = lzs_group_word(race.key, (uint32_t)g);
            const uint32_t *known = i % 2 ? words : NULL;
            lzs_runners waiting = {.words = known}, expected_waiting = {.words = known};
            int32_t group = i == 0 ? n_groups - 1 : random_below(&random_state, n_groups);
            uint32_t word = lzs_group_word(race.key, (uint32_t)group);
            if (i == 3) { /* behind some that wait, as many as may */
                int32_t id = random_below(&random_state, n);
                waiting.n = expected_waiting.n = logits[id] > -INFINITY ? LZS_WAITING - 1 : 0;
                for (int32_t k = 0; k < waiting.n; k++) {
                    waiting.ids[k] = expected_waiting.ids[k] = id;
                    waiting.x[k] = expected_waiting.x[k] = logits[id];
                }
                if (waiting.n) lzs_run(&direct, logits[id], id, lzs_token_noise(race.key, id));
            }
            table->open(&row, group, word, cut, &race, &waiting);
            lzs_kernels_scalar.open(&row, group, word, cut, &expected, &expected_waiting);
            CHECK(waiting.n == expected_waiting.n);
            CHECK(memcmp(waiting.ids, expected_waiting.ids, (size_t)waiting.n * sizeof *waiting.ids) == 0);
            CHECK(memcmp(waiting.x, expected_waiting.x, (size_t)waiting.n * sizeof *waiting.x) == 0);
            table->run(&race, &waiting);
            lzs_kernels_scalar.run(&expected, &expected_waiting);
            CHECK(waiting.n == 0 && expected_waiting.n == 0);
            CHECK(race.token == expected.token && equal_bits(race.score, expected.score));
            for (int32_t id = group * LZS_GROUP; id < (group + 1) * LZS_GROUP; id++) {
                if (id >= n || !lzs_allowed(row.mask, id) || !lzs_inside(cut, lzs_key(logits[id]), id)) continue;
                lzs_run(&direct, logits[id], id, lzs_token_noise(race.key, id));
            }
            CHECK(race.token == direct.token && (race.token < 0 || equal_bits(race.score, direct.score)));
        }
    }
}

/* The score of a token that runs alone has the bits of the definition, for noise of all sizes. */
static void test_scores(void) {
    lzs_softmax_scale scale = {3.0f, lzs_temperature_scale(0.7f)};
    for (int i = 0; i < 20000; i++) {
        lzs_race race = {lzs_noise_key_of(3, (uint64_t)i / 1000), scale, INFINITY, -1}, expected = race;
        int32_t id = i % 2 ? random_below(&random_state, 1 << 30) : i;
        if (i % 4 == 0) { /* the holder of a group */
            uint32_t group = (uint32_t)random_below(&random_state, 1 << 24);
            id = (int32_t)(group * LZS_GROUP + lzs_group_holder(lzs_group_word(race.key, group)));
        }
        float x = 3.0f - (float)(10.0 * random_unit(&random_state));
        lzs_runners waiting = {.n = 1, .ids = {id}, .x = {x}};
        table->run(&race, &waiting);
        lzs_run(&expected, x, id, lzs_token_noise(expected.key, id));
        CHECK(race.token == id && equal_bits(race.score, expected.score));
    }
}

/* Lengths up to the cap, which is where counting ends. */
static void test_lengths(int32_t n, uint16_t cap) {
    static uint16_t len[MAX_N + 1], expected[MAX_N + 1];
    static int32_t tokens[MAX_N], indices[MAX_N + 1], expected_indices[MAX_N + 1];
    for (int32_t i = 0; i < n; i++) {
        tokens[i] = random_below(&random_state, 4);
        len[i] = expected[i] = (uint16_t)(cap - random_below(&random_state, 34));
    }
    len[n] = 4242;
    table->extend(len, tokens, n, 2, cap);
    lzs_kernels_scalar.extend(expected, tokens, n, 2, cap);
    CHECK(memcmp(len, expected, (size_t)n * sizeof *len) == 0 && len[n] == 4242);
    for (int i = 0; i < 5; i++) {
        uint16_t least = (uint16_t[]){0, 1, 2, 33, 65535}[i];
        int32_t found = table->find_long(len, n, least, indices);
        CHECK(found == lzs_kernels_scalar.find_long(len, n, least, expected_indices));
        CHECK(memcmp(indices, expected_indices, (size_t)found * sizeof *indices) == 0);
    }
}

/* Prices of all distances, for weak, usual and overflowing strengths, both kinds of logarithm, and a vocabulary so small that
 * far matches cost all of its bits. */
static void test_price_nearest(int32_t n) {
    enum { REACH = 131072 };
    static lzs_token_entry entries[MAX_N];
    static lzs_edit got[MAX_N + 1], expected[MAX_N + 1];
    static float bias_at[REACH + 1];
    for (int try = 0; try < 6; try++) {
        lzs_params params;
        lzs_params_init(&params);
        params.lz_penalty = (float[]){0.15f, 1e-30f, FLT_MAX}[try % 3];
        params.lz_formula = try % 2 ? LZS_LZ_RATE : LZS_LZ_DISTANCE;
        float log2_vocab = lzs_log2((float[]){151936.0f, 1.0f, 300.0f}[try / 2]);
        lzs_paper paper = {.reach = REACH, .bias_at = bias_at};
        lzs_paper_set_prices(&paper, &params, log2_vocab);
        for (int32_t i = 0; i < n; i++) {
            int32_t distance = try == 0 ? i % REACH + 1 : random_below(&random_state, REACH) + 1;
            entries[i] = (lzs_token_entry){random_below(&random_state, INT32_MAX), 7, REACH - distance};
        }
        got[n].token = 42;
        table->price_nearest(entries, n, REACH, &paper.nearest, got);
        lzs_kernels_scalar.price_nearest(entries, n, REACH, &paper.nearest, expected);
        CHECK(memcmp(got, expected, (size_t)n * sizeof *got) == 0 && got[n].token == 42);
    }
}

int main(void) {
    int n_tables = 0;
    for (; (table = lzs_kernels_at(n_tables)); n_tables++) {
        test_scores();
        for (int32_t l = 0; l < N_LENGTHS; l++) {
            int32_t n = lengths[l];
            test_lengths(n, 33);
            test_lengths(n, UINT16_MAX);
            test_price_nearest(n);
            if (n == 0) continue; /* a vocabulary has a token at least */
            for (int kind = 0; kind < KINDS && (n < 50000 || kind < 2); kind++) {
                fill(n, kind);
                for (int masked = 0; masked < 2; masked++) {
                    test_max(n, masked);
                    test_gather(n, masked);
                    test_weigh(n, masked);
                    test_sum(n, masked);
                    test_bounds(n, masked, kind);
                    test_open_and_run(n, masked);
                }
                test_nan(n);
            }
        }
        printf("%s ", table->name);
    }
    printf("agree\n");
    CHECK(n_tables >= 1 && lzs_kernels_best());
    return 0;
}
