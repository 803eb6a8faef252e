/* test_lookup.c - what a lookup finds, against a direct comparison, while its text grows and is taken back. */
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "lzsampler_verify.h"

enum { MOST = 700, ASKED = 9 };

/* The length of the longest match of the text's end, and the tokens that follow the nearest one. */
static int32_t expected(const int32_t *text, int32_t n, int32_t window, int32_t least, int32_t *tokens) {
    int32_t best = 0, at = 0;
    for (int32_t d = 1; d < n && d <= window; d++) {
        int32_t length = 0;
        while (d + length < n && text[n - 1 - length] == text[n - 1 - length - d]) length++;
        if (length > best) {
            best = length;
            at = d;
        }
    }
    if (best < least) return 0;
    for (int32_t i = 0; i < ASKED; i++) tokens[i] = text[n - at + i % at];
    return best;
}

static void check_find(const lzs_lookup *lookup, const int32_t *text, int32_t n, int32_t window, int32_t least) {
    int32_t found[ASKED + 1], wanted[ASKED];
    memset(found, 0x55, sizeof found);
    memset(wanted, 0x55, sizeof wanted);
    CHECK(lzs_lookup_find(lookup, least, found, ASKED) == expected(text, n, window, least, wanted));
    CHECK(memcmp(found, wanted, sizeof wanted) == 0 && found[ASKED] == 0x55555555);
}

static void test_random_texts(void) {
    static int32_t text[MOST];
    uint64_t state = 4;
    int hits = 0;
    for (int round = 0; round < 300; round++) {
        int32_t window = random_below(&state, 2) ? 1 + random_below(&state, 40) : MOST, n = 0;
        int32_t letters = 1 + random_below(&state, 30), repeats = random_below(&state, 10);
        lzs_lookup *lookup;
        CHECK(lzs_lookup_new(window, &lookup) == LZS_OK);
        for (int step = 0; step < 30; step++) {
            if (random_below(&state, 5) == 0) {
                int32_t back = random_below(&state, n + 1);
                CHECK(lzs_lookup_rewind(lookup, (size_t)back) == LZS_OK);
                n -= back;
            }
            int32_t more = random_below(&state, 3) ? random_below(&state, 6) : random_below(&state, 90);
            if (more > MOST - n) more = MOST - n;
            for (int32_t i = n; i < n + more; i++) { /* the alphabet begins below 0: any value is a token here */
                bool again = i > 20 && random_below(&state, 10) < repeats;
                text[i] = again ? text[i - 13] : random_below(&state, letters) - 2;
            }
            CHECK(lzs_lookup_append(lookup, text + n, (size_t)more) == LZS_OK);
            n += more;
            int32_t least = 1 + random_below(&state, 5), tokens[ASKED];
            check_find(lookup, text, n, window, least);
            hits += lzs_lookup_find(lookup, least, tokens, 0) > 0;
        }
        lzs_lookup_free(lookup);
    }
    CHECK(hits > 2000);
}

static void test_edges(void) {
    static int32_t zeros[70000];
    int32_t one = 5, tokens[3];
    lzs_lookup *lookup = (lzs_lookup *)zeros;
    CHECK(lzs_lookup_new(0, &lookup) == LZS_EINVAL && lookup == NULL);
    CHECK(lzs_lookup_new(INT32_MAX, &lookup) == LZS_OK);
    CHECK(lzs_lookup_find(lookup, 1, tokens, 3) == 0 && lzs_lookup_rewind(lookup, 1) == LZS_EINVAL);
    CHECK(lzs_lookup_append(lookup, NULL, 0) == LZS_OK && lzs_lookup_append(lookup, NULL, 1) == LZS_EINVAL);
    CHECK(lzs_lookup_append(lookup, &one, 1) == LZS_OK && lzs_lookup_find(lookup, 1, tokens, 3) == 0);
    CHECK(lzs_lookup_append(lookup, zeros, 70000) == LZS_OK);
    CHECK(lzs_lookup_find(lookup, 1, tokens, 3) == 65535 && lzs_lookup_find(lookup, 65535, tokens, 3) == 65535);
    CHECK(lzs_lookup_find(lookup, 0, tokens, 3) == 0 && lzs_lookup_find(lookup, 65536, tokens, 3) == 0);
    CHECK(lzs_lookup_append(lookup, zeros, (size_t)INT32_MAX - 70000) == LZS_EFULL);
    CHECK(lzs_lookup_find(lookup, 1, tokens, 3) == 65535);
    if (SIZE_MAX == UINT32_MAX) { /* which has no room for so many tokens, nor has the text */
        lzs_lookup *large;
        CHECK(lzs_lookup_new(1, &large) == LZS_OK && lzs_lookup_append(large, &one, 720000000) == LZS_ENOMEM);
        lzs_lookup_free(large);
    }
    CHECK(lzs_lookup_rewind(lookup, 70001) == LZS_OK && lzs_lookup_find(lookup, 1, tokens, 3) == 0);
    lzs_lookup_free(lookup);
    lzs_lookup_free(NULL);
}

/* A document that is quoted, token by token, until the match is longer than is counted. */
static void test_at_cap(void) {
    enum { DOCUMENT = 65600, CAP = 65535 };
    static int32_t text[2 * DOCUMENT];
    lzs_lookup *lookup;
    int32_t n = DOCUMENT + CAP - 5, token;
    for (int32_t i = 0; i < 2 * DOCUMENT; i++) text[i] = i % DOCUMENT;
    CHECK(lzs_lookup_new(2 * DOCUMENT, &lookup) == LZS_OK && lzs_lookup_append(lookup, text, (size_t)n) == LZS_OK);
    for (; n < 2 * DOCUMENT; n++) {
        int32_t length = n - DOCUMENT < CAP ? n - DOCUMENT : CAP;
        CHECK(lzs_lookup_find(lookup, 1, &token, 1) == length && token == text[n]);
        CHECK(lzs_lookup_append(lookup, &text[n], 1) == LZS_OK);
    }
    CHECK(lzs_lookup_rewind(lookup, 1) == LZS_OK && lzs_lookup_find(lookup, 1, &token, 1) == CAP);
    lzs_lookup_free(lookup);
}

int main(void) {
    test_random_texts();
    test_at_cap();
    test_edges();
    return 0;
}
