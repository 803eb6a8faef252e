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
    int32_t window, buffer; /* of the paper's rule */
    size_t count_window;
    int32_t dry_window, n_vocab;
    size_t n_breakers; /* tokens 0 to this - 1 are breakers of DRY, and separators of LZ */
    int32_t lz_window, lz_item; /* tokens 2 to 9 are commas of LZ, in a list of items shorter than this */
} config;

/* The watches: of LZ by bit sets, of the paper's rule without separators, and of DRY by a list. */
enum { LZ, PAPER, DRY, N_WATCHES };

static lzs_history history_of(config c) {
    static const int32_t breakers[] = {0, 1, 2, 3};
    static const uint32_t sets[][2] = {{0, 0}, {1, 0}, {3, 0}, {7, 0}, {15, 0}}, commas[2] = {0x3fc, 0};
    lzs_history_shape shape = {.n_vocab = c.n_vocab, .reach = c.window - c.buffer, .buffer = c.buffer, .count_window = c.count_window,
                               .n_watches = N_WATCHES};
    shape.watches[LZ] = (lzs_watch_shape){c.lz_window, c.lz_window, {.set = sets[c.n_breakers], .commas = c.lz_item ? commas : NULL,
                                                                     .item = c.lz_item}};
    shape.watches[PAPER] = (lzs_watch_shape){.window = c.window - c.buffer, .cap = c.buffer};
    shape.watches[DRY] = (lzs_watch_shape){c.dry_window, UINT16_MAX, {.tokens = breakers, .n = c.n_breakers}};
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

/* The lengths at all distances, and the tokens since the last separator after each token. */
static void check_watch(const lzs_history *h, const model *m, int which, int32_t window, int32_t cap, config c) {
    const lzs_watch *w = &h->watches[which];
    CHECK(w->index.window == window && (w->index.room == window || (size_t)w->index.room + 1 >= m->n));
    CHECK(window == 0 || lzs_watched(h, w) == (m->n < (size_t)window ? (int32_t)m->n : window));
    for (int32_t d = 1; d <= w->index.room; d++) CHECK(lzs_suffix_at(w, d) == common_end(m, (size_t)d, cap));
    int32_t since = 0;
    for (size_t i = 0; window && i < m->n; i++) {
        const bool comma = which == LZ && m->tokens[i] >= 2 && m->tokens[i] <= 9;
        since++;
        if (which != PAPER && (size_t)m->tokens[i] < c.n_breakers) since = 0;
        if (comma && since < c.lz_item) since = 0;
        CHECK(w->since[i] == since);
    }
    if (window) CHECK(lzs_unbroken(w, h->n) == since);
}

static void check_same(const lzs_history *h, const model *m, config c) {
    CHECK(h->n == m->n && h->n <= h->capacity);
    CHECK(m->n == 0 || memcmp(h->tokens, m->tokens, m->n * sizeof *m->tokens) == 0);
    check_watch(h, m, LZ, c.lz_window, c.lz_window, c);
    check_watch(h, m, PAPER, c.window - c.buffer, c.buffer, c);
    check_watch(h, m, DRY, c.dry_window, UINT16_MAX, c);

    int32_t counts[MAX_VOCAB] = {0}, last[MAX_VOCAB];
    uint32_t distinct = 0;
    size_t distinct_in_reach = 0;
    if (c.count_window) {
        size_t from = m->n > c.count_window ? m->n - c.count_window : 0;
        for (size_t i = from; i < m->n; i++) counts[m->tokens[i]]++;
    }
    for (int32_t t = 0; t < MAX_VOCAB; t++) last[t] = -1;
    int32_t reach = lzs_history_reach(h), in_reach = 0;
    for (size_t i = (size_t)c.buffer; h->reach && i < m->n; i++) { /* a whole buffer before it, in the window */
        if (m->n - i > (size_t)h->reach) continue;
        last[m->tokens[i]] = (int32_t)i;
        in_reach++;
    }
    CHECK(h->reach == 0 || reach == in_reach);
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
    config c = {20, 4, SIZE_MAX, 30, 5, 1, 25, 3};
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
        config c = {lz ? 512 : 0, lz ? 32 : 0, SIZE_MAX, 0, 100, 0, 0, 0};
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
        {0, 0, 0, 0, 3, 0, 0, 0},         {0, 0, SIZE_MAX, 0, 3, 0, 0, 0},  {0, 0, 1, 9, 3, 1, 0, 0},         {0, 0, 7, 1, MAX_VOCAB, 0, 0, 0},
        {2, 1, 0, 2, 2, 0, 0, 0},         {3, 2, 3, 40, 2, 1, 0, 0},        {33, 32, 64, 0, 2, 0, 0, 0},      {64, 8, 5, 70, 4, 0, 0, 0},
        {65, 64, 0, 3, 1, 0, 0, 0},       {128, 3, SIZE_MAX, 0, 9, 0, 0, 0}, {256, 1, 50, 200, MAX_VOCAB, 4, 0, 0}, {4096, 300, 16, 600, 3, 0, 0, 0},
        {0, 0, 0, 0, 2, 1, 2, 1},         {0, 0, 0, 9, 3, 1, 40, 3},        {0, 0, 11, 0, 4, 2, 64, 5},       {0, 0, 0, 0, MAX_VOCAB, 4, 512, 4},
        {64, 8, 5, 70, 12, 2, 2000, 6},   {0, 0, 0, 0, 12, 0, 100, 100},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) test_random(configs[i], i + 1, configs[i].window > 500 || configs[i].lz_window > 500 ? 300 : 2500);
    test_all_distinct();
    test_full();
    test_memory_of_a_prompt();
    return 0;
}
