/* grammar_case.h - a small vocabulary, and the oracle of masks: a token is allowed when the text with it can go on.
 *
 * The vocabulary has all bytes, so that every text that can go on can be completed. The oracle reads bytes one by one and
 * uses neither the tree of the vocabulary nor clamped counts nor kept masks.
 */
#ifndef LZS_TESTS_GRAMMAR_CASE_H
#define LZS_TESTS_GRAMMAR_CASE_H

#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "constraint/grammar.h"
#include "plan/plan.h"

enum { CASE_END = 0, CASE_SPECIAL = 1, CASE_BYTES = 2, CASE_MAX_VOCAB = 400, CASE_MAX_TEXT = 4000 };

static const char *const case_words[] = {
    "ab", "ba", "aa", "aaaa", "aaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abc", "12", "345", "00", "0", " the", "\xc3\xa9",
    "\xa9\xc3", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "qa", "qb", "qc", "qd", "q-", "q.", "q ", "q \"", "qA", "qab1", "a0", "a1", "ab_", "aB", "A0b", "1a", "12a", "123", "1234", "\xf0\x9f", "\xe2\x82\xac", "a\nb", "\\\"", "\"a", "b-c", "\xed\x9f\xbf", "aaaaaaaaaaaaaaaaaaaa1", ".", "..",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

static const char *case_text[CASE_MAX_VOCAB];
static size_t case_length[CASE_MAX_VOCAB];
static int32_t case_n_vocab;

/* All bytes and the words; the first token ends a text and the second is special. */
static lzs_vocabulary *case_vocabulary(void) {
    static char bytes[256];
    uint8_t kinds[CASE_MAX_VOCAB] = {0}, joined[4096];
    uint64_t ends[CASE_MAX_VOCAB], at = 0;
    int32_t n = CASE_BYTES;
    case_text[CASE_END] = case_text[CASE_SPECIAL] = "abc";
    case_length[CASE_END] = case_length[CASE_SPECIAL] = 3;
    for (int byte = 0; byte < 256; byte++, n++) {
        bytes[byte] = (char)byte;
        case_text[n] = &bytes[byte];
        case_length[n] = 1;
    }
    for (size_t i = 0; i < sizeof case_words / sizeof *case_words; i++, n++) {
        case_text[n] = case_words[i];
        case_length[n] = strlen(case_words[i]);
    }
    for (int32_t i = 0; i < n; i++) {
        memcpy(joined + at, case_text[i], case_length[i]);
        at += case_length[i];
        ends[i] = at;
    }
    kinds[CASE_END] = LZS_TOKEN_END;
    kinds[CASE_SPECIAL] = LZS_TOKEN_SPECIAL;
    case_n_vocab = n;
    lzs_vocabulary *v;
    CHECK(lzs_vocabulary_new(n, joined, ends, kinds, &v) == LZS_OK);
    return v;
}

/* Goes through a text of random tokens; what every mask allows must be what the oracle allows. False when a limit was
 * reached. */
static inline bool case_walk(lzs_grammar *g, uint64_t seed, int steps) {
    static char text[CASE_MAX_TEXT];
    size_t n = 0;
    lzs_params params;
    lzs_params_init(&params);
    lzs_sampler *s;
    CHECK(lzs_sampler_new(case_n_vocab, &params, &s) == LZS_OK);
    CHECK(lzs_sampler_set_grammar(s, g) == LZS_OK);
    lzs_status status = LZS_OK;
    for (int step = 0; step < steps && status == LZS_OK; step++) {
        lzs_plan plan;
        int32_t match, n_allowed = 0, chosen = -1;
        status = lzs_sampler_plan(s, &plan);
        if (status != LZS_OK) break;
        static uint32_t words[CASE_MAX_VOCAB / 32 + 1]; /* the oracle may make the grammar forget its masks */
        memcpy(words, plan.mask, lzs_mask_words(case_n_vocab) * 4);
        for (int32_t token = 0; token < case_n_vocab && status == LZS_OK; token++) {
            bool is_text = token >= CASE_BYTES;
            if (is_text) memcpy(text + n, case_text[token], case_length[token]);
            status = lzs_grammar_match(g, text, n + (is_text ? case_length[token] : 0), &match);
            bool expected = is_text ? match != LZS_NO_MATCH : token == CASE_END && match == LZS_MATCH;
            CHECK(status != LZS_OK || lzs_bit(words, token) == expected);
            if (!lzs_bit(words, token)) continue;
            if (random_below(&seed, ++n_allowed) == 0) chosen = token;
        }
        if (status != LZS_OK) break;
        CHECK(n_allowed > 0);
        if (chosen == CASE_END || n + 2 * case_length[chosen] + 100 > CASE_MAX_TEXT) break;
        memcpy(text + n, case_text[chosen], case_length[chosen]);
        n += case_length[chosen];
        CHECK(lzs_accept(s, chosen) == LZS_OK);
        if (random_below(&seed, 8) == 0) { /* there and back again, in a clone */
            lzs_sampler *clone;
            CHECK(lzs_sampler_clone(s, &clone) == LZS_OK);
            size_t back = (size_t)random_below(&seed, (int32_t)lzs_position(s) + 1), n_tokens;
            const int32_t *tokens = lzs_tokens(s, &n_tokens);
            CHECK(lzs_rewind(clone, back) == LZS_OK);
            lzs_sampler_plan(clone, &plan);
            for (size_t i = n_tokens - back; i < n_tokens; i++) CHECK(lzs_accept(clone, tokens[i]) == LZS_OK);
            lzs_sampler_free(s);
            s = clone;
        }
    }
    CHECK(status == LZS_OK || (status == LZS_ELIMIT && lzs_grammar_problem(g)));
    lzs_sampler_free(s);
    return status == LZS_OK;
}

#endif
