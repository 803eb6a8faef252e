/* test_penalty.c - edits worked out by hand, their folding, and what an edit does to extreme logits. The numbers at
 * large are compared in Python: with the authors' outputs and with the twin. */
#include <math.h>

#include "check.h"
#include "sampler.h"

static lzs_sampler *sampler_of(int32_t n_vocab, const lzs_params *params, const int32_t *tokens, size_t n) {
    lzs_sampler *s;
    CHECK(lzs_sampler_new(n_vocab, params, &s) == LZS_OK);
    for (size_t i = 0; i < n; i++) CHECK(lzs_accept(s, tokens[i]) == LZS_OK);
    return s;
}

static lzs_edit edit_of(lzs_sampler *s, int32_t token) {
    size_t n;
    const lzs_edit *edits = lzs_edits(s, &n);
    for (size_t i = 0; i < n; i++) { /* an edit that changes nothing is none */
        if (edits[i].token == token && (edits[i].repeat != 1.0f || edits[i].bias != 0.0f)) return edits[i];
    }
    return (lzs_edit){-1, 1.0f, 0.0f};
}

static bool near(double x, double y) {
    return fabs(x - y) < 1e-5 * (1.0 + fabs(y));
}

/* The history 0 1 2 0 1 | 0 1 with buffer 2: the suffix is "0 1", and position i = 7 - d counts for d = 1..5.
 *     d  token  context ends with   U  L
 *     1    1          .. 1 0        0  1
 *     2    0          .. 0 1        2  3
 *     3    1          .. 2 0        0  1
 *     4    0          .. 1 2        0  1
 *     5    2          .. 0 1        2  3 */
static void test_formulas(void) {
    static const int32_t history[] = {0, 1, 2, 0, 1, 0, 1};
    static const struct {
        int32_t formula;
        double cost[3];
    } cases[] = {
        {LZS_LZ_RATE, {(1.5849625007 + 1.5849625007) / 3, 1.0, (2.5849625007 + 1.5849625007) / 3}},
        {LZS_LZ_DISTANCE, {1.0, 0.0, 2.3219280949}},
        /* the longest match is l = 2 at d = 2; 0 and 2 extend it, 1 starts anew at distance 1 */
        {LZS_LZ_CODELENGTH, {-0.4150374993, 0.0, 0.9068905957}},
    };
    for (size_t f = 0; f < sizeof cases / sizeof *cases; f++) {
        int32_t tokens[7];
        float bits[7];
        size_t n;
        CHECK(lzs_lz_bits(history, 7, 64, 512, 2, cases[f].formula, tokens, bits, 7, &n) == LZS_OK && n == 3);
        CHECK((1 << tokens[0] | 1 << tokens[1] | 1 << tokens[2]) == 7);
        for (size_t i = 0; i < n; i++) CHECK(near(bits[i], 6.0 - cases[f].cost[tokens[i]]));
        CHECK(lzs_lz_bits(history, 7, 64, 512, 2, cases[f].formula, tokens, bits, 2, &n) == LZS_ESPACE && n == 3);
        CHECK(lzs_lz_bits(history, 2, 64, 512, 2, cases[f].formula, tokens, bits, 7, &n) == LZS_OK && n == 0);
        CHECK(lzs_lz_bits(NULL, 0, 64, 512, 2, cases[f].formula, NULL, NULL, 0, &n) == LZS_OK && n == 0);
    }
}

static void test_folding(void) {
    static const int32_t history[] = {5, 5, 6, 5};
    lzs_params p;
    lzs_params_init(&p);
    p.repetition_penalty = 1.2f;
    p.frequency_penalty = 1.5f;
    p.frequency_method = LZS_MULTIPLICATIVE;
    p.presence_penalty = 0.25f;
    p.lz_rule = LZS_RULE_PAPER;
    p.lz_penalty = 2.0f;
    p.lz_window = 3;
    p.lz_buffer = 2; /* the window is 5 6 5, its only position holds the last 5: d = 1, L = 1, rate 1 bit, distance 0 */
    lzs_sampler *s = sampler_of(64, &p, history, 4);
    CHECK(near(edit_of(s, 5).repeat, 1.2 * 1.5 * 1.5 * 1.5) && near(edit_of(s, 5).bias, -0.25 - 2.0 * (6.0 - 1.0)));
    CHECK(near(edit_of(s, 6).repeat, 1.2 * 1.5) && near(edit_of(s, 6).bias, -0.25));
    CHECK(edit_of(s, 7).token == -1);
    lzs_sampler_free(s);

    int32_t exempt[] = {40, 5, 5, 0};
    p.exempt = exempt;
    p.n_exempt = 4;
    s = sampler_of(64, &p, history, 4);
    for (int i = 0; i < 4; i++) exempt[i] = 6; /* the list is copied */
    CHECK(edit_of(s, 5).token == -1 && edit_of(s, 6).token == 6);
    lzs_sampler_free(s);

    lzs_params_init(&p);
    p.repetition_method = LZS_SUBTRACTIVE;
    p.repetition_penalty = 0.5f;
    p.presence_method = LZS_MULTIPLICATIVE;
    p.presence_penalty = 4.0f;
    p.frequency_penalty = -1.0f;
    p.penalty_window = 2;
    s = sampler_of(64, &p, history, 4);
    CHECK(edit_of(s, 5).repeat == 4.0f && edit_of(s, 5).bias == 0.5f);
    CHECK(edit_of(s, 6).repeat == 4.0f && edit_of(s, 6).bias == 0.5f);
    CHECK(lzs_rewind(s, 1) == LZS_OK && lzs_accept(s, 6) == LZS_OK);
    CHECK(edit_of(s, 6).bias == 1.5f && edit_of(s, 5).token == -1);
    lzs_sampler_free(s);
}

/* Whatever the parameters, an edit has a usable factor and gives no NaN and no -inf. */
static void test_extremes(void) {
    static const float values[] = {FLT_MAX, 1e30f, 2.0f, 1.0f, 0.5f, 1e-30f, FLT_MIN, 1e-45f, -1e-30f, -2.0f, -FLT_MAX};
    static const float logits[] = {FLT_MAX, 3.0f, FLT_MIN, 0.0f, -0.0f, -1e-45f, -3.0f, -FLT_MAX};
    enum { N_VALUES = sizeof values / sizeof *values, N_LOGITS = sizeof logits / sizeof *logits };
    int32_t history[100] = {0};
    int n_valid = 0;
    for (int c = 0; c < N_VALUES * N_VALUES * N_VALUES * 8; c++) {
        lzs_params p;
        lzs_params_init(&p);
        p.repetition_method = c & 1;
        p.frequency_method = c >> 1 & 1;
        p.presence_method = c >> 2 & 1;
        p.repetition_penalty = values[c / 8 % N_VALUES];
        p.frequency_penalty = values[c / 8 / N_VALUES % N_VALUES];
        p.presence_penalty = values[c / 8 / N_VALUES / N_VALUES];
        p.lz_rule = c / 8 % 2;
        p.lz_penalty = c % 3 ? 0.0f : FLT_MAX;
        p.lz_buffer = p.lz_min_match = 1;
        if (p.lz_rule == LZS_RULE_DEFAULT && c % 3 != 1) p.lz_run_penalty = FLT_MAX;
        p.lz_run_allowance = 0;
        if (lzs_params_invalid(&p, 2)) continue;
        n_valid++;
        lzs_sampler *s = sampler_of(2, &p, history, c % 5 ? 3 : 100);
        lzs_edit edit = edit_of(s, 0);
        CHECK(edit.repeat >= FLT_MIN && edit.repeat <= FLT_MAX && fabsf(edit.bias) <= FLT_MAX);
        for (int i = 0; i < N_LOGITS; i++) {
            CHECK(fabsf(lzs_apply_edit(&edit, logits[i], true)) <= FLT_MAX);
            CHECK(fabsf(lzs_apply_edit(&edit, logits[i], false)) <= FLT_MAX);
        }
        lzs_sampler_free(s);
    }
    CHECK(n_valid > 4000);
}

/* LZ alone, as strong as a float allows, by each rule. */
static void test_lz_bias_is_finite(void) {
    static const int32_t history[] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        lzs_params p;
        lzs_params_init(&p);
        p.lz_rule = i == 0 ? LZS_RULE_PAPER : LZS_RULE_DEFAULT;
        p.lz_penalty = i < 2 ? FLT_MAX : 0.0f;
        p.lz_run_penalty = i == 2 ? FLT_MAX : 0.0f;
        p.lz_run_allowance = 0;
        p.lz_buffer = 1;
        p.lz_min_match = 2;
        lzs_sampler *s = sampler_of(50000, &p, history, 3);
        CHECK(edit_of(s, 0).token == 0 && edit_of(s, 0).bias < -1e30f && edit_of(s, 0).bias >= -FLT_MAX);
        lzs_sampler_free(s);
    }
}

/* Matches carry a stamp that says which history they belong to. When it has gone through all its 2^32 values, old matches
 * must not be taken for fresh ones. */
static void test_stamps_wrap(void) {
    lzs_params p;
    uint64_t state = 1;
    lzs_params_init(&p);
    p.lz_rule = LZS_RULE_PAPER;
    p.lz_penalty = 1.0f;
    p.lz_window = 40;
    p.lz_buffer = 5;
    p.presence_penalty = 0.5f;
    lzs_sampler *old = sampler_of(8, &p, NULL, 0);
    for (uint32_t round = 0; round < 40; round++) {
        lzs_sampler *fresh = sampler_of(8, &p, NULL, 0);
        size_t n, n_fresh;
        lzs_sampler_reset(old);
        if (round % 10 == 5) { /* all that was matched long ago was given one of the first stamps */
            old->edits.paper.stamp = UINT32_MAX - round % 3;
            for (size_t i = 0; i < old->edits.paper.capacity; i++) {
                old->edits.paper.matches[i] =
                    (lzs_paper_match){.stamp = (uint32_t)(12 + i), .length = 99, .distance = 1, .nearest = 1, .value = -77.0f};
            }
        }
        for (int i = 0; i < 30; i++) {
            int32_t token = random_below(&state, 8);
            CHECK(lzs_accept(old, token) == LZS_OK && lzs_accept(fresh, token) == LZS_OK);
            const lzs_edit *edits = lzs_edits(old, &n), *expected = lzs_edits(fresh, &n_fresh);
            CHECK(n == n_fresh);
            for (size_t k = 0; k < n; k++) {
                CHECK(edits[k].token == expected[k].token && edits[k].bias == expected[k].bias);
            }
        }
        lzs_sampler_free(fresh);
    }
    lzs_sampler_free(old);
}

static void test_apply(void) {
    lzs_edit edit = {0, 2.0f, -0.5f};
    CHECK(lzs_apply_edit(&edit, 3.0f, true) == 1.0f && lzs_apply_edit(&edit, -3.0f, true) == -6.5f);
    CHECK(lzs_apply_edit(&edit, 3.0f, false) == 1.0f && lzs_apply_edit(&edit, -3.0f, false) == -2.0f);
    CHECK(lzs_apply_edit(&edit, 0.0f, true) == -0.5f);
    CHECK(lzs_apply_edit(&edit, INFINITY, true) == INFINITY && lzs_apply_edit(&edit, -INFINITY, true) == -INFINITY);
    float nan = lzs_apply_edit(&edit, NAN, true);
    CHECK(nan != nan);
}

int main(void) {
    test_formulas();
    test_folding();
    test_apply();
    test_extremes();
    test_stamps_wrap();
    test_lz_bias_is_finite();
    return 0;
}
