/* test_token_table.c - random operations on the token table against a plain array. */
#include "check.h"
#include "state/token_table.h"

enum { N_TOKENS = 600 };

static void check_same(const lzs_token_table *table, const int32_t *model) {
    uint32_t n = 0;
    for (int32_t t = 0; t < N_TOKENS; t++) {
        int32_t at = lzs_token_table_find(table, t);
        CHECK((at < 0) == (model[t] < 0));
        if (at < 0) continue;
        CHECK(table->entries[at].token == t && table->entries[at].count == model[t]);
        n++;
    }
    CHECK(table->n == n);
}

/* Tokens of a stride that is a multiple of the table's size crowd into few slots: long probes, many shifts back. */
static void test_random(uint64_t seed, int32_t n_tokens, int32_t stride, int n_steps) {
    uint64_t state = seed;
    lzs_token_table table = {0};
    static int32_t model[N_TOKENS];
    for (int32_t t = 0; t < N_TOKENS; t++) model[t] = -1;
    for (int step = 0; step < n_steps; step++) {
        int32_t token = random_below(&state, n_tokens) * stride % N_TOKENS, at;
        int action = random_below(&state, 100);
        if (action < 50) {
            CHECK(lzs_token_table_reserve(&table, table.n + 1) == LZS_OK);
            uint32_t n = table.n;
            at = lzs_token_table_take(&table, token);
            if (model[token] < 0) CHECK(table.n == n + 1 && table.entries[at].count == 0 && table.entries[at].last == -1);
            table.entries[at].count = model[token] = random_below(&state, 1 << 30);
        } else if (action < 97) {
            at = lzs_token_table_find(&table, token);
            if (at >= 0) lzs_token_table_remove(&table, at);
            model[token] = -1;
        } else if (action < 99) {
            lzs_token_table copy = {0};
            if (random_below(&state, 2)) { /* a copy replaces what was there */
                CHECK(lzs_token_table_reserve(&copy, 50) == LZS_OK);
                for (int32_t t = 0; t < 50; t++) lzs_token_table_take(&copy, t * 7);
            }
            CHECK(lzs_token_table_copy(&copy, &table) == LZS_OK);
            check_same(&copy, model);
            lzs_token_table_free(&table);
            table = copy;
        } else if (random_below(&state, 20) == 0) {
            lzs_token_table_clear(&table);
            for (int32_t t = 0; t < N_TOKENS; t++) model[t] = -1;
        }
        if (step % 50 == 0) check_same(&table, model);
    }
    check_same(&table, model);
    CHECK(lzs_token_table_memory(&table) >= (size_t)table.n * 20); /* three words an entry, two slots or more */
    lzs_token_table_free(&table);
    lzs_token_table_free(&table); /* a freed table is empty */
    CHECK(lzs_token_table_find(&table, 1) == -1);
}

static void test_grow(void) {
    lzs_token_table table = {0};
    for (int32_t t = 0; t < 100000; t++) {
        CHECK(lzs_token_table_reserve(&table, table.n + 1) == LZS_OK);
        CHECK(lzs_token_table_take(&table, t * 131) == t);
    }
    CHECK(table.n == 100000 && 2 * table.n <= table.n_slots);
    for (int32_t t = 0; t < 100000; t++) CHECK(lzs_token_table_find(&table, t * 131) == t);
    lzs_token_table_free(&table);
}

/* More entries than a vocabulary can have are refused at once: the number of slots must not wrap around to 0. */
static void test_too_many(void) {
    lzs_token_table table = {0};
    CHECK(lzs_token_table_reserve(&table, 10) == LZS_OK);
    size_t memory = lzs_token_table_memory(&table);
    CHECK(lzs_token_table_reserve(&table, ((size_t)1 << 30) + 1) == LZS_ENOMEM);
    CHECK(lzs_token_table_reserve(&table, ((size_t)1 << 30) + 1) == LZS_ENOMEM);
    CHECK(lzs_token_table_reserve(&table, SIZE_MAX) == LZS_ENOMEM);
    CHECK(lzs_token_table_memory(&table) == memory && lzs_token_table_take(&table, 5) == 0);
    lzs_token_table_free(&table);
}

int main(void) {
    test_random(1, N_TOKENS, 1, 60000);
    test_random(2, 12, 1, 20000);
    test_random(3, 37, 16, 20000);
    test_random(4, 75, 8, 20000);
    test_grow();
    test_too_many();
    return 0;
}
