/* prefilter.c - computes all figures of a text, and which scans for loops may find one, in a single call.
 *
 * Most texts have no loop, and most are short, so that a dozen calls from another language would cost more than the
 * scans themselves. The prefilter makes each scan in its cheapest form, which says only whether there is a run that
 * counts. If there may be, the caller scans again for the places.
 *
 * When one run already covers half of the text, the caller will find a loop anyway: the bits of the scans of lines and
 * of the normalized text are then set without making them, and in a long text that of the scan of words, so that its
 * words are in memory piece by piece.
 */
#include "text.h"

#include <stdlib.h>

enum { ROOM = LZS_PREFILTER_RUNS }; /* runs that are checked one by one; more of them count unseen */

static lzs_status tolerate_space(lzs_status status) {
    return status == LZS_ESPACE ? LZS_OK : status;
}

/* Whether a run has a period of `least` bytes or more; if there are more than ROOM runs, one may have. */
static bool any_run(const lzs_repetition *runs, size_t n_runs, uint64_t least) {
    for (size_t i = 0; i < n_runs && i < ROOM; i++) {
        if (runs[i].period >= least) return true;
    }
    return n_runs > ROOM;
}

/* What a run needs to count: `copies` copies, or `long_copies` copies and `length` bytes. */
typedef struct limits {
    uint64_t length, copies, long_copies;
} limits;

static bool are_valid(limits need) {
    return need.length >= 1 && need.copies >= 2 && need.long_copies >= 2;
}

/* Finds the long runs of bytes that count, the first of them for runs[ROOM], and whether there may be shorter ones with
 * a period of `least` bytes or more. */
static lzs_status scan_bytes(const uint8_t *text, size_t n, limits need, uint64_t least, lzs_repetition *runs,
                             size_t *n_runs, bool *some_short) {
    uint64_t few = need.long_copies < need.copies ? need.long_copies : need.copies;
    lzs_status status = lzs_byte_runs(text, n, few, need.length, 0, runs, ROOM, n_runs);
    uint64_t longest = (need.length - 1) / need.copies; /* period of a run that counts without being long */
    *some_short = false;
    if (tolerate_space(status) != LZS_OK || longest < least) return tolerate_space(status);
    lzs_repetition shorter[ROOM];
    size_t n_shorter;
    status = lzs_byte_runs(text, n, need.copies, 0, longest, shorter, ROOM, &n_shorter);
    *some_short = any_run(shorter, n_shorter, least);
    return tolerate_space(status);
}

/* Whether a run of bytes covers half of a text. */
static bool covers_half(const lzs_repetition *runs, size_t n_runs, size_t n) {
    for (size_t i = 0; i < n_runs && i < ROOM; i++) {
        if (runs[i].length >= n / 2) return true;
    }
    return false;
}

/* Whether spans with these numbers have a run that counts. */
static lzs_status scan_spans(const lzs_span *spans, const int32_t *ids, size_t n, limits need, bool *found) {
    lzs_repetition runs[ROOM];
    size_t n_runs;
    uint64_t few = need.long_copies < need.copies ? need.long_copies : need.copies;
    lzs_status status = lzs_token_runs(ids, n, few, 0, 0, runs, ROOM, &n_runs);
    *found = n_runs > ROOM;
    for (size_t i = 0; i < n_runs && !*found; i++) {
        uint64_t copies = runs[i].length / runs[i].period;
        uint64_t n_bytes = spans[runs[i].start + runs[i].length - 1].end - spans[runs[i].start].start;
        *found = copies >= need.copies || (copies >= need.long_copies && n_bytes >= need.length);
    }
    return tolerate_space(status);
}

/* Spans of a text and their numbers. */
typedef struct numbered {
    lzs_span *spans;
    int32_t *ids;
    size_t n;
} numbered;

static void numbered_free(numbered *units) {
    free(units->spans);
    free(units->ids);
}

/* Splits a text into at most `room` spans, numbers them, and scans them for runs. The caller frees *units, also after
 * an error. */
static lzs_status split_and_scan(const uint8_t *text, size_t n, int32_t kind, size_t room, limits need, numbered *units,
                                 bool *found) {
    *units = (numbered){NULL, NULL, 0};
    *found = false;
    if (room > SIZE_MAX / sizeof *units->spans) return LZS_ENOMEM;
    units->spans = malloc(room * sizeof *units->spans);
    if (!units->spans) return LZS_ENOMEM;
    lzs_status status = lzs_split(text, n, kind, units->spans, room, &units->n);
    if (status != LZS_OK) return status;
    units->ids = malloc((units->n + 1) * sizeof *units->ids);
    if (!units->ids) return LZS_ENOMEM;
    size_t n_distinct;
    status = lzs_intern(text, n, units->spans, units->n, units->ids, &n_distinct);
    return status == LZS_OK ? scan_spans(units->spans, units->ids, units->n, need, found) : status;
}

static lzs_status scan_words(const uint8_t *text, size_t n, limits need, lzs_figures *figures, bool *found) {
    numbered words;
    lzs_status status = split_and_scan(text, n, LZS_SPLIT_WORDS, n / 2 + 1, need, &words, found);
    if (status == LZS_OK) status = lzs_text_figures(text, n, words.spans, words.ids, words.n, figures);
    numbered_free(&words);
    return status;
}

static lzs_status scan_lines(const uint8_t *text, size_t n, limits need, bool *found) {
    numbered lines;
    size_t room = 1;
    for (size_t i = 0; i < n; i++) room += text[i] == '\n';
    lzs_status status = split_and_scan(text, n, LZS_SPLIT_LINES, room, need, &lines, found);
    numbered_free(&lines);
    return status;
}

/* Periods of one byte do not count here: normalized texts are full of rulers, and a loop has units of two letters. */
static lzs_status scan_normalized(const uint8_t *text, size_t n, limits need, const uint32_t *fold, size_t n_fold,
                                  bool *some_long, bool *some_short) {
    uint8_t *normalized = malloc(n + 1);
    if (!normalized) return LZS_ENOMEM;
    lzs_repetition runs[ROOM];
    size_t n_normalized, n_runs;
    lzs_status status = lzs_normalize(text, n, fold, n_fold, normalized, &n_normalized, NULL, 0);
    if (status == LZS_OK) status = scan_bytes(normalized, n_normalized, need, 2, runs, &n_runs, some_short);
    if (status == LZS_OK) *some_long = any_run(runs, n_runs, 2);
    free(normalized);
    return status;
}

lzs_status lzs_prefilter(const uint8_t *text, size_t n, const lzs_prefilter_rules *rules, const uint32_t *fold,
                         size_t n_fold, lzs_prefilter_result *result) {
    if ((!text && n) || !rules || (!fold && n_fold) || !result || n > UINT32_MAX) return LZS_EINVAL;
    const limits of_bytes = {rules->length, rules->byte_copies, rules->long_byte_copies};
    const limits of_spans = {rules->length, rules->span_copies, rules->long_span_copies};
    const limits of_normalized = {rules->length, rules->normalized_copies, rules->long_normalized_copies};
    if (!are_valid(of_bytes) || !are_valid(of_spans) || !are_valid(of_normalized)) return LZS_EINVAL;
    lzs_repetition *runs = result->long_runs;
    size_t n_long = 0;
    bool some_short = false, words = false, lines = true, long_normalized = true;
    bool short_normalized = (rules->length - 1) / rules->normalized_copies >= 2; /* else there is no such period */
    lzs_status status = scan_bytes(text, n, of_bytes, 1, runs, &n_long, &some_short);
    bool is_loop = covers_half(runs, n_long, n), is_long = is_loop && n > LZS_TEXT_PIECE;
    if (status == LZS_OK && is_long) {
        words = true;
        status = lzs_text_figures_by_piece(text, n, &result->figures);
        is_long = status != LZS_ESPACE;
        status = tolerate_space(status);
    }
    if (status == LZS_OK && !is_long) status = scan_words(text, n, of_spans, &result->figures, &words);
    if (status == LZS_OK && !is_loop) {
        status = scan_lines(text, n, of_spans, &lines);
        if (status == LZS_OK) {
            status = scan_normalized(text, n, of_normalized, fold, n_fold, &long_normalized, &short_normalized);
        }
    }
    result->n_long_runs = n_long;
    result->scans = (n_long ? LZS_SCAN_LONG_BYTES : 0) | (some_short ? LZS_SCAN_SHORT_BYTES : 0) |
                    (lines ? LZS_SCAN_LINES : 0) | (words ? LZS_SCAN_WORDS : 0) |
                    (long_normalized ? LZS_SCAN_LONG_NORMALIZED : 0) |
                    (short_normalized ? LZS_SCAN_SHORT_NORMALIZED : 0);
    return status;
}
