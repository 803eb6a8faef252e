/* test_prefilter.c - compares what the prefilter says of random texts with what the scans find in them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "lzsampler_text.h"
#include "texts.h"

enum { MOST = 400, PIECE = 4 << 20 };

/* Whether the words or lines of a text have a run that counts. */
static bool spans_repeat(const uint8_t *text, size_t n, int32_t kind, const lzs_prefilter_rules *rules) {
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
        if (runs[i].length >= rules->span_copies * runs[i].period) found = true;
        if (runs[i].length >= rules->long_span_copies * runs[i].period && n_bytes >= rules->length) found = true;
    }
    free(spans);
    free(ids);
    free(runs);
    return found;
}

/* Finds whether a text has a long run of bytes that counts, and whether it has a shorter one, with periods of `least`
 * bytes or more. */
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

/* Checks that the prefilter says what the scans would find, or sets the bits of scans that it did not make because a
 * run covers half of the text. */
static void check_prefilter(const uint8_t *text, size_t n, const lzs_prefilter_rules *rules, int *n_seen) {
    uint32_t fold[256];
    make_fold(fold);
    lzs_prefilter_result result;
    CHECK(lzs_prefilter(text, n, rules, fold, 256, &result) == LZS_OK);
    lzs_figures alone;
    size_t n_words, n_distinct, n_normalized;
    lzs_span *words = malloc((n + 1) * sizeof *words);
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    uint8_t *normalized = malloc(n + 1);
    CHECK(words && ids && normalized);
    CHECK(lzs_split(text, n, LZS_SPLIT_WORDS, words, n, &n_words) == LZS_OK);
    CHECK(lzs_intern(text, n, words, n_words, ids, &n_distinct) == LZS_OK);
    CHECK(lzs_text_figures(text, n, words, ids, n_words, &alone) == LZS_OK);
    CHECK(!memcmp(&result.figures, &alone, sizeof alone));
    lzs_repetition runs[LZS_PREFILTER_RUNS];
    size_t n_runs;
    uint64_t few = rules->long_byte_copies < rules->byte_copies ? rules->long_byte_copies : rules->byte_copies;
    (void)lzs_byte_runs(text, n, few, rules->length, 0, runs, LZS_PREFILTER_RUNS, &n_runs);
    CHECK(result.n_long_runs == n_runs);
    size_t n_kept = n_runs < LZS_PREFILTER_RUNS ? n_runs : LZS_PREFILTER_RUNS;
    CHECK(!memcmp(result.long_runs, runs, n_kept * sizeof *runs));
    CHECK(lzs_normalize(text, n, fold, 256, normalized, &n_normalized, NULL, 0) == LZS_OK);
    bool exact[2], near[2];
    bytes_repeat(text, n, rules->byte_copies, rules->long_byte_copies, rules->length, 1, exact);
    bytes_repeat(normalized, n_normalized, rules->normalized_copies, rules->long_normalized_copies, rules->length, 2,
                 near);
    int32_t expected = (exact[0] ? LZS_SCAN_LONG_BYTES : 0) | (exact[1] ? LZS_SCAN_SHORT_BYTES : 0) |
                       (spans_repeat(text, n, LZS_SPLIT_LINES, rules) ? LZS_SCAN_LINES : 0) |
                       (spans_repeat(text, n, LZS_SPLIT_WORDS, rules) ? LZS_SCAN_WORDS : 0) |
                       (near[0] ? LZS_SCAN_LONG_NORMALIZED : 0) | (near[1] ? LZS_SCAN_SHORT_NORMALIZED : 0);
    CHECK((expected & ~result.scans) == 0);
    CHECK(expected == result.scans || exact[0]);
    for (int bit = 0; bit < 6; bit++) n_seen[bit] += expected >> bit & 1;
    n_seen[6] += expected == 0;
    free(words);
    free(ids);
    free(normalized);
}

static uint64_t random_copies(uint64_t *state, int32_t most) {
    return (uint64_t)(2 + random_below(state, most));
}

static void test_random(void) {
    uint64_t state = 7;
    int n_seen[7] = {0};
    for (int round = 0; round < 4000; round++) {
        size_t n = (size_t)random_below(&state, MOST);
        uint8_t *text = random_text(&state, n);
        lzs_prefilter_rules rules = {.length = (uint64_t)(1 + random_below(&state, 100)),
                                     .byte_copies = random_copies(&state, 20),
                                     .long_byte_copies = random_copies(&state, 4),
                                     .span_copies = random_copies(&state, 20),
                                     .long_span_copies = random_copies(&state, 4),
                                     .normalized_copies = random_copies(&state, 20),
                                     .long_normalized_copies = random_copies(&state, 8)};
        check_prefilter(text, n, &rules, n_seen);
        free(text);
    }
    for (int i = 0; i < 7; i++) CHECK(n_seen[i] > 50);
}

/* Appends words that are in no other place of the text, with white space of one to three bytes after some of them. */
static size_t new_words(uint64_t *state, uint8_t *text, size_t at, int32_t n_words, uint32_t *number) {
    static const char *const gaps[] = {" ", "\n", "\xC2\xA0", "\xE2\x80\x89", "  "};
    for (int32_t i = 0; i < n_words; i++) {
        at += (size_t)sprintf((char *)text + at, "%.*s%" PRIu32 "%s", (int)random_below(state, 12), "abcdefghijkl", ++*number,
                              gaps[random_below(state, 5)]);
    }
    return at;
}

/* Where few words in a row come twice, only short periods are looked for: a run in a text of words that are all different
 * must be found, whatever its unit is made of, and wherever it begins and ends. */
static void test_one_run(void) {
    static const lzs_prefilter_rules rules = {100, 20, 3, 20, 3, 20, 8};
    uint64_t state = 11;
    int n_seen[7] = {0};
    for (int round = 0; round < 6000; round++) {
        uint8_t room[4096];
        uint32_t number = 1000;
        size_t at = new_words(&state, room, 0, random_below(&state, 30), &number);
        if (at && random_below(&state, 2)) at--; /* the run begins within a word, or within white space */
        size_t period = (size_t)random_below(&state, 70) + 1, length = (size_t)random_below(&state, 4 * (int32_t)period) + 1;
        uint8_t *unit = random_text(&state, period);
        for (size_t i = 0; i < length; i++) room[at++] = unit[i % period];
        free(unit);
        at = new_words(&state, room, at, random_below(&state, 30), &number);
        uint8_t *text = malloc(at ? at : 1);
        CHECK(text);
        memcpy(text, room, at);
        check_prefilter(text, at, &rules, n_seen);
        free(text);
    }
    CHECK(n_seen[0] > 300 && n_seen[6] > 300);
}

/* A long text that a run covers has its figures piece by piece, unless its words are longer than a piece. */
static void test_long_text(void) {
    static const char *const units[] = {"so it goes on and on, ", "\xE2\x80\x83one\xE3\x80\x80two three\n\n", "abcd"};
    static const lzs_prefilter_rules rules = {100, 20, 3, 20, 3, 20, 8};
    const size_t n = (size_t)PIECE + 12345;
    uint8_t *text = malloc(n);
    CHECK(text);
    for (int kind = 0; kind < 3; kind++) {
        size_t length = strlen(units[kind]), before = 1000;
        uint64_t state = 11;
        for (size_t i = 0; i < before; i++) text[i] = (uint8_t)(random_below(&state, 5) ? 'a' + random_below(&state, 9) : ' ');
        for (size_t i = before; i < n; i++) text[i] = (uint8_t)units[kind][(i - before) % length];
        for (size_t cut = 0; cut < 20; cut += 17) { /* so that pieces end at each place of a unit */
            size_t size = n - cut, n_words, n_distinct;
            lzs_prefilter_result result;
            lzs_figures alone;
            lzs_span *words = malloc((size / 2 + 1) * sizeof *words);
            int32_t *ids = malloc((size / 2 + 1) * sizeof *ids);
            CHECK(words && ids);
            CHECK(lzs_prefilter(text + cut, size, &rules, NULL, 0, &result) == LZS_OK);
            CHECK(lzs_split(text + cut, size, LZS_SPLIT_WORDS, words, size / 2 + 1, &n_words) == LZS_OK);
            CHECK(lzs_intern(text + cut, size, words, n_words, ids, &n_distinct) == LZS_OK);
            CHECK(lzs_text_figures(text + cut, size, words, ids, n_words, &alone) == LZS_OK);
            CHECK(!memcmp(&result.figures, &alone, sizeof alone));
            CHECK(result.n_long_runs == 1 && (result.scans & LZS_SCAN_LONG_BYTES));
            CHECK(!(result.scans & LZS_SCAN_WORDS) == (kind == 2));
            free(words);
            free(ids);
        }
    }
    free(text);
}

static void test_arguments(void) {
    const uint8_t *text = (const uint8_t *)"abc";
    const lzs_prefilter_rules valid = {100, 20, 3, 20, 3, 20, 8};
    uint32_t fold[1] = {0x80}; /* longer than the character that it replaces */
    lzs_prefilter_result result;
    CHECK(lzs_prefilter(NULL, 0, &valid, NULL, 0, &result) == LZS_OK && result.scans == 0);
    CHECK(lzs_prefilter(text, 3, &valid, fold, 1, &result) == LZS_EINVAL);
    CHECK(lzs_prefilter(text, 3, NULL, NULL, 0, &result) == LZS_EINVAL);
    CHECK(lzs_prefilter(text, 3, &valid, NULL, 0, NULL) == LZS_EINVAL);
    for (size_t field = 0; field < sizeof valid / sizeof(uint64_t); field++) {
        uint64_t fields[sizeof valid / sizeof(uint64_t)];
        lzs_prefilter_rules rules;
        memcpy(fields, &valid, sizeof fields);
        fields[field] = field == 0 ? 0 : 1;
        memcpy(&rules, fields, sizeof rules);
        CHECK(lzs_prefilter(text, 3, &rules, NULL, 0, &result) == LZS_EINVAL);
    }
}

int main(void) {
    test_random();
    test_one_run();
    test_long_text();
    test_arguments();
    return 0;
}
