/* test_grammar.c - grammars: masks against the oracle of grammar_case.h, hostile patterns, limits, and what they share. */
#include <math.h>

#include "grammar_case.h"

static lzs_vocabulary *vocabulary;

static lzs_grammar *regex(const char *pattern, size_t max_bytes) {
    lzs_grammar *g;
    lzs_grammar_error error;
    lzs_status status = lzs_grammar_new_regex(pattern, strlen(pattern), vocabulary, max_bytes, &error, &g);
    if (status != LZS_OK) fprintf(stderr, "%s: at %zu: %s\n", pattern, error.offset, error.reason);
    CHECK(status == LZS_OK);
    return g;
}

static void masks_are_right(void) {
    static const char *const patterns[] = {
        "", "a", "a*", "(ab|ba|aa)*", ".{1,500}", "[a-z]{1,200}", "a{30,90}", "(a{2,3}b?){3,40}", "(a?){0,100}b", "(a|aa){10,200}1",
        "\"([^\"\\\\\\x00-\\x1f]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4})*\"", "(a|b)*a(a|b){30}", "[^a]*", "\\w+@\\w{2,}(\\.[a-z]{2,10}){1,3}",
        "(\xc3\xa9|[\xe2\x82\xac-\xf0\x9f\x99\x82])+", "((a{0,9}){0,9}0){0,9}", "(|a|ab|abc|abcd)(b|c|d)?", "(a+){2,70}", "((a*)*|b{3,})*",
        "((a|b{2,}){5,6}|c){7,}", "[\\u0800-\\u0fff\\ud7ff\\ue000]{2}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        for (size_t max_bytes = 0; max_bytes <= 1 << 20; max_bytes += 1 << 20) {
            lzs_grammar *g = regex(patterns[i], max_bytes);
            for (uint64_t seed = 0; seed < 2; seed++) CHECK(case_walk(g, seed, 12));
            lzs_grammar_free(g);
        }
    }
}

/* [ and ], and between them an optional a, a b{2,3} without an end of its own, an optional pattern, with commas between. */
static const uint8_t part_text[] = "[],ab^[a-c\"]+$c";
static const uint32_t part_children[] = {3, 4, 4, 2, 5, 6, 8, 0, 9, 1};
static const lzs_part parts[] = {
    {LZS_PART_TEXT, 0, 1, 0, 0},     {LZS_PART_TEXT, 1, 1, 0, 0},     {LZS_PART_TEXT, 2, 1, 0, 0},    {LZS_PART_REGEX, 3, 1, 0, 0},
    {LZS_PART_TEXT, 4, 1, 0, 0},     {LZS_PART_REPEAT, 0, 1, 0, 1},   {LZS_PART_REPEAT, 1, 2, 2, 3},  {LZS_PART_PATTERN, 5, 9, 2, 40},
    {LZS_PART_REPEAT, 5, 1, 0, 1},   {LZS_PART_LIST, 3, 4, 0, 0},     {LZS_PART_SEQUENCE, 7, 3, 0, 0}};
enum { N_PARTS = sizeof parts / sizeof *parts, N_CHILDREN = sizeof part_children / sizeof *part_children };

static lzs_status of_parts(const lzs_part *all, size_t n, const uint32_t *children, lzs_grammar_error *error, lzs_grammar **g) {
    return lzs_grammar_new_parts(all, n, children, N_CHILDREN, part_text, sizeof part_text - 1, vocabulary, 0, error, g);
}

static void parts_are_right(void) {
    static const struct {
        const char *text;
        int32_t match;
    } texts[] = {{"[a,bbb", LZS_BEGINNING}, {"[bbb]", LZS_MATCH}, {"[a,bbbbb]", LZS_MATCH}, {"[bb]", LZS_NO_MATCH},
                 {"[bbb,]", LZS_NO_MATCH},  {"[,bbb]", LZS_NO_MATCH}, {"[abbb]", LZS_NO_MATCH}, {"[]", LZS_NO_MATCH},
                 {"[bbbb]", LZS_NO_MATCH},  {"[a]", LZS_NO_MATCH}};
    lzs_grammar *g;
    lzs_grammar_error error;
    CHECK(of_parts(parts, N_PARTS, part_children, &error, &g) == LZS_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t match;
        CHECK(lzs_grammar_match(g, texts[i].text, strlen(texts[i].text), &match) == LZS_OK && match == texts[i].match);
    }
    for (uint64_t seed = 0; seed < 20; seed++) CHECK(case_walk(g, seed, 30));
    lzs_grammar_free(g);

    lzs_part changed[N_PARTS];
    static const struct {
        size_t at;
        lzs_part part;
    } wrong[] = {{0, {8, 0, 1, 0, 0}},
                 {0, {LZS_PART_YAML, 14, 2, 0, 0}},
                 {0, {-1, 0, 1, 0, 0}},
                 {0, {LZS_PART_TEXT, 14, 2, 0, 0}},
                 {0, {LZS_PART_TEXT, UINT32_MAX, 2, 0, 0}},
                 {4, {LZS_PART_SEQUENCE, 1, 1, 0, 0}}, /* it is a part of itself */
                 {5, {LZS_PART_REPEAT, 0, 1, 2, 1}},
                 {5, {LZS_PART_REPEAT, 0, 1, 0, LZS_GRAMMAR_MAX_COUNT + 1}},
                 {5, {LZS_PART_REPEAT, 0, 3, 0, 1}},
                 {8, {LZS_PART_CHOICE, 0, 0, 0, 0}},
                 {9, {LZS_PART_LIST, 3, 0, 0, 0}},
                 {9, {LZS_PART_LIST, 3, 4, 2, 0}},
                 {9, {LZS_PART_LIST, 3, 1, 1, 0}},
                 {10, {LZS_PART_SEQUENCE, 7, 4, 0, 0}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(changed, parts, sizeof parts);
        changed[wrong[i].at] = wrong[i].part;
        CHECK(of_parts(changed, N_PARTS, part_children, &error, &g) == LZS_EINVAL && !g && !error.reason[0]);
    }
    CHECK(of_parts(parts, 0, part_children, NULL, &g) == LZS_EINVAL && of_parts(NULL, 1, part_children, NULL, &g) == LZS_EINVAL);
    memcpy(changed, parts, sizeof parts);
    changed[7].min = 50; /* the pattern goes up to 40 characters */
    CHECK(of_parts(changed, N_PARTS, part_children, &error, &g) == LZS_EINVAL && error.offset == 5 && strstr(error.reason, "such a length"));
    changed[7] = (lzs_part){LZS_PART_PATTERN, 5, 8, 0, 40}; /* without its $ */
    CHECK(of_parts(changed, N_PARTS, part_children, &error, &g) == LZS_EINVAL && strstr(error.reason, "these lengths"));
    changed[7] = (lzs_part){LZS_PART_PATTERN, 5, 7, 0, 40}; /* a character, and any others */
    CHECK(of_parts(changed, N_PARTS, part_children, &error, &g) == LZS_OK);
    lzs_grammar_free(g);
    changed[7] = (lzs_part){LZS_PART_PATTERN, 5, 5, 0, 40};
    CHECK(of_parts(changed, N_PARTS, part_children, &error, &g) == LZS_EINVAL && error.offset == 6 && strstr(error.reason, "not closed"));
    memcpy(changed, parts, sizeof parts);
    changed[4] = (lzs_part){LZS_PART_REGEX, 4, 0, 0, 0};
    changed[6] = (lzs_part){LZS_PART_REPEAT, 1, 2, 0, 5};
    CHECK(of_parts(changed, N_PARTS, part_children, &error, &g) == LZS_EINVAL && strstr(error.reason, "must not match the empty text"));
}

/* In a string of YAML a dot leaves out what YAML cannot hold as it is, and such a character itself is refused. */
static void yaml_strings(void) {
    static const struct {
        const char *text;
        int32_t match;
    } texts[] = {{"a", LZS_MATCH}, {"\xc2\xa0", LZS_MATCH}, {"\xf0\x9f\x99\x82", LZS_MATCH}, {"\x7f", LZS_NO_MATCH},
                 {"\xc2\x85", LZS_NO_MATCH}, {"\xe2\x80\xa8", LZS_NO_MATCH}, {"\xef\xbb\xbf", LZS_NO_MATCH}, {"\\t", LZS_MATCH}};
    static const char *const bad[] = {"\xc2\x85", "[\\u0080-\\u009f]", "a|\\ufeff", "[\\x7f]"};
    lzs_grammar *g;
    lzs_grammar_error error;
    lzs_part part = {LZS_PART_YAML, 0, 3, 0, LZS_PART_UNBOUNDED};
    CHECK(lzs_grammar_new_parts(&part, 1, NULL, 0, (const uint8_t *)"^.$", 3, vocabulary, 0, &error, &g) == LZS_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t match;
        CHECK(lzs_grammar_match(g, texts[i].text, strlen(texts[i].text), &match) == LZS_OK && match == texts[i].match);
    }
    lzs_grammar_free(g);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = strlen(bad[i]);
        part.n = (uint32_t)n;
        CHECK(lzs_grammar_new_parts(&part, 1, NULL, 0, (const uint8_t *)bad[i], n, vocabulary, 0, &error, &g) == LZS_EINVAL);
        CHECK(strstr(error.reason, "not supported for YAML"));
    }
}

/* The automaton byte by byte, and the only token of a mask. */
static void looking(void) {
    lzs_grammar *g = regex("a(b|c)\\x00", 0);
    uint32_t words[(CASE_MAX_VOCAB + 31) / 32];
    size_t n_words = ((size_t)case_n_vocab + 31) / 32;
    int32_t state, matches;
    CHECK(lzs_grammar_step(g, LZS_GRAMMAR_START, 'b', &state) == LZS_OK && state == -1);
    CHECK(lzs_grammar_step(g, LZS_GRAMMAR_START, 'a', &state) == LZS_OK && state > LZS_GRAMMAR_START);
    CHECK(lzs_grammar_step(g, state, 'c', &state) == LZS_OK && lzs_grammar_state(g, state, &matches, words, n_words) == LZS_OK);
    CHECK(!matches && words[CASE_BYTES / 32] == UINT32_C(1) << CASE_BYTES % 32);
    CHECK(lzs_grammar_step(g, state, 0, &state) == LZS_OK && lzs_grammar_state(g, state, &matches, words, n_words) == LZS_OK);
    CHECK(matches && words[0] == 1 << CASE_END);
    for (int32_t wrong = -1; wrong < 2; wrong++) {
        CHECK(lzs_grammar_step(g, wrong, 'a', &state) == LZS_EINVAL && state == -1);
        CHECK(lzs_grammar_state(g, wrong, &matches, words, n_words) == LZS_EINVAL);
    }
    CHECK(lzs_grammar_step(g, 1000000, 'a', &state) == LZS_EINVAL);
    CHECK(lzs_grammar_state(g, LZS_GRAMMAR_START, &matches, words, n_words + 1) == LZS_EINVAL);
    lzs_sampler *s;
    lzs_params params;
    lzs_logit_bias bias = {CASE_BYTES, -INFINITY};
    int32_t token;
    for (size_t n = 0; n < 2; n++) {
        lzs_params_init(&params);
        params.logit_bias = &bias;
        params.n_logit_bias = n;
        CHECK(lzs_sampler_new(case_n_vocab, &params, &s) == LZS_OK && lzs_forced(s, &token) == LZS_OK && token == -1);
        CHECK(lzs_sampler_set_grammar(s, g) == LZS_OK && lzs_forced(s, &token) == LZS_OK && token == -1); /* a, and ab */
        CHECK(lzs_accept(s, CASE_BYTES + 'a') == LZS_OK && lzs_accept(s, CASE_BYTES + 'b') == LZS_OK);
        CHECK(lzs_forced(s, &token) == LZS_OK && token == (n ? -1 : CASE_BYTES));
        CHECK(lzs_accept(s, CASE_BYTES) == LZS_OK && lzs_forced(s, &token) == LZS_OK && token == CASE_END);
        CHECK(lzs_accept(s, 5) == LZS_OK && lzs_forced(s, &token) == LZS_OK && token == -1); /* against the grammar */
        lzs_sampler_free(s);
    }
    lzs_grammar_free(g);
}

static void refused(const char *pattern, size_t n, size_t offset, const char *part) {
    lzs_grammar *g;
    lzs_grammar_error error;
    CHECK(lzs_grammar_new_regex(pattern, n, vocabulary, 0, &error, &g) == LZS_EINVAL && !g);
    CHECK(error.offset == offset && strstr(error.reason, part));
    CHECK(lzs_grammar_new_regex(pattern, n, vocabulary, 0, NULL, &g) == LZS_EINVAL);
}

static void hostile_patterns(void) {
    static char long_one[1 << 20];
    memset(long_one, '(', 60000);
    memset(long_one + 60000, ')', 60000);
    refused(long_one, 120000, LZS_GRAMMAR_MAX_DEPTH, "nested more than 250 deep");
    refused("ab\xff", 3, 2, "not valid UTF-8");
    refused("\xed\xa0\x80", 3, 0, "not valid UTF-8");
    refused("[\xc0\x80]", 4, 1, "not valid UTF-8");
    refused("a{0,1000001}", 12, 1, "more than 1000000");
    refused("((((a{1000}){1000}){1000}){1000}){1000}", 39, SIZE_MAX, "40 bits");
    size_t n = 0;
    for (int i = 0; n + 40 < sizeof long_one; i++) n += (size_t)sprintf(long_one + n, "%schoice number %d|", i % 7 ? "" : "x", i);
    long_one[n - 1] = 0; /* 1 MB of choices */
    lzs_grammar *g = regex(long_one, 0);
    CHECK(lzs_grammar_memory(g) < 64 << 20 && case_walk(g, 1, 20));
    lzs_grammar_free(g);
    static const char *const patterns[] = {"a{0,65536}", "(.{0,65536}){0,65536}", "(a|b)*a(a|b){30}", "((((a*)*)*)*)*", "(a{0,999}b{0,999}){0,999}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        g = regex(patterns[i], 8 << 20);
        CHECK(lzs_grammar_memory(g) < 1 << 20 && case_walk(g, i, 30) && lzs_grammar_memory(g) < 16 << 20);
        lzs_grammar_free(g);
    }
}

/* A step that reaches a limit fails, says which, and fails again: nothing is ever allowed because of it. */
static void limits(void) {
    lzs_grammar *g = regex("(a|b)*a(a|b){3000}", 0);
    g->automaton.max_work = 2000;
    int32_t match;
    char text[6000];
    memset(text, 'a', sizeof text);
    CHECK(!lzs_grammar_problem(g));
    CHECK(lzs_grammar_match(g, text, sizeof text, &match) == LZS_ELIMIT && match == LZS_NO_MATCH);
    CHECK(strstr(lzs_grammar_problem(g), "too much work"));
    lzs_sampler *s;
    lzs_params params;
    lzs_params_init(&params);
    CHECK(lzs_sampler_new(case_n_vocab, &params, &s) == LZS_OK && lzs_sampler_set_grammar(s, g) == LZS_OK);
    for (int i = 0; i < 6000; i++) CHECK(lzs_accept(s, CASE_BYTES + 'a') == LZS_OK);
    static float logits[CASE_MAX_VOCAB];
    int32_t token;
    for (int i = 0; i < 3; i++) CHECK(lzs_sample(s, logits, &token) == LZS_ELIMIT && token == -1);
    g->automaton.max_work = 10000000;
    CHECK(lzs_sample(s, logits, &token) == LZS_OK && !lzs_grammar_problem(g));
    lzs_sampler_free(s);
    lzs_grammar_free(g);
    lzs_grammar_error error;
    CHECK(lzs_grammar_new_regex("abc", 3, vocabulary, 10, &error, &g) == LZS_EINVAL && strstr(error.reason, "more memory"));
}

/* Empty parts of parts make no operations, but are built for as often as they are named. */
static void empty_parts(void) {
    enum { DEPTH = 60 };
    lzs_part all[DEPTH];
    uint32_t nodes[2 * DEPTH];
    lzs_grammar_error error;
    lzs_grammar *g;
    for (uint32_t i = 0; i < DEPTH; i++) {
        all[i] = (lzs_part){i ? LZS_PART_SEQUENCE : LZS_PART_TEXT, i ? 2 * i : 0, i ? 2 : 0, 0, 0};
        nodes[2 * i] = nodes[2 * i + 1] = i - 1;
    }
    CHECK(lzs_grammar_new_parts(all, DEPTH, nodes, 2 * DEPTH, NULL, 0, vocabulary, 0, &error, &g) == LZS_EINVAL && !g);
    CHECK(error.offset == SIZE_MAX && strstr(error.reason, "parts"));
    CHECK(lzs_grammar_new_parts(all, 12, nodes, 2 * DEPTH, NULL, 0, vocabulary, 0, &error, &g) == LZS_OK);
    lzs_grammar_free(g);
}

static void wrong_arguments(void) {
    static const uint64_t ends[] = {1, 2, 2}, falling[] = {2, 1, 2};
    static const uint8_t kinds[] = {0, 1, 2}, no_end[] = {0, 0, 1}, unknown[] = {0, 3, 2}, bytes[] = "ab";
    lzs_vocabulary *v;
    lzs_grammar *g;
    lzs_grammar_error error;
    CHECK(lzs_vocabulary_new(0, bytes, ends, kinds, &v) == LZS_EINVAL && !v);
    CHECK(lzs_vocabulary_new(3, NULL, ends, kinds, &v) == LZS_EINVAL && lzs_vocabulary_new(3, bytes, falling, kinds, &v) == LZS_EINVAL);
    CHECK(lzs_vocabulary_new(3, bytes, ends, no_end, &v) == LZS_EINVAL && lzs_vocabulary_new(3, bytes, ends, unknown, &v) == LZS_EINVAL);
    CHECK(lzs_vocabulary_new(3, bytes, ends, kinds, &v) == LZS_OK && lzs_vocabulary_memory(v) > 0);
    CHECK(lzs_grammar_new_regex("b", 1, v, 0, &error, &g) == LZS_EINVAL && strstr(error.reason, "tokens of this vocabulary"));
    CHECK(lzs_grammar_new_regex("a", 1, NULL, 0, &error, &g) == LZS_EINVAL && !error.reason[0]);
    CHECK(lzs_grammar_new_choices(bytes, ends, 0, v, 0, &error, &g) == LZS_EINVAL);
    CHECK(lzs_grammar_new_choices(bytes, falling, 3, v, 0, &error, &g) == LZS_EINVAL);
    CHECK(lzs_grammar_new_regex("a*", 2, v, 0, NULL, &g) == LZS_OK);
    lzs_sampler *s;
    lzs_params params;
    lzs_params_init(&params);
    CHECK(lzs_sampler_new(4, &params, &s) == LZS_OK && lzs_sampler_set_grammar(s, g) == LZS_EINVAL);
    lzs_sampler_free(s);
    lzs_grammar_free(g);
    lzs_grammar_free(NULL);
    lzs_vocabulary_free(v);
    lzs_vocabulary_free(NULL);
}

/* Another engine: texts of a's, of up to three, whose states are their lengths. `user` is 1 where it fails, and 2 where its masks do. */
static int32_t count_accept(void *user, int32_t state, int32_t token, int32_t *next) {
    if (*(int *)user == 1) return LZS_ELIMIT;
    bool is_a = token == CASE_BYTES + 'a' && state >= LZS_GRAMMAR_START && state < LZS_GRAMMAR_START + 3;
    *next = is_a ? state + 1 : token == CASE_END ? LZS_GRAMMAR_ENDED : LZS_GRAMMAR_DEAD;
    return LZS_OK;
}

static int32_t count_mask(void *user, int32_t state, uint32_t *words, size_t n_words) {
    CHECK(n_words == lzs_mask_words(case_n_vocab) && !words[0] && !words[n_words - 1]);
    int32_t token = CASE_BYTES + 'a';
    if (state >= LZS_GRAMMAR_START && state < LZS_GRAMMAR_START + 3) words[token / 32] |= UINT32_C(1) << token % 32;
    if (state >= LZS_GRAMMAR_ENDED) words[0] |= 1 << CASE_END;
    return *(int *)user ? LZS_ELIMIT : LZS_OK;
}

static int32_t count_trim(void *user, int32_t state, int32_t *forgot) {
    CHECK(user && state >= 0);
    *forgot = state == LZS_GRAMMAR_START + 2;
    return LZS_OK;
}

/* A greedy pick that the engine allows needs no mask; one that it does not allow is the best of the mask. */
static void picks_first(const lzs_grammar_engine *engine, int *fails) {
    static float row[CASE_MAX_VOCAB];
    lzs_params params;
    lzs_params_init(&params);
    params.temperature = 0.0f;
    lzs_grammar *g;
    lzs_sampler *s;
    int32_t token;
    row[CASE_BYTES + 'a'] = 2.0f;
    CHECK(lzs_grammar_new_engine(vocabulary, engine, &g) == LZS_OK);
    CHECK(lzs_sampler_new(case_n_vocab, &params, &s) == LZS_OK && lzs_sampler_set_grammar(s, g) == LZS_OK);
    *fails = 2;
    CHECK(lzs_sample(s, row, &token) == LZS_OK && token == CASE_BYTES + 'a' && lzs_accept(s, token) == LZS_OK);
    row[CASE_BYTES + 'b'] = 3.0f;
    CHECK(lzs_sample(s, row, &token) == LZS_ELIMIT && token == -1);
    *fails = 0;
    CHECK(lzs_sample(s, row, &token) == LZS_OK && token == CASE_BYTES + 'a');
    *fails = 2;
    row[CASE_BYTES + 'b'] = 0.0f;
    params.temperature = 1.0f;
    CHECK(lzs_sampler_set_params(s, &params) == LZS_OK && lzs_sample(s, row, &token) == LZS_ELIMIT);
    lzs_sampler_free(s);
    lzs_grammar_free(g);
}

static void another_engine(void) {
    int fails = 0;
    const lzs_grammar_engine engine = {&fails, count_accept, count_mask, count_trim, 0};
    lzs_grammar_engine half = engine;
    lzs_grammar *g;
    lzs_params params;
    lzs_params_init(&params);
    lzs_sampler *s;
    lzs_plan plan;
    CHECK(lzs_grammar_new_engine(vocabulary, &engine, &g) == LZS_OK);
    CHECK(lzs_sampler_new(case_n_vocab, &params, &s) == LZS_OK && lzs_sampler_set_grammar(s, g) == LZS_OK);
    for (int i = 0; i < 6; i++) {
        CHECK(lzs_sampler_plan(s, &plan) == LZS_OK);
        CHECK(lzs_bit(plan.mask, CASE_BYTES + 'a') == (i < 3) && lzs_bit(plan.mask, CASE_END) == (i < 4) && !lzs_bit(plan.mask, CASE_BYTES));
        CHECK(lzs_accept(s, CASE_BYTES + 'a') == LZS_OK);
    }
    CHECK(lzs_rewind(s, 4) == LZS_OK && lzs_sampler_plan(s, &plan) == LZS_OK && lzs_bit(plan.mask, CASE_BYTES + 'a'));
    CHECK(lzs_accept(s, CASE_END) == LZS_OK && lzs_sampler_plan(s, &plan) == LZS_OK);
    CHECK(lzs_bit(plan.mask, CASE_END) && !lzs_bit(plan.mask, CASE_BYTES + 'a'));
    fails = 1;
    CHECK(lzs_sampler_plan(s, &plan) == LZS_ELIMIT);
    int32_t out;
    uint32_t words[CASE_MAX_VOCAB / 32 + 1];
    CHECK(lzs_grammar_match(g, "a", 1, &out) == LZS_EINVAL && lzs_grammar_step(g, LZS_GRAMMAR_START, 'a', &out) == LZS_EINVAL);
    CHECK(lzs_grammar_state(g, LZS_GRAMMAR_START, &out, words, lzs_mask_words(case_n_vocab)) == LZS_EINVAL);
    CHECK(lzs_grammar_share(g, NULL) == LZS_EINVAL && lzs_grammar_set_tokenization(g, NULL, LZS_TOKENIZATION_ANY) == LZS_EINVAL);
    CHECK(lzs_grammar_states(g) == 0 && lzs_grammar_memory(g) > 0 && !lzs_grammar_problem(g));
    lzs_sampler_free(s);
    lzs_grammar_free(g);
    half.picks_first = 1;
    picks_first(&half, &fails);
    half.trim = NULL;
    CHECK(lzs_grammar_new_engine(vocabulary, &half, &g) == LZS_EINVAL && !g && lzs_grammar_new_engine(NULL, &engine, &g) == LZS_EINVAL);
    g = regex("a", 0);
    size_t n_words = lzs_mask_words(case_n_vocab);
    CHECK(lzs_grammar_state(g, LZS_GRAMMAR_START, &out, NULL, n_words) == LZS_EINVAL);
    CHECK(lzs_grammar_state(g, LZS_GRAMMAR_START, NULL, words, n_words) == LZS_EINVAL);
    lzs_grammar_free(g);
}

int main(void) {
    vocabulary = case_vocabulary();
    masks_are_right();
    another_engine();
    parts_are_right();
    yaml_strings();
    looking();
    hostile_patterns();
    limits();
    empty_parts();
    wrong_arguments();
    lzs_vocabulary_free(vocabulary);
    return 0;
}
