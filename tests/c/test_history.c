/* test_history.c - random operations on the history against a model that is a plain list of tokens. */
#include <string.h>

#include "check.h"
#include "state/history.h"

enum { MAX_TOKENS = 4000, MAX_VOCAB = 40 };

typedef struct model {
    int32_t tokens[MAX_TOKENS];
    size_t n;
} model;

typedef struct config {
    int32_t window, buffer;
    size_t count_window;
    int32_t dry_window, n_vocab; /* a window of 1 switches DRY off: nothing comes before its last token */
    size_t n_breakers; /* tokens 0 to this - 1 are breakers */
    bool finds; /* LZ prices no match of length 1 */
} config;

static lzs_history history_of(config c) {
    static const int32_t breakers[] = {0, 1, 2, 3};
    lzs_token_list list = {breakers, c.n_breakers}, none = {NULL, 0};
    bool by_nearest = c.window && !c.finds;
    lzs_history_shape shape = {c.n_vocab, c.window, c.buffer, by_nearest, c.dry_window, c.count_window, c.finds ? list : none, list};
    lzs_history h;
    CHECK(lzs_history_init(&h, &shape, &lzs_kernels_scalar) == LZS_OK);
    return h;
}

static int32_t common_end(const model *m, size_t distance, int32_t cap) {
    int32_t length = 0;
    while (length < cap && distance + (size_t)length < m->n &&
           m->tokens[m->n - 1 - (size_t)length] == m->tokens[m->n - 1 - (size_t)length - distance]) {
        length++;
    }
    return length;
}

static void check_breakers(const lzs_breakers *b, const model *m, bool on) {
    size_t unbroken = 0;
    while (unbroken < m->n && (size_t)m->tokens[m->n - 1 - unbroken] >= b->n) unbroken++;
    if (!on) {
        CHECK(b->unbroken == 0);
    } else if (b->exact) {
        CHECK(b->unbroken == unbroken);
    } else { /* a rewind looked back no further than matters */
        CHECK(b->unbroken > b->window && b->unbroken <= unbroken);
    }
}

static void check_same(const lzs_history *h, const model *m, config c) {
    CHECK(h->n == m->n && h->n <= h->capacity);
    CHECK(m->n == 0 || memcmp(h->tokens, m->tokens, m->n * sizeof *m->tokens) == 0);
    int32_t left_out = c.finds ? 0 : c.buffer;
    CHECK(h->lz.window == c.window - left_out && h->lz.room == h->lz.window);
    for (int32_t d = 1; d <= h->lz.window; d++) CHECK(lzs_match_length(&h->lz, d) == common_end(m, (size_t)d, c.buffer));
    for (int32_t d = 1; d <= h->dry.room; d++) CHECK(lzs_match_length(&h->dry, d) == common_end(m, (size_t)d, UINT16_MAX));
    check_breakers(&h->lz_breakers, m, c.window > 0);
    check_breakers(&h->dry_breakers, m, c.dry_window > 1);
    for (int32_t d = 1; c.finds && d <= h->lz.window; d++) { /* a suffix without breakers, or one that covers its distance */
        int32_t suffix = common_end(m, (size_t)d, c.buffer), whole = 0;
        while (whole < suffix && (size_t)m->tokens[m->n - 1 - (size_t)whole] >= c.n_breakers) whole++;
        CHECK(lzs_history_lz_suffix(h, suffix, d) == (suffix >= d ? suffix : whole));
    }
    CHECK(c.dry_window < 2 || lzs_history_dry_reach(h) <= h->dry.room);

    int32_t counts[MAX_VOCAB] = {0}, last[MAX_VOCAB];
    uint32_t distinct = 0;
    size_t distinct_in_reach = 0;
    if (c.count_window) {
        size_t from = m->n > c.count_window ? m->n - c.count_window : 0;
        for (size_t i = from; i < m->n; i++) counts[m->tokens[i]]++;
    }
    for (int32_t t = 0; t < MAX_VOCAB; t++) last[t] = -1;
    int32_t reach = lzs_history_reach(h), in_reach = 0;
    for (size_t i = (size_t)left_out; h->lz.window && i < m->n; i++) { /* a whole buffer before it, in the window */
        if (m->n - i > (size_t)h->lz.window) continue;
        if (!c.finds) last[m->tokens[i]] = (int32_t)i;
        in_reach++;
    }
    CHECK(reach == in_reach);
    for (int32_t t = 0; t < MAX_VOCAB; t++) {
        int32_t at = lzs_token_table_find(&h->table, t);
        CHECK((at >= 0) == (counts[t] > 0 || last[t] >= 0));
        if (at < 0) continue;
        distinct++;
        const lzs_token_entry *entry = &h->table.entries[at];
        CHECK(entry->token == t && entry->count == counts[t] && entry->last == last[t]);
        distinct_in_reach += last[t] >= 0;
    }
    CHECK(h->table.n == distinct && h->table.n <= h->table.capacity && h->n_in_reach == distinct_in_reach);
}

static void test_random(config c, uint64_t seed, int n_steps) {
    uint64_t state = seed;
    static model m;
    m.n = 0;
    lzs_history h = history_of(c);
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
            lzs_history copy = history_of(c);
            int32_t token = 0;
            for (int i = random_below(&state, 50); i > 0; i--) CHECK(lzs_history_append(&copy, &token, 1) == LZS_OK);
            CHECK(lzs_history_copy(&copy, &h) == LZS_OK);
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

/* A window in which every token is another: as many entries as there can be, one more while a token slides in. */
static void test_all_distinct(void) {
    for (size_t window = 1; window < 300; window++) {
        lzs_history h = history_of((config){.count_window = window, .n_vocab = 700});
        for (int32_t t = 0; t < 700; t++) {
            CHECK(lzs_history_append(&h, &t, 1) == LZS_OK);
            CHECK(h.table.n == (h.n < window ? h.n : window) && h.table.n <= h.table.capacity);
        }
        lzs_history_rewind(&h, 600);
        CHECK(h.table.n == (window < 100 ? window : 100));
        lzs_history_free(&h);
    }
}

/* A history that is full refuses a token, and a prompt that does not fit whole, and is as it was. */
static void test_full(void) {
    config c = {20, 4, SIZE_MAX, 30, 5, 1, false};
    static model m;
    lzs_history h = history_of(c);
    uint64_t state = 9;
    int32_t more[10];
    CHECK(h.most == INT32_MAX); /* positions are 32-bit numbers */
    h.most = 100;
    for (m.n = 0; m.n < 95; m.n++) {
        m.tokens[m.n] = random_below(&state, 5);
        CHECK(lzs_history_append(&h, &m.tokens[m.n], 1) == LZS_OK);
    }
    for (int i = 0; i < 10; i++) more[i] = i % 5;
    size_t memory = lzs_history_memory(&h);
    CHECK(lzs_history_append(&h, more, 6) == LZS_EFULL && lzs_history_append(&h, more, SIZE_MAX) == LZS_EFULL);
    CHECK(lzs_history_memory(&h) == memory);
    h.most = INT32_MAX;
    if (SIZE_MAX == UINT32_MAX) CHECK(lzs_history_append(&h, more, (size_t)1 << 29) == LZS_ENOMEM); /* of 8 bytes each */
    h.most = 100;
    check_same(&h, &m, c);
    CHECK(lzs_history_append(&h, more, 5) == LZS_OK && lzs_history_append(&h, more, 1) == LZS_EFULL);
    memcpy(m.tokens + m.n, more, 5 * sizeof *more);
    m.n += 5;
    check_same(&h, &m, c);
    lzs_history_rewind(&h, 1);
    CHECK(lzs_history_append(&h, more, 1) == LZS_OK && lzs_history_append(&h, more, 0) == LZS_OK);
    lzs_history_free(&h);
}

/* The memory of a long prompt with few distinct tokens is that of the same tokens one by one: a table has no more entries
 * than the vocabulary. */
static void test_memory_of_a_prompt(void) {
    enum { LENGTH = 400000 };
    int32_t *prompt = calloc(LENGTH, sizeof *prompt);
    CHECK(prompt);
    for (int lz = 0; lz < 2; lz++) {
        config c = {lz ? 512 : 0, lz ? 32 : 0, SIZE_MAX, 0, 100, 0, false};
        lzs_history at_once = history_of(c), one_by_one = history_of(c);
        CHECK(lzs_history_append(&at_once, prompt, LENGTH) == LZS_OK);
        for (size_t i = 0; i < LENGTH; i++) CHECK(lzs_history_append(&one_by_one, &prompt[i], 1) == LZS_OK);
        size_t a = lzs_history_memory(&at_once), b = lzs_history_memory(&one_by_one);
        CHECK(a <= 2 * b && b <= 2 * a && a < (size_t)LENGTH * (lz ? 17 : 9));
        lzs_history_free(&at_once);
        lzs_history_free(&one_by_one);
    }
    free(prompt);
}

int main(void) {
    static const config configs[] = {
        {0, 0, 0, 0, 3, 0, false},      {0, 0, SIZE_MAX, 0, 3, 0, false},   {0, 0, 1, 9, 3, 1, false},   {0, 0, 7, 1, MAX_VOCAB, 0, false},
        {2, 1, 0, 2, 2, 0, false},      {3, 2, 3, 40, 2, 1, false},         {33, 32, 64, 0, 2, 0, false}, {64, 8, 5, 70, 4, 0, false},
        {65, 64, 0, 3, 1, 0, false},    {128, 3, SIZE_MAX, 0, 9, 0, false}, {256, 1, 50, 200, MAX_VOCAB, 4, false},
        {4096, 300, 16, 600, 3, 0, false},
        {2, 1, 0, 0, 2, 1, true}, {40, 7, 0, 9, 3, 1, true}, {64, 63, 11, 0, 4, 2, true}, {512, 100, 0, 0, MAX_VOCAB, 4, true},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) test_random(configs[i], i + 1, configs[i].window > 500 ? 300 : 2500);
    test_all_distinct();
    test_full();
    test_memory_of_a_prompt();
    return 0;
}
