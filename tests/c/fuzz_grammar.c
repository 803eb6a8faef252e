/* fuzz_grammar.c - patterns that nobody would write: the parser refuses them in plain words or makes a grammar whose masks are
 * right (grammar_case.h), also those of tokens as a tokenizer writes them (spelled_case.h), within its limits of work and memory.
 *
 * Built with -DLZS_LIBFUZZER it is a target of libFuzzer. Otherwise:
 *
 *     fuzz_grammar <seed> <seconds>     random patterns of pieces that mean something
 *     fuzz_grammar <file>...            replays files, those of tests/c/corpus_grammar/ for instance
 *
 * Of the bytes of a case the first chooses the memory of the grammar, how it is made, and whether it has a tokenization as well; the rest
 * is the pattern.
 */
#include <time.h>

#include "utf8.h"
#include "spelled_case.h"

enum { STEPS = 6, MAX_PATTERN = 2000 };

static lzs_vocabulary *vocabulary;
static lzs_part_masks *masks; /* that all cases share */

static lzs_status make(uint8_t option, const uint8_t *pattern, size_t n, const lzs_vocabulary *v, lzs_grammar_error *error, lzs_grammar **g) {
    size_t max_bytes = option & 1 ? 1 << 20 : 0;
    if (option & 4) { /* inside a string of JSON, up to three of them */
        const lzs_part parts[] = {{LZS_PART_PATTERN, 0, (uint32_t)n, option >> 4, option & 8 ? 9 : LZS_PART_UNBOUNDED},
                                  {LZS_PART_TEXT, 0, 0, 0, 0},
                                  {LZS_PART_SHARED, 0, 1, 0, 0},
                                  {LZS_PART_REPEAT, 1, 1, 0, 1},
                                  {LZS_PART_LIST, 2, 4, option >> 1 & 1, 0}};
        static const uint32_t children[] = {0, 2, 1, 3, 3, 2};
        return lzs_grammar_new_parts(parts, 5, children, 6, pattern, n, v, max_bytes, error, g);
    }
    if (!(option & 2)) return lzs_grammar_new_regex((const char *)pattern, n, v, max_bytes, error, g);
    uint64_t ends[4] = {n / 4, n / 2, n / 2, n};
    return lzs_grammar_new_choices(pattern, ends, 4, v, max_bytes, error, g);
}

enum { MAX_CASE_WORK = 20000 }; /* what is slow here would be slow anywhere */

static bool is_utf8(const uint8_t *text, size_t n) {
    for (size_t at = 0, length; at < n; at += length) {
        uint32_t code;
        length = lzs_utf8_decode(text + at, n - at, &code);
        if (!length) return false;
    }
    return true;
}

/* Whether all texts of the grammar are UTF-8, which is what a tokenizer knows: choices may be cut anywhere. */
static bool has_characters(uint8_t option, const uint8_t *pattern, size_t n) {
    return option & 4 || !(option & 2) || (is_utf8(pattern, n / 4) && is_utf8(pattern + n / 4, n / 2 - n / 4) && is_utf8(pattern + n / 2, n - n / 2));
}

/* The same pattern with a tokenization: three bits of the option choose how texts are cut into words, and one whether all of a text is
 * spelled or only what is forced. */
static void run_spelled(uint8_t option, const uint8_t *pattern, size_t n, uint64_t seed) {
    lzs_grammar *any, *g;
    lzs_grammar_error error;
    if (!has_characters(option, pattern, n) || make(option, pattern, n, spelled.vocabulary, &error, &any) != LZS_OK) return;
    CHECK(make(option, pattern, n, spelled.vocabulary, &error, &g) == LZS_OK);
    any->automaton.max_work = g->automaton.max_work = MAX_CASE_WORK;
    spelled_case(g, any, (option >> 5) % SPELLED_KINDS, !(option & 8), seed);
    lzs_grammar_free(g);
    lzs_grammar_free(any);
}

static void begin(void) {
    vocabulary = case_vocabulary();
    spelled_begin();
    CHECK(lzs_part_masks_new(vocabulary, 1 << 20, &masks) == LZS_OK);
}

/* Whether the pattern was taken. */
static bool run_case(const uint8_t *bytes, size_t n) {
    if (!vocabulary) begin();
    if (!n) return false;
    lzs_grammar *g;
    lzs_grammar_error error;
    lzs_status status = make(bytes[0], bytes + 1, n - 1, vocabulary, &error, &g);
    CHECK((status == LZS_OK) == (g != NULL));
    if (status != LZS_OK) {
        CHECK(status == LZS_EINVAL && error.reason[0] && strlen(error.reason) < sizeof error.reason - 1 && (error.offset < n || error.offset == SIZE_MAX));
        return false;
    }
    CHECK(lzs_grammar_share(g, masks) == LZS_OK);
    g->automaton.max_work = MAX_CASE_WORK;
    uint64_t seed = n;
    for (size_t i = 0; i < n; i++) seed = seed * 31 + bytes[i];
    case_walk(g, seed, STEPS);
    CHECK(lzs_automaton_used(&g->automaton) <= g->max_bytes);
    lzs_grammar_free(g);
    if (bytes[0] & 16) run_spelled(bytes[0], bytes + 1, n - 1, seed);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    run_case(bytes, n < MAX_PATTERN ? n : MAX_PATTERN);
    return 0;
}

#ifndef LZS_LIBFUZZER
static const char *const pieces[] = {
    "a", "b", "0", "\xc3\xa9", "\xf0\x9f\x99\x82", ".", "[ab]", "[^a]", "[a-z]", "[^\\n]", "\\d", "\\w", "\\S", "(", "(?:", ")", ")", "|",
    "*", "+", "?", "{2}", "{0,3}", "{1,70}", "{40,}", "{0,300}", "{3,5}", "(?i:", "(?s:", "\\x41", "\\u00e9", "-", "]", "[", "^", "$", "\\",
    "{", "}", ",", "\xff", "(?=", "\\b"};

static size_t random_pattern(uint64_t *state, uint8_t *bytes) {
    size_t n = 0;
    bytes[n++] = (uint8_t)random_below(state, 256);
    for (int i = random_below(state, 14); i >= 0; i--) {
        const char *piece = pieces[random_below(state, sizeof pieces / sizeof *pieces)];
        memcpy(bytes + n, piece, strlen(piece));
        n += strlen(piece);
    }
    return n;
}

static void end_all(void) {
    lzs_part_masks_free(masks);
    lzs_vocabulary_free(vocabulary);
    spelled_end();
}

int main(int argc, char **argv) {
    static uint8_t bytes[1 << 16];
    if (argc == 3 && strspn(argv[2], "0123456789") == strlen(argv[2])) {
        uint64_t seed = strtoull(argv[1], NULL, 10);
        time_t end = time(NULL) + atol(argv[2]);
        long n_cases = 0, n_taken = 0;
        for (; time(NULL) < end; n_cases++) {
            uint64_t state = (seed << 32) + (uint64_t)n_cases;
            n_taken += run_case(bytes, random_pattern(&state, bytes));
        }
        printf("seed %s: %ld patterns, of which %ld are well formed\n", argv[1], n_cases, n_taken);
        end_all();
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        CHECK(file);
        size_t n = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, n);
    }
    printf("%d files replayed\n", argc - 1);
    end_all();
    return 0;
}
#endif
