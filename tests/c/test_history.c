/* test_history.c - random operations on the history against a model that is a plain list of tokens. */
#include <string.h>

#include "check.h"
#include "lzs_internal.h"

enum { MAX_TOKENS = 4000, MAX_VOCAB = 40 };

typedef struct model {
    int32_t tokens[MAX_TOKENS];
    size_t n;
} model;

typedef struct config {
    int32_t window, buffer;
    size_t count_window;
    int32_t n_vocab;
} config;

static int32_t common_end(const model *m, size_t distance, int32_t cap) {
    int32_t length = 0;
    while (length < cap && distance + (size_t)length < m->n &&
           m->tokens[m->n - 1 - (size_t)length] == m->tokens[m->n - 1 - (size_t)length - distance]) {
        length++;
    }
    return length;
}

static void check_same(const lzs_history *h, const model *m, config c) {
    CHECK(h->n == m->n && h->n <= h->capacity);
    CHECK(m->n == 0 || memcmp(h->tokens, m->tokens, m->n * sizeof *m->tokens) == 0);
    CHECK(h->n_reach == (c.window > c.buffer ? c.window - c.buffer : 0));
    for (int32_t d = 1; d <= h->n_reach; d++) CHECK(h->len[h->n_reach - d] == common_end(m, (size_t)d, c.buffer));

    int32_t counts[MAX_VOCAB] = {0}, last[MAX_VOCAB];
    uint32_t distinct = 0;
    if (c.count_window) {
        size_t from = m->n > c.count_window ? m->n - c.count_window : 0;
        for (size_t i = from; i < m->n; i++) counts[m->tokens[i]]++;
    }
    for (int32_t t = 0; t < MAX_VOCAB; t++) last[t] = -1;
    int32_t reach = lzs_history_reach(h), in_reach = 0;
    for (size_t i = (size_t)c.buffer; h->n_reach && i < m->n; i++) { /* a whole buffer before it, in the window */
        if (m->n - i > (size_t)h->n_reach) continue;
        last[m->tokens[i]] = (int32_t)i;
        in_reach++;
    }
    CHECK(reach == in_reach);
    for (int32_t t = 0; t < MAX_VOCAB; t++) {
        int32_t at = lzs_bag_find(&h->bag, t);
        CHECK((at >= 0) == (counts[t] > 0 || last[t] >= 0));
        if (at < 0) continue;
        distinct++;
        CHECK(h->bag.items[at].token == t && h->bag.items[at].count == counts[t] && h->bag.items[at].last == last[t]);
    }
    CHECK(h->bag.n == distinct && h->bag.n <= h->bag.capacity);
}

static void test_random(config c, uint64_t seed, int n_steps) {
    uint64_t state = seed;
    static model m;
    m.n = 0;
    lzs_history h;
    CHECK(lzs_history_init(&h, c.window, c.buffer, c.count_window, c.n_vocab, &lzs_kernels_scalar) == LZS_OK);
    check_same(&h, &m, c);
    for (int step = 0; step < n_steps; step++) {
        int action = random_below(&state, 100);
        if (action < 70) {
            /* a period now and then, so that long matches happen in any vocabulary */
            int32_t token = random_below(&state, c.n_vocab);
            if (m.n > 5 && step % 200 < 120) token = m.tokens[m.n - 5];
            if (m.n == MAX_TOKENS) continue;
            m.tokens[m.n++] = token;
            CHECK(lzs_history_append(&h, &token, 1) == LZS_OK);
        } else if (action < 80) {
            size_t n = (size_t)random_below(&state, 60);
            if (m.n + n > MAX_TOKENS) continue;
            for (size_t i = 0; i < n; i++) m.tokens[m.n + i] = random_below(&state, c.n_vocab);
            CHECK(lzs_history_append(&h, m.tokens + m.n, n) == LZS_OK);
            m.n += n;
        } else if (action < 95) {
            size_t n = (size_t)random_below(&state, action == 94 ? 200 : 8);
            if (n > m.n) n = m.n;
            m.n -= n;
            lzs_history_rewind(&h, n);
        } else if (action < 99) {
            lzs_history copy;
            CHECK(lzs_history_copy(&copy, &h) == LZS_OK);
            CHECK(lzs_history_memory(&copy) == lzs_history_memory(&h));
            int32_t token = 0;
            CHECK(lzs_history_append(&h, &token, 1) == LZS_OK); /* which the copy must not see */
            lzs_history_free(&h);
            h = copy;
        } else if (random_below(&state, 5) == 0) {
            lzs_history_clear(&h);
            m.n = 0;
        }
        check_same(&h, &m, c);
    }
    lzs_history_free(&h);
}

/* A window in which every token is another: as many items as there can be, one more while a token slides in. */
static void test_all_distinct(void) {
    for (size_t window = 1; window < 300; window++) {
        lzs_history h;
        CHECK(lzs_history_init(&h, 0, 0, window, 700, &lzs_kernels_scalar) == LZS_OK);
        for (int32_t t = 0; t < 700; t++) {
            CHECK(lzs_history_append(&h, &t, 1) == LZS_OK);
            CHECK(h.bag.n == (h.n < window ? h.n : window) && h.bag.n <= h.bag.capacity);
        }
        lzs_history_rewind(&h, 600);
        CHECK(h.bag.n == (window < 100 ? window : 100));
        lzs_history_free(&h);
    }
}

int main(void) {
    static const config configs[] = {
        {0, 0, 0, 3},          {0, 0, SIZE_MAX, 3},  {0, 0, 1, 3},    {0, 0, 7, MAX_VOCAB}, {2, 1, 0, 2},
        {3, 2, 3, 2},          {33, 32, 64, 2},      {64, 8, 5, 4},   {65, 64, 0, 1},       {128, 3, SIZE_MAX, 9},
        {256, 1, 50, MAX_VOCAB}, {4096, 300, 16, 3},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) test_random(configs[i], i + 1, i + 1 < 12 ? 2500 : 300);
    test_all_distinct();
    return 0;
}
