/* test_match_index.c - the lengths of matches against a direct comparison: all short texts over small alphabets, for all
 * small windows and caps, built token by token and at once. */
#include <string.h>

#include "check.h"
#include "state/match_index.h"

static int32_t common_end(const int32_t *tokens, size_t n, size_t distance, int32_t cap) {
    int32_t length = 0;
    while (length < cap && distance + (size_t)length < n &&
           tokens[n - 1 - (size_t)length] == tokens[n - 1 - (size_t)length - distance]) {
        length++;
    }
    return length;
}

static lzs_match_index index_of(int32_t window, int32_t cap, size_t n) {
    lzs_match_index index = {.window = window, .cap = cap};
    CHECK(lzs_match_index_reserve(&index, n) == LZS_OK);
    return index;
}

static void check_index(const lzs_match_index *index, const int32_t *tokens, size_t n) {
    for (int32_t d = 1; d <= index->room; d++) {
        CHECK(lzs_match_length(index, d) == common_end(tokens, n, (size_t)d, index->cap));
    }
}

static void test_text(const int32_t *tokens, size_t n, int32_t window, int32_t cap) {
    lzs_match_index grown = index_of(window, cap, n), rebuilt = index_of(window, cap, n);
    for (size_t i = 1; i <= n; i++) lzs_match_index_extend(&grown, &lzs_kernels_scalar, tokens, i);
    lzs_match_index_rebuild(&rebuilt, tokens, n);
    check_index(&grown, tokens, n);
    check_index(&rebuilt, tokens, n);
    lzs_match_index_free(&grown);
    lzs_match_index_free(&rebuilt);
}

static void test_all_texts(int32_t n_letters, int length) {
    int32_t tokens[16];
    int64_t n_texts = 1;
    for (int i = 0; i < length; i++) n_texts *= n_letters;
    for (int64_t text = 0; text < n_texts; text++) {
        int64_t rest = text;
        for (int i = 0; i < length; i++, rest /= n_letters) tokens[i] = (int32_t)(rest % n_letters);
        for (int32_t window = 1; window <= length + 1; window++) {
            for (int32_t cap = 1; cap <= length; cap += cap < 4 ? 1 : 3) test_text(tokens, (size_t)length, window, cap);
        }
    }
}

/* Long texts that repeat themselves with small faults, as those that a rewind is slow on. */
static void test_periodic(void) {
    static int32_t tokens[3000];
    uint64_t state = 1;
    for (int round = 0; round < 60; round++) {
        int32_t period = 1 + random_below(&state, 40), n = 1 + random_below(&state, 3000);
        int32_t fault = 20 + random_below(&state, 900);
        for (int32_t i = 0; i < n; i++) {
            bool follow = i >= period && random_below(&state, fault);
            tokens[i] = follow ? tokens[i - period] : random_below(&state, 3);
        }
        int32_t window = 1 + random_below(&state, 3200), cap = 1 + random_below(&state, round % 2 ? 300 : 65535);
        lzs_match_index index = index_of(window, cap, (size_t)n);
        lzs_match_index_rebuild(&index, tokens, (size_t)n);
        check_index(&index, tokens, (size_t)n);
        lzs_match_index_free(&index);
    }
}

/* Rebuilding takes time that is linear in the window. Comparing every distance afresh, 300 times 131,072 * 4,096 tokens,
 * would not end before the time limit of the test. */
static void test_the_worst_text(void) {
    enum { WINDOW = 131072, CAP = 4096 };
    int32_t *tokens = calloc(WINDOW, sizeof *tokens);
    CHECK(tokens);
    lzs_match_index index = index_of(WINDOW, CAP, WINDOW);
    for (int i = 0; i < 300; i++) lzs_match_index_rebuild(&index, tokens, WINDOW - (size_t)i);
    for (int32_t d = 1; d < WINDOW - 299; d++) {
        int32_t limit = WINDOW - 299 - d;
        CHECK(lzs_match_length(&index, d) == (limit < CAP ? limit : CAP));
    }
    lzs_match_index_free(&index);
    free(tokens);
}

/* The walk meets every distance that has a match once, nearest first. */
static void test_walk(void) {
    static int32_t tokens[4000];
    uint64_t state = 2;
    const lzs_kernels *kernels;
    for (int t = 0; (kernels = lzs_kernels_at(t)); t++) {
        for (int round = 0; round < 40; round++) {
            int32_t n = 1 + random_below(&state, 4000), letters = 1 + random_below(&state, 300);
            for (int32_t i = 0; i < n; i++) tokens[i] = random_below(&state, letters);
            lzs_match_index index = index_of(n, 9, (size_t)n);
            lzs_match_index_rebuild(&index, tokens, (size_t)n);
            uint16_t least = (uint16_t)(1 + random_below(&state, 4));
            lzs_match_walk walk = {.reach = random_below(&state, n), .least = least};
            int32_t expected = 0;
            while (lzs_match_walk_on(&walk, &index, kernels)) {
                for (int32_t i = walk.n - 1; i >= 0; i--) {
                    do expected++;
                    while (expected <= walk.reach && lzs_match_length(&index, expected) < least);
                    CHECK(walk.base - walk.found[i] == expected);
                }
            }
            while (++expected <= walk.reach) CHECK(lzs_match_length(&index, expected) < least);
            lzs_match_index_free(&index);
        }
    }
}

int main(void) {
    for (int length = 1; length <= 10; length++) test_all_texts(2, length);
    for (int length = 1; length <= 6; length++) test_all_texts(3, length);
    test_periodic();
    test_the_worst_text();
    test_walk();
    return 0;
}
