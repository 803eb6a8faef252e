/* test_spelling.c - pairs of tokens against an encoder that is slow and plain, for random merges in any order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "constraint/spelling.h"
#include "plan/plan.h"

enum { N_LETTERS = 3, MAX_TOKENS = 24, MAX_TEXT = 64, END = 0 };

typedef struct toy {
    char names[MAX_TOKENS][MAX_TEXT];
    int32_t n;
    int32_t pairs[2 * MAX_TOKENS];
    int32_t n_pairs;
} toy;

static int32_t find(const toy *t, const char *name) {
    for (int32_t i = 1; i < t->n; i++) {
        if (strcmp(t->names[i], name) == 0) return i;
    }
    return -1;
}

/* Tokens are made by merges of ones before them; then the merges may be put into another order. */
static toy random_toy(uint64_t *seed, bool in_order) {
    toy t = {.n = 1};
    for (int i = 0; i < N_LETTERS; i++) t.names[t.n++][0] = (char)('a' + i);
    int wanted = random_below(seed, 12);
    for (int i = 0; i < wanted; i++) {
        int32_t left = 1 + random_below(seed, t.n - 1), right = 1 + random_below(seed, t.n - 1);
        char name[2 * MAX_TEXT];
        strcpy(name, t.names[left]);
        strcat(name, t.names[right]);
        if (strlen(name) > 8) continue;
        bool known = false;
        for (int32_t k = 0; k < t.n_pairs; k++) known |= t.pairs[2 * k] == left && t.pairs[2 * k + 1] == right;
        if (known) continue;
        if (find(&t, name) < 0) strcpy(t.names[t.n++], name);
        t.pairs[2 * t.n_pairs] = left;
        t.pairs[2 * t.n_pairs++ + 1] = right;
    }
    for (int32_t i = t.n_pairs - 1; i > 0 && !in_order; i--) {
        int32_t other = random_below(seed, i + 1);
        for (int side = 0; side < 2; side++) {
            int32_t kept = t.pairs[2 * i + side];
            t.pairs[2 * i + side] = t.pairs[2 * other + side];
            t.pairs[2 * other + side] = kept;
        }
    }
    return t;
}

/* Byte pair encoding, as it is defined: the merge of the lowest rank that fits, the leftmost first. */
static int encode(const toy *t, const char *text, int32_t *tokens) {
    int n = 0;
    for (; *text; text++) tokens[n++] = *text - 'a' + 1;
    for (;;) {
        int best = -1, rank = t->n_pairs;
        for (int i = 0; i + 1 < n; i++) {
            for (int k = 0; k < rank; k++) {
                if (t->pairs[2 * k] == tokens[i] && t->pairs[2 * k + 1] == tokens[i + 1]) {
                    best = i;
                    rank = k;
                }
            }
        }
        if (best < 0) return n;
        char name[2 * MAX_TEXT];
        strcpy(name, t->names[tokens[best]]);
        strcat(name, t->names[tokens[best + 1]]);
        tokens[best] = find(t, name);
        memmove(tokens + best + 1, tokens + best + 2, (size_t)(n - best - 2) * sizeof *tokens);
        n--;
    }
}

static lzs_vocabulary *vocabulary_of(const toy *t) {
    uint8_t bytes[MAX_TOKENS * MAX_TEXT], kinds[MAX_TOKENS] = {0};
    uint64_t ends[MAX_TOKENS], at = 0;
    for (int32_t i = 0; i < t->n; i++) {
        memcpy(bytes + at, t->names[i], strlen(t->names[i]));
        at += strlen(t->names[i]);
        ends[i] = at;
    }
    kinds[END] = LZS_TOKEN_END;
    lzs_vocabulary *v;
    CHECK(lzs_vocabulary_new(t->n, bytes, ends, kinds, &v) == LZS_OK);
    return v;
}

static bool is_written(const toy *t, const int32_t *expected, int n) {
    char text[4 * MAX_TEXT] = "";
    int32_t tokens[4 * MAX_TEXT];
    for (int i = 0; i < n; i++) strcat(text, t->names[expected[i]]);
    return encode(t, text, tokens) == n && memcmp(tokens, expected, (size_t)n * sizeof *tokens) == 0;
}

static void check_pairs(const toy *t, uint64_t *seed) {
    lzs_vocabulary *v = vocabulary_of(t);
    lzs_spelling *s;
    CHECK(lzs_spelling_new_pairs(v, NULL, t->pairs, (size_t)t->n_pairs, LZS_WORDS_NONE, 0, &s) == LZS_OK);
    const lzs_merges *m = &s->merges;
    for (int32_t first = 1; first < t->n; first++) {
        CHECK(m->written[first] == is_written(t, &first, 1));
        if (!m->written[first]) continue;
        uint32_t after[MAX_TOKENS / 32 + 1], before[MAX_TOKENS / 32 + 1] = {0};
        memset(after, 0xFF, sizeof after);
        lzs_merges_forbid_after(m, first, after);
        lzs_merges_mark_before(m, first, before);
        for (int32_t second = 1; second < t->n; second++) {
            if (!m->written[second]) continue;
            bool expected = is_written(t, (int32_t[]){first, second}, 2);
            CHECK(lzs_merges_pair(m, first, second) == expected);
            CHECK(lzs_bit(after, second) == expected);
            CHECK(!lzs_bit(before, second) == lzs_merges_pair(m, second, first));
        }
    }
    for (int i = 0; i < 40; i++) { /* neighbours are enough */
        int32_t tokens[6];
        int n = 1 + random_below(seed, 6);
        for (int k = 0; k < n; k++) tokens[k] = 1 + random_below(seed, t->n - 1);
        size_t wrong;
        CHECK(lzs_spelling_check(s, tokens, (size_t)n, &wrong) == LZS_OK);
        CHECK((wrong == SIZE_MAX) == is_written(t, tokens, n));
    }
    lzs_spelling_free(s);
    lzs_vocabulary_free(v);
}

static void arguments_are_checked(void) {
    toy t = random_toy(&(uint64_t){5}, true);
    lzs_vocabulary *v = vocabulary_of(&t), *other = vocabulary_of(&t);
    lzs_spelling *s;
    lzs_grammar *g;
    size_t wrong;
    CHECK(lzs_spelling_new_pairs(v, NULL, (int32_t[]){1, 99}, 1, LZS_WORDS_NONE, 0, &s) == LZS_EINVAL && !s);
    CHECK(lzs_spelling_new_pairs(v, NULL, NULL, 1, LZS_WORDS_NONE, 0, &s) == LZS_EINVAL);
    CHECK(lzs_spelling_new_pairs(v, NULL, NULL, 0, 5, 0, &s) == LZS_EINVAL);
    CHECK(lzs_spelling_new_pairs(v, (uint8_t[MAX_TOKENS]){0, 3}, NULL, 0, LZS_WORDS_NONE, 0, &s) == LZS_EINVAL);
    CHECK(lzs_spelling_new_scores(v, NULL, NULL, &s) == LZS_EINVAL);
    float *scores = calloc((size_t)v->n_vocab, sizeof *scores);
    CHECK(scores && lzs_spelling_new_scores(v, NULL, scores, &s) == LZS_OK);
    lzs_spelling_free(s);
    scores[1] = NAN;
    CHECK(lzs_spelling_new_scores(v, NULL, scores, &s) == LZS_EINVAL && !s);
    free(scores);
    CHECK(lzs_spelling_new_pairs(v, NULL, NULL, 0, LZS_WORDS_NONE, 0, &s) == LZS_OK);
    CHECK(lzs_spelling_check(s, (int32_t[]){99}, 1, &wrong) == LZS_EINVAL);
    CHECK(lzs_spelling_check(s, (int32_t[]){1, END}, 2, &wrong) == LZS_OK && wrong == 1);
    CHECK(lzs_grammar_new_regex("a*", 2, other, 0, NULL, &g) == LZS_OK);
    CHECK(lzs_grammar_set_tokenization(g, s, LZS_TOKENIZATION_PROPER) == LZS_EINVAL); /* of another vocabulary */
    CHECK(lzs_grammar_set_tokenization(g, NULL, LZS_TOKENIZATION_FORCED) == LZS_EINVAL);
    CHECK(lzs_grammar_set_tokenization(g, NULL, 3) == LZS_EINVAL);
    CHECK(lzs_grammar_set_tokenization(g, NULL, LZS_TOKENIZATION_ANY) == LZS_OK);
    lzs_grammar_free(g);
    CHECK(lzs_spelling_memory(s) > 0);
    lzs_spelling_free(s);
    lzs_spelling_free(NULL);
    lzs_vocabulary_free(v);
    lzs_vocabulary_free(other);
}

int main(void) {
    uint64_t seed = 1;
    for (int i = 0; i < 200; i++) {
        toy t = random_toy(&seed, i % 2 == 0);
        check_pairs(&t, &seed);
    }
    arguments_are_checked();
    return 0;
}
