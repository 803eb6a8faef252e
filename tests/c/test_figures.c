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

/* Whether spans of a text have runs that count. */
static bool spans_repeat(const uint8_t *text, size_t n, int32_t kind, const lzs_screen_rules *rules) {
    lzs_span *spans = malloc((n + 1) * sizeof *spans);
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    lzs_repetition *runs = malloc((n + 1) * sizeof *runs);
    size_t n_spans, n_distinct, n_runs;
    bool found = false;
    CHECK(spans && ids && runs);
    CHECK(lzs_split(text, n, kind, spans, n + 1, &n_spans) == LZS_OK);
    CHECK(lzs_intern(text, n, spans, n_spans, ids, &n_distinct) == LZS_OK);
    CHECK(lzs_token_runs(ids, n_spans, 2, 0, 0, runs, n + 1, &n_runs) == LZS_OK);
    for (size_t i = 0; i < n_runs; i++) {
        uint32_t n_bytes = spans[runs[i].start + runs[i].length - 1].end - spans[runs[i].start].start;
        if (runs[i].length >= rules->copies * runs[i].period) found = true;
        if (runs[i].length >= rules->length_copies * runs[i].period && n_bytes >= rules->length) found = true;
    }
    free(spans);
    free(ids);
    free(runs);
    return found;
}

/* Runs of bytes, those of the lengths and those of the copies, with periods of `least` bytes or more. */
static void bytes_repeat(const uint8_t *text, size_t n, uint64_t copies, uint64_t few, uint64_t length, uint64_t least,
                         bool found[2]) {
    lzs_repetition *runs = malloc((n + 1) * sizeof *runs);
    size_t n_runs;
    CHECK(runs && lzs_byte_runs(text, n, 2, 0, 0, runs, n + 1, &n_runs) == LZS_OK);
    found[0] = found[1] = false;
    for (size_t i = 0; i < n_runs; i++) {
        uint64_t n_copies = runs[i].length / runs[i].period;
        if (runs[i].period < least) continue;
        if (n_copies >= (few < copies ? few : copies) && runs[i].length >= length) found[0] = true;
        if (n_copies >= copies && runs[i].period <= (length - 1) / copies) found[1] = true;
    }
    free(runs);
}

/* A screen says what the scans would find, or that it did not look since half of the text is a run. */
static void check_screen(const uint8_t *text, size_t n, const lzs_screen_rules *rules, int *n_seen) {
    uint32_t fold[256];
    for (uint32_t c = 0; c < 256; c++) fold[c] = c == 'b' ? 'a' : c == '\n' ? ' ' : c;
    lzs_screening found;
    CHECK(lzs_screen(text, n, rules, fold, 256, &found) == LZS_OK);
    int32_t may = found.may;
    lzs_figures alone;
    size_t n_words, n_distinct, n_view;
    lzs_span *words = malloc((n + 1) * sizeof *words);
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    uint8_t *view = malloc(n + 1);
    CHECK(words && ids && view);
    CHECK(lzs_split(text, n, LZS_SPLIT_WORDS, words, n, &n_words) == LZS_OK);
    CHECK(lzs_intern(text, n, words, n_words, ids, &n_distinct) == LZS_OK);
    CHECK(lzs_text_figures(text, n, words, ids, n_words, &alone) == LZS_OK);
    CHECK(!memcmp(&found.figures, &alone, sizeof alone));
    lzs_repetition runs[LZS_SCREEN_RUNS];
    size_t n_runs;
    uint64_t few = rules->length_copies < rules->any_copies ? rules->length_copies : rules->any_copies;
    (void)lzs_byte_runs(text, n, few, rules->length, 0, runs, LZS_SCREEN_RUNS, &n_runs);
    CHECK(found.n_long_runs == n_runs);
    size_t n_kept = n_runs < LZS_SCREEN_RUNS ? n_runs : LZS_SCREEN_RUNS;
    CHECK(!memcmp(found.long_runs, runs, n_kept * sizeof *runs));
    CHECK(lzs_near_view(text, n, fold, 256, view, &n_view, NULL, 0) == LZS_OK);
    bool exact[2], near[2];
    bytes_repeat(text, n, rules->any_copies, rules->length_copies, rules->length, 1, exact);
    bytes_repeat(view, n_view, rules->copies, rules->near_copies, rules->length, 2, near);
    int32_t expected = (exact[0] ? LZS_MAY_LONG : 0) | (exact[1] ? LZS_MAY_MANY : 0) |
                       (spans_repeat(text, n, LZS_SPLIT_LINES, rules) ? LZS_MAY_LINES : 0) |
                       (spans_repeat(text, n, LZS_SPLIT_WORDS, rules) ? LZS_MAY_WORDS : 0) |
                       (near[0] ? LZS_MAY_NEAR_LONG : 0) | (near[1] ? LZS_MAY_NEAR_MANY : 0);
    CHECK((expected & ~may) == 0);
    CHECK(expected == may || exact[0]);
    for (int bit = 0; bit < 6; bit++) n_seen[bit] += expected >> bit & 1;
    n_seen[6] += expected == 0;
    free(words);
    free(ids);
    free(view);
}

/* Letters, white space of one to three bytes, and what is cut off in the middle of a character. */
static void test_random(void) {
    static const char *const parts[] = {"a", "b", "ab", "abababab", "abcdefghi", " ", "\n", "\n\n", "\xC2\xA0", "\xE2\x80\x89",
                                        "\xE3\x80\x80", "\xC3\xA9", "\xF0\x9F\x98\x80", "\xE2", "\x80", "\xED\xA0\x80", "0"};
    uint64_t state = 7;
    int n_seen[7] = {0};
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
        lzs_screen_rules rules = {.copies = (uint64_t)(2 + random_below(&state, 20)), .length = (uint64_t)(1 + random_below(&state, 100)),
                                  .length_copies = (uint64_t)(2 + random_below(&state, 4)),
                                  .any_copies = (uint64_t)(2 + random_below(&state, 20)),
                                  .near_copies = (uint64_t)(2 + random_below(&state, 8))};
        check_screen(exact, n, &rules, n_seen);
        free(exact);
    }
    for (int i = 0; i < 7; i++) CHECK(n_seen[i] > 50);
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
    lzs_screening found;
    uint32_t fold[1] = {0x80}; /* wider than what it stands for */
    lzs_screen_rules rules = {.copies = 20, .length = 100, .length_copies = 3, .any_copies = 20, .near_copies = 8};
    CHECK(lzs_screen(NULL, 0, &rules, NULL, 0, &found) == LZS_OK && found.may == 0);
    CHECK(lzs_screen((const uint8_t *)"abc", 3, &rules, fold, 1, &found) == LZS_EINVAL);
    CHECK(lzs_screen((const uint8_t *)"abc", 3, NULL, NULL, 0, &found) == LZS_EINVAL);
    rules.near_copies = 1;
    CHECK(lzs_screen((const uint8_t *)"abc", 3, &rules, NULL, 0, &found) == LZS_EINVAL);
}

int main(void) {
    test_random();
    test_arguments();
    return 0;
}
