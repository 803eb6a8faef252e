/* test_map.c - random operations on the map against a plain array. */
#include "check.h"
#include "lzs_internal.h"

enum { N_TOKENS = 600 };

static void check_same(const lzs_map *map, const int32_t *model) {
    uint32_t n = 0;
    for (int32_t t = 0; t < N_TOKENS; t++) {
        CHECK(lzs_map_find(map, t) == model[t]);
        n += model[t] >= 0;
    }
    CHECK(map->n == n);
}

/* Tokens of a stride that is a multiple of the table's size crowd into few slots: long probes, many shifts back. */
static void test_random(uint64_t seed, int32_t n_tokens, int32_t stride, int n_steps) {
    uint64_t state = seed;
    lzs_map map;
    static int32_t model[N_TOKENS];
    for (int32_t t = 0; t < N_TOKENS; t++) model[t] = -1;
    CHECK(lzs_map_init(&map, 16) == LZS_OK);
    for (int step = 0; step < n_steps; step++) {
        int32_t token = random_below(&state, n_tokens) * stride % N_TOKENS;
        int action = random_below(&state, 100);
        if (action < 50) {
            if (2 * (map.n + 1) > map.capacity) CHECK(lzs_map_grow(&map, map.n + 1) == LZS_OK);
            model[token] = random_below(&state, 1 << 30);
            lzs_map_set(&map, token, model[token]);
        } else if (action < 97) {
            model[token] = -1;
            lzs_map_remove(&map, token);
        } else if (action < 99) {
            lzs_map copy;
            CHECK(lzs_map_copy(&copy, &map) == LZS_OK);
            check_same(&copy, model);
            lzs_map_free(&map);
            map = copy;
        } else if (random_below(&state, 20) == 0) {
            lzs_map_clear(&map);
            for (int32_t t = 0; t < N_TOKENS; t++) model[t] = -1;
        }
        CHECK(lzs_map_find(&map, token) == model[token]);
        if (step % 50 == 0) check_same(&map, model);
    }
    check_same(&map, model);
    CHECK(lzs_map_memory(&map) >= (size_t)map.n * 16); /* at most half full, two words an entry */
    lzs_map_free(&map);
    lzs_map_free(&map); /* a freed map is empty */
}

static void test_grow(void) {
    lzs_map map;
    CHECK(lzs_map_init(&map, 1) == LZS_OK);
    for (int32_t t = 0; t < 100000; t++) {
        CHECK(lzs_map_grow(&map, map.n + 1) == LZS_OK);
        lzs_map_set(&map, t * 131, t);
    }
    CHECK(map.n == 100000 && 2 * map.n <= map.capacity);
    for (int32_t t = 0; t < 100000; t++) CHECK(lzs_map_find(&map, t * 131) == t);
    lzs_map_free(&map);
}

int main(void) {
    test_random(1, N_TOKENS, 1, 60000);
    test_random(2, 12, 1, 20000);
    test_random(3, 37, 16, 20000);
    test_random(4, 75, 8, 20000);
    test_grow();
    return 0;
}
