/* test_normalize.c - the normalized text: which bytes are a character, what becomes of it, and where it was.
 *
 * tests/test_text.py compares it with the twin in Python.
 */
#include <stdbool.h>

#include "lzsampler_text.h"
#include "texts.h"

enum { UNICODE_SIZE = 0x110000 };

static uint32_t to_letter[UNICODE_SIZE]; /* maps every character to the letter a */

/* Whether bytes are one well-formed character, by table 3-7 of the Unicode standard. */
static bool is_character(const uint8_t *bytes, size_t n) {
    static const struct {
        uint8_t first[2], second[2];
        size_t n;
    } rows[] = {
        {{0xC2, 0xDF}, {0x80, 0xBF}, 2}, {{0xE0, 0xE0}, {0xA0, 0xBF}, 3}, {{0xE1, 0xEC}, {0x80, 0xBF}, 3},
        {{0xED, 0xED}, {0x80, 0x9F}, 3}, {{0xEE, 0xEF}, {0x80, 0xBF}, 3}, {{0xF0, 0xF0}, {0x90, 0xBF}, 4},
        {{0xF1, 0xF3}, {0x80, 0xBF}, 4}, {{0xF4, 0xF4}, {0x80, 0x8F}, 4},
    };
    if (n == 1) return bytes[0] < 0x80;
    for (size_t i = 2; i < n; i++) {
        if (bytes[i] < 0x80 || bytes[i] > 0xBF) return false;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (n == rows[i].n && bytes[0] >= rows[i].first[0] && bytes[0] <= rows[i].first[1]) {
            return bytes[1] >= rows[i].second[0] && bytes[1] <= rows[i].second[1];
        }
    }
    return false;
}

/* Checks that each character becomes the letter a, and that every other byte stays as it is. */
static void check_bytes(const uint8_t *text, size_t n) {
    uint8_t expected[8], normalized[8];
    size_t n_expected = 0, n_normalized;
    for (size_t at = 0, width; at < n; at += width) {
        for (width = 1; width <= n - at && width <= 4 && !is_character(text + at, width);) width++;
        bool found = width <= n - at && width <= 4;
        if (!found) width = 1;
        expected[n_expected++] = found ? 'a' : text[at];
    }
    CHECK(lzs_normalize(text, n, to_letter, UNICODE_SIZE, normalized, &n_normalized, NULL, 0) == LZS_OK);
    CHECK(n_normalized == n_expected && !memcmp(normalized, expected, n_expected));
}

/* All texts of two bytes, and all of three and four whose last bytes are at the edges of the ranges. */
static void test_well_formed(void) {
    static const uint8_t edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF4, 0xFF};
    enum { N_EDGES = sizeof edges };
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            uint8_t text[4] = {(uint8_t)first, (uint8_t)second, 0, 0};
            check_bytes(text, 1);
            check_bytes(text, 2);
            for (int third = 0; third < N_EDGES; third++) {
                text[2] = edges[third];
                check_bytes(text, 3);
                for (int fourth = 0; fourth < N_EDGES; fourth++) {
                    text[3] = edges[fourth];
                    check_bytes(text, 4);
                }
            }
        }
    }
}

/* What is not well-formed is copied, also where a lax decoder would read a space, a zero or a character. */
static void test_malformed(void) {
    static const char *const texts[] = {
        "a\xC0\xA0\xC0\xA0z",           /* the overlong form of a space, twice */
        "\xC0\xB0\xC0\xB0",            /* of a zero */
        "\xE0\x80\xA0\xE0\x80\xA0",    /* of a space in three bytes */
        "\xF0\x80\x80\xB0\xF0\x80\x80\xB0", /* of a zero in four bytes */
        "\xF8\x88\x80\x80",            /* a first byte that UTF-8 does not have */
        "\xFF\xBF\xBF\xBF",
        "\xF4\x90\x80\x80",            /* 110000 */
        "\xED\xA0\x80",                /* the surrogate D800 */
        "\xED\xBF\xBF",                /* the surrogate DFFF */
        "\x80\xBF",                    /* continuation bytes that follow nothing */
        "\xE2\x82",                    /* cut off */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint8_t normalized[16];
        size_t n = strlen(texts[i]), n_normalized;
        CHECK(lzs_normalize((const uint8_t *)texts[i], n, NULL, 0, normalized, &n_normalized, NULL, 0) == LZS_OK);
        CHECK(n_normalized == n && !memcmp(normalized, texts[i], n));
    }
}

/* A place is the number of characters that begin before it, and a stray byte 80 to BF begins none. */
static void test_places(void) {
    const char *text = "\x80  \xC3\x89" "00\xED\xA0\x80\xF0\x9F\x98\x80z";
    static const uint64_t expected[] = {0, 0, 2, 3, 3, 5, 6, 6, 6, 7, 7, 7, 7, 8};
    uint8_t normalized[32];
    uint64_t places[14];
    size_t n_normalized;
    for (uint64_t i = 0; i < 14; i++) places[i] = i;
    CHECK(lzs_normalize((const uint8_t *)text, strlen(text), NULL, 0, normalized, &n_normalized, places, 14) == LZS_OK);
    CHECK(n_normalized == 13 && !memcmp(normalized, "\x80 \xC3\x89" "0\xED\xA0\x80\xF0\x9F\x98\x80z", 13));
    for (size_t i = 0; i < 14; i++) CHECK(places[i] == expected[i]);
}

static void test_random(void) {
    enum { MOST = 400 };
    uint64_t state = 7;
    uint32_t fold[256];
    make_fold(fold);
    for (int round = 0; round < 4000; round++) {
        size_t n = (size_t)random_below(&state, MOST), n_normalized, n_again;
        uint8_t *text = random_text(&state, n), *normalized = malloc(n ? n : 1), *again = malloc(n ? n : 1);
        uint64_t places[2] = {0, 0};
        CHECK(normalized && again);
        CHECK(lzs_normalize(text, n, fold, 256, normalized, &n_normalized, NULL, 0) == LZS_OK && n_normalized <= n);
        places[1] = n_normalized;
        CHECK(lzs_normalize(text, n, fold, 256, again, &n_again, places, 2) == LZS_OK);
        CHECK(n_again == n_normalized && !memcmp(normalized, again, n_again));
        uint64_t n_characters = 0;
        for (size_t i = 0; i < n; i++) n_characters += (text[i] & 0xC0) != 0x80;
        CHECK(places[0] == 0 && places[1] == n_characters);
        for (size_t i = 0; i < n_normalized; i++) {
            CHECK(normalized[i] != 'b' && normalized[i] != '\n');
            CHECK(!i || normalized[i] != normalized[i - 1] || (normalized[i] != ' ' && normalized[i] != '0'));
        }
        free(text);
        free(normalized);
        free(again);
    }
}

static void test_arguments(void) {
    const uint8_t *text = (const uint8_t *)"a";
    uint32_t fold[0x80] = {0};
    uint8_t normalized[4];
    uint64_t places[1] = {0};
    size_t n;
    CHECK(lzs_normalize(NULL, 0, NULL, 0, NULL, &n, NULL, 0) == LZS_OK && n == 0);
    CHECK(lzs_normalize(NULL, 1, NULL, 0, normalized, &n, NULL, 0) == LZS_EINVAL);
    CHECK(lzs_normalize(text, 1, NULL, 1, normalized, &n, NULL, 0) == LZS_EINVAL);
    CHECK(lzs_normalize(text, 1, NULL, 0, NULL, &n, NULL, 0) == LZS_EINVAL);
    CHECK(lzs_normalize(text, 1, NULL, 0, normalized, NULL, NULL, 0) == LZS_EINVAL);
    CHECK(lzs_normalize(text, 1, NULL, 0, normalized, &n, NULL, 1) == LZS_EINVAL);
    CHECK(lzs_normalize(text, 1, fold, 0x80, normalized, &n, places, 1) == LZS_OK && n == 1 && normalized[0] == 0);
    fold['a'] = 0x80; /* longer than the character that it replaces */
    CHECK(lzs_normalize(text, 1, fold, 0x80, normalized, &n, NULL, 0) == LZS_EINVAL);
    static const uint32_t wrong[] = {0xD800, 0xDFFF, 0x110000, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        to_letter[0x10000] = wrong[i];
        CHECK(lzs_normalize((const uint8_t *)"\xF0\x90\x80\x80", 4, to_letter, UNICODE_SIZE, normalized, &n, NULL, 0) ==
              LZS_EINVAL);
    }
}

int main(void) {
    for (uint32_t c = 0; c < UNICODE_SIZE; c++) to_letter[c] = 'a';
    test_well_formed();
    test_malformed();
    test_places();
    test_random();
    test_arguments(); /* changes to_letter */
    return 0;
}
