/* lzsampler_text.h - the public interface of liblzsampler_text, which finds what repeats in a text.
 *
 * `lzs audit` is built on it. The library is independent of the sampler: it needs nothing of liblzsampler, and nothing
 * but the C standard library. Its functions are
 *
 *     lzs_byte_runs, lzs_token_runs    every stretch of a text that repeats itself without a break
 *     lzs_split, lzs_intern            the words or the lines of a text, and a number for each distinct one
 *     lzs_text_figures                 how many n-grams of words, lines and paragraphs repeat earlier ones
 *     lzs_number_figures               the same for n-grams of tokens
 *     lzs_normalize                    the text with digits, case and white space made alike
 *     lzs_prefilter                    all figures of a text, and which scans for loops may find one
 *
 * Texts are bytes. A function that needs characters takes them to be UTF-8 and counts one character for each byte that
 * does not have the form 10xxxxxx, so a text that is not well-formed UTF-8 has a number of characters as well. Words
 * and lines are separated by the white space of Python's str.split, which is Unicode's and the control codes 1C to 1F.
 *
 * Every function returns an lzs_status and gives its results through pointers. LZS_EINVAL is returned for NULL where
 * there should be an array, and for numbers out of range; LZS_ENOMEM when there is not enough memory. The contents of
 * the results are then not specified. An array of 0 elements may be NULL. Nothing here prints, exits or keeps state, so
 * any number of threads may call these functions at the same time. lzs_split and lzs_normalize allocate no memory; the
 * other functions free theirs before they return.
 */
#ifndef LZSAMPLER_TEXT_H
#define LZSAMPLER_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "lzsampler_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The section between the marks is also read by the Python binding (lzsampler/_ffi_build.py). */
/* cdef-begin */

/* A run is a maximal repetition: each of its units, from the second period on, equals the unit one period earlier; it
 * can be extended neither to the left nor to the right; and `period` is the shortest period it has. It holds length /
 * period copies, the last of which may be incomplete. All three numbers are in units, which are bytes or tokens. */
typedef struct lzs_repetition {
    uint64_t start;
    uint64_t length;
    uint64_t period;
} lzs_repetition;

/* Finds all runs of a text that have at least `min_copies` (2 or more) copies, at least `min_length` units, and a
 * period of at most `max_period` units (0: any period). They are exactly those runs, in order of their period, then of
 * their start. *n_runs is their number. If it exceeds `capacity`, the first `capacity` runs are written and the
 * function returns LZS_ESPACE.
 *
 * Time: about n log(n) / min_copies steps, fewer if `min_length` is 50 or more, and O(n log(n)^2) for the most hostile
 * text; c/text/runs.c proves the bound. Memory: at most 1.1 times the text and 72 bytes a run. */
LZS_API lzs_status lzs_byte_runs(const uint8_t *text, size_t n, uint64_t min_copies, uint64_t min_length,
                                 uint64_t max_period, lzs_repetition *runs, size_t capacity, size_t *n_runs);
LZS_API lzs_status lzs_token_runs(const int32_t *tokens, size_t n, uint64_t min_copies, uint64_t min_length,
                                  uint64_t max_period, lzs_repetition *runs, size_t capacity, size_t *n_runs);

/* A part of a text: the bytes from `start` up to, but not including, `end`. */
typedef struct lzs_span {
    uint32_t start, end;
} lzs_span;

typedef enum lzs_split_kind {
    LZS_SPLIT_WORDS = 0, /* what lies between white space, as Python's str.split gives it */
    LZS_SPLIT_LINES = 1  /* what lies between line feeds, without the white space at its two ends; maybe empty */
} lzs_split_kind;

/* Splits a text of fewer than 2^32 bytes into words or lines. A line feed at the end of the text begins no further
 * line. *n_spans is the number of spans: at most n / 2 + 1 words, and at most n lines. If it exceeds `capacity`, the
 * first `capacity` spans are written and the function returns LZS_ESPACE. */
LZS_API lzs_status lzs_split(const uint8_t *text, size_t n, int32_t kind, lzs_span *spans, size_t capacity,
                             size_t *n_spans);

/* Numbers the spans of a text, of which there are fewer than 2^31, so that two spans have the same number if and only
 * if their bytes are the same. Numbers are given from 0 on, in the order in which distinct spans first appear;
 * *n_distinct is how many there are. Memory: at most 48 bytes a span. */
LZS_API lzs_status lzs_intern(const uint8_t *text, size_t n, const lzs_span *spans, size_t n_spans, int32_t *ids,
                              size_t *n_distinct);

/* Counts of what repeats in a text, whether or not the copies follow each other; lengths are in characters.
 *
 * The members from `top_characters` on are the numerators and denominators of Gopher's repetition filters (Rae et al.
 * 2021, arXiv 2112.11446, table A1), counted as datatrove counts them. Lines are split at one or more line feeds;
 * paragraphs at two or more, after the white space around the text is removed. An element is a duplicate if an equal
 * one came before it. */
typedef struct lzs_figures {
    uint64_t characters, words;
    uint64_t ngrams[4];   /* n-grams of words, n = 1..4 */
    uint64_t distinct[4]; /* distinct ones among them */
    /* The most frequent n-gram, n = 2..4: its length, with a space between two words, times its occurrences. */
    uint64_t top_characters[3];
    /* The length, without spaces, of the duplicate n-grams, n = 5..10, except those that overlap one counted. */
    uint64_t duplicate_characters[6];
    uint64_t lines, duplicate_lines, duplicate_line_characters;
    uint64_t paragraphs, duplicate_paragraphs, duplicate_paragraph_characters;
    uint64_t tail_ngrams, tail_distinct; /* 4-grams of the last 512 words, and distinct ones among them */
    uint64_t extensible; /* words after 4 words that came before, in the same order and next to each other */
    uint64_t extended;   /* those of them that came after these 4 words before: each makes the repetition longer */
    uint64_t frequent;   /* distinct 30-grams of words that occur 20 times or more */
} lzs_figures;

/* Computes the figures of a text of fewer than 2^32 bytes. `words` are spans in ascending order that do not overlap,
 * and `ids` their numbers, as lzs_split and lzs_intern give them. The counts are exact: n-grams are compared, never
 * only their hashes.
 *
 * A text of more than 4 MiB is cut into pieces of at most that size, after a word if the piece has one; only a word
 * that is longer makes a larger piece. Nothing is compared across a cut, and the figures of the pieces are added up.
 * This bounds the memory: at most 80 bytes a word or line of the largest piece, and one byte for each of its bytes. */
LZS_API lzs_status lzs_text_figures(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids,
                                    size_t n_words, lzs_figures *figures);

/* Computes the figures of n numbers, such as the tokens of a text, as lzs_text_figures does for words with these
 * numbers, but in one piece. `words` is n; figures that need characters, lines or paragraphs are 0. The numbers are 0
 * or more. Memory: at most 80 bytes a number. */
LZS_API lzs_status lzs_number_figures(const int32_t *numbers, size_t n, lzs_figures *figures);

/* Writes the normalized text, in which repetitions that differ in digits, case or white space are exact. First each
 * character c below `n_fold` is replaced by fold[c]; then every stretch of spaces becomes one space, and every stretch
 * of the digit 0 becomes one 0. To normalize digits and white space, let the table map all digits to 0 and all white
 * space to a space.
 *
 * Only well-formed UTF-8 is decoded and replaced. The bytes of overlong forms, of surrogates (U+D800 to U+DFFF), of
 * numbers above 10FFFF, of characters that are cut off, and all other bytes that belong to no character are copied as
 * they are. fold[c] must be a character, not a surrogate, whose UTF-8 is no longer than that of c; the function returns
 * LZS_EINVAL if it meets another one. So `normalized` needs room for n bytes. *n_normalized is the number of bytes
 * written.
 *
 * `places` are offsets in the normalized text, in bytes, in ascending order, each at most *n_normalized (which a first
 * call without places gives). Each is replaced by the number of characters of `text` that precede the character, or the
 * byte, that was written at this offset: by its offset in the text in characters. */
LZS_API lzs_status lzs_normalize(const uint8_t *text, size_t n, const uint32_t *fold, size_t n_fold,
                                 uint8_t *normalized, size_t *n_normalized, uint64_t *places, size_t n_places);

/* Which runs count as loops. A run counts if it has enough copies, or if it is long, which means that it has at least
 * `length` bytes, and has enough copies for a long one. All numbers of copies are 2 or more; `length` is 1 or more. */
typedef struct lzs_prefilter_rules {
    uint64_t length;                 /* bytes from which a run is long */
    uint64_t byte_copies;            /* copies that a run of bytes needs */
    uint64_t long_byte_copies;       /* copies that it needs if it is long */
    uint64_t span_copies;            /* copies that a run of words, or of lines, needs */
    uint64_t long_span_copies;       /* copies that it needs if it is long */
    uint64_t normalized_copies;      /* copies that a run of bytes of the normalized text needs; period >= 2 */
    uint64_t long_normalized_copies; /* copies that it needs if it is long */
} lzs_prefilter_rules;

/* Bit set of the scans that may find a loop. A clear bit is a proof that the scan would find none. */
typedef enum lzs_scan {
    LZS_SCAN_LONG_BYTES = 1,       /* long runs of bytes of the text */
    LZS_SCAN_SHORT_BYTES = 2,      /* shorter runs of bytes of the text */
    LZS_SCAN_LINES = 4,            /* runs of lines */
    LZS_SCAN_WORDS = 8,            /* runs of words */
    LZS_SCAN_LONG_NORMALIZED = 16, /* long runs of bytes of the normalized text */
    LZS_SCAN_SHORT_NORMALIZED = 32 /* shorter runs of bytes of the normalized text */
} lzs_scan;

/* The long runs of bytes that count are returned, so that the caller need not make this scan again: the first of them
 * in the order of lzs_byte_runs, up to LZS_PREFILTER_RUNS. */
enum { LZS_PREFILTER_RUNS = 32 };
typedef struct lzs_prefilter_result {
    lzs_figures figures;
    uint64_t n_long_runs; /* how many there are, which may be more than long_runs holds */
    lzs_repetition long_runs[LZS_PREFILTER_RUNS];
    int32_t scans; /* lzs_scan */
} lzs_prefilter_result;

/* Computes in one call the figures of a text of fewer than 2^32 bytes and the scans for loops that are worth making.
 * Most texts have no loop, and this call costs less than the scans would. `fold` is a table for lzs_normalize. Memory:
 * at most 48 bytes for each byte of the text, besides 72 bytes a run. */
LZS_API lzs_status lzs_prefilter(const uint8_t *text, size_t n, const lzs_prefilter_rules *rules, const uint32_t *fold,
                                 size_t n_fold, lzs_prefilter_result *result);

/* When a stretch of a text counts as stuck. All are 1 or more, min_count 2 or more, and the weight may be 0. */
typedef struct lzs_stuck_rules {
    uint64_t threshold; /* the score that a stretch needs */
    uint64_t ngram;     /* units that are compared together */
    uint64_t min_count; /* the occurrence from which an n-gram is old */
    uint64_t weight;    /* what a new unit takes from the score */
    uint64_t window;    /* lookback for earlier occurrences, in units */
} lzs_stuck_rules;

/* The units from `start` up to, but not including, `end`: `old` of them are old, and together they reach `score`. */
typedef struct lzs_stuck_stretch {
    uint64_t start, end;
    uint64_t old;
    uint64_t score;
} lzs_stuck_stretch;

/* Finds the stretches of a text that say next to nothing new. `ids` are the numbers of its units, words as lzs_intern
 * gives them or tokens. An n-gram of `ngram` units is old when it ended at min_count - 1 or more of the `window` places
 * before; a unit is old when an old n-gram contains it. Unit by unit, a score rises by 1 for each old one and falls by
 * `weight`, to 0 at least, for each new one (a CUSUM: Page 1954). A stretch begins where the score leaves 0 and ends at
 * its highest score, the last of equal ones; it is over when the score is 0 again or `threshold` below the highest,
 * from where it begins anew at 0. Those whose score reaches the threshold are found, in order. The first of them begins
 * where lzs_stuck_found says of the same units. *n_found is their number. If it exceeds `capacity`, the first
 * `capacity` are written and the function returns LZS_ESPACE. n is below 2^31. Time: in proportion to n and `ngram`,
 * whatever the other rules are. Memory: at most 16 bytes a unit. */
LZS_API lzs_status lzs_stuck_stretches(const int32_t *ids, size_t n, const lzs_stuck_rules *rules,
                                       lzs_stuck_stretch *found, size_t capacity, size_t *n_found);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
