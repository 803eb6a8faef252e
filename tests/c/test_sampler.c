/* test_sampler.c - a sampler's life, the errors of every function, and the pipeline on rows small enough to read. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "lzsampler_explain.h"
#include "lzsampler_plan.h"

static lzs_sampler *new_sampler(int32_t n_vocab, const lzs_params *params) {
    lzs_sampler *s;
    CHECK(lzs_sampler_new(n_vocab, params, &s) == LZS_OK && s);
    return s;
}

static void test_parameters(void) {
    lzs_params p;
    lzs_params_init(&p);
    CHECK(p.size == sizeof p && lzs_params_invalid(&p, 1) == NULL);
#define REFUSED(field, value) \
    do { \
        lzs_params bad = p; \
        lzs_sampler *none = (lzs_sampler *)&bad; \
        bad.field = value; \
        const char *name = strncmp(#field, "n_", 2) ? #field : #field + 2; /* a set is named, not its length */ \
        CHECK(lzs_params_invalid(&bad, 8) && strcmp(lzs_params_invalid(&bad, 8), name) == 0); \
        CHECK(lzs_sampler_new(8, &bad, &none) == LZS_EINVAL && none == NULL); \
    } while (0)
    REFUSED(size, 0);
    REFUSED(size, sizeof p + 8);
    REFUSED(lz_penalty, -0.1f);
    REFUSED(lz_penalty, NAN);
    REFUSED(lz_penalty, INFINITY);
    REFUSED(lz_window, 1);
    REFUSED(lz_window, LZS_MAX_WINDOW + 1);
    REFUSED(lz_rule, -1);
    REFUSED(lz_rule, 2);
    REFUSED(lz_min_match, 0);
    REFUSED(lz_min_match, -5);
    REFUSED(lz_min_match, p.lz_window + 1);
    REFUSED(lz_run_penalty, -0.1f);
    REFUSED(lz_run_penalty, NAN);
    REFUSED(lz_run_penalty, INFINITY);
    REFUSED(lz_run_allowance, -1);
    REFUSED(lz_run_allowance, LZS_MAX_WINDOW + 1);
    REFUSED(lz_formula, -1);
    REFUSED(lz_formula, 3);
    p.lz_window = LZS_MAX_WINDOW;
    REFUSED(lz_min_match, 65536); /* lengths count to 65,535 */
    p.lz_min_match = 65535;
    p.lz_run_allowance = LZS_MAX_WINDOW;
    p.lz_buffer = 0; /* of the paper's rule, which is off */
    CHECK(lzs_params_invalid(&p, 8) == NULL);
    lzs_params_init(&p);
    p.lz_rule = LZS_RULE_PAPER;
    REFUSED(lz_buffer, 0);
    REFUSED(lz_buffer, p.lz_window);
    REFUSED(lz_formula, 3);
    REFUSED(lz_run_penalty, 0.1f); /* of the default rule */
    REFUSED(lz_run_penalty, NAN);
    REFUSED(n_lz_separators, 1);
    REFUSED(n_lz_commas, 1);
    p.lz_window = LZS_MAX_WINDOW;
    REFUSED(lz_buffer, LZS_MAX_BUFFER + 1);
    p.lz_min_match = 0; /* of the default rule, which is off */
    CHECK(lzs_params_invalid(&p, 8) == NULL);
    lzs_params_init(&p);
    REFUSED(repetition_penalty, 0.0f);
    REFUSED(repetition_penalty, -1.0f);
    REFUSED(repetition_penalty, NAN);
    REFUSED(repetition_penalty, INFINITY);
    REFUSED(frequency_penalty, NAN);
    REFUSED(frequency_penalty, -INFINITY);
    REFUSED(presence_penalty, NAN);
    REFUSED(repetition_method, 2);
    REFUSED(frequency_method, -1);
    REFUSED(presence_method, 2);
    REFUSED(sign_aware, 2);
    REFUSED(penalty_window, -1);
    REFUSED(history, 2);
    REFUSED(loop_max_pattern, -1);
    REFUSED(loop_max_pattern, LZS_MAX_WINDOW / 8 + 1);
    REFUSED(loop_max_pattern, INT32_MAX);
    REFUSED(loop_min_pattern, 0);
    REFUSED(loop_min_pattern, -1);
    REFUSED(loop_min_count, 1);
    REFUSED(loop_min_count, -2);
    p.loop_max_pattern = 40;
    REFUSED(loop_min_pattern, 41);
    REFUSED(loop_max_pattern, 16385);
    p.loop_max_pattern = LZS_MAX_WINDOW / 8;
    p.loop_min_pattern = LZS_MAX_WINDOW / 8;
    CHECK(lzs_params_invalid(&p, 8) == NULL);
    p.loop_max_pattern = 0;
    REFUSED(stuck_threshold, -1);
    REFUSED(stuck_threshold, LZS_MAX_WINDOW + 1);
    REFUSED(stuck_ngram, 0);
    REFUSED(stuck_ngram, 65);
    REFUSED(stuck_min_count, 1);
    REFUSED(stuck_weight, -1);
    REFUSED(stuck_weight, LZS_MAX_WINDOW + 1);
    REFUSED(stuck_window, 0);
    REFUSED(stuck_window, LZS_MAX_WINDOW + 1);
    REFUSED(temperature, -1.0f);
    REFUSED(temperature, 1e-7f);
    REFUSED(temperature, 2e6f);
    REFUSED(temperature, NAN);
    REFUSED(temperature_last, 2);
    REFUSED(top_k, -1);
    REFUSED(top_p, 1.1f);
    REFUSED(top_p, -0.1f);
    REFUSED(top_p, NAN);
    REFUSED(min_p, 1.1f);
    REFUSED(min_p, NAN);
    REFUSED(ties, 2);
    REFUSED(dry_multiplier, -1.0f);
    REFUSED(dry_multiplier, NAN);
    REFUSED(dry_base, 0.5f);
    REFUSED(dry_base, INFINITY);
    REFUSED(dry_allowed_length, -1);
    REFUSED(dry_penalty_last_n, -2);
    REFUSED(dry_penalty_last_n, LZS_MAX_WINDOW + 1);
#undef REFUSED
    int32_t exempt[] = {7, 8};
    p.exempt = exempt;
    p.n_exempt = 2;
    CHECK(strcmp(lzs_params_invalid(&p, 8), "exempt") == 0 && lzs_params_invalid(&p, 9) == NULL);
    exempt[0] = -1;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "exempt") == 0);
    p.exempt = NULL;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "exempt") == 0);
    p.n_exempt = 0;
    exempt[0] = 8;
    p.dry_breakers = exempt;
    p.n_dry_breakers = 1;
    CHECK(strcmp(lzs_params_invalid(&p, 8), "dry_breakers") == 0 && lzs_params_invalid(&p, 9) == NULL);
    p.dry_breakers = NULL;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "dry_breakers") == 0);
    p.n_dry_breakers = 0;
    const uint32_t words[2] = {0};
    const struct {
        const char *name;
        const uint32_t **words;
        size_t *n;
    } sets[] = {{"lz_separators", &p.lz_separators, &p.n_lz_separators}, {"lz_commas", &p.lz_commas, &p.n_lz_commas}};
    for (int i = 0; i < 2; i++) { /* a set has a bit for each token of the vocabulary, or no words at all */
        *sets[i].words = words;
        *sets[i].n = 1;
        CHECK(lzs_params_invalid(&p, 9) == NULL && lzs_params_invalid(&p, 32) == NULL);
        CHECK(strcmp(lzs_params_invalid(&p, 33), sets[i].name) == 0);
        *sets[i].n = 2;
        CHECK(lzs_params_invalid(&p, 33) == NULL && strcmp(lzs_params_invalid(&p, 32), sets[i].name) == 0);
        *sets[i].words = NULL;
        CHECK(strcmp(lzs_params_invalid(&p, 33), sets[i].name) == 0);
        *sets[i].n = 0;
        CHECK(lzs_params_invalid(&p, 33) == NULL);
    }
    lzs_logit_bias bias[] = {{8, 1.0f}, {2, -INFINITY}};
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    CHECK(strcmp(lzs_params_invalid(&p, 8), "logit_bias") == 0 && lzs_params_invalid(&p, 9) == NULL);
    bias[0].bias = INFINITY;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "logit_bias") == 0);
    bias[0].bias = NAN;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "logit_bias") == 0);
    bias[0] = (lzs_logit_bias){2, 1.0f}; /* one token twice, once forbidden */
    lzs_sampler *none;
    size_t n_edits;
    CHECK(lzs_sampler_new(9, &p, &none) == LZS_OK);
    CHECK(lzs_edits(none, &n_edits)[0].bias == -INFINITY && n_edits == 1);
    lzs_sampler_free(none);
    bias[1].bias = -FLT_MAX;
    bias[0].bias = -FLT_MAX;
    CHECK(lzs_sampler_new(9, &p, &none) == LZS_OK);
    CHECK(lzs_edits(none, &n_edits)[0].bias == -FLT_MAX && n_edits == 1);
    lzs_sampler_free(none);
    CHECK(strcmp(lzs_params_invalid(&p, 0), "n_vocab") == 0 && strcmp(lzs_params_invalid(&p, -1), "n_vocab") == 0);
    p.logit_bias = NULL;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "logit_bias") == 0);
    p.n_logit_bias = 0;
    p.frequency_method = LZS_MULTIPLICATIVE;
    CHECK(lzs_params_invalid(&p, 9) == NULL); /* 0 is off */
    p.frequency_penalty = -0.5f;
    CHECK(strcmp(lzs_params_invalid(&p, 9), "frequency_penalty") == 0);
    lzs_params_init(&p);
    p.repetition_method = LZS_SUBTRACTIVE;
    p.repetition_penalty = -1.0f;
    CHECK(lzs_params_invalid(&p, 9) == NULL);
    CHECK(lzs_sampler_new(0, &p, &none) == LZS_EINVAL && none == NULL);
    CHECK(lzs_sampler_new(-5, &p, &none) == LZS_EINVAL);
    CHECK(lzs_sampler_new(LZS_MAX_VOCAB + 1, &p, &none) == LZS_EINVAL && none == NULL);
    CHECK(lzs_sampler_new(INT32_MAX, &p, &none) == LZS_EINVAL && none == NULL);
}

static void test_texts(void) {
    CHECK(strcmp(lzs_version(), "0.1.0") == 0);
    for (int a = LZS_EBUSY; a <= 0; a++) {
        for (int b = LZS_EBUSY - 1; b < a; b++) CHECK(strcmp(lzs_strerror(a), lzs_strerror(b)) != 0);
    }
    CHECK(strcmp(lzs_strerror(LZS_EBUSY - 1), lzs_strerror(12345)) == 0);
}

static void test_life(void) {
    lzs_params p;
    lzs_params_init(&p);
    p.repetition_penalty = 2.0f;
    p.history = LZS_HISTORY_ALL;
    lzs_sampler *s = new_sampler(8, &p), *clone;
    static const int32_t prompt[] = {1, 2}, bad[] = {3, 8};
    size_t n;
    CHECK(lzs_n_vocab(s) == 8 && lzs_position(s) == 0);
    CHECK(lzs_prime(s, prompt, 2) == LZS_OK && lzs_prime(s, NULL, 0) == LZS_OK);
    CHECK(lzs_prime(s, NULL, 1) == LZS_EINVAL && lzs_prime(s, bad, 2) == LZS_EINVAL);
    lzs_edits(s, &n);
    CHECK(n == 2 && lzs_position(s) == 0); /* nothing of the bad prompt was taken */
    CHECK(lzs_rewind(s, 1) == LZS_EINVAL); /* the prompt stays */
    CHECK(lzs_accept(s, 5) == LZS_OK && lzs_accept(s, 8) == LZS_EINVAL && lzs_accept(s, -1) == LZS_EINVAL);
    CHECK(lzs_position(s) == 1 && lzs_prime(s, prompt, 2) == LZS_EINVAL);

    uint32_t words[] = {0xffffffffu};
    CHECK(lzs_set_mask(s, LZS_MASK_USER, words, 2) == LZS_EINVAL && lzs_set_mask(s, LZS_MASK_USER, words, 0) == LZS_EINVAL);
    words[0] = 1u << 6;
    CHECK(lzs_set_mask(s, LZS_MASK_USER, words, 1) == LZS_OK);
    words[0] = 0; /* copied */
    CHECK(lzs_sampler_clone(s, &clone) == LZS_OK);
    CHECK(lzs_accept(clone, 6) == LZS_OK && lzs_position(clone) == 2 && lzs_position(s) == 1);
    lzs_edits(clone, &n);
    CHECK(n == 4);
    lzs_edits(s, &n);
    CHECK(n == 3);
    float logits[8] = {0};
    int32_t token;
    CHECK(lzs_sample(clone, logits, &token) == LZS_OK && token == 6);
    lzs_sampler_free(clone);

    CHECK(lzs_rewind(s, 2) == LZS_EINVAL && lzs_position(s) == 1);
    CHECK(lzs_rewind(s, 1) == LZS_OK && lzs_position(s) == 0 && lzs_prime(s, prompt, 2) == LZS_OK);
    lzs_sampler_reset(s);
    lzs_edits(s, &n);
    CHECK(n == 0 && lzs_position(s) == 0 && lzs_rewind(s, 0) == LZS_OK);
    int seen = 0;
    for (int i = 0; i < 200; i++) {
        CHECK(lzs_sample(s, logits, &token) == LZS_OK && lzs_accept(s, token) == LZS_OK);
        seen |= 1 << token;
    }
    CHECK(seen == 0xff); /* and no mask is left */
    lzs_sampler_free(s);
    lzs_sampler_free(NULL);
}

static void test_pipeline(void) {
    lzs_params p;
    lzs_params_init(&p);
    p.temperature = 0.5f;
    p.top_k = 3;
    p.repetition_penalty = 2.0f;
    lzs_sampler *s = new_sampler(5, &p);
    CHECK(lzs_accept(s, 0) == LZS_OK);
    float logits[5] = {4.0f, 1.0f, 3.0f, -INFINITY, 2.0f};
    const float before[5] = {4.0f, 1.0f, 3.0f, -INFINITY, 2.0f}, after[5] = {4.0f, -INFINITY, 6.0f, -INFINITY, 4.0f};
    int32_t ids[5], token;
    float probabilities[5];
    size_t n;
    CHECK(lzs_distribution(s, logits, ids, probabilities, 5, &n) == LZS_OK && n == 3);
    CHECK(ids[0] == 0 && ids[1] == 2 && ids[2] == 4);
    double sum = 2.0 * exp(4.0) + exp(6.0);
    CHECK(fabs(probabilities[0] - exp(4.0) / sum) < 1e-6 && fabs(probabilities[1] - exp(6.0) / sum) < 1e-6);
    CHECK(probabilities[2] == probabilities[0]);
    CHECK(lzs_distribution(s, logits, ids, probabilities, 2, &n) == LZS_ESPACE && n == 3);
    CHECK(lzs_sample(s, logits, &token) == LZS_OK && (token == 0 || token == 2 || token == 4));
    CHECK(memcmp(logits, before, sizeof logits) == 0);
    float out[5];
    CHECK(lzs_process(s, logits, out) == LZS_OK && memcmp(out, after, sizeof out) == 0);
    CHECK(memcmp(logits, before, sizeof logits) == 0);
    CHECK(lzs_process(s, logits, logits) == LZS_OK && memcmp(logits, after, sizeof logits) == 0);
    lzs_sampler_free(s);
}

static void test_refusals(void) {
    static const float nan_row[4] = {1.0f, -0.0f, NAN, -INFINITY};
    static const float empty_row[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    for (int greedy = 0; greedy < 2; greedy++) {
        lzs_params p;
        lzs_params_init(&p);
        p.temperature = greedy ? 0.0f : 1.0f;
        p.presence_penalty = 1.0f;
        lzs_sampler *s = new_sampler(4, &p);
        for (int32_t t = 0; t < 4; t++) CHECK(lzs_accept(s, t) == LZS_OK);
        for (int row = 0; row < 2; row++) {
            const float *x = row ? empty_row : nan_row;
            lzs_status expected = row ? LZS_EMASKED : LZS_ENAN;
            float logits[4], probabilities[4];
            int32_t ids[4], token = 7;
            size_t n = 7;
            memcpy(logits, x, sizeof logits);
            CHECK(lzs_sample(s, logits, &token) == expected && token == -1);
            CHECK(lzs_process(s, logits, logits) == expected);
            CHECK(lzs_distribution(s, logits, ids, probabilities, 4, &n) == expected && n == 0);
            CHECK(memcmp(logits, x, sizeof logits) == 0);
        }
        uint32_t mask = 1u << 0 | 1u << 3; /* a NaN that is not allowed does not matter */
        float logits[4];
        int32_t token;
        memcpy(logits, nan_row, sizeof logits);
        CHECK(lzs_set_mask(s, LZS_MASK_USER, &mask, 1) == LZS_OK && lzs_sample(s, logits, &token) == LZS_OK && token == 0);
        mask = 0xfffffff0u; /* bits past the vocabulary are no tokens */
        CHECK(lzs_set_mask(s, LZS_MASK_USER, &mask, 1) == LZS_OK && lzs_sample(s, logits, &token) == LZS_EMASKED);
        mask = 1u << 3;
        CHECK(lzs_set_mask(s, LZS_MASK_USER, &mask, 1) == LZS_OK && lzs_sample(s, logits, &token) == LZS_EMASKED);
        CHECK(memcmp(logits, nan_row, sizeof logits) == 0);
        CHECK(lzs_set_mask(s, LZS_MASK_USER, NULL, 0) == LZS_OK && lzs_sample(s, logits, &token) == LZS_ENAN);
        lzs_sampler_free(s);
    }
}

/* Hand-worked: 5 6 and 7 are literals of 1 + log2 64 bits, 5 6 7 a phrase of 3 from 3 back, 5 6 7 5 one of 4, from 3 back. */
static void test_code_length(void) {
    const int32_t tokens[] = {5, 6, 7, 5, 6, 7, 5, 6, 7, 5};
    const double by_four = 3 * 7 + (1 + 2 + log2(3)) + (1 + log2(3) + log2(3));
    double bits;
    CHECK(lzs_code_length(tokens, 10, 64, 512, 4, &bits) == LZS_OK && fabs(bits - by_four) < 1e-5);
    CHECK(lzs_code_length(tokens, 10, 64, 512, 32, &bits) == LZS_OK && fabs(bits - (21 + 1 + log2(7) + log2(3))) < 1e-5);
    CHECK(lzs_code_length(tokens, 10, 64, 2, 32, &bits) == LZS_OK && fabs(bits - 70) < 1e-5); /* nothing is that near */
    CHECK(lzs_code_length(NULL, 0, 64, 512, 32, &bits) == LZS_OK && bits == 0);
    CHECK(lzs_code_length(NULL, 1, 64, 512, 32, &bits) == LZS_EINVAL);
    CHECK(lzs_code_length(tokens, 10, 7, 512, 32, &bits) == LZS_EINVAL);
    CHECK(lzs_code_length(tokens, 10, 64, 0, 32, &bits) == LZS_EINVAL);
    CHECK(lzs_code_length(tokens, 10, 64, 512, 0, &bits) == LZS_EINVAL);
    CHECK(lzs_code_length(tokens, 10, 64, 512, 32, NULL) == LZS_EINVAL);
}

static void test_lz_bits_arguments(void) {
    static const int32_t history[] = {0, 1, 0, 9};
    int32_t tokens[4];
    float bits[4];
    size_t n;
    CHECK(lzs_lz_bits(history, 4, 9, 8, 2, 0, tokens, bits, 4, &n) == LZS_EINVAL && n == 0);
    CHECK(lzs_lz_bits(history, 3, 9, 8, 2, 0, tokens, bits, 4, &n) == LZS_OK);
    CHECK(lzs_lz_bits(history, 3, 0, 8, 2, 0, tokens, bits, 4, &n) == LZS_EINVAL);
    CHECK(lzs_lz_bits(history, 3, 9, 8, 8, 0, tokens, bits, 4, &n) == LZS_EINVAL);
    CHECK(lzs_lz_bits(history, 3, 9, 1, 1, 0, tokens, bits, 4, &n) == LZS_EINVAL);
    CHECK(lzs_lz_bits(history, 3, 9, 8, 2, 3, tokens, bits, 4, &n) == LZS_EINVAL);
    CHECK(lzs_lz_bits(NULL, 3, 9, 8, 2, 0, tokens, bits, 4, &n) == LZS_EINVAL);
}

int main(void) {
    test_parameters();
    test_texts();
    test_life();
    test_pipeline();
    test_refusals();
    test_lz_bits_arguments();
    test_code_length();
    return 0;
}
