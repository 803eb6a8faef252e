/* test_explain.c - lzs_step is lzs_sample and lzs_accept, and what lzs_explain says adds up to what a step does. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "backend/arithmetic.h"
#include "check.h"
#include "lzsampler_explain.h"
#include "lzsampler_plan.h"

enum { N_VOCAB = 24 };

static lzs_sampler *new_sampler(const lzs_params *params) {
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, params, &s) == LZS_OK);
    return s;
}

static void random_row(uint64_t *seed, float *row) {
    for (int32_t i = 0; i < N_VOCAB; i++) row[i] = (float)(20.0 * random_unit(seed) - 10.0);
}

static void test_step(void) {
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.1f;
    p.lz_window = 16;
    p.lz_min_match = 2;
    p.loop_max_pattern = 4;
    p.loop_min_pattern = 1;
    p.loop_min_count = 3;
    uint64_t seed = 3;
    lzs_sampler *a = new_sampler(&p), *b = new_sampler(&p);
    float row[N_VOCAB];
    int32_t n_looping = 0;
    for (int i = 0; i < 400; i++) {
        int32_t token, other, looping = 7;
        lzs_loop loop;
        random_row(&seed, row);
        row[i / 6 % N_VOCAB] += (float)(i / 100 * 8); /* likelier and likelier the same token for a while */
        if (i % 100 == 0) {
            lzs_sampler_reset(a);
            lzs_sampler_reset(b);
        }
        CHECK(lzs_step(a, row, &token, &looping) == LZS_OK);
        CHECK(lzs_sample(b, row, &other) == LZS_OK && lzs_accept(b, other) == LZS_OK);
        CHECK(token == other && lzs_position(a) == lzs_position(b) && looping == lzs_loop_found(b, &loop));
        n_looping += looping;
    }
    CHECK(n_looping > 50 && n_looping < 350);
    int32_t token = 5, looping;
    uint64_t before = lzs_position(a);
    row[2] = NAN;
    CHECK(lzs_step(a, row, &token, &looping) == LZS_ENAN && token == -1 && lzs_position(a) == before);
    row[2] = 0.0f;
    CHECK(lzs_step(a, row, &token, NULL) == LZS_OK && token >= 0 && lzs_position(a) == before + 1);
    lzs_sampler_free(a);
    lzs_sampler_free(b);
}

/* Settings in which every penalty is on in some of 96 cases and off in others. */
static lzs_params settings(int k) {
    static const int32_t exempt[] = {2, 3}, breakers[] = {5, 7};
    static const uint32_t separators = 1u << 5 | 1u << 7, commas = 1u << 1 | 1u << 3;
    static const lzs_logit_bias bias[] = {{1, 2.5f}, {2, -1.0f}, {9, -INFINITY}};
    lzs_params p;
    lzs_params_init(&p);
    p.temperature = k % 3 ? 0.7f : 0.0f;
    p.top_k = k % 4 ? 6 : 0;
    p.lz_rule = k & 16 ? LZS_RULE_DEFAULT : LZS_RULE_PAPER;
    p.lz_penalty = k % 5 ? 0.3f : 0.0f;
    p.lz_formula = k % 3;
    p.lz_window = 40;
    p.lz_buffer = 1 + k % 7;
    if (p.lz_rule == LZS_RULE_DEFAULT) {
        p.lz_min_match = 1 + k % 7;
        p.lz_separators = &separators;
        p.n_lz_separators = k % 3 == 0;
        p.lz_commas = &commas;
        p.n_lz_commas = k % 5 == 1;
        p.lz_run_penalty = k % 4 > 1 ? 0.25f : 0.0f;
        p.lz_run_allowance = k % 6;
    }
    p.history = k % 2;
    if (k & 2) {
        p.repetition_penalty = 1.3f;
        p.frequency_penalty = 0.25f;
        p.presence_penalty = k % 5 ? 0.5f : 1.1f;
        p.presence_method = k % 5 ? LZS_SUBTRACTIVE : LZS_MULTIPLICATIVE;
        p.penalty_window = k % 3 * 9;
    }
    if (k & 4) {
        p.dry_multiplier = 0.8f;
        p.dry_allowed_length = k % 3;
        p.dry_penalty_last_n = k % 4 == 0 ? -1 : 30;
        p.dry_breakers = breakers;
        p.n_dry_breakers = 2;
    }
    if (k & 8) {
        p.exempt = exempt;
        p.n_exempt = 2;
        p.logit_bias = bias;
        p.n_logit_bias = 3;
    }
    return p;
}

static void test_parts_add_up(void) {
    uint64_t seed = 11;
    int32_t n_lz = 0, n_run = 0, n_count = 0, n_dry = 0, n_exempt = 0, tokens[N_VOCAB];
    for (int32_t i = 0; i < N_VOCAB; i++) tokens[i] = i;
    for (int k = 0; k < 96; k++) {
        lzs_params p = settings(k);
        lzs_sampler *s = new_sampler(&p);
        uint32_t mask = 0xfffffbefu;
        if (k & 1) CHECK(lzs_set_mask(s, LZS_MASK_USER, &mask, 1) == LZS_OK);
        for (int step = 0; step < 150; step++) {
            float row[N_VOCAB], after[N_VOCAB];
            lzs_explanation made[N_VOCAB];
            size_t n;
            random_row(&seed, row);
            CHECK(lzs_process(s, row, after) == LZS_OK);
            CHECK(lzs_explain(s, row, tokens, N_VOCAB, made) == LZS_OK);
            float repeat[N_VOCAB], bias[N_VOCAB];
            for (int32_t i = 0; i < N_VOCAB; i++) {
                repeat[i] = 1.0f;
                bias[i] = 0.0f;
            }
            const lzs_edit *edits = lzs_edits(s, &n);
            for (size_t i = 0; i < n; i++) {
                repeat[edits[i].token] = edits[i].repeat;
                bias[edits[i].token] = edits[i].bias;
            }
            for (int32_t i = 0; i < N_VOCAB; i++) {
                const lzs_explanation *e = &made[i];
                float sum = lzs_finite(lzs_finite(e->count_bias + e->lz_bias) + e->dry_bias);
                sum = e->logit_bias == -INFINITY ? -INFINITY : lzs_finite(sum + e->logit_bias);
                CHECK(e->token == i && e->repeat == repeat[i] && e->bias == bias[i]);
                CHECK(e->count_repeat == e->repeat && sum == e->bias);
                CHECK(e->logit == row[i] && e->after == after[i]);
                CHECK(e->allowed == !((k & 1) && (i == 4 || i == 10)));
                CHECK((e->lz_length == 0) == (e->lz_distance == 0) && (e->dry_length == 0) == (e->dry_distance == 0));
                CHECK(e->lz_run >= 0 && (!e->lz_run || (e->lz_length && e->lz_bits == 0.0f)));
                if (e->lz_run) CHECK(e->lz_run == e->lz_length - e->lz_distance - p.lz_run_allowance);
                const float price = e->lz_run ? p.lz_run_penalty * (float)e->lz_run : p.lz_penalty * e->lz_bits;
                if (!e->exempt) CHECK(e->lz_bias == -price);
                if (e->after > -INFINITY && p.temperature == 0.0f) CHECK(e->after == e->edited);
                n_lz += e->lz_length > 1;
                n_run += e->lz_run > 0;
                n_count += e->count > 1;
                n_dry += e->dry_length > 1;
                n_exempt += e->exempt && e->count;
            }
            CHECK(lzs_accept(s, step > 60 && step % 20 ? (step / 50 + step % 5) : random_below(&seed, N_VOCAB)) == LZS_OK);
        }
        lzs_sampler_free(s);
    }
    CHECK(n_lz > 1000 && n_run > 100 && n_count > 1000 && n_dry > 300 && n_exempt > 100);
}

static void test_by_hand(void) {
    static const int32_t text[] = {1, 2, 3, 9, 9, 1, 2, 3, 8, 8, 1, 2};
    lzs_params p;
    lzs_params_init(&p);
    p.lz_rule = LZS_RULE_PAPER;
    p.lz_penalty = 0.5f;
    p.lz_window = 32;
    p.lz_buffer = 2;
    p.temperature = 0.0f;
    p.repetition_penalty = 1.0f;
    p.presence_penalty = 1.0f;
    p.dry_multiplier = 1.0f;
    p.dry_base = 2.0f;
    lzs_sampler *s = new_sampler(&p);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) CHECK(lzs_accept(s, text[i]) == LZS_OK);
    float row[N_VOCAB] = {0};
    lzs_explanation e[3];
    static const int32_t tokens[] = {3, 0, 9};
    CHECK(lzs_explain(s, row, tokens, 3, e) == LZS_OK);
    CHECK(e[0].lz_length == 3 && e[0].lz_distance == 5); /* 1 2 3, five tokens ago; the one at distance 10 is dearer */
    float cost = (lzs_log2(6.0f) + lzs_log2(3.0f)) / 3.0f;
    CHECK(e[0].lz_bits == lzs_log2((float)N_VOCAB) - cost);
    CHECK(e[0].count == 2 && e[0].count_repeat == 1.0f && e[0].count_bias == -1.0f);
    CHECK(e[0].dry_length == 2 && e[0].dry_distance == 5 && e[0].dry_bias == -1.0f); /* 1.0 * 2^(2 - 2) */
    CHECK(e[1].lz_length == 0 && e[1].count == 0 && e[1].dry_length == 0 && e[1].edited == 0.0f && e[1].repeat == 1.0f);
    CHECK(e[2].lz_length == 1 && e[2].lz_distance == 8 && e[2].count == 2 && e[2].dry_length == 0);
    CHECK(e[1].after == 0.0f && e[0].after == -INFINITY); /* argmax: the first of the tokens that lost nothing */
    static const int32_t outside[] = {0, N_VOCAB}, negative[] = {-1};
    CHECK(lzs_explain(s, row, outside, 2, e) == LZS_EINVAL && lzs_explain(s, row, negative, 1, e) == LZS_EINVAL);
    row[4] = NAN;
    CHECK(lzs_explain(s, row, tokens, 3, e) == LZS_ENAN);
    lzs_sampler_free(s);
}

static lzs_explanation told(lzs_sampler *s, int32_t token) {
    static const float row[N_VOCAB];
    lzs_explanation e;
    CHECK(lzs_explain(s, row, &token, 1, &e) == LZS_OK && e.bias == e.lz_bias && e.edited == e.bias);
    return e;
}

/* The match that sets the price is told: of those with the highest one the nearest, or the run where that costs more. */
static void test_matches(void) {
    static const int32_t text[] = {1, 2, 3, 9, 5, 2, 3, 9, 6, 1, 2, 3};
    static const uint32_t separators = 1u << 2;
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.5f;
    p.lz_min_match = 2;
    p.lz_run_penalty = 0.75f;
    p.lz_run_allowance = 2;
    for (int separated = 0; separated < 2; separated++) {
        p.lz_separators = &separators;
        p.n_lz_separators = (size_t)separated;
        lzs_sampler *s = new_sampler(&p);
        for (size_t i = 0; i < sizeof text / sizeof *text; i++) CHECK(lzs_accept(s, text[i]) == LZS_OK);
        lzs_explanation e = told(s, 9);
        /* 1 2 3 nine tokens ago, or 2 3 five ago; after the separator 2 both are 3 9, and the nearer one costs more */
        CHECK(e.lz_length == (separated ? 2 : 4) && e.lz_distance == (separated ? 5 : 9) && e.lz_run == 0);
        const float length = (float)e.lz_length, cost = (lzs_log2((float)e.lz_distance + 1.0f) + lzs_log2(length)) / length;
        CHECK(e.lz_bits == lzs_log2((float)N_VOCAB) - cost && e.lz_bias == -(p.lz_penalty * e.lz_bits));
        e = told(s, 6); /* what stands before it has nothing in common with the end */
        CHECK(e.lz_length == 0 && e.lz_distance == 0 && e.lz_run == 0 && e.lz_bits == 0.0f && e.lz_bias == 0.0f);
        for (int i = 0; i < 20; i++) CHECK(lzs_accept(s, i % 2 ? 8 : 7) == LZS_OK);
        e = told(s, 7); /* 18 tokens equal those two before, and with the new one 19 are 15 more than the period and the allowance */
        CHECK(e.lz_length == 19 && e.lz_distance == 2 && e.lz_run == 19 - 2 - 2 && e.lz_bits == 0.0f);
        CHECK(e.lz_bias == -(p.lz_run_penalty * 15.0f));
        CHECK(told(s, 8).lz_length == 0);
        lzs_sampler_free(s);
    }
}

int main(void) {
    test_step();
    test_parts_add_up();
    test_by_hand();
    test_matches();
    return 0;
}
