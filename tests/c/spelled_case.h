/* spelled_case.h - a small vocabulary with merges, and the oracle of `proper`: an encoder that is slow and plain.
 *
 * With LZS_WORDS_NONE a whole text is one word, so that the oracle knows how the tokenizer writes it: what proper masks let through to the
 * end must be written so, and what is written so must be let through. Where texts are cut into words, lzs_spelling_check is the judge.
 */
#ifndef LZS_TESTS_SPELLED_CASE_H
#define LZS_TESTS_SPELLED_CASE_H

#include "grammar_case.h"

enum { SPELLED_END = 0, SPELLED_BYTES = 1, SPELLED_KINDS = 5, SPELLED_MAX = 400, SPELLED_TEXT = 120, SPELLED_STEPS = 40 };

/* The parts of each merge, by rank. Some make a token that another merge makes as well, and some tokens are never written. */
static const char *const spelled_merges[][2] = {
    {"a", "b"}, {"a", "a"}, {"aa", "aa"}, {"ab", "c"}, {"0", "0"}, {"1", "2"}, {"b", "a"}, {"b", "c"}, {" ", "t"}, {"h", "e"},
    {" t", "he"}, {"\xc3", "\xa9"}, {"\xe2", "\x82"}, {"\xe2\x82", "\xac"}, {"\xf0", "\x9f"}, {"a", "bc"}, {"aaaa", "aaaa"}, {"12", "3"},
    {"\n", "\n"}, {" ", " "}, {"  ", "  "}, {"'", "s"}, {"A", "b"}, {"c", "ab"}, {"b", "b"}, {"bb", "b"}, {"a", "aab"}, {"0", "1"},
    {"00", "0"}, {"\"", "a"}, {"\xa9", "a"}, {".", "."}, {"x", "y"}, {"x", "z"}, {"a", "."}, {"1", "a"}, {"_", "a"}, {"aa", "b"}};
enum { SPELLED_MERGES = sizeof spelled_merges / sizeof *spelled_merges };

static struct spelled {
    char names[SPELLED_MAX][16];
    size_t lengths[SPELLED_MAX];
    int32_t n;
    int32_t pairs[2 * SPELLED_MERGES], made[SPELLED_MERGES];
    size_t n_pairs;
    lzs_vocabulary *vocabulary;
    lzs_spelling *kinds[SPELLED_KINDS];
} spelled;

static int32_t spelled_token(const char *name, size_t n) {
    for (int32_t i = SPELLED_BYTES; i < spelled.n; i++) {
        if (spelled.lengths[i] == n && memcmp(spelled.names[i], name, n) == 0) return i;
    }
    return -1;
}

static int32_t spelled_add(const char *name, size_t n) {
    memcpy(spelled.names[spelled.n], name, n);
    spelled.lengths[spelled.n] = n;
    return spelled.n++;
}

static void spelled_begin(void) {
    static uint8_t joined[SPELLED_MAX * 16], kinds[SPELLED_MAX];
    uint64_t ends[SPELLED_MAX], at = 0;
    spelled.n = 0;
    spelled_add("<end>", 5);
    for (int byte = 0; byte < 256; byte++) spelled_add(&(char){(char)byte}, 1);
    for (size_t i = 0; i < SPELLED_MERGES; i++) {
        const char *left = spelled_merges[i][0], *right = spelled_merges[i][1];
        int32_t first = spelled_token(left, strlen(left)), second = spelled_token(right, strlen(right));
        if (first < 0 || second < 0) continue; /* one of its parts is no token */
        char name[16];
        size_t n = strlen(left) + strlen(right);
        memcpy(name, left, strlen(left));
        memcpy(name + strlen(left), right, strlen(right));
        int32_t made = spelled_token(name, n);
        spelled.made[spelled.n_pairs] = made >= 0 ? made : spelled_add(name, n);
        spelled.pairs[2 * spelled.n_pairs] = first;
        spelled.pairs[2 * spelled.n_pairs++ + 1] = second;
    }
    for (int32_t i = 0; i < spelled.n; i++) {
        memcpy(joined + at, spelled.names[i], spelled.lengths[i]);
        ends[i] = at += spelled.lengths[i];
    }
    kinds[SPELLED_END] = LZS_TOKEN_END;
    CHECK(lzs_vocabulary_new(spelled.n, joined, ends, kinds, &spelled.vocabulary) == LZS_OK);
    for (int32_t kind = 0; kind < SPELLED_KINDS; kind++) {
        bool whole = kind == LZS_WORDS_LLAMA3;
        lzs_spelling **made = &spelled.kinds[kind];
        CHECK(lzs_spelling_new_pairs(spelled.vocabulary, NULL, spelled.pairs, spelled.n_pairs, kind, whole, made) == LZS_OK);
    }
}

static inline void spelled_end(void) {
    for (int32_t kind = 0; kind < SPELLED_KINDS; kind++) lzs_spelling_free(spelled.kinds[kind]);
    lzs_vocabulary_free(spelled.vocabulary);
}

/* Byte pair encoding, as it is defined: the merge of the lowest rank that fits, the leftmost first. */
static size_t spelled_encode(const char *text, size_t n, int32_t *tokens) {
    for (size_t i = 0; i < n; i++) tokens[i] = SPELLED_BYTES + (uint8_t)text[i];
    for (;;) {
        size_t best = n, rank = spelled.n_pairs;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t k = 0; k < rank; k++) {
                if (spelled.pairs[2 * k] != tokens[i] || spelled.pairs[2 * k + 1] != tokens[i + 1]) continue;
                best = i;
                rank = k;
            }
        }
        if (best == n) return n;
        tokens[best] = spelled.made[rank];
        n--;
        for (size_t i = best + 1; i < n; i++) tokens[i] = tokens[i + 1];
    }
}

/* A text that matches, byte by byte; false where none was found. */
static bool spelled_text(lzs_grammar *any, uint64_t *seed, char *text, size_t *n) {
    static const char often[] = "aaabbc012 .the\xc3\xa9\n";
    int32_t match = LZS_NO_MATCH;
    for (*n = 0; *n < SPELLED_TEXT; ++*n) {
        if (lzs_grammar_match(any, text, *n, &match) != LZS_OK) return false;
        if (match == LZS_MATCH && random_below(seed, 4) == 0) return true;
        int32_t next = LZS_NO_MATCH;
        for (int i = 0; i < 8 && next == LZS_NO_MATCH; i++) {
            text[*n] = often[random_below(seed, sizeof often - 1)];
            if (lzs_grammar_match(any, text, *n + 1, &next) != LZS_OK) return false;
        }
        for (int i = 0, first = random_below(seed, 256); i < 256 && next == LZS_NO_MATCH; i++) {
            text[*n] = (char)(first + i);
            if (lzs_grammar_match(any, text, *n + 1, &next) != LZS_OK) return false;
        }
        if (next == LZS_NO_MATCH) return match == LZS_MATCH;
    }
    return lzs_grammar_match(any, text, *n, &match) == LZS_OK && match == LZS_MATCH;
}

/* What the tokenizer writes for a text that matches is allowed, token by token, and then the end. False where a limit was reached. */
static bool spelled_complete(lzs_grammar *proper, const char *text, size_t n) {
    int32_t tokens[SPELLED_TEXT];
    size_t n_tokens = spelled_encode(text, n, tokens);
    lzs_params params;
    lzs_params_init(&params);
    lzs_sampler *s;
    CHECK(lzs_sampler_new(spelled.n, &params, &s) == LZS_OK);
    CHECK(lzs_sampler_set_grammar(s, proper) == LZS_OK);
    lzs_plan plan;
    lzs_status status = LZS_OK;
    for (size_t i = 0; i <= n_tokens; i++) {
        int32_t token = i < n_tokens ? tokens[i] : SPELLED_END;
        status = lzs_sampler_plan(s, &plan);
        if (status != LZS_OK) break;
        CHECK(lzs_bit(plan.mask, token));
        CHECK(lzs_accept(s, token) == LZS_OK);
    }
    CHECK(status == LZS_OK || status == LZS_ELIMIT);
    lzs_sampler_free(s);
    return status == LZS_OK;
}

/* Goes through a text of random tokens that are allowed, to its end if that comes soon: something is always allowed, all of it fits, and
 * what ends is written as the tokenizer writes it. */
static void spelled_walk(lzs_grammar *g, lzs_grammar *any, const lzs_spelling *spelling, bool proper, bool whole, uint64_t seed) {
    char text[SPELLED_TEXT + 16];
    int32_t tokens[SPELLED_STEPS], match, oracle[SPELLED_TEXT + 16];
    size_t n = 0, n_tokens = 0;
    lzs_params params;
    lzs_params_init(&params);
    lzs_sampler *s;
    CHECK(lzs_sampler_new(spelled.n, &params, &s) == LZS_OK);
    CHECK(lzs_sampler_set_grammar(s, g) == LZS_OK);
    lzs_status status = LZS_OK;
    while (n_tokens < SPELLED_STEPS && n < SPELLED_TEXT) {
        lzs_plan plan;
        int32_t n_allowed = 0, chosen = -1;
        status = lzs_sampler_plan(s, &plan);
        for (int32_t token = 0; token < spelled.n && status == LZS_OK; token++) {
            if (!lzs_bit(plan.mask, token)) continue;
            if (random_below(&seed, ++n_allowed) == 0) chosen = token;
            if (token < SPELLED_BYTES) continue;
            memcpy(text + n, spelled.names[token], spelled.lengths[token]);
            status = lzs_grammar_match(any, text, n + spelled.lengths[token], &match);
            CHECK(status != LZS_OK || match != LZS_NO_MATCH);
        }
        if (status == LZS_OK) status = lzs_grammar_match(any, text, n, &match);
        if (status != LZS_OK) break;
        CHECK(n_allowed > 0);
        bool ends = lzs_bit(plan.mask, SPELLED_END), right = match == LZS_MATCH;
        size_t wrong = SIZE_MAX;
        if (right && proper && whole) {
            right = spelled_encode(text, n, oracle) == n_tokens && memcmp(oracle, tokens, n_tokens * sizeof *tokens) == 0;
        } else if (right && proper) {
            CHECK(lzs_spelling_check(spelling, tokens, n_tokens, &wrong) == LZS_OK);
            right = wrong == SIZE_MAX;
        }
        CHECK(ends == right);
        if (ends && (chosen == SPELLED_END || n_tokens > SPELLED_STEPS / 2)) break;
        if (chosen == SPELLED_END) break;
        memcpy(text + n, spelled.names[chosen], spelled.lengths[chosen]);
        n += spelled.lengths[chosen];
        tokens[n_tokens++] = chosen;
        CHECK(lzs_accept(s, chosen) == LZS_OK);
    }
    CHECK(status == LZS_OK || status == LZS_ELIMIT);
    lzs_sampler_free(s);
}

/* All checks of a grammar with a tokenization beside the same grammar without one. */
static inline void spelled_case(lzs_grammar *g, lzs_grammar *any, int32_t kind, bool proper, uint64_t seed) {
    const lzs_spelling *spelling = spelled.kinds[kind];
    char text[SPELLED_TEXT];
    size_t n;
    lzs_status status = lzs_grammar_set_tokenization(g, spelling, proper ? LZS_TOKENIZATION_PROPER : LZS_TOKENIZATION_FORCED);
    CHECK(status == LZS_OK);
    for (uint64_t i = 0; i < 2; i++) {
        spelled_walk(g, any, spelling, proper, kind == LZS_WORDS_NONE, seed + i);
        if (!proper || kind != LZS_WORDS_NONE || !spelled_text(any, &seed, text, &n)) continue;
        if (!spelled_complete(g, text, n)) return;
    }
}

#endif
