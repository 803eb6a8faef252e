/* test_bag.c - random operations on the bag against a plain array. */
#include "check.h"
#include "lzs_internal.h"

enum { N_TOKENS = 600 };

static void check_same(const lzs_bag *bag, const int32_t *model) {
    uint32_t n = 0;
    for (int32_t t = 0; t < N_TOKENS; t++) {
        int32_t at = lzs_bag_find(bag, t);
        CHECK((at < 0) == (model[t] < 0));
        if (at < 0) continue;
        CHECK(bag->items[at].token == t && bag->items[at].count == model[t]);
        n++;
    }
    CHECK(bag->n == n);
}

/* Tokens of a stride that is a multiple of the table's size crowd into few slots: long probes, many shifts back. */
static void test_random(uint64_t seed, int32_t n_tokens, int32_t stride, int n_steps) {
    uint64_t state = seed;
    lzs_bag bag = {0};
    static int32_t model[N_TOKENS];
    for (int32_t t = 0; t < N_TOKENS; t++) model[t] = -1;
    for (int step = 0; step < n_steps; step++) {
        int32_t token = random_below(&state, n_tokens) * stride % N_TOKENS, at;
        int action = random_below(&state, 100);
        if (action < 50) {
            CHECK(lzs_bag_reserve(&bag, bag.n + 1) == LZS_OK);
            uint32_t n = bag.n;
            at = lzs_bag_take(&bag, token);
            if (model[token] < 0) CHECK(bag.n == n + 1 && bag.items[at].count == 0 && bag.items[at].last == -1);
            bag.items[at].count = model[token] = random_below(&state, 1 << 30);
        } else if (action < 97) {
            at = lzs_bag_find(&bag, token);
            if (at >= 0) lzs_bag_remove(&bag, at);
            model[token] = -1;
        } else if (action < 99) {
            lzs_bag copy;
            CHECK(lzs_bag_copy(&copy, &bag) == LZS_OK);
            check_same(&copy, model);
            lzs_bag_free(&bag);
            bag = copy;
        } else if (random_below(&state, 20) == 0) {
            lzs_bag_clear(&bag);
            for (int32_t t = 0; t < N_TOKENS; t++) model[t] = -1;
        }
        if (step % 50 == 0) check_same(&bag, model);
    }
    check_same(&bag, model);
    CHECK(lzs_bag_memory(&bag) >= (size_t)bag.n * 20); /* three words an item, two slots or more */
    lzs_bag_free(&bag);
    lzs_bag_free(&bag); /* a freed bag is empty */
    CHECK(lzs_bag_find(&bag, 1) == -1);
}

static void test_grow(void) {
    lzs_bag bag = {0};
    for (int32_t t = 0; t < 100000; t++) {
        CHECK(lzs_bag_reserve(&bag, bag.n + 1) == LZS_OK);
        CHECK(lzs_bag_take(&bag, t * 131) == t);
    }
    CHECK(bag.n == 100000 && 2 * bag.n <= bag.n_slots);
    for (int32_t t = 0; t < 100000; t++) CHECK(lzs_bag_find(&bag, t * 131) == t);
    lzs_bag_free(&bag);
}

int main(void) {
    test_random(1, N_TOKENS, 1, 60000);
    test_random(2, 12, 1, 20000);
    test_random(3, 37, 16, 20000);
    test_random(4, 75, 8, 20000);
    test_grow();
    return 0;
}
