/* test_lz.c - the LZ penalty against its definition: all short texts over small alphabets, longer random ones with prompts, rewinds,
 * clones and changed settings on every table of kernels, runs and separators by hand, and texts longer than lengths are counted. */
#include "lz_direct.h"

#include <stdlib.h>
#include <string.h>

#include "all_texts.h"
#include "backend/arithmetic.h"
#include "on_kernels.h"
#include "penalty/price.h"

enum { MAX_VOCAB = 64, MAX_LENGTH = 2000 };

static lzs_params lz_params(int32_t window, int32_t min_match) {
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.5f;
    p.lz_window = window;
    p.lz_min_match = min_match;
    return p;
}

/* The edits of LZ alone, and its explanations, at this very history. */
static void check_edits(lzs_sampler *s, const int32_t *tokens, int32_t n, int32_t n_vocab) {
    static const float row[MAX_VOCAB];
    lz_direct_price prices[MAX_VOCAB];
    lzs_explanation told[MAX_VOCAB];
    int32_t every[MAX_VOCAB];
    double got[MAX_VOCAB] = {0};
    size_t n_edits;
    lz_prices(&s->params, tokens, n, n_vocab, prices);
    const lzs_edit *edits = lzs_edits(s, &n_edits);
    for (size_t i = 0; i < n_edits; i++) {
        CHECK(edits[i].token >= 0 && edits[i].token < n_vocab && got[edits[i].token] == 0.0);
        CHECK(edits[i].repeat == 1.0f && edits[i].bias < 0.0f && edits[i].bias >= -FLT_MAX);
        got[edits[i].token] = -(double)edits[i].bias;
    }
    for (int32_t t = 0; t < n_vocab; t++) every[t] = t;
    CHECK(lzs_explain(s, row, every, (size_t)n_vocab, told) == LZS_OK);
    for (int32_t t = 0; t < n_vocab; t++) {
        CHECK(lz_same_price(&s->params, n_vocab, got[t], prices[t].price) && told[t].lz_bias == (float)-got[t]);
        CHECK(lz_explained(&s->params, tokens, n, n_vocab, &told[t], &prices[t]));
    }
}

static void test_all_texts(int32_t n_letters, int32_t length, int32_t window, int32_t min_match, bool separates, bool lists) {
    static const uint32_t one = 1u << 1, zero = 1u << 0;
    lzs_params p = lz_params(window, min_match);
    p.lz_separators = &one;
    p.n_lz_separators = separates;
    p.lz_commas = &zero;
    p.n_lz_commas = lists;
    p.lz_run_penalty = 0.25f;
    p.lz_run_allowance = window % 4;
    lzs_sampler *s = sampler_on(&p, n_letters, lzs_kernels_best());
    walk_all_texts(s, n_letters, length, check_edits);
    lzs_sampler_free(s);
}

static float one_of(uint64_t *state, float a, float b, float c) {
    const float values[] = {a, b, c};
    return values[random_below(state, 3)];
}

/* Longer texts with repetitions of all lengths. */
static void test_random(uint64_t seed, const lzs_kernels *table) {
    static int32_t text[MAX_LENGTH];
    uint64_t state = seed;
    int32_t n_vocab = 2 + random_below(&state, random_below(&state, 2) ? 6 : MAX_VOCAB - 1);
    int32_t window = 2 + random_below(&state, random_below(&state, 2) ? 60 : 1500);
    lzs_params p = lz_params(window, 1 + random_below(&state, random_below(&state, 4) ? window < 9 ? window : 9 : window));
    const uint32_t separators[] = {(uint32_t)random_bits(&state) & (uint32_t)random_bits(&state) & (uint32_t)random_bits(&state), 1};
    const uint32_t commas[] = {(uint32_t)random_bits(&state) & (uint32_t)random_bits(&state), 2};
    const size_t n_words = n_vocab > 32 ? 2 : 1;
    p.lz_separators = separators;
    p.lz_commas = commas;
    p.n_lz_separators = random_below(&state, 2) ? n_words : 0;
    p.n_lz_commas = random_below(&state, 2) ? n_words : 0;
    p.lz_penalty = one_of(&state, 0.0f, 0.4f, 3.0f);
    p.lz_run_penalty = one_of(&state, p.lz_penalty > 0.0f ? 0.0f : 1.0f, 0.1f, 0.2f);
    p.history = random_below(&state, 3) ? LZS_HISTORY_GENERATED : LZS_HISTORY_ALL;
    lzs_sampler *s = sampler_on(&p, n_vocab, table);
    int32_t n = random_below(&state, 200), period = 1;
    for (int32_t k = 0; k < n; k++) text[k] = random_below(&state, n_vocab);
    CHECK(lzs_prime(s, text, (size_t)n) == LZS_OK);
    if (p.history == LZS_HISTORY_GENERATED) n = 0;
    const int32_t n_prompt = n;
    for (int step = 0; step < 500; step++) {
        int action = random_below(&state, 100);
        if (action < 85 && n < MAX_LENGTH) {
            if (random_below(&state, 40) == 0) period = 1 + random_below(&state, 50);
            text[n] = n > period && random_below(&state, 25) ? text[n - period] : random_below(&state, n_vocab);
            CHECK(lzs_accept(s, text[n++]) == LZS_OK);
        } else if (action < 93) {
            int32_t back = random_below(&state, action < 90 ? 4 : 200);
            if (back > n - n_prompt) back = n - n_prompt;
            CHECK(lzs_rewind(s, (size_t)back) == LZS_OK);
            n -= back;
        } else if (action < 95) {
            lzs_sampler *clone;
            CHECK(lzs_sampler_clone(s, &clone) == LZS_OK);
            use_kernels(clone, table);
            CHECK(lzs_accept(s, 0) == LZS_OK); /* which the clone must not see */
            lzs_sampler_free(s);
            s = clone;
        } else {
            lzs_params changed = s->params;
            changed.lz_penalty = one_of(&state, 0.0f, 1.0f, FLT_MAX);
            changed.lz_run_penalty = one_of(&state, changed.lz_penalty > 0.0f ? 0.0f : 0.5f, 0.5f, FLT_MAX);
            changed.lz_run_allowance = one_of(&state, 0.0f, 1.0f, 2.0f) == 0.0f ? 0 : random_below(&state, 100);
            CHECK(lzs_sampler_set_params(s, &changed) == LZS_OK);
        }
        if (step % 7 == 0) check_edits(s, text, n, n_vocab);
    }
    lzs_sampler_free(s);
}

static double price_of(lzs_sampler *s, int32_t token) {
    size_t n;
    const lzs_edit *edits = lzs_edits(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (edits[i].token == token) return -(double)edits[i].bias;
    }
    return 0.0;
}

static bool near(double x, double y) {
    return fabs(x - y) < 1e-5 * (1.0 + fabs(y));
}

/* Accepts the letters of a text: a to z are the tokens 0 to 25. */
static lzs_sampler *after(const lzs_params *p, const char *text) {
    lzs_sampler *s = sampler_on(p, MAX_VOCAB, lzs_kernels_best());
    for (; *text; text++) CHECK(lzs_accept(s, *text - 'a') == LZS_OK);
    return s;
}

#define LETTER(c) (1u << ((c) - 'a'))

/* What "abcdx abcd" costs, with and without separators: 6 is log2 of the vocabulary. */
static void test_by_hand(void) {
    lzs_params p = lz_params(100, 3);
    const double whole = 0.5 * (6.0 - (log2(6) + log2(5)) / 5); /* x after abcd, 5 tokens ago */
    lzs_sampler *s = after(&p, "abcdxabcd");
    CHECK(near(price_of(s, 'x' - 'a'), whole) && price_of(s, 0) == 0.0);
    lzs_sampler_free(s);

    uint32_t separators[2] = {LETTER('b')}, commas[2] = {0};
    p.lz_separators = separators;
    p.n_lz_separators = 2;
    s = after(&p, "abcdxabcd"); /* cd are the tokens since the last separator, and x the third */
    separators[0] = LETTER('c'); /* the set is copied */
    CHECK(near(price_of(s, 'x' - 'a'), 0.5 * (6.0 - (log2(6) + log2(3)) / 3)));
    lzs_sampler_free(s);
    s = after(&p, "abcdxabcd"); /* two tokens are too few */
    CHECK(price_of(s, 'x' - 'a') == 0.0);
    lzs_sampler_free(s);

    const struct {
        const char *text;
        char token;
        int32_t length, distance; /* of the match that costs; 0 where none does */
    } cases[] = {
        {"abxbab", 'x', 0, 0},         /* each b ends an item of two tokens */
        {"ccabxbab", 'x', 3, 4},       /* cca are three tokens: this is no list, and b is a letter as others are */
        {"abxycab", 'x', 3, 5},        /* nor is it from xyc on */
        {"zzzqabxbab", 'x', 0, 0},     /* after a separator a list may begin */
        {"zzzqabxbabqabxbab", 'x', 0, 0},
        {"zzzqabxbabqzzz", 'q', 4, 11}, /* and zzz is an item that is too long for one */
    };
    separators[0] = LETTER('q');
    commas[0] = LETTER('b');
    p.lz_commas = commas;
    p.n_lz_commas = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double length = cases[i].length, bits = 6.0 - (log2(cases[i].distance + 1) + log2(length)) / length;
        s = after(&p, cases[i].text);
        CHECK(near(price_of(s, cases[i].token - 'a'), length ? 0.5 * bits : 0.0));
        lzs_sampler_free(s);
    }
}

/* A text that copies itself: each token beyond the allowance costs as much again, whatever separates its tokens. */
static void test_runs(void) {
    const uint32_t separators[2] = {LETTER('a') | LETTER('b') | LETTER('c')};
    lzs_params p = lz_params(100, 5);
    p.lz_separators = separators;
    p.n_lz_separators = 2;
    p.lz_run_penalty = 0.1f;
    p.lz_run_allowance = 4;
    for (int strong = 0; strong < 2; strong++) {
        p.lz_penalty = strong ? 0.5f : 0.0f;
        lzs_sampler *s = sampler_on(&p, MAX_VOCAB, lzs_kernels_best());
        for (int32_t n = 0; n < 200; n++) { /* U is n - 3, up to the window */
            const int32_t same = n < 3 ? 0 : n - 3 < 100 ? n - 3 : 100, beyond = same + 1 - 3 - 4;
            CHECK(near(price_of(s, n % 3), beyond > 0 ? 0.1 * beyond : 0.0));
            CHECK(lzs_accept(s, n % 3) == LZS_OK);
        }
        lzs_sampler_free(s);
    }
}

/* With lz_min_match 1 every token of the window costs, from its nearest place on. */
static void test_single_tokens(void) {
    static const char text[] = "abcdefgh";
    lzs_params p = lz_params(6, 1);
    lzs_sampler *s = after(&p, text);
    for (int32_t t = 0; t < 10; t++) {
        const int32_t distance = 8 - t;
        CHECK(near(price_of(s, t), distance >= 1 && distance <= 6 ? 0.5 * (6.0 - log2(distance + 1)) : 0.0));
    }
    lzs_sampler_free(s);
}

/* Lengths count to 65,535, in a window that is longer. */
static void test_long_texts(const lzs_kernels *table) {
    enum { LENGTH = 140000, CAP = 65535, PERIOD = 70000, VOCAB = 50000 };
    lzs_params p = lz_params(LZS_MAX_WINDOW, CAP);
    int32_t *text = malloc(LENGTH * sizeof *text);
    CHECK(text);
    p.history = LZS_HISTORY_ALL;
    p.lz_run_penalty = 0.001f;
    for (int quoted = 0; quoted < 2; quoted++) {
        uint64_t state = 7;
        for (int32_t i = 0; i < LENGTH; i++) text[i] = !quoted ? 3 : i < PERIOD ? random_below(&state, VOCAB) : text[i - PERIOD];
        lzs_sampler *s = sampler_on(&p, VOCAB, table);
        CHECK(lzs_prime(s, text, CAP - 1 + (quoted ? PERIOD : 1)) == LZS_OK); /* U is one less than lengths count to */
        for (int i = 0; i < 4; i++) {
            const int32_t n = (int32_t)s->state.history.n, token = quoted ? text[n] : 3;
            const double distance = quoted ? PERIOD : 1, same = i ? CAP : CAP - 1, length = same + 1;
            const double said = 0.5 * (log2(VOCAB) - (log2(distance + 1) + log2(length)) / length);
            const double run = 0.001 * (same + 1 - distance - p.lz_run_allowance);
            CHECK(near(price_of(s, token), run > said ? run : said));
            CHECK(lzs_accept(s, token) == LZS_OK);
        }
        CHECK(lzs_rewind(s, 4) == LZS_OK && price_of(s, quoted ? text[s->state.history.n] : 3) > 0.0);
        lzs_sampler_free(s);
    }
    free(text);
}

/* What lz.c relies on when it skips a match of the token it has just seen: a longer one never costs less, and a nearer one neither. */
static void test_order_of_prices(void) {
    lzs_params p = lz_params(LZS_MAX_WINDOW, 1);
    p.lz_run_penalty = 0.01f;
    const float log2_vocab = lzs_log2(50000.0f);
    uint64_t state = 2;
    for (int i = 0; i < 300000; i++) {
        const int32_t range = random_below(&state, 2) ? 40 : 60000;
        lzs_lz_match m = {random_below(&state, range), 1 + random_below(&state, range), 1 + random_below(&state, 2 * range)};
        const float price = lzs_price(&p, log2_vocab, m);
        m.suffix++;
        CHECK(lzs_price(&p, log2_vocab, m) >= price);
        m.suffix--;
        m.distance++;
        CHECK(lzs_price(&p, log2_vocab, m) <= price);
    }
}

int main(int argc, char **argv) {
    int32_t longest = argc > 1 ? atoi(argv[1]) : 8;
    for (int32_t window = 2; window <= 9; window++) {
        for (int sets = 0; sets < 4; sets++) {
            test_all_texts(2, longest, window, 1 + (window + sets) % (window < 5 ? 2 : 4), sets & 1, sets & 2);
            test_all_texts(3, longest - 1, window, 1 + (window + 2 * sets) % (window < 5 ? 2 : 4), sets & 1, sets & 2);
        }
    }
    const lzs_kernels *table;
    for (int t = 0; (table = lzs_kernels_at(t)); t++) {
        for (uint64_t seed = 1; seed <= 40; seed++) test_random(seed, table);
        test_long_texts(table);
    }
    test_by_hand();
    test_runs();
    test_single_tokens();
    test_order_of_prices();
    return 0;
}
