/* test_rebuilt.c - after any script of accept, rewind, clone and copy, a sampler has the state of one that is built anew from the
 * same tokens, byte for byte, on every table of kernels; also where matches are as long as lengths are counted.
 *
 * What the penalties know is compared itself. The detectors are compared by what they find, and all of it by the plan and the pick
 * of the next step.
 */
#include "fuzz_case.h"
#include "on_kernels.h"

enum { MOST_BYTES = 1 << 17, CAP = UINT16_MAX };

static float row[MAX_VOCAB];

/* Of the same tokens, by the definition. */
static lzs_sampler *rebuilt(lzs_sampler *s) {
    size_t n;
    const int32_t *tokens = lzs_tokens(s, &n);
    size_t n_prompt = n - (size_t)lzs_position(s);
    lzs_sampler *r = sampler_on(&s->params, s->n_vocab, &lzs_kernels_scalar);
    CHECK(lzs_prime(r, tokens, n_prompt) == LZS_OK);
    for (size_t i = n_prompt; i < n; i++) CHECK(lzs_accept(r, tokens[i]) == LZS_OK);
    return r;
}

/* ---- what is compared ---- */

static void check_index(const lzs_match_index *a, const lzs_match_index *b, size_t n) {
    size_t room = (size_t)(a->room < b->room ? a->room : b->room);
    CHECK(a->window == b->window && a->cap == b->cap && (room + 1 >= n || room == (size_t)a->window));
    CHECK(room == 0 || memcmp(a->len + a->room - room, b->len + b->room - room, room * sizeof *a->len) == 0);
}

static int by_token(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static lzs_token_entry *sorted(const lzs_token_table *table) {
    lzs_token_entry *entries = malloc((table->n + 1) * sizeof *entries);
    CHECK(entries);
    if (table->n) memcpy(entries, table->entries, table->n * sizeof *entries);
    qsort(entries, table->n, sizeof *entries, by_token);
    return entries;
}

static void check_history(const lzs_history *a, const lzs_history *b) {
    CHECK(a->n == b->n && a->reach == b->reach && a->n_in_reach == b->n_in_reach && a->table.n == b->table.n);
    CHECK(a->n == 0 || memcmp(a->tokens, b->tokens, a->n * sizeof *a->tokens) == 0);
    CHECK(a->n == 0 || !a->reach || memcmp(a->previous, b->previous, a->n * sizeof *a->previous) == 0);
    CHECK(a->n_watches == b->n_watches);
    for (size_t i = 0; i < a->n_watches; i++) {
        const lzs_watch *x = &a->watches[i], *y = &b->watches[i];
        check_index(&x->index, &y->index, a->n);
        CHECK(!x->index.window || a->n == 0 || memcmp(x->since, y->since, a->n * sizeof *x->since) == 0);
    }
    lzs_token_entry *x = sorted(&a->table), *y = sorted(&b->table);
    CHECK(memcmp(x, y, a->table.n * sizeof *x) == 0);
    free(x);
    free(y);
}

static size_t plan_bytes(lzs_sampler *s, uint64_t *bytes) {
    lzs_plan plan;
    CHECK(lzs_sampler_plan(s, &plan) == LZS_OK && lzs_plan_write(&plan, bytes, MOST_BYTES) == LZS_OK);
    return lzs_plan_size(&plan);
}

static void check_next_step(lzs_sampler *a, lzs_sampler *b) {
    static uint64_t x[MOST_BYTES / 8], y[MOST_BYTES / 8];
    int32_t token, expected;
    size_t n = plan_bytes(a, x);
    CHECK(plan_bytes(b, y) == n && memcmp(x, y, n) == 0);
    lzs_status status = lzs_sample(a, row, &token);
    CHECK(lzs_sample(b, row, &expected) == status && token == expected);
}

static void check_rebuilt(lzs_sampler *s) {
    lzs_sampler *r = rebuilt(s);
    lzs_loop loop[2] = {{0}, {0}};
    lzs_stuck stuck[2] = {{0}, {0}};
    check_history(lzs_state_looked_at(&s->state), lzs_state_looked_at(&r->state));
    CHECK(lzs_loop_found(s, &loop[0]) == lzs_loop_found(r, &loop[1]) && memcmp(&loop[0], &loop[1], sizeof *loop) == 0);
    CHECK(lzs_stuck_found(s, &stuck[0]) == lzs_stuck_found(r, &stuck[1]) && memcmp(&stuck[0], &stuck[1], sizeof *stuck) == 0);
    check_next_step(s, r);
    lzs_sampler_free(r);
}

/* ---- scripts ---- */

/* Often what came one period ago, so that matches grow. */
static int32_t next_token(source *s, const lzs_sampler *sampler, int32_t period) {
    size_t n;
    const int32_t *tokens = lzs_tokens(sampler, &n);
    return n >= (size_t)period && !one_in(s, 12) ? tokens[n - (size_t)period] : choose(s, sampler->n_vocab);
}

/* One change of *sampler, which another sampler of the same parameters may take the place of. */
static void change(source *s, lzs_sampler **sampler, lzs_sampler **other, const lzs_kernels *table, int32_t period) {
    int action = choose(s, 20);
    uint64_t position = lzs_position(*sampler);
    lzs_sampler *was = *sampler;
    if (action < 12) {
        CHECK(lzs_accept(was, next_token(s, was, period)) == LZS_OK);
    } else if (action < 17) {
        uint64_t n = (uint64_t)choose(s, action == 16 ? 300 : 5);
        CHECK(lzs_rewind(was, (size_t)(n < position ? n : position)) == LZS_OK);
    } else if (action < 18) {
        CHECK(lzs_sampler_clone(was, sampler) == LZS_OK);
        use_kernels(*sampler, table);
        CHECK(lzs_accept(was, 0) == LZS_OK); /* which the clone must not see */
        lzs_sampler_free(was);
    } else {
        CHECK(lzs_sampler_copy(*other, was) == LZS_OK);
        *sampler = *other;
        *other = was;
    }
}

static void run_script(uint64_t seed, const lzs_kernels *table) {
    static const int32_t structures[] = {LZS_STRUCTURE_OFF, LZS_STRUCTURE_FREE};
    source s = {.state = seed};
    lists lists;
    lzs_params p;
    int32_t n_vocab = 2 + choose(&s, one_in(&s, 3) ? 1000 : 30), prompt[200], n_prompt = choose(&s, 200);
    int32_t period = 1 + choose(&s, one_in(&s, 2) ? 4 : 60);
    choose_params(&s, &p, n_vocab, &lists);
    p.structure = structures[choose(&s, 2)];
    for (int32_t i = 0; i < n_vocab; i++) row[i] = (float)choose(&s, 1000) * 0.01f;
    lzs_sampler *sampler = sampler_on(&p, n_vocab, table), *other = sampler_on(&p, n_vocab, table);
    for (int32_t i = 0; i < n_prompt; i++) prompt[i] = i % period < 3 ? i % period % n_vocab : choose(&s, n_vocab);
    CHECK(lzs_prime(sampler, prompt, (size_t)n_prompt) == LZS_OK);
    CHECK(lzs_prime(other, prompt, (size_t)(n_prompt / 2)) == LZS_OK);
    for (int i = 0; i < 150; i++) {
        change(&s, &sampler, &other, table, period);
        if (i % 4 == 0) check_rebuilt(sampler);
    }
    check_rebuilt(sampler);
    lzs_sampler_free(sampler);
    lzs_sampler_free(other);
}

/* DRY and LZ count up to 65,535 tokens. The text comes to a match that is longer, of one token or of a whole document that it quotes; the
 * token that would make it longer still is by far the best one. */
static void run_at_cap(int32_t period, bool dry, const lzs_kernels *table) {
    enum { VOCAB = 1000, BEFORE = 6, AFTER = 12 };
    source s = {.state = (uint64_t)period};
    int32_t n = period + CAP - BEFORE;
    int32_t *text = malloc((size_t)(n + BEFORE + AFTER) * sizeof *text);
    CHECK(text);
    for (int32_t i = 0; i < n + BEFORE + AFTER; i++) text[i] = i < period ? choose(&s, VOCAB) : text[i - period];
    lzs_params p;
    lzs_params_init(&p);
    p.temperature = 0.0f;
    p.history = LZS_HISTORY_ALL;
    p.dry_multiplier = dry ? 0.8f : 0.0f;
    p.lz_penalty = dry ? 0.0f : 3.0f;
    p.lz_window = LZS_MAX_WINDOW;
    p.lz_min_match = CAP - 10; /* there is a match from the first token on */
    lzs_sampler *sampler = sampler_on(&p, VOCAB, table), *other = sampler_on(&p, VOCAB, table);
    CHECK(lzs_prime(sampler, text, (size_t)n) == LZS_OK);
    for (int32_t i = 0; i < BEFORE + AFTER; i++) {
        int32_t token, next = text[n + i];
        for (int32_t t = 0; t < VOCAB; t++) row[t] = t == next ? 30.0f : (float)choose(&s, 1000) * 0.01f;
        check_rebuilt(sampler);
        CHECK(lzs_sample(sampler, row, &token) == LZS_OK && token != next);
        CHECK(lzs_accept(sampler, next) == LZS_OK);
        if (i % 3 == 2) { /* there and back */
            CHECK(lzs_sampler_copy(other, sampler) == LZS_OK && lzs_rewind(sampler, 2) == LZS_OK);
            check_rebuilt(sampler);
            for (int32_t k = i - 1; k <= i; k++) CHECK(lzs_accept(sampler, text[n + k]) == LZS_OK);
            check_history(&sampler->state.history, &other->state.history);
        }
    }
    lzs_sampler_free(sampler);
    lzs_sampler_free(other);
    free(text);
}

/* The paper's rule tells the matches of a step from older ones by a 32-bit stamp, which begins anew after 2^32 steps. An entry without a match so
 * far has the stamp of no step. */
static void run_past_all_stamps(const lzs_kernels *table) {
    source s = {.state = 3};
    for (int i = 0; i < 100; i++) {
        lzs_params p;
        lzs_params_init(&p);
        p.lz_penalty = 0.3f;
        p.lz_rule = LZS_RULE_PAPER;
        p.lz_buffer = 4;
        lzs_sampler *sampler = sampler_on(&p, 40, table);
        for (int k = 0; k < i; k++) CHECK(lzs_accept(sampler, next_token(&s, sampler, 7)) == LZS_OK);
        sampler->edits.paper.stamp = UINT32_MAX - 1;
        for (int k = 0; k < 3; k++) { /* a step with the last stamp, and two after it */
            check_rebuilt(sampler);
            CHECK(lzs_accept(sampler, next_token(&s, sampler, 7)) == LZS_OK);
        }
        lzs_sampler_free(sampler);
    }
}

/* usage: test_rebuilt [scripts] */
int main(int argc, char **argv) {
    uint64_t n_scripts = argc > 1 ? (uint64_t)atol(argv[1]) : 300;
    const lzs_kernels *table;
    for (int t = 0; (table = lzs_kernels_at(t)); t++) {
        for (uint64_t seed = 1; seed <= n_scripts; seed++) run_script(seed, table);
        for (int dry = 0; dry < 2; dry++) {
            run_at_cap(1, dry, table);
            run_at_cap(CAP + 1, dry, table);
        }
        run_past_all_stamps(table);
        printf("%s ", table->name);
    }
    printf("rebuilt\n");
    return 0;
}
