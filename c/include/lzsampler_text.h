/* lzsampler_text.h - the public interface of liblzsampler_text, which finds what repeats in a text.
 *
 * `lzs audit` uses it. The library is independent of the sampler: it needs only the C standard library, and no part of
 * liblzsampler. Its functions are
 *
 *     lzs_byte_runs, lzs_token_runs    every stretch of a text that repeats itself without a break
 *     lzs_split, lzs_intern            the words or the lines of a text, and a number for each distinct one
 *     lzs_text_figures                 how many n-grams of words, lines and paragraphs repeat earlier ones
 *     lzs_number_figures               the same for n-grams of tokens
 *     lzs_normalize                    the text with digits, case and white space made alike
 *     lzs_prefilter                    all figures of a text, and which scans may find a loop
 *
 * Texts are bytes. Functions that count characters assume UTF-8, and count each byte that does not have the form
 * 10xxxxxx as one character. So the number of characters is defined even if the text is not well-formed UTF-8. Words
 * and lines are separated by the white space of Python's str.split: Unicode's white space and the control codes 1C to
 * 1F.
 *
 * Every function returns an lzs_status and gives its results through pointers. LZS_EINVAL: an array is NULL, or a
 * number is out of range. LZS_ENOMEM: there is not enough memory. After an error the contents of the results are
 * undefined. An array of 0 elements may be NULL. Nothing here prints, exits or keeps state, so any number of threads
 * may call these functions at the same time. lzs_split and lzs_normalize allocate no memory; the other functions free
 * their memory before they return.
 */
#ifndef LZSAMPLER_TEXT_H
#define LZSAMPLER_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "lzsampler_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The text from cdef-begin to cdef-end is also the cdef of the Python binding (lzsampler/_ffi_build.py). */
/* cdef-begin */

/* A run is a maximal repetition. Each unit of a run, from the second period on, equals the unit one period earlier. A
 * run can be extended neither to the left nor to the right. `period` is its shortest period. A run holds length /
 * period copies, of which the last may be incomplete. `start`, `length` and `period` count units, which are bytes or
 * tokens. */
typedef struct lzs_repetition {
    uint64_t start;
    uint64_t length;
    uint64_t period;
} lzs_repetition;

/* Finds all runs of a text that have at least `min_copies` (2 or more) copies, at least `min_length` units, and a
 * period of at most `max_period` units (0: any period). The result is exactly these runs, ordered by period, then by
 * start. *n_runs is the number of these runs. If it exceeds `capacity`, the first `capacity` runs are written and the
 * function returns LZS_ESPACE.
 *
 * Time: about n log(n) / min_copies steps, fewer if `min_length` is 50 or more, and O(n log(n)^2) for the most hostile
 * text; c/text/runs.c proves the bound. Memory: at most 1.1 times the text, and 72 bytes for each run. */
LZS_API lzs_status lzs_byte_runs(const uint8_t *text, size_t n, uint64_t min_copies, uint64_t min_length,
                                 uint64_t max_period, lzs_repetition *runs, size_t capacity, size_t *n_runs);
LZS_API lzs_status lzs_token_runs(const int32_t *tokens, size_t n, uint64_t min_copies, uint64_t min_length,
                                  uint64_t max_period, lzs_repetition *runs, size_t capacity, size_t *n_runs);

/* A part of a text: the bytes from `start` up to, but not including, `end`. */
typedef struct lzs_span {
    uint32_t start, end;
} lzs_span;

typedef enum lzs_split_kind {
    LZS_SPLIT_WORDS = 0, /* what lies between white space, as in Python's str.split */
    LZS_SPLIT_LINES = 1  /* what lies between line feeds, without white space at its two ends; may be empty */
} lzs_split_kind;

/* Splits a text of fewer than 2^32 bytes into words or lines. A line feed at the end of the text does not begin another
 * line. *n_spans is the number of spans: at most n / 2 + 1 words, and at most n lines. If it exceeds `capacity`, the
 * first `capacity` spans are written and the function returns LZS_ESPACE. */
LZS_API lzs_status lzs_split(const uint8_t *text, size_t n, int32_t kind, lzs_span *spans, size_t capacity,
                             size_t *n_spans);

/* Numbers the spans of a text (fewer than 2^31 spans). Two spans get the same number if and only if they have the same
 * bytes. Numbers begin at 0, in the order in which distinct spans first appear. *n_distinct is the number of distinct
 * spans. Memory: at most 48 bytes for each span. */
LZS_API lzs_status lzs_intern(const uint8_t *text, size_t n, const lzs_span *spans, size_t n_spans, int32_t *ids,
                              size_t *n_distinct);

/* Counts of what repeats in a text, whether or not the copies are contiguous. Lengths are in characters.
 *
 * The members from `top_characters` on are the numerators and denominators of Gopher's repetition filters (Rae et al.
 * 2021, arXiv 2112.11446, table A1), counted as in datatrove. Lines are split at one or more line feeds. Paragraphs are
 * split at two or more, after the white space around the text is removed. A line, paragraph or n-gram is a duplicate if
 * the same line, paragraph or n-gram came before. */
typedef struct lzs_figures {
    uint64_t characters, words;
    uint64_t ngrams[4];   /* n-grams of words, n = 1..4 */
    uint64_t distinct[4]; /* number of distinct n-grams among `ngrams` */
    /* For n = 2..4, the length of the most frequent n-gram (with a space between two words) times the number of its
     * occurrences. */
    uint64_t top_characters[3];
    /* For n = 5..10, the total length, without spaces, of the duplicate n-grams. A duplicate that overlaps a counted
     * n-gram is not counted. */
    uint64_t duplicate_characters[6];
    uint64_t lines, duplicate_lines, duplicate_line_characters;
    uint64_t paragraphs, duplicate_paragraphs, duplicate_paragraph_characters;
    uint64_t tail_ngrams, tail_distinct; /* numbers of 4-grams and of distinct 4-grams in the last 512 words */
    uint64_t extensible; /* number of words that follow a 4-gram that occurred before */
    uint64_t extended;   /* number of extensible words that also followed an earlier occurrence of their 4-gram */
    uint64_t frequent;   /* number of distinct word 30-grams that each occur 20 times or more */
} lzs_figures;

/* Computes the figures of a text of fewer than 2^32 bytes. `words` holds spans in ascending order that do not overlap,
 * and `ids` holds the numbers of these spans (see lzs_split and lzs_intern). The counts are exact: n-grams themselves
 * are compared, not only hashes of n-grams.
 *
 * A text of more than 4 MiB is cut into pieces of at most 4 MiB. Cuts are at ends of words. Only a word of more than 4
 * MiB makes a larger piece. Nothing is compared across a cut. The figures of the pieces are added up. This bounds the
 * memory: at most 80 bytes for each word or line of the largest piece, and one byte for each byte of the largest
 * piece. */
LZS_API lzs_status lzs_text_figures(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids,
                                    size_t n_words, lzs_figures *figures);

/* Does for n numbers, such as the token ids of a text, what lzs_text_figures does for words. Equal numbers are equal
 * words. The numbers are never cut into pieces. The figure `words` is n. Figures that need characters, lines or
 * paragraphs are 0. All numbers must be 0 or more. Memory: at most 80 bytes for each number. */
LZS_API lzs_status lzs_number_figures(const int32_t *numbers, size_t n, lzs_figures *figures);

/* Writes the normalized text, in which stretches that differ only in digits, case or white space are the same. First
 * each character c below `n_fold` is replaced by fold[c]. Then every stretch of spaces becomes one space, and every
 * stretch of the digit 0 becomes one 0. To normalize digits and white space, the caller maps all digits to 0 and all
 * white space to a space.
 *
 * Only well-formed UTF-8 is decoded and replaced. All other bytes are copied as they are: overlong forms, surrogates
 * (U+D800 to U+DFFF), numbers above 10FFFF, incomplete characters, and bytes that belong to no character. fold[c] must
 * be a character, not a surrogate. Its UTF-8 form must not be longer than that of c. If a fold[c] that is needed breaks
 * this rule, the function returns LZS_EINVAL. `normalized` must have room for n bytes. *n_normalized is the number of
 * bytes written.
 *
 * `places` holds byte offsets in the normalized text, in ascending order, each at most *n_normalized. (A first call
 * without places gives *n_normalized.) The function replaces each offset by the offset, in characters, of the stretch
 * of `text` that was written there. */
LZS_API lzs_status lzs_normalize(const uint8_t *text, size_t n, const uint32_t *fold, size_t n_fold,
                                 uint8_t *normalized, size_t *n_normalized, uint64_t *places, size_t n_places);

/* The rules by which runs count as loops. A run is long if it has at least `length` bytes. There are two minimum
 * numbers of copies for each kind of run: one for all runs, and one for long runs. A run counts if it reaches a minimum
 * that applies to the run. All numbers of copies are 2 or more; `length` is 1 or more. */
typedef struct lzs_prefilter_rules {
    uint64_t length;                 /* least number of bytes of a long run */
    uint64_t byte_copies;            /* fewest copies of a run of bytes */
    uint64_t long_byte_copies;       /* fewest copies of a long run of bytes */
    uint64_t span_copies;            /* fewest copies of a run of words or lines */
    uint64_t long_span_copies;       /* fewest copies of a long run of words or lines */
    uint64_t normalized_copies;      /* fewest copies of a run of bytes of the normalized text; period >= 2 */
    uint64_t long_normalized_copies; /* fewest copies of a long run of bytes of the normalized text */
} lzs_prefilter_rules;

/* A bit set of the scans that may find a loop. If a bit is 0, the scan is proved to find no loop. */
typedef enum lzs_scan {
    LZS_SCAN_LONG_BYTES = 1,       /* long runs of bytes of the text */
    LZS_SCAN_SHORT_BYTES = 2,      /* runs of bytes of the text that are not long */
    LZS_SCAN_LINES = 4,            /* runs of lines */
    LZS_SCAN_WORDS = 8,            /* runs of words */
    LZS_SCAN_LONG_NORMALIZED = 16, /* long runs of bytes of the normalized text */
    LZS_SCAN_SHORT_NORMALIZED = 32 /* runs of bytes of the normalized text that are not long */
} lzs_scan;

/* lzs_prefilter returns the long runs of bytes that count, so the caller need not scan for these runs again. It returns
 * at most the first LZS_PREFILTER_RUNS runs, in the order of lzs_byte_runs. */
enum { LZS_PREFILTER_RUNS = 32 };
typedef struct lzs_prefilter_result {
    lzs_figures figures;
    uint64_t n_long_runs; /* number of long runs of bytes that count; may exceed LZS_PREFILTER_RUNS */
    lzs_repetition long_runs[LZS_PREFILTER_RUNS];
    int32_t scans; /* lzs_scan */
} lzs_prefilter_result;

/* Computes in one call the figures of a text of fewer than 2^32 bytes, and which scans may find a loop in the text.
 * Most texts have no loop; for such a text this call costs less than the scans. `fold` is a table for lzs_normalize.
 * Memory: at most 48 bytes for each byte of the text, besides 72 bytes for each run. */
LZS_API lzs_status lzs_prefilter(const uint8_t *text, size_t n, const lzs_prefilter_rules *rules, const uint32_t *fold,
                                 size_t n_fold, lzs_prefilter_result *result);

/* The rules by which a stretch of a text counts as stuck. `min_count` is 2 or more, `weight` 0 or more, and all other
 * numbers are 1 or more. */
typedef struct lzs_stuck_rules {
    uint64_t threshold; /* the score that a stretch must reach */
    uint64_t ngram;     /* number of units of an n-gram */
    uint64_t min_count; /* an n-gram is old from this occurrence on (1 is its first occurrence) */
    uint64_t weight;    /* number that a new unit subtracts from the score */
    uint64_t window;    /* lookback for earlier occurrences, in units */
} lzs_stuck_rules;

/* A stuck stretch: the units from `start` up to, but not including, `end`. `old`: the number of old units in the
 * stretch. `score`: the score at the end of the stretch. */
typedef struct lzs_stuck_stretch {
    uint64_t start, end;
    uint64_t old;
    uint64_t score;
} lzs_stuck_stretch;

/* Finds the stuck stretches of a text, in which nearly all units repeat earlier text. `ids` holds the numbers of the
 * text's units: words numbered by lzs_intern, or token ids. An n-gram of `ngram` units is old if the same n-gram also
 * ended at min_count - 1 or more of the `window` places before. A unit is old if an old n-gram contains the unit; else
 * it is new. Each old unit raises a score by 1. Each new unit lowers the score by `weight`, at most to 0 (a CUSUM: Page
 * 1954). A stretch begins where the score leaves 0. Reading goes on until the score is 0 again, or is `threshold` below
 * its highest value. The stretch ends where the score was highest (if there are several such places, at the last). The
 * score then begins anew at 0. A stretch is found if its score reaches `threshold`. Stretches are written in order. For
 * the same units, the first stretch begins at the `start` of lzs_stuck_found. *n_found is the number of stretches
 * found. If it exceeds `capacity`, the first `capacity` stretches are written and the function returns LZS_ESPACE. n is
 * below 2^31. Time: in proportion to n and `ngram`, whatever the other rules are. Memory: at most 16 bytes for each
 * unit. */
LZS_API lzs_status lzs_stuck_stretches(const int32_t *ids, size_t n, const lzs_stuck_rules *rules,
                                       lzs_stuck_stretch *found, size_t capacity, size_t *n_found);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
