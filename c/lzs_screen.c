/* lzs_screen.c - all that an audit asks of a text, in one call: its figures, and which kinds of loops it may have.
 *
 * Most texts have none of them, and most are short: what a dozen calls from another language cost is then more than the
 * scans. What may be there is looked for again, by the caller, with the scan that gives the places.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "lzs_internal.h"

enum { ROOM = LZS_SCREEN_RUNS }; /* runs looked at one by one; a text with more may have loops */

static lzs_status tolerate_space(lzs_status status) {
    return status == LZS_ESPACE ? LZS_OK : status;
}

/* Whether there are runs with a period of `least` bytes or more, or more runs than are looked at. */
static bool any_run(const lzs_repetition *runs, size_t n_runs, uint64_t least) {
    for (size_t i = 0; i < n_runs && i < ROOM; i++) {
        if (runs[i].period >= least) return true;
    }
    return n_runs > ROOM;
}

/* Runs of bytes of `few` copies or more and `length` bytes, the first of them to *runs (ROOM); and whether there are
 * shorter ones with `copies` copies and a period of `least` bytes or more. */
static lzs_status byte_runs(const uint8_t *text, size_t n, uint64_t copies, uint64_t few, uint64_t length, uint64_t least,
                            lzs_repetition *runs, size_t *n_runs, bool *many) {
    lzs_status status = lzs_byte_runs(text, n, few < copies ? few : copies, length, 0, runs, ROOM, n_runs);
    uint64_t longest = (length - 1) / copies; /* period of those with `copies` copies that are shorter than `length` */
    *many = false;
    if (tolerate_space(status) != LZS_OK || longest < least) return tolerate_space(status);
    lzs_repetition shorter[ROOM];
    size_t n_shorter;
    status = lzs_byte_runs(text, n, copies, 0, longest, shorter, ROOM, &n_shorter);
    *many = any_run(shorter, n_shorter, least);
    return tolerate_space(status);
}

/* Whether runs of bytes leave so little of a text that looking for others may be vain. */
static bool cover(const lzs_repetition *runs, size_t n_runs, size_t n) {
    for (size_t i = 0; i < n_runs && i < ROOM; i++) {
        if (runs[i].length >= n / 2) return true;
    }
    return false;
}

/* Whether spans with these numbers have a run with enough copies, or with enough copies and bytes. */
static lzs_status span_runs(const lzs_span *spans, const int32_t *ids, size_t n, const lzs_screen_rules *rules,
                            bool *found) {
    lzs_repetition runs[ROOM];
    size_t n_runs;
    uint64_t few = rules->length_copies < rules->copies ? rules->length_copies : rules->copies;
    lzs_status status = lzs_token_runs(ids, n, few, 0, 0, runs, ROOM, &n_runs);
    *found = n_runs > ROOM;
    for (size_t i = 0; i < n_runs && !*found; i++) {
        uint64_t copies = runs[i].length / runs[i].period;
        uint64_t n_bytes = spans[runs[i].start + runs[i].length - 1].end - spans[runs[i].start].start;
        *found = copies >= rules->copies || (copies >= rules->length_copies && n_bytes >= rules->length);
    }
    return tolerate_space(status);
}

/* Splits a text, numbers the spans, and looks for runs of them. *spans and *ids are the caller's to free, always. */
static lzs_status split_and_scan(const uint8_t *text, size_t n, int32_t kind, size_t room, const lzs_screen_rules *rules,
                                 lzs_span **spans, int32_t **ids, size_t *n_spans, bool *found) {
    *found = false;
    if (room > SIZE_MAX / sizeof **spans) return LZS_ENOMEM;
    *spans = malloc(room * sizeof **spans);
    if (!*spans) return LZS_ENOMEM;
    lzs_status status = lzs_split(text, n, kind, *spans, room, n_spans);
    if (status != LZS_OK) return status;
    *ids = malloc((*n_spans + 1) * sizeof **ids);
    if (!*ids) return LZS_ENOMEM;
    size_t n_distinct;
    status = lzs_intern(text, n, *spans, *n_spans, *ids, &n_distinct);
    return status == LZS_OK ? span_runs(*spans, *ids, *n_spans, rules, found) : status;
}

static lzs_status screen_words(const uint8_t *text, size_t n, const lzs_screen_rules *rules, lzs_figures *figures,
                               bool *found) {
    lzs_span *spans = NULL;
    int32_t *ids = NULL;
    size_t n_words = 0;
    lzs_status status = split_and_scan(text, n, LZS_SPLIT_WORDS, n / 2 + 1, rules, &spans, &ids, &n_words, found);
    if (status == LZS_OK) status = lzs_text_figures(text, n, spans, ids, n_words, figures);
    free(ids);
    free(spans);
    return status;
}

static lzs_status screen_lines(const uint8_t *text, size_t n, const lzs_screen_rules *rules, bool *found) {
    lzs_span *spans = NULL;
    int32_t *ids = NULL;
    size_t n_lines = 1;
    for (size_t i = 0; i < n; i++) n_lines += text[i] == '\n';
    lzs_status status = split_and_scan(text, n, LZS_SPLIT_LINES, n_lines, rules, &spans, &ids, &n_lines, found);
    free(ids);
    free(spans);
    return status;
}

/* A unit of one byte is no loop in the near view, where units have two letters, but rulers are many. */
static lzs_status screen_view(const uint8_t *text, size_t n, const lzs_screen_rules *rules, const uint32_t *fold,
                              size_t n_fold, bool *some_long, bool *many) {
    uint8_t *view = malloc(n + 1);
    if (!view) return LZS_ENOMEM;
    lzs_repetition runs[ROOM];
    size_t n_view, n_runs;
    lzs_status status = lzs_near_view(text, n, fold, n_fold, view, &n_view, NULL, 0);
    if (status == LZS_OK) {
        status = byte_runs(view, n_view, rules->copies, rules->near_copies, rules->length, 2, runs, &n_runs, many);
    }
    if (status == LZS_OK) *some_long = any_run(runs, n_runs, 2);
    free(view);
    return status;
}

lzs_status lzs_screen(const uint8_t *text, size_t n, const lzs_screen_rules *rules, const uint32_t *fold, size_t n_fold,
                      lzs_screening *found) {
    if ((!text && n) || !rules || (!fold && n_fold) || !found || n > UINT32_MAX) return LZS_EINVAL;
    if (rules->copies < 2 || rules->any_copies < 2 || rules->length_copies < 2 || rules->near_copies < 2 || !rules->length) {
        return LZS_EINVAL;
    }
    lzs_repetition *runs = found->long_runs;
    size_t n_long = 0;
    bool many = false, words = false, lines = true, near_long = true, near_many = rules->length > 2 * rules->copies;
    lzs_status status = byte_runs(text, n, rules->any_copies, rules->length_copies, rules->length, 1, runs, &n_long, &many);
    if (status == LZS_OK) status = screen_words(text, n, rules, &found->figures, &words);
    if (status == LZS_OK && !cover(runs, n_long, n)) {
        status = screen_lines(text, n, rules, &lines);
        if (status == LZS_OK) status = screen_view(text, n, rules, fold, n_fold, &near_long, &near_many);
    }
    found->n_long_runs = n_long;
    found->may = (n_long ? LZS_MAY_LONG : 0) | (many ? LZS_MAY_MANY : 0) | (lines ? LZS_MAY_LINES : 0) |
                 (words ? LZS_MAY_WORDS : 0) | (near_long ? LZS_MAY_NEAR_LONG : 0) | (near_many ? LZS_MAY_NEAR_MANY : 0);
    return status;
}
