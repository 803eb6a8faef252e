/* test_loop.c - the loop detector against a twin that looks at every period after every token. */
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "state/loop.h"

enum { MAX_TOKENS = 20000 };

typedef struct config {
    int32_t max_pattern, min_pattern, min_count, n_vocab;
} config;

/* The accepted tokens, and what each of them completed: the first loop is that of the least position. */
typedef struct twin {
    config c;
    int32_t tokens[MAX_TOKENS];
    size_t n;
    lzs_loop loop; /* count 0: none */
    size_t found_at;
} twin;

/* The maximal run of one period at the end. */
static size_t run_start(const twin *t, int32_t period) {
    size_t start = t->n - (size_t)period;
    while (start > 0 && t->tokens[start - 1] == t->tokens[start - 1 + (size_t)period]) start--;
    return start;
}

static void look(twin *t) {
    const config *c = &t->c;
    for (int32_t pattern = c->min_pattern; pattern <= c->max_pattern; pattern++) {
        size_t needed = (size_t)pattern * (size_t)c->min_count;
        if (needed > t->n) return;
        if (run_start(t, pattern) > t->n - needed) continue;
        int32_t period = 1;
        while (run_start(t, period) > t->n - needed || pattern % period) period++;
        t->found_at = t->n;
        t->loop.start = run_start(t, period);
        t->loop.period = period;
        t->loop.count = (int32_t)((t->n - t->loop.start) / (size_t)period);
        return;
    }
}

static void twin_accept(twin *t, int32_t token) {
    CHECK(t->n < MAX_TOKENS);
    t->tokens[t->n++] = token;
    if (!t->loop.count) look(t);
}

static void twin_rewind(twin *t, size_t n) {
    t->n -= n;
    if (t->n < t->found_at) t->loop.count = 0;
}

static void check_same(const lzs_sampler *s, const twin *t) {
    lzs_loop loop = {7, 7, 7};
    int found = lzs_loop_found(s, &loop);
    CHECK(lzs_position(s) == t->n && found == (t->loop.count > 0));
    CHECK(loop.start == (found ? t->loop.start : 7));
    CHECK(loop.period == (found ? t->loop.period : 7));
    CHECK(loop.count == (found ? t->loop.count : 7));
}

static lzs_sampler *new_sampler(config c, int32_t history) {
    lzs_params p;
    lzs_params_init(&p);
    p.loop_max_pattern = c.max_pattern;
    p.loop_min_pattern = c.min_pattern;
    p.loop_min_count = c.min_count;
    p.history = history;
    lzs_sampler *s;
    CHECK(lzs_sampler_new(c.n_vocab, &p, &s) == LZS_OK);
    return s;
}

/* A token that often continues one of a few periods, so that runs of all lengths come up and break off. */
static int32_t next_token(const twin *t, uint64_t *state, int32_t *period) {
    if (random_below(state, 3 * t->c.max_pattern + 20) == 0) *period = 1 + random_below(state, t->c.max_pattern + 2);
    bool follows = t->n >= (size_t)*period && random_below(state, 2 * t->c.max_pattern * t->c.min_count) != 0;
    return follows ? t->tokens[t->n - (size_t)*period] : random_below(state, t->c.n_vocab);
}

static int test_random(config c, uint64_t seed, int n_steps) {
    uint64_t state = seed;
    static twin t;
    static int32_t prompt[50];
    t.n = 0;
    t.c = c;
    t.loop.count = 0;
    lzs_sampler *s = new_sampler(c, seed % 2 ? LZS_HISTORY_ALL : LZS_HISTORY_GENERATED);
    int32_t period = 1;
    int n_found = 0, n_after = 0;
    for (int step = 0; step < n_steps; step++) {
        int action = random_below(&state, 1000);
        if (t.n == 0) CHECK(lzs_prime(s, prompt, (size_t)random_below(&state, 50)) == LZS_OK); /* a loop, not of ours */
        bool full = t.n == MAX_TOKENS || (t.loop.count && ++n_after > 30);
        if (action < 930 && !full) {
            int32_t token = next_token(&t, &state, &period);
            bool had = t.loop.count > 0;
            twin_accept(&t, token);
            CHECK(lzs_accept(s, token) == LZS_OK);
            n_found += !had && t.loop.count;
        } else if (action < 990 || full) {
            n_after = 0;
            size_t n = (size_t)random_below(&state, action % 10 == 0 || full ? 4 * c.max_pattern * c.min_count : 5);
            if (n > t.n) n = t.n;
            twin_rewind(&t, n);
            CHECK(lzs_rewind(s, n) == LZS_OK);
        } else if (action < 998) {
            lzs_sampler *clone;
            CHECK(lzs_sampler_clone(s, &clone) == LZS_OK && lzs_memory(clone) <= lzs_memory(s));
            for (int i = 0; i < 9; i++) CHECK(lzs_accept(s, 0) == LZS_OK); /* which the clone must not see */
            lzs_sampler_free(s);
            s = clone;
        } else {
            lzs_sampler_reset(s);
            t.n = 0;
            t.loop.count = 0;
        }
        check_same(s, &t);
    }
    lzs_sampler_free(s);
    return n_found;
}

/* Every string of an alphabet of two, each token of it: what is found first, and that it stays. */
static void test_all_strings(config c, int length) {
    static twin t;
    lzs_sampler *s = new_sampler(c, LZS_HISTORY_GENERATED);
    for (uint32_t bits = 0; bits < 1u << length; bits++) {
        lzs_sampler_reset(s);
        t.n = 0;
        t.c = c;
        t.loop.count = 0;
        for (int i = 0; i < length; i++) {
            int32_t token = bits >> i & 1;
            twin_accept(&t, token);
            CHECK(lzs_accept(s, token) == LZS_OK);
            check_same(s, &t);
        }
    }
    lzs_sampler_free(s);
}

/* A pattern as long as may be, after some tokens of text, found at the token that completes it. */
static void test_planted(int32_t period, int32_t count, config c, int32_t before) {
    lzs_sampler *s = new_sampler(c, LZS_HISTORY_GENERATED);
    int32_t *pattern = malloc((size_t)period * sizeof *pattern);
    lzs_loop loop;
    CHECK(pattern);
    for (int32_t i = 0; i < period; i++) pattern[i] = i; /* of distinct tokens: it has no shorter period */
    for (int32_t i = 0; i < before; i++) CHECK(lzs_accept(s, period + i) == LZS_OK);
    for (int64_t i = 0; i < (int64_t)period * count; i++) {
        CHECK(!lzs_loop_found(s, &loop));
        CHECK(lzs_accept(s, pattern[i % period]) == LZS_OK);
    }
    CHECK(lzs_loop_found(s, &loop));
    CHECK(loop.start == (uint64_t)before && loop.period == period && loop.count == count);
    CHECK(lzs_rewind(s, 1) == LZS_OK && !lzs_loop_found(s, &loop));
    CHECK(lzs_accept(s, pattern[period - 1]) == LZS_OK && lzs_loop_found(s, &loop));
    free(pattern);
    lzs_sampler_free(s);
}

/* Fibonacci's word has squares and cubes everywhere, and no fourth power. */
static void test_fibonacci(void) {
    static twin t;
    static int32_t word[15000];
    size_t n = 2, before = 1;
    word[0] = 0;
    word[1] = 1;
    while (n + before <= sizeof word / sizeof *word) {
        memcpy(word + n, word, before * sizeof *word);
        size_t longer = n + before;
        before = n;
        n = longer;
    }
    for (int32_t count = 2; count <= 4; count++) {
        config c = {200, 1, count, 2};
        lzs_sampler *s = new_sampler(c, LZS_HISTORY_GENERATED);
        size_t length = count == 4 ? 3000 : 60;
        t.n = 0;
        t.c = c;
        t.loop.count = 0;
        for (size_t i = 0; i < length; i++) {
            twin_accept(&t, word[i]);
            CHECK(lzs_accept(s, word[i]) == LZS_OK);
            check_same(s, &t);
        }
        CHECK((t.loop.count > 0) == (count < 4));
        lzs_sampler_free(s);
    }
}

/* Off, it is one pointer; on, it is 12 bytes a period, and never grows. */
static void test_memory(void) {
    lzs_sampler *off = new_sampler((config){0, 1, 8, 9}, LZS_HISTORY_GENERATED);
    lzs_sampler *on = new_sampler((config){512, 1, 8, 9}, LZS_HISTORY_GENERATED);
    uint64_t state = 1;
    lzs_loop loop;
    for (int i = 0; i < 10000; i++) {
        CHECK(lzs_memory(on) - lzs_memory(off) == sizeof(lzs_detector) + 512 * 12);
        int32_t token = random_below(&state, 9);
        CHECK(lzs_accept(off, token) == LZS_OK && lzs_accept(on, token) == LZS_OK);
    }
    for (int i = 0; i < 100; i++) CHECK(lzs_accept(off, 1) == LZS_OK);
    CHECK(!lzs_loop_found(off, &loop));
    lzs_sampler_free(off);
    lzs_sampler_free(on);
}

int main(void) {
    static const config configs[] = {
        {1, 1, 2, 3},  {2, 1, 2, 3},   {4, 1, 2, 4},    {9, 1, 2, 5},   {9, 1, 3, 2},  {12, 1, 4, 2},
        {7, 3, 2, 3},  {12, 5, 2, 2},  {20, 6, 3, 2},   {30, 30, 2, 2}, {31, 2, 5, 2}, {64, 1, 8, 2},
        {50, 10, 4, 2}, {100, 1, 3, 4}, {40, 1, 20, 2}, {5, 2, 7, 1},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        CHECK(test_random(configs[i], 2 * i + 1, 30000) + test_random(configs[i], 2 * i + 2, 30000) > 30);
    }
    for (int32_t max_pattern = 1; max_pattern <= 4; max_pattern++) {
        for (int32_t min_pattern = 1; min_pattern <= max_pattern; min_pattern++) {
            for (int32_t count = 2; count <= 4; count++) {
                test_all_strings((config){max_pattern, min_pattern, count, 2}, 12);
            }
        }
    }
    test_planted(512, 8, (config){512, 1, 8, 9000}, 777);
    test_planted(511, 8, (config){512, 100, 8, 9000}, 3);
    test_planted(65536, 2, (config){65536, 1, 2, 71000}, 5000);
    test_planted(40001, 3, (config){43690, 3, 3, 70000}, 0);
    test_planted(1, 131072, (config){1, 1, 131072, 3000}, 100);
    test_fibonacci();
    test_memory();
    return 0;
}
