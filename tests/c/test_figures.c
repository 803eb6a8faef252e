/* test_figures.c - compares the words, lines, numbers and figures of random texts with slow counts.
 *
 * tests/test_metrics.py compares all figures with the twin in Python.
 */
#include <stdbool.h>

#include "lzsampler_text.h"
#include "texts.h"

enum { MOST = 400 };

static bool same(const uint8_t *text, lzs_span a, lzs_span b) {
    return a.end - a.start == b.end - b.start && !memcmp(text + a.start, text + b.start, a.end - a.start);
}

static bool same_grams(const int32_t *ids, size_t i, size_t j, size_t n) {
    return !memcmp(ids + i, ids + j, n * sizeof *ids);
}

static void check_text(const uint8_t *text, size_t n) {
    size_t n_words, n_lines, n_distinct;
    lzs_status status = lzs_split(text, n, LZS_SPLIT_WORDS, NULL, 0, &n_words);
    CHECK(status == (n_words ? LZS_ESPACE : LZS_OK) && n_words <= n / 2 + 1);
    status = lzs_split(text, n, LZS_SPLIT_LINES, NULL, 0, &n_lines);
    CHECK(status == (n_lines ? LZS_ESPACE : LZS_OK) && n_lines <= n);
    lzs_span *words = malloc(n_words * sizeof *words + 1), *lines = malloc(n_lines * sizeof *lines + 1);
    int32_t *ids = malloc(n_words * sizeof *ids + 1);
    CHECK(words && lines && ids);
    CHECK(lzs_split(text, n, LZS_SPLIT_WORDS, words, n_words, &n_words) == LZS_OK);
    CHECK(lzs_split(text, n, LZS_SPLIT_LINES, lines, n_lines, &n_lines) == LZS_OK);
    CHECK(lzs_intern(text, n, words, n_words, ids, &n_distinct) == LZS_OK);
    int32_t next = 0;
    for (size_t i = 0; i < n_words; i++) {
        CHECK(words[i].start < words[i].end && words[i].end <= n && (!i || words[i - 1].end < words[i].start));
        size_t first = 0;
        while (!same(text, words[first], words[i])) first++;
        CHECK(ids[i] == (first == i ? next++ : ids[first]));
    }
    CHECK((size_t)next == n_distinct);
    lzs_figures figures;
    CHECK(lzs_text_figures(text, n, words, ids, n_words, &figures) == LZS_OK);
    CHECK(figures.words == n_words);
    for (size_t k = 1; k <= 4; k++) {
        uint64_t distinct = 0;
        for (size_t i = 0; i + k <= n_words; i++) {
            size_t first = 0;
            while (!same_grams(ids, first, i, k)) first++;
            distinct += first == i;
        }
        CHECK(figures.distinct[k - 1] == distinct);
        CHECK(figures.ngrams[k - 1] == (n_words >= k ? n_words - k + 1 : 0));
    }
    uint64_t extensible = 0, extended = 0;
    for (size_t i = 4; i < n_words; i++) {
        bool before = false, longer = false;
        for (size_t j = 4; j < i; j++) {
            if (!same_grams(ids, j - 4, i - 4, 4)) continue;
            before = true;
            longer |= ids[j] == ids[i];
        }
        extensible += before;
        extended += longer;
    }
    CHECK(figures.extensible == extensible && figures.extended == extended);
    lzs_figures of_numbers;
    CHECK(lzs_number_figures(ids, n_words, &of_numbers) == LZS_OK);
    CHECK(of_numbers.words == n_words && !of_numbers.characters && !of_numbers.lines && !of_numbers.top_characters[0]);
    CHECK(!memcmp(of_numbers.ngrams, figures.ngrams, sizeof figures.ngrams));
    CHECK(!memcmp(of_numbers.distinct, figures.distinct, sizeof figures.distinct));
    CHECK(of_numbers.tail_ngrams == figures.tail_ngrams && of_numbers.tail_distinct == figures.tail_distinct);
    CHECK(of_numbers.extensible == extensible && of_numbers.extended == extended);
    CHECK(of_numbers.frequent == figures.frequent);
    free(words);
    free(lines);
    free(ids);
}

/* Checks the 30-grams that occur often and the 4-grams of the last 512, for numbers that exceed their count. */
static void test_numbers(void) {
    enum { N = 1000 };
    static int32_t numbers[N];
    lzs_figures figures;
    for (int32_t i = 0; i < N; i++) numbers[i] = INT32_MAX - i; /* no two are equal */
    CHECK(lzs_number_figures(numbers, N, &figures) == LZS_OK);
    CHECK(figures.distinct[0] == N && figures.tail_ngrams == 509 && figures.tail_distinct == 509);
    CHECK(!figures.extensible && !figures.extended && !figures.frequent);
    for (int32_t i = 0; i < N; i++) numbers[i] = i < 49 ? 7 : INT32_MAX - i; /* 30 sevens begin at 20 places */
    CHECK(lzs_number_figures(numbers, N, &figures) == LZS_OK);
    CHECK(figures.frequent == 1 && figures.tail_distinct == 509);
    CHECK(figures.extensible == 45 && figures.extended == 44); /* the last four sevens end the repetition */
    CHECK(lzs_number_figures(numbers + 1, N - 1, &figures) == LZS_OK && !figures.frequent);
    for (int32_t i = 0; i < N; i++) numbers[i] = i % 40; /* 40 different 30-grams, the first 25 times */
    CHECK(lzs_number_figures(numbers, N, &figures) == LZS_OK);
    CHECK(figures.frequent == 40 && figures.tail_ngrams == 509 && figures.tail_distinct == 40);
    CHECK(lzs_number_figures(NULL, 0, &figures) == LZS_OK && !figures.words);
    CHECK(lzs_number_figures(NULL, 1, &figures) == LZS_EINVAL && lzs_number_figures(numbers, N, NULL) == LZS_EINVAL);
    numbers[5] = -1;
    CHECK(lzs_number_figures(numbers, N, &figures) == LZS_EINVAL);
}

static void test_random(void) {
    uint64_t state = 7;
    for (int round = 0; round < 4000; round++) {
        size_t n = (size_t)random_below(&state, MOST);
        uint8_t *text = random_text(&state, n);
        check_text(text, n);
        free(text);
    }
}

/* Checks that the figures depend on which words have equal numbers only, also if the numbers exceed the words of a
 * piece. */
static void test_numbers_of_any_order(void) {
    enum { N = 9 << 20, N_WORDS = N / 16 };
    uint8_t *text = malloc(N);
    lzs_span *words = malloc(N_WORDS * sizeof *words);
    int32_t *ids = malloc(N_WORDS * sizeof *ids);
    CHECK(text && words && ids);
    uint64_t state = 9;
    for (size_t i = 0; i < N_WORDS; i++) {
        memset(text + 16 * i, 'a' + random_below(&state, 20), 15);
        text[16 * i + 15] = ' ';
    }
    size_t n_words, n_distinct;
    lzs_figures figures, reversed;
    CHECK(lzs_split(text, N, LZS_SPLIT_WORDS, words, N_WORDS, &n_words) == LZS_OK && n_words == N_WORDS);
    CHECK(lzs_intern(text, N, words, n_words, ids, &n_distinct) == LZS_OK && n_distinct == 20);
    CHECK(lzs_text_figures(text, N, words, ids, n_words, &figures) == LZS_OK);
    CHECK(figures.distinct[0] == 3 * 20); /* the text has three pieces */
    for (size_t i = 0; i < n_words; i++) ids[i] = (int32_t)n_words - 1 - ids[i];
    CHECK(lzs_text_figures(text, N, words, ids, n_words, &reversed) == LZS_OK);
    CHECK(!memcmp(&figures, &reversed, sizeof figures));
    free(text);
    free(words);
    free(ids);
}

/* Checks that a piece ends within white space if no word ends in it, and that a word longer than a piece is not cut. */
static void test_long_white_space(void) {
    enum { PIECE = 4 << 20, N = 3 * PIECE };
    uint8_t *text = malloc(N);
    CHECK(text);
    memset(text, ' ', N);
    lzs_span words[2] = {{0, 1}, {N - 1, N}};
    int32_t ids[2] = {0, 0};
    lzs_figures figures;
    text[0] = text[N - 1] = 'a';
    CHECK(lzs_text_figures(text, N, words, ids, 2, &figures) == LZS_OK);
    CHECK(figures.lines == 4); /* the first word, two pieces of spaces, and the rest with the second word */
    CHECK(figures.words == 2 && figures.distinct[0] == 2 && figures.ngrams[1] == 0);
    words[1].start = PIECE + 100;
    memset(text + words[1].start, 'a', N - words[1].start);
    CHECK(lzs_text_figures(text, N, words, ids, 2, &figures) == LZS_OK);
    CHECK(figures.lines == 3); /* the first word, one piece of spaces, and 99 spaces with the second word */
    CHECK(figures.words == 2 && figures.distinct[0] == 2 && figures.ngrams[1] == 0);
    free(text);
}

static void test_arguments(void) {
    lzs_span spans[2] = {{0, 2}, {1, 3}};
    int32_t ids[2] = {0, 2};
    size_t n;
    lzs_figures figures;
    CHECK(lzs_split(NULL, 0, LZS_SPLIT_WORDS, NULL, 0, &n) == LZS_OK && n == 0);
    CHECK(lzs_split((const uint8_t *)"a", 1, LZS_SPLIT_WORDS, NULL, 0, NULL) == LZS_EINVAL);
    CHECK(lzs_split((const uint8_t *)"a", 1, -1, NULL, 0, &n) == LZS_EINVAL);
    CHECK(lzs_text_figures(NULL, 0, NULL, NULL, 0, &figures) == LZS_OK && figures.lines == 0);
    CHECK(lzs_text_figures((const uint8_t *)"abc", 3, spans, ids, 2, &figures) == LZS_EINVAL); /* they overlap */
    spans[1].start = 2;
    /* Two words have no number 2. */
    CHECK(lzs_text_figures((const uint8_t *)"abc", 3, spans, ids, 2, &figures) == LZS_EINVAL);
    ids[1] = 1;
    CHECK(lzs_text_figures((const uint8_t *)"abc", 3, spans, ids, 2, &figures) == LZS_OK && figures.characters == 3);
    lzs_span empty[2] = {{0, 0}, {0, 0}};
    CHECK(lzs_intern(NULL, 0, empty, 2, ids, &n) == LZS_OK && n == 1 && ids[0] == 0 && ids[1] == 0);
    CHECK(lzs_intern(NULL, 0, spans, 2, ids, &n) == LZS_EINVAL);
}

int main(void) {
    test_random();
    test_numbers();
    test_numbers_of_any_order();
    test_long_white_space();
    test_arguments();
    return 0;
}
