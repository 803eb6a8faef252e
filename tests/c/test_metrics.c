/* test_metrics.c - words, ids, figures and the near view of texts in blocks of their own size, so that a read or a write
 * past an end is seen, against slow counts. tests/test_metrics.py has the rest, with a twin in Python. */
#include <stdbool.h>
#include <string.h>

#include "../../c/lzsampler.h"
#include "check.h"

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
    uint8_t *view = malloc(n + 1);
    uint32_t fold[256];
    uint64_t places[2] = {0, 0};
    size_t n_view;
    CHECK(view);
    for (uint32_t c = 0; c < 256; c++) fold[c] = c == 'b' ? 'a' : c == '\n' ? ' ' : c;
    CHECK(lzs_near_view(text, n, fold, 256, view, &n_view, NULL, 0) == LZS_OK && n_view <= n);
    places[1] = n_view;
    CHECK(lzs_near_view(text, n, fold, 256, view, &n_view, places, 2) == LZS_OK);
    CHECK(places[0] == 0 && places[1] <= n && places[1] >= n_view / 4);
    for (size_t i = 0; i < n_view; i++) CHECK(view[i] != 'b' && view[i] != '\n' && (!i || view[i] != ' ' || view[i - 1] != ' '));
    free(words);
    free(lines);
    free(ids);
    free(view);
}

/* Letters, white space of one to three bytes, and what is cut off in the middle of a character. */
static void test_random(void) {
    static const char *const parts[] = {"a", "b", "ab", "abababab", "abcdefghi", " ", "\n", "\n\n", "\xC2\xA0", "\xE2\x80\x89",
                                        "\xE3\x80\x80", "\xC3\xA9", "\xF0\x9F\x98\x80", "\xE2", "\x80", "\xED\xA0\x80", "0"};
    uint64_t state = 7;
    for (int round = 0; round < 4000; round++) {
        uint8_t text[MOST + 16];
        size_t n = 0, most = (size_t)random_below(&state, MOST);
        int32_t n_parts = 2 + random_below(&state, (int32_t)(sizeof parts / sizeof *parts) - 1);
        while (n < most) {
            const char *part = parts[random_below(&state, n_parts)];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        n = most; /* may cut a character */
        uint8_t *exact = malloc(n ? n : 1);
        CHECK(exact);
        memcpy(exact, text, n);
        check_text(exact, n);
        free(exact);
    }
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
    CHECK(lzs_text_figures((const uint8_t *)"abc", 3, spans, ids, 2, &figures) == LZS_EINVAL); /* no id of two words */
    ids[1] = 1;
    CHECK(lzs_text_figures((const uint8_t *)"abc", 3, spans, ids, 2, &figures) == LZS_OK && figures.characters == 3);
}

int main(void) {
    test_random();
    test_arguments();
    return 0;
}
