/* prefilter.c - computes all figures of a text in one call, and says which scans for loops may find a loop.
 *
 * Most texts have no loop, and most are short. So a dozen calls from another language would take longer than the scans
 * themselves. The prefilter makes each scan in its cheapest form, which says only whether there may be a run that
 * counts. If there may be such a run, the caller scans again to find it.
 *
 * If one run already covers half of the text, the caller will find a loop anyway. Then the bits for the scans of lines
 * and of the normalized text are set without these scans. In a long text the bit for the scan of words is set, too.
 * Then only the words of one piece are in memory at a time.
 */
#include "text.h"

#include <stdlib.h>

enum { ROOM = LZS_PREFILTER_RUNS }; /* greatest number of runs that are checked; further runs are assumed to count */

static lzs_status tolerate_space(lzs_status status) {
    return status == LZS_ESPACE ? LZS_OK : status;
}

/* Whether a run may have a period of `least` bytes or more. If there are more than ROOM runs, returns true, since not
 * all of them were checked. */
static bool any_run(const lzs_repetition *runs, size_t n_runs, uint64_t least) {
    for (size_t i = 0; i < n_runs && i < ROOM; i++) {
        if (runs[i].period >= least) return true;
    }
    return n_runs > ROOM;
}

/* A run counts if it has `copies` copies, or `long_copies` copies and `length` bytes. */
typedef struct limits {
    uint64_t length, copies, long_copies;
} limits;

static bool are_valid(limits need) {
    return need.length >= 1 && need.copies >= 2 && need.long_copies >= 2;
}

/* Finds the long runs of bytes that count, and writes the first ROOM of them to `runs`. *some_short says whether there
 * may be a shorter run that counts and has a period of `least` bytes or more. The caller knows that no stretch of more
 * than `most` bytes occurs twice in the text. In a run of period p, stretches of (copies - 1) p and of length - p bytes
 * occur twice, so `most` limits p. */
static lzs_status scan_bytes(const uint8_t *text, size_t n, limits need, uint64_t least, uint64_t most,
                             lzs_repetition *runs, size_t *n_runs, bool *some_short) {
    uint64_t few = need.long_copies < need.copies ? need.long_copies : need.copies, max_period = most / (few - 1);
    *n_runs = 0;
    lzs_status status = LZS_OK;
    if (max_period && need.length <= most + max_period) {
        status = lzs_byte_runs(text, n, few, need.length, max_period, runs, ROOM, n_runs);
    }
    uint64_t longest = (need.length - 1) / need.copies; /* the longest period of a short run that counts */
    *some_short = false;
    if (tolerate_space(status) != LZS_OK || longest < least) return tolerate_space(status);
    lzs_repetition shorter[ROOM];
    size_t n_shorter;
    status = lzs_byte_runs(text, n, need.copies, 0, longest, shorter, ROOM, &n_shorter);
    *some_short = any_run(shorter, n_shorter, least);
    return tolerate_space(status);
}

static bool covers_half(const lzs_repetition *runs, size_t n_runs, size_t n) {
    for (size_t i = 0; i < n_runs && i < ROOM; i++) {
        if (runs[i].length >= n / 2) return true;
    }
    return false;
}

/* Finds whether a sequence of spans has a run that counts. `ids` has the numbers of the spans. The caller knows that no
 * more than `most` spans in a row occur twice. */
static lzs_status scan_spans(const lzs_span *spans, const int32_t *ids, size_t n, limits need, size_t most,
                             bool *found) {
    lzs_repetition runs[ROOM];
    size_t n_runs = 0;
    uint64_t few = need.long_copies < need.copies ? need.long_copies : need.copies, max_period = most / (few - 1);
    lzs_status status = max_period ? lzs_token_runs(ids, n, few, 0, max_period, runs, ROOM, &n_runs) : LZS_OK;
    *found = n_runs > ROOM;
    for (size_t i = 0; i < n_runs && !*found; i++) {
        uint64_t copies = runs[i].length / runs[i].period;
        uint64_t n_bytes = spans[runs[i].start + runs[i].length - 1].end - spans[runs[i].start].start;
        *found = copies >= need.copies || (copies >= need.long_copies && n_bytes >= need.length);
    }
    return tolerate_space(status);
}

/* The spans of a text, and the numbers of the spans. */
typedef struct numbered {
    lzs_span *spans;
    int32_t *ids;
    size_t n;
} numbered;

static void numbered_free(numbered *units) {
    free(units->spans);
    free(units->ids);
}

/* Splits a text into at most `room` spans, and numbers them. The caller frees *units, also after an error. */
static lzs_status split_and_number(const uint8_t *text, size_t n, int32_t kind, size_t room, numbered *units) {
    *units = (numbered){NULL, NULL, 0};
    if (room > SIZE_MAX / sizeof *units->spans) return LZS_ENOMEM;
    units->spans = malloc(room * sizeof *units->spans);
    if (!units->spans) return LZS_ENOMEM;
    lzs_status status = lzs_split(text, n, kind, units->spans, room, &units->n);
    if (status != LZS_OK) return status;
    units->ids = malloc((units->n + 1) * sizeof *units->ids);
    if (!units->ids) return LZS_ENOMEM;
    size_t n_distinct;
    return lzs_intern(text, n, units->spans, units->n, units->ids, &n_distinct);
}

/* Returns an upper bound of the number of bytes of every stretch that occurs twice. The caller knows that no more than
 * `longest` words in a row occur twice. Of the words that touch such a stretch, all except the first and the last are
 * whole and the same in both places. So the stretch lies within, or next to, longest + 4 words in a row. */
static size_t most_bytes(const lzs_span *words, size_t n_words, size_t n, size_t longest) {
    size_t most = 0;
    if (longest >= n_words || n_words - longest <= 4) return n;
    for (size_t first = 0, last = longest + 3; last < n_words; first++, last++) {
        size_t start = first ? words[first].start : 0, end = last + 1 < n_words ? words[last].end : n;
        if (end - start > most) most = end - start;
    }
    return most;
}

/* Computes the figures of a text, and finds whether its words have a run that counts. *most gets an upper bound of the
 * number of bytes of a stretch that occurs twice. */
static lzs_status scan_words(const uint8_t *text, size_t n, limits need, lzs_figures *figures, bool *found,
                             size_t *most) {
    numbered words;
    size_t longest = 0;
    lzs_status status = split_and_number(text, n, LZS_SPLIT_WORDS, n / 2 + 1, &words);
    if (status == LZS_OK) status = lzs_text_figures_of(text, n, words.spans, words.ids, words.n, figures, &longest);
    if (status == LZS_OK) status = scan_spans(words.spans, words.ids, words.n, need, longest, found);
    if (status == LZS_OK) *most = most_bytes(words.spans, words.n, n, longest);
    numbered_free(&words);
    return status;
}

static lzs_status scan_lines(const uint8_t *text, size_t n, limits need, bool *found) {
    numbered lines;
    size_t room = 1;
    for (size_t at = 0; at < n; room++) {
        const uint8_t *line_end = memchr(text + at, '\n', n - at);
        at = line_end ? (size_t)(line_end - text) + 1 : n;
    }
    lzs_status status = split_and_number(text, n, LZS_SPLIT_LINES, room, &lines);
    if (status == LZS_OK) status = scan_spans(lines.spans, lines.ids, lines.n, need, lines.n, found);
    numbered_free(&lines);
    return status;
}

/* Finds whether the normalized text may have long or short runs that count. Runs of period 1 do not count here, because
 * normalized texts are full of rows of one character. */
static lzs_status scan_normalized(const uint8_t *text, size_t n, limits need, const uint32_t *fold, size_t n_fold,
                                  bool *some_long, bool *some_short) {
    uint8_t *normalized = malloc(n + 1);
    if (!normalized) return LZS_ENOMEM;
    lzs_repetition runs[ROOM];
    size_t n_normalized, n_runs;
    lzs_status status = lzs_normalize(text, n, fold, n_fold, normalized, &n_normalized, NULL, 0);
    if (status == LZS_OK) status = scan_bytes(normalized, n_normalized, need, 2, n_normalized, runs, &n_runs,
                                              some_short);
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
    size_t n_long = 0, most = n;
    bool some_short = false, words = false, lines = true, long_normalized = true, is_long = n > LZS_TEXT_PIECE;
    /* if false, all short runs have period 1 */
    bool short_normalized = (rules->length - 1) / rules->normalized_copies >= 2;
    lzs_status status = LZS_OK;
    if (!is_long) status = scan_words(text, n, of_spans, &result->figures, &words, &most);
    if (status == LZS_OK) status = scan_bytes(text, n, of_bytes, 1, most, runs, &n_long, &some_short);
    bool is_loop = covers_half(runs, n_long, n);
    if (status == LZS_OK && is_long) {
        words = true;
        status = is_loop ? lzs_text_figures_by_piece(text, n, &result->figures) : LZS_ESPACE;
        if (status == LZS_ESPACE) status = scan_words(text, n, of_spans, &result->figures, &words, &most);
    }
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
