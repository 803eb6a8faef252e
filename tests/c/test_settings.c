/* test_settings.c - settings that change between steps, seeds, copies, structs of programs that were compiled with another
 * header, and samplers that are full. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "penalty/params.h"
#include "sampler.h"

enum { N_VOCAB = 400 };

static const int32_t exempt[] = {5, 1}, breakers[] = {7, 3};
static const lzs_logit_bias bias[] = {{9, -INFINITY}, {2, 1.5f}};

static const uint32_t separators[(N_VOCAB + 31) / 32] = {0x82}, commas[(N_VOCAB + 31) / 32] = {0x11};

static lzs_params everything_on(void) {
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.15f;
    p.lz_window = 64;
    p.lz_min_match = 3;
    p.lz_run_penalty = 0.1f;
    p.lz_run_allowance = 2;
    p.lz_separators = separators;
    p.lz_commas = commas;
    p.n_lz_separators = p.n_lz_commas = (N_VOCAB + 31) / 32;
    p.repetition_penalty = 1.1f;
    p.frequency_penalty = 0.1f;
    p.history = LZS_HISTORY_ALL;
    p.loop_max_pattern = 9;
    p.loop_min_pattern = 1;
    p.loop_min_count = 3;
    p.stuck_threshold = 20;
    p.stuck_ngram = 1;
    p.stuck_min_count = 2;
    p.stuck_weight = 1;
    p.stuck_window = 100;
    p.dry_multiplier = 0.8f;
    p.dry_penalty_last_n = 100;
    p.exempt = exempt;
    p.n_exempt = 2;
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    p.dry_breakers = breakers;
    p.n_dry_breakers = 2;
    p.seed = 1;
    return p;
}

/* The same with the paper's rule. */
static lzs_params by_the_paper(void) {
    lzs_params p = everything_on();
    p.lz_rule = LZS_RULE_PAPER;
    p.lz_buffer = 8;
    p.lz_run_penalty = 0.0f;
    p.n_lz_separators = p.n_lz_commas = 0;
    return p;
}

static lzs_sampler *sampler_of(const lzs_params *p) {
    lzs_sampler *s;
    CHECK(lzs_sampler_new(N_VOCAB, p, &s) == LZS_OK);
    return s;
}

static void feed(lzs_sampler *s, int n, uint64_t seed) {
    uint64_t state = seed;
    for (int i = 0; i < n; i++) CHECK(lzs_accept(s, random_below(&state, 12)) == LZS_OK);
}

static int by_token(const void *a, const void *b) {
    const lzs_edit *x = a, *y = b;
    return (x->token > y->token) - (x->token < y->token);
}

static bool same_edits(lzs_sampler *a, lzs_sampler *b) {
    static lzs_edit x[N_VOCAB], y[N_VOCAB];
    size_t n, m;
    const lzs_edit *edits = lzs_edits(a, &n);
    memcpy(x, edits, n * sizeof *x);
    edits = lzs_edits(b, &m);
    memcpy(y, edits, m * sizeof *y);
    qsort(x, n, sizeof *x, by_token);
    qsort(y, m, sizeof *y, by_token);
    return n == m && memcmp(x, y, n * sizeof *x) == 0;
}

static const float *random_row(uint64_t seed) {
    static float row[N_VOCAB];
    uint64_t state = seed;
    for (int i = 0; i < N_VOCAB; i++) row[i] = (float)(6.0 * random_unit(&state));
    return row;
}

/* That two samplers act alike from here on: the same edits and the same tokens. */
static void check_alike(lzs_sampler *a, lzs_sampler *b) {
    CHECK(lzs_position(a) == lzs_position(b) && same_edits(a, b));
    for (uint64_t i = 0; i < 60; i++) {
        int32_t x = -2, y = -3;
        lzs_loop l = {7, 7, 7}, m = {7, 7, 7};
        lzs_stuck stuck = {7, 7}, too = {7, 7};
        CHECK(lzs_sample(a, random_row(i), &x) == LZS_OK && lzs_sample(b, random_row(i), &y) == LZS_OK && x == y);
        CHECK(lzs_accept(a, x) == LZS_OK && lzs_accept(b, y) == LZS_OK);
        if (i % 9 == 8) CHECK(lzs_rewind(a, 4) == LZS_OK && lzs_rewind(b, 4) == LZS_OK);
        CHECK(lzs_loop_found(a, &l) == lzs_loop_found(b, &m));
        CHECK(l.start == m.start && l.period == m.period && l.count == m.count);
        CHECK(lzs_stuck_found(a, &stuck) == lzs_stuck_found(b, &too) && stuck.start == too.start && stuck.end == too.end);
    }
    CHECK(same_edits(a, b));
}

/* Settings that may change, changed in the middle of a text: the sampler is one that had them from the start. */
static void test_changes_between_steps(void) {
    for (int change = 0; change < 23; change++) {
        const bool paper = change >= 5 && change <= 7;
        lzs_params first = paper ? by_the_paper() : everything_on(), then;
        then = first;
        switch (change) {
        case 0: then.temperature = 0.3f; break;
        case 1: then.temperature = 0.0f; break;
        case 2: then.top_k = 3; break;
        case 3: then.top_p = 0.2f; break;
        case 4: then.min_p = 0.9f; break;
        case 5: then.lz_penalty = 2.0f; break;
        case 6: then.lz_formula = LZS_LZ_DISTANCE; break;
        case 7: then.lz_formula = LZS_LZ_CODELENGTH; break;
        case 8: then.seed = 99; break;
        case 9: then.repetition_penalty = 2.0f; break;
        case 10: then.frequency_penalty = 0.0f; break;
        case 11: then.presence_penalty = 1.0f; break;
        case 12: then.frequency_method = LZS_MULTIPLICATIVE; break;
        case 13: then.dry_multiplier = 3.0f; break;
        case 14: then.dry_base = 1.0f; break;
        case 15: then.dry_allowed_length = 0; break;
        case 16: then.temperature_last = 1, then.top_k = 50, then.temperature = 2.0f; break;
        case 17: then.lz_penalty = 2.0f; break;
        case 18: then.lz_penalty = 0.0f; break; /* the runs stay on */
        case 19: then.lz_run_penalty = 0.0f; break;
        case 20: then.lz_run_penalty = 3.0f; break;
        case 21: then.lz_run_allowance = 9; break;
        default: then.ties = LZS_TIES_KEEP, then.sign_aware = 0, then.top_k = 5; break;
        }
        lzs_sampler *changed = sampler_of(&first), *fresh = sampler_of(&then);
        size_t n;
        feed(changed, 90, 1);
        lzs_edits(changed, &n); /* edits that were made already must not stay */
        feed(fresh, 90, 1);
        CHECK(lzs_sampler_set_params(changed, &then) == LZS_OK);
        check_alike(changed, fresh);
        CHECK(memcmp(&changed->params.temperature, &then.temperature, sizeof(float)) == 0);
        lzs_sampler_free(changed);
        lzs_sampler_free(fresh);
    }
}

static void test_fixed_fields(void) {
    lzs_params p = everything_on();
    lzs_sampler *s = sampler_of(&p), *same = sampler_of(&p);
    feed(s, 50, 2);
    feed(same, 50, 2);
#define FIXED(field, value) \
    do { \
        lzs_params other = p; \
        other.field = value; \
        other.temperature = 0.01f; \
        CHECK(lzs_params_invalid(&other, N_VOCAB) == NULL); \
        CHECK(lzs_sampler_set_params(s, &other) == LZS_EINVAL); \
    } while (0)
    FIXED(lz_window, 65);
    FIXED(lz_buffer, 9);
    FIXED(lz_min_match, 2);
    FIXED(penalty_window, 5);
    FIXED(history, LZS_HISTORY_GENERATED);
    FIXED(loop_max_pattern, 0);
    FIXED(loop_min_pattern, 2);
    FIXED(loop_min_count, 4);
    FIXED(dry_multiplier, 0.0f);
    FIXED(dry_penalty_last_n, 101);
    FIXED(stuck_threshold, 0);
    FIXED(stuck_ngram, 2);
    FIXED(stuck_min_count, 3);
    FIXED(stuck_weight, 2);
    FIXED(stuck_window, 101);
#undef FIXED
    lzs_params off = p; /* all three counting penalties off at once */
    off.repetition_penalty = 1.0f;
    off.frequency_penalty = 0.0f;
    CHECK(lzs_sampler_set_params(s, &off) == LZS_EINVAL);
    off = p; /* and all of LZ */
    off.lz_penalty = off.lz_run_penalty = 0.0f;
    CHECK(lzs_sampler_set_params(s, &off) == LZS_EINVAL);
    off = by_the_paper();
    CHECK(lzs_sampler_set_params(s, &off) == LZS_EINVAL);
    lzs_params bad = p; /* and what is out of range */
    bad.top_p = 2.0f;
    CHECK(lzs_sampler_set_params(s, &bad) == LZS_EINVAL);
    bad = p;
    bad.size = 8;
    CHECK(lzs_sampler_set_params(s, &bad) == LZS_EINVAL);
    lzs_params arrays = p; /* arrays are not looked at */
    arrays.exempt = NULL;
    arrays.n_dry_breakers = 1000000;
    arrays.n_lz_separators = arrays.n_lz_commas = 3;
    arrays.lz_separators = NULL;
    arrays.logit_bias = NULL;
    CHECK(lzs_sampler_set_params(s, &arrays) == LZS_OK);
    check_alike(s, same); /* nothing was changed */
    lzs_sampler_free(s);
    lzs_sampler_free(same);
}

/* Biases of one token add up to the same number, whatever their order, though sums of floats depend on it. */
static void test_biases_in_any_order(void) {
    static const float addends[] = {3e7f, 1.0f, 1.0f, -3e7f, 0.25f};
    uint64_t state = 5;
    uint32_t expected = 0;
    for (int r = 0; r < 50; r++) {
        lzs_logit_bias list[5];
        for (int i = 0; i < 5; i++) list[i] = (lzs_logit_bias){r % 2 ? 8 : 300, addends[i]};
        for (int i = 4; i > 0 && r > 1; i--) {
            int32_t k = random_below(&state, i + 1);
            lzs_logit_bias other = list[k];
            list[k] = list[i];
            list[i] = other;
        }
        lzs_params p;
        lzs_params_init(&p);
        p.logit_bias = list;
        p.n_logit_bias = 5;
        lzs_sampler *s = sampler_of(&p);
        size_t n;
        uint32_t bits;
        const lzs_edit *edits = lzs_edits(s, &n);
        CHECK(n == 1);
        memcpy(&bits, &edits->bias, sizeof bits);
        if (r == 0) expected = bits;
        CHECK(bits == expected);
        lzs_sampler_free(s);
    }
}

/* Samplers cloned from one prefix draw the same tokens with one seed, and others with seeds of their own. */
static void test_seeds(void) {
    lzs_params p = everything_on();
    lzs_sampler *s = sampler_of(&p), *clones[4];
    feed(s, 40, 3);
    for (int i = 0; i < 4; i++) {
        CHECK(lzs_sampler_clone(s, &clones[i]) == LZS_OK);
        if (i) lzs_sampler_set_seed(clones[i], lzs_sequence_seed(1, i < 3 ? (uint64_t)i : 2)); /* 1, 2 and 2 again */
    }
    int differ[4] = {0};
    for (uint64_t i = 0; i < 100; i++) {
        int32_t tokens[4], own;
        CHECK(lzs_sample(s, random_row(i), &own) == LZS_OK && lzs_accept(s, own) == LZS_OK);
        for (int c = 0; c < 4; c++) {
            CHECK(lzs_sample(clones[c], random_row(i), &tokens[c]) == LZS_OK);
            differ[c] += tokens[c] != own;
            CHECK(lzs_accept(clones[c], tokens[c]) == LZS_OK);
        }
        CHECK(tokens[2] == tokens[3]);
        differ[3] -= tokens[3] != tokens[1];
    }
    CHECK(differ[0] == 0 && differ[1] > 80 && differ[2] > 80 && differ[3] < 20);
    CHECK(clones[1]->params.seed == lzs_sequence_seed(1, 1) && s->params.seed == 1);
    lzs_sampler_set_seed(clones[1], 1); /* back to the seed of the origin, at the same position */
    CHECK(lzs_sampler_copy(clones[2], clones[1]) == LZS_OK);
    lzs_sampler_reset(clones[1]);
    lzs_sampler_reset(s);
    check_alike(clones[1], s);
    for (int i = 0; i < 4; i++) lzs_sampler_free(clones[i]);
    lzs_sampler_free(s);
}

/* The seeds of sequences are part of what docs/determinism.md fixes: these are the values of
 * tests/vectors/determinism.json. */
static void test_sequence_seeds(void) {
    static const struct {
        uint64_t seed, sequence, sequence_seed;
    } known[] = {
        {UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000000), UINT64_C(0xf255efad1c9548b6)},
        {UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000001), UINT64_C(0xcfd8837627ecf881)},
        {UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000002), UINT64_C(0x77804d9480cec504)},
        {UINT64_C(0x0000000000000000), UINT64_C(0x0000000100000000), UINT64_C(0x254cbc3f29241c0b)},
        {UINT64_C(0x0000000000000000), UINT64_C(0xffffffffffffffff), UINT64_C(0x7b9e496a22792835)},
        {UINT64_C(0x0000000000000001), UINT64_C(0x0000000000000000), UINT64_C(0xfa92ceb94fd2e5f4)},
        {UINT64_C(0x0000000000000001), UINT64_C(0x0000000000000001), UINT64_C(0x88fcc725327be9a5)},
        {UINT64_C(0x0000000000000001), UINT64_C(0x0000000000000002), UINT64_C(0x9ed2175b95c8c029)},
        {UINT64_C(0x0000000000000001), UINT64_C(0x0000000100000000), UINT64_C(0xefb81daffbfe7084)},
        {UINT64_C(0x0000000000000001), UINT64_C(0xffffffffffffffff), UINT64_C(0x766fbccfded8681a)},
        {UINT64_C(0x000000000000002a), UINT64_C(0x0000000000000000), UINT64_C(0xdfc1415655f2d2ae)},
        {UINT64_C(0x000000000000002a), UINT64_C(0x0000000000000001), UINT64_C(0xefdbc1715ee946bd)},
        {UINT64_C(0x000000000000002a), UINT64_C(0x0000000000000002), UINT64_C(0x165ed7d65f1fee84)},
        {UINT64_C(0x000000000000002a), UINT64_C(0x0000000100000000), UINT64_C(0x018b907d5168bd48)},
        {UINT64_C(0x000000000000002a), UINT64_C(0xffffffffffffffff), UINT64_C(0x36d5619084d2bfb4)},
        {UINT64_C(0x0000000100000000), UINT64_C(0x0000000000000000), UINT64_C(0xdd4ff1289c1bcbf9)},
        {UINT64_C(0x0000000100000000), UINT64_C(0x0000000000000001), UINT64_C(0x6563a15c22c0bbc8)},
        {UINT64_C(0x0000000100000000), UINT64_C(0x0000000000000002), UINT64_C(0x7fe3cbdfd29be448)},
        {UINT64_C(0x0000000100000000), UINT64_C(0x0000000100000000), UINT64_C(0x86242ff96a9a907e)},
        {UINT64_C(0x0000000100000000), UINT64_C(0xffffffffffffffff), UINT64_C(0xaecbd5f3deeae360)},
        {UINT64_C(0x0123456789abcdef), UINT64_C(0x0000000000000000), UINT64_C(0x745dcd153904b88f)},
        {UINT64_C(0x0123456789abcdef), UINT64_C(0x0000000000000001), UINT64_C(0x350306685ab78251)},
        {UINT64_C(0x0123456789abcdef), UINT64_C(0x0000000000000002), UINT64_C(0xb243cd9241d66dee)},
        {UINT64_C(0x0123456789abcdef), UINT64_C(0x0000000100000000), UINT64_C(0x0835d6f792d3c3f1)},
        {UINT64_C(0x0123456789abcdef), UINT64_C(0xffffffffffffffff), UINT64_C(0xc4966b50c75c7595)},
        {UINT64_C(0xffffffffffffffff), UINT64_C(0x0000000000000000), UINT64_C(0xaed521b37525aea6)},
        {UINT64_C(0xffffffffffffffff), UINT64_C(0x0000000000000001), UINT64_C(0xe85c9fa6719fc639)},
        {UINT64_C(0xffffffffffffffff), UINT64_C(0x0000000000000002), UINT64_C(0xa98d4fb3069056a6)},
        {UINT64_C(0xffffffffffffffff), UINT64_C(0x0000000100000000), UINT64_C(0x13c35c2e8c44784f)},
        {UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff), UINT64_C(0x681dd427539ac8c4)},
    };
    static uint64_t seeds[2500];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK(lzs_sequence_seed(known[i].seed, known[i].sequence) == known[i].sequence_seed);
    }
    for (uint64_t i = 0; i < 2500; i++) { /* no two of them are equal */
        seeds[i] = lzs_sequence_seed(i / 50, i % 50);
        for (uint64_t k = 0; k < i; k++) CHECK(seeds[k] != seeds[i]);
    }
}

/* lzs_sampler_copy makes what lzs_sampler_clone makes, whatever the target did before. */
static void test_copy(void) {
    uint64_t state = 4;
    lzs_params p = everything_on();
    for (int r = 0; r < 40; r++) {
        lzs_sampler *from = sampler_of(&p), *to = sampler_of(&p), *clone;
        int32_t prompt[30] = {0};
        uint32_t mask[(N_VOCAB + 31) / 32];
        memset(mask, 0xfe, sizeof mask);
        CHECK(lzs_prime(from, prompt, (size_t)random_below(&state, 30)) == LZS_OK);
        feed(from, random_below(&state, 200), 5);
        feed(to, random_below(&state, 200), 6);
        if (r % 2) CHECK(lzs_set_mask(from, LZS_MASK_USER, mask, sizeof mask / 4) == LZS_OK);
        if (r % 3) CHECK(lzs_set_mask(to, LZS_MASK_GRAMMAR, mask, sizeof mask / 4) == LZS_OK);
        lzs_params changed = p;
        changed.temperature = 0.5f;
        changed.seed = 77;
        changed.lz_penalty = 0.7f;
        if (r % 4) CHECK(lzs_sampler_set_params(from, &changed) == LZS_OK);
        CHECK(lzs_sampler_clone(from, &clone) == LZS_OK);
        CHECK(lzs_sampler_copy(to, from) == LZS_OK && lzs_sampler_copy(from, from) == LZS_OK);
        CHECK(to->params.seed == from->params.seed);
        check_alike(to, clone);
        CHECK(lzs_sampler_copy(to, from) == LZS_OK); /* again, over what is there now */
        check_alike(to, from);
        lzs_sampler_free(from);
        lzs_sampler_free(to);
        lzs_sampler_free(clone);
    }
}

/* Samplers that differ in anything fixed, the lists of tokens included, are not copies of each other. */
static void test_copy_refuses(void) {
    static const int32_t other_tokens[] = {5, 2};
    static const lzs_logit_bias other_bias[] = {{9, -INFINITY}, {2, 1.25f}};
    static const uint32_t other_set[(N_VOCAB + 31) / 32] = {0x82, 1};
    lzs_params p = everything_on();
    lzs_sampler *from = sampler_of(&p), *to;
    feed(from, 30, 7);
    for (int i = 0; i < 11; i++) {
        lzs_params q = p;
        int32_t n_vocab = N_VOCAB;
        switch (i) {
        case 0: q.lz_window = 65; break;
        case 1: q.exempt = other_tokens; break;
        case 2: q.n_exempt = 1; break;
        case 3: q.dry_breakers = other_tokens; break;
        case 4: q.n_dry_breakers = 0; break;
        case 5: q.logit_bias = other_bias; break;
        case 6: q.n_logit_bias = 0; break;
        case 7: q.lz_separators = other_set; break;
        case 8: q.lz_commas = other_set; break;
        case 9: q.n_lz_commas = 0; break;
        default: n_vocab++; break;
        }
        CHECK(lzs_sampler_new(n_vocab, &q, &to) == LZS_OK);
        feed(to, 3, 8);
        CHECK(lzs_sampler_copy(to, from) == LZS_EINVAL && lzs_position(to) == 3);
        lzs_sampler_free(to);
    }
    static const int32_t same_tokens[] = {1, 5}; /* the order of a list does not matter */
    lzs_params q = p;
    q.exempt = same_tokens;
    CHECK(lzs_sampler_new(N_VOCAB, &q, &to) == LZS_OK && lzs_sampler_copy(to, from) == LZS_OK);
    check_alike(to, from);
    lzs_sampler_free(to);
    lzs_sampler_free(from);
}

/* Each fixed number has its name. */
static void test_fixed(void) {
    lzs_params p = everything_on();
    CHECK(lzs_params_fixed(&p, &p) == NULL);
#define FIXED(field, value) \
    do { \
        lzs_params other = p; \
        other.field = value; \
        CHECK(lzs_params_fixed(&p, &other) && strcmp(lzs_params_fixed(&p, &other), #field) == 0); \
        CHECK(strcmp(lzs_params_fixed(&other, &p), #field) == 0); \
    } while (0)
    FIXED(lz_rule, LZS_RULE_PAPER);
    FIXED(lz_window, p.lz_window + 1);
    FIXED(lz_min_match, p.lz_min_match + 1);
    FIXED(lz_buffer, p.lz_buffer + 1);
    FIXED(penalty_window, p.penalty_window + 1);
    FIXED(history, !p.history);
    FIXED(loop_max_pattern, p.loop_max_pattern + 1);
    FIXED(loop_min_pattern, p.loop_min_pattern + 1);
    FIXED(loop_min_count, p.loop_min_count + 1);
    FIXED(dry_multiplier, 0.0f);
    FIXED(dry_penalty_last_n, 77);
    FIXED(stuck_threshold, p.stuck_threshold + 1);
    FIXED(stuck_ngram, p.stuck_ngram + 1);
    FIXED(stuck_min_count, p.stuck_min_count + 1);
    FIXED(stuck_weight, p.stuck_weight + 1);
    FIXED(stuck_window, p.stuck_window + 1);
    FIXED(size, 3);
    p.lz_run_penalty = 0.0f; /* one of the two is on */
    FIXED(lz_penalty, 0.0f);
    p.lz_run_penalty = p.lz_penalty;
    p.lz_penalty = 0.0f;
    FIXED(lz_run_penalty, 0.0f);
    p = by_the_paper();
    FIXED(lz_penalty, 0.0f);
    FIXED(lz_buffer, p.lz_buffer + 1);
    FIXED(lz_window, p.lz_window + 1);
    p = everything_on();
#undef FIXED
    lzs_params off = p;
    off.repetition_penalty = 1.0f;
    off.repetition_method = LZS_MULTIPLICATIVE;
    off.frequency_penalty = off.presence_penalty = 0.0f;
    CHECK(strcmp(lzs_params_fixed(&p, &off), "repetition_penalty") == 0);
    p.temperature = 0.25f; /* may change */
    p.lz_penalty *= 2.0f;
    p.lz_run_penalty = 0.0f;
    p.lz_run_allowance++;
    p.seed++;
    off = everything_on();
    CHECK(lzs_params_fixed(&p, &off) == NULL);
}

/* A program that was compiled with the header of the first interface gets the defaults of what came later. */
static void test_smaller_structs(void) {
    lzs_params p = everything_on(), whole = p;
    p.size = offsetof(lzs_params, logit_bias);
    whole.n_logit_bias = 0;
    whole.dry_multiplier = 0.0f;
    whole.n_dry_breakers = 0;
    whole.stuck_threshold = 0;
    CHECK(lzs_params_invalid(&p, N_VOCAB) == NULL);
    p.dry_base = NAN; /* not looked at */
    p.n_logit_bias = 1000;
    CHECK(lzs_params_invalid(&p, N_VOCAB) == NULL);
    lzs_sampler *old = sampler_of(&p), *expected = sampler_of(&whole);
    CHECK(old->params.dry_base == 1.75f && old->params.n_logit_bias == 0);
    struct { /* what such a program has behind its struct stays as it is */
        unsigned char first[offsetof(lzs_params, logit_bias)], behind[256];
    } small;
    memset(&small, 0x5a, sizeof small);
    lzs_params_init_size((lzs_params *)(void *)&small, sizeof small.first);
    CHECK(lzs_sampler_params(old, (lzs_params *)(void *)&small) == LZS_OK);
    CHECK(((lzs_params *)(void *)&small)->size == sizeof small.first);
    CHECK(((lzs_params *)(void *)&small)->lz_window == old->params.lz_window);
    for (size_t i = 0; i < sizeof small.behind; i++) CHECK(small.behind[i] == 0x5a);
    CHECK(lzs_sampler_set_params(old, (lzs_params *)(void *)&small) == LZS_OK);
    lzs_params newer = {.size = sizeof newer + 8};
    CHECK(lzs_sampler_params(old, &newer) == LZS_EINVAL);
    CHECK(lzs_edits_max(&p, N_VOCAB) == lzs_edits_max(&whole, N_VOCAB));
    feed(old, 30, 9);
    feed(expected, 30, 9);
    check_alike(old, expected);
    lzs_sampler_free(expected);
    p.n_logit_bias = p.n_dry_breakers = 0;
    for (uint32_t size = 0; size <= sizeof p + 64; size++) {
        p.size = size;
        bool known = size >= offsetof(lzs_params, logit_bias) && size <= sizeof p;
        const char *invalid = lzs_params_invalid(&p, N_VOCAB);
        CHECK(known || (invalid && strcmp(invalid, "size") == 0));
        CHECK(known || lzs_sampler_set_params(old, &p) == LZS_EINVAL);
        CHECK(known || lzs_edits_max(&p, N_VOCAB) == 0);
    }
    lzs_sampler_free(old);
}

/* Many samplers on one backend act as those that have their own. */
static void test_shared_backend(void) {
    lzs_params p = everything_on();
    lzs_backend *b;
    lzs_sampler *alone[5], *shared[5];
    CHECK(lzs_backend_new(N_VOCAB, lzs_edits_max(&p, N_VOCAB), &b) == LZS_OK);
    for (int i = 0; i < 5; i++) {
        alone[i] = sampler_of(&p);
        CHECK(lzs_sampler_new_shared(N_VOCAB, &p, b, &shared[i]) == LZS_OK);
        CHECK(lzs_memory(alone[i]) == lzs_memory(shared[i]) + lzs_backend_memory(b));
        feed(alone[i], 20 * i, 10);
        feed(shared[i], 20 * i, 10);
    }
    for (int i = 0; i < 5; i++) check_alike(alone[i], shared[i]);
    lzs_sampler *clone;
    CHECK(lzs_sampler_clone(shared[3], &clone) == LZS_OK && lzs_memory(clone) < lzs_memory(alone[3]));
    check_alike(clone, shared[3]);
    lzs_sampler_free(clone);
    for (int i = 0; i < 5; i++) {
        lzs_sampler_free(alone[i]);
        lzs_sampler_free(shared[i]);
    }
    lzs_sampler *none = clone;
    CHECK(lzs_sampler_new_shared(N_VOCAB + 1, &p, b, &none) == LZS_ESPACE && none == NULL);
    lzs_backend *small;
    CHECK(lzs_backend_new(20000, 3, &small) == LZS_OK);
    lzs_params_init(&p);
    CHECK(lzs_sampler_new_shared(20000, &p, small, &none) == LZS_OK);
    lzs_sampler_free(none);
    p.lz_penalty = 0.1f;
    p.lz_window = 4; /* tokens that a step may edit */
    p.lz_min_match = 1;
    CHECK(lzs_sampler_new_shared(20000, &p, small, &none) == LZS_ESPACE && none == NULL);
    p.lz_penalty = 0.0f;
    lzs_backend_free(small);
    lzs_params_init(&p);
    CHECK(lzs_sampler_new_shared(N_VOCAB, &p, NULL, &none) == LZS_EINVAL);
    lzs_backend_free(b);
}

/* No step has more edits than lzs_edits_max says. */
static void test_edits_max(void) {
    uint64_t state = 11;
    for (int r = 0; r < 200; r++) {
        lzs_params p = random_below(&state, 3) ? everything_on() : by_the_paper();
        p.history = random_below(&state, 2);
        p.lz_min_match = 1 + random_below(&state, 3);
        if (random_below(&state, 3) == 0) p.lz_penalty = p.lz_run_penalty = 0.0f;
        if (random_below(&state, 3) == 0) p.dry_multiplier = 0.0f;
        if (random_below(&state, 3) == 0) p.n_logit_bias = 0;
        if (random_below(&state, 2)) p.repetition_penalty = 1.0f, p.frequency_penalty = 0.0f;
        p.penalty_window = random_below(&state, 100);
        p.dry_penalty_last_n = 1 + random_below(&state, 30);
        p.dry_allowed_length = 1;
        lzs_sampler *s = sampler_of(&p);
        size_t most = lzs_edits_max(&p, N_VOCAB), n;
        CHECK(most <= N_VOCAB);
        for (int i = 0; i < 150; i++) {
            CHECK(lzs_accept(s, random_below(&state, i % 2 ? 5 : N_VOCAB)) == LZS_OK);
            lzs_edits(s, &n);
            CHECK(n <= most);
        }
        lzs_sampler_free(s);
    }
}

/* A sampler that is full takes neither a token nor a prompt, and is as it was. */
static void test_full(void) {
    enum { MOST = 100 };
    lzs_params p = everything_on();
    lzs_sampler *full, *twin;
    int32_t prompt[MOST + 1] = {0};
    full = sampler_of(&p);
    twin = sampler_of(&p);
    full->state.history.most = MOST; /* INT32_MAX would take 16 GB */
    CHECK(lzs_prime(full, prompt, MOST + 1) == LZS_EFULL && lzs_prime(full, prompt, 60) == LZS_OK);
    CHECK(lzs_prime(full, prompt, 41) == LZS_EFULL && lzs_prime(twin, prompt, 60) == LZS_OK);
    CHECK(same_edits(full, twin));
    feed(full, 40, 12);
    feed(twin, 40, 12);
    size_t memory = lzs_memory(full);
    CHECK(lzs_accept(full, 3) == LZS_EFULL && lzs_accept(full, 4) == LZS_EFULL && lzs_memory(full) == memory);
    CHECK(lzs_position(full) == 40 && same_edits(full, twin));
    CHECK(lzs_rewind(full, 1) == LZS_OK && lzs_rewind(twin, 1) == LZS_OK);
    CHECK(lzs_accept(full, 3) == LZS_OK && lzs_accept(twin, 3) == LZS_OK && lzs_accept(full, 3) == LZS_EFULL);
    full->state.history.most = INT32_MAX;
    check_alike(full, twin);
    lzs_sampler_free(full);
    lzs_sampler_free(twin);
}

int main(void) {
    test_changes_between_steps();
    test_seeds();
    test_copy();
    test_full();
    test_fixed_fields();
    test_biases_in_any_order();
    test_sequence_seeds();
    test_copy_refuses();
    test_fixed();
    test_smaller_structs();
    test_shared_backend();
    test_edits_max();
    return 0;
}
