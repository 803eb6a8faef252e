/* separators.c - which tokens of a vocabulary are separators of the LZ penalty: lzsampler_separators.h has the rule. */
#include "../include/lzsampler_separators.h"

#include <string.h>

#include "../letters.h"
#include "../utf8.h"

#define REPLACEMENT 0xFFFDu /* what decoders write for a piece of a character */

/* The marks of sentences in twelve scripts: full stops, commas, question and exclamation marks, quotation marks. */
static const uint32_t sentence_marks[][2] = {
    {0x21, 0x22}, {0x27, 0x27}, {0x2C, 0x2E}, {0x3B, 0x3B}, {0x3F, 0x3F}, {0xA1, 0xA1},
    {0xAB, 0xAB}, {0xBB, 0xBB}, {0xBF, 0xBF}, {0x55E, 0x55E}, {0x589, 0x589}, {0x60C, 0x60C},
    {0x61B, 0x61B}, {0x61F, 0x61F}, {0x6D4, 0x6D4}, {0x964, 0x965}, {0x104A, 0x104B}, {0x1362, 0x1363},
    {0x2018, 0x201A}, {0x201C, 0x201E}, {0x3001, 0x3002}, {0x300C, 0x300F}, {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C},
    {0xFF0E, 0xFF0E}, {0xFF1B, 0xFF1B}, {0xFF1F, 0xFF1F}, {0xFF61, 0xFF61},
};
enum { N_SENTENCE_MARKS = sizeof sentence_marks / sizeof *sentence_marks };

static bool is_sentence_mark(uint32_t code) {
    return lzs_in_ranges(code, sentence_marks, N_SENTENCE_MARKS);
}

static bool is_comma(uint32_t code) {
    return code == ',' || code == 0x60C || code == 0x3001 || code == 0xFF0C;
}

static bool is_letter(uint32_t code) {
    return code == REPLACEMENT || lzs_in_ranges(code, lzs_letter_ranges, LZS_N_LETTER_RANGES) ||
           lzs_in_ranges(code, lzs_mark_ranges, LZS_N_MARK_RANGES);
}

static void classify(const uint8_t *text, size_t n, bool *is_separator, bool *has_comma) {
    bool only_marks = true, has_mark = false; /* spaces at either end do not count */
    *is_separator = *has_comma = false;
    size_t begin = 0;
    while (n > begin && text[n - 1] == ' ') n--;
    while (begin < n && text[begin] == ' ') begin++;
    for (size_t at = begin; at < n;) {
        uint32_t code;
        size_t size = lzs_utf8_decode(text + at, n - at, &code);
        if (!size || is_letter(code)) {
            *has_comma = false;
            return;
        }
        only_marks &= is_sentence_mark(code);
        has_mark = true;
        *has_comma |= is_comma(code);
        at += size;
    }
    *is_separator = !(has_mark && only_marks);
}

lzs_status lzs_separators_of(const char *text, const size_t *begins, int32_t n_vocab, uint32_t *separators,
                             uint32_t *commas) {
    if (n_vocab < 0 || !begins) return LZS_EINVAL;
    if (n_vocab && (!separators || !commas || (!text && begins[n_vocab]))) return LZS_EINVAL;
    size_t n_words = ((size_t)n_vocab + 31) / 32;
    if (n_words) {
        memset(separators, 0, n_words * sizeof *separators);
        memset(commas, 0, n_words * sizeof *commas);
    }
    for (size_t token = 0; token < (size_t)n_vocab; token++) {
        if (begins[token + 1] < begins[token]) return LZS_EINVAL;
        bool is_separator, has_comma;
        classify((const uint8_t *)text + begins[token], begins[token + 1] - begins[token], &is_separator, &has_comma);
        separators[token / 32] |= (uint32_t)is_separator << token % 32;
        commas[token / 32] |= (uint32_t)has_comma << token % 32;
    }
    return LZS_OK;
}
