/* test_runs.c - compares the runs of small texts with the definition, and bounds the operations of hostile texts.
 *
 * The source file is included, so that its operations can be counted.
 */
#include "check.h"

static uint64_t work;
#define LZS_WORK(n) (work += (n))
#include "../../c/text/runs.c"

enum { N_RUNS = 1 << 16 };

static lzs_repetition found[N_RUNS];

static size_t byte_runs(const uint8_t *text, size_t n, uint64_t min_copies, uint64_t min_length) {
    size_t n_runs;
    CHECK(lzs_byte_runs(text, n, min_copies, min_length, 0, found, N_RUNS, &n_runs) == LZS_OK);
    return n_runs;
}

/* ---- against the definition ---- */

/* Returns the shortest period of a text. */
static size_t period_of(const uint8_t *text, size_t n) {
    for (size_t p = 1; p < n; p++) {
        size_t i = 0;
        while (i + p < n && text[i] == text[i + p]) i++;
        if (i + p == n) return p;
    }
    return n;
}

/* Checks that `found` holds exactly the runs of the text, in order. */
static void check_runs(const uint8_t *text, size_t n, uint64_t min_copies, uint64_t min_length, uint64_t max_period,
                       size_t n_runs) {
    size_t r = 0;
    for (size_t p = 1; p * min_copies <= n && (!max_period || p <= max_period); p++) {
        for (size_t start = 0, end; start + p < n; start = end - p + 1) {
            end = start + p;
            while (end < n && text[end] == text[end - p]) end++;
            size_t length = end - start;
            if (length < min_copies * p || length < min_length || period_of(text + start, length) != p) continue;
            CHECK(r < n_runs && found[r].start == start && found[r].length == length && found[r].period == p);
            r++;
        }
    }
    CHECK(r == n_runs);
}

static void check_text(const uint8_t *text, size_t n, size_t first_id) {
    static const uint64_t rules[][3] = {{2, 0, 0}, {2, 7, 3}, {2, 40, 0}, {3, 1, 0}, {3, 30, 10}, {5, 20, 0}, {20, 0, 0}};
    static const int32_t ids[] = {0, -1, INT32_MAX, INT32_MIN, 65536, 1 << 24, 7, 256};
    int32_t tokens[512];
    for (size_t i = 0; i < n; i++) tokens[i] = ids[(text[i] + first_id) % 8];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const uint64_t *rule = rules[i];
        size_t n_runs;
        CHECK(lzs_byte_runs(text, n, rule[0], rule[1], rule[2], found, N_RUNS, &n_runs) == LZS_OK);
        check_runs(text, n, rule[0], rule[1], rule[2], n_runs);
        CHECK(lzs_token_runs(tokens, n, rule[0], rule[1], rule[2], found, N_RUNS, &n_runs) == LZS_OK);
        check_runs(text, n, rule[0], rule[1], rule[2], n_runs);
    }
}

static void test_random(void) {
    uint64_t state = 1;
    for (int round = 0; round < 3000; round++) {
        uint8_t text[512];
        size_t n = 0, most = (size_t)random_below(&state, 300);
        int32_t n_letters = 1 + random_below(&state, 4);
        while (n < most) { /* noise, or a part of a power of what came before */
            size_t period = 1 + (size_t)random_below(&state, 30), length = (size_t)random_below(&state, 100);
            bool copies = n >= period && random_below(&state, 3) == 0;
            for (; length && n < most; length--, n++) {
                text[n] = copies ? text[n - period] : (uint8_t)random_below(&state, n_letters);
            }
        }
        /* In a block of its own size, so that a read past its end is seen. */
        uint8_t *exact = malloc(n ? n : 1);
        CHECK(exact != NULL);
        memcpy(exact, text, n);
        check_text(exact, n, (size_t)round % 8);
        free(exact);
    }
}

/* ---- hostile texts ---- */

static int trailing_zeros(size_t i) {
    int n = 0;
    for (; i % 2 == 0; i /= 2) n++;
    return n;
}

/* Fills text[n] with the hostile text of this number. Returns false if there is none. */
static bool make(int number, uint8_t *text, size_t n) {
    uint64_t state = (uint64_t)number;
    memset(text, 'a', n);
    switch (number) {
    case 0: return true;
    case 1: text[n / 2] = 'b'; return true; /* a^m b a^m */
    case 2: text[n / 3] = text[2 * n / 3] = 'b'; return true;
    case 3: text[n - 1] = 'b'; return true;
    case 4: /* Fibonacci word: f(k) = f(k - 1) f(k - 2) */
        text[1] = 'b';
        for (size_t length = 2, previous = 1; length < n;) {
            memcpy(text + length, text, previous < n - length ? previous : n - length);
            length += previous;
            previous = length - previous;
        }
        return true;
    case 5: /* Thue-Morse word: t(2i) = t(i), t(2i + 1) = not t(i) */
        for (size_t i = 1; i < n; i++) text[i] = i % 2 ? (uint8_t)('a' + 'b' - text[i / 2]) : text[i / 2];
        return true;
    case 6: /* period doubling word: b where the number of trailing zeros is odd */
        for (size_t i = 1; i <= n; i++) text[i - 1] = (uint8_t)('a' + trailing_zeros(i) % 2);
        return true;
    case 7: /* a de Bruijn word of order 16, by its shift register x^16 + x^14 + x^13 + x^11 + 1 */
        for (size_t i = 0, bits = 1; i < n; i++) {
            text[i] = (uint8_t)('a' + (bits & 1));
            bits = bits >> 1 | ((bits ^ bits >> 2 ^ bits >> 3 ^ bits >> 5) & 1) << 15;
        }
        return true;
    case 8: /* random bits */
        for (size_t i = 0; i < n; i++) text[i] = (uint8_t)('a' + random_below(&state, 2));
        return true;
    case 9: case 10: case 11: { /* a, with a letter at random places */
        int32_t most = number == 9 ? 100 : number == 10 ? 3000 : (int32_t)(n / 20);
        for (size_t i = 0; i < n; i += 1 + (size_t)random_below(&state, most)) text[i] = 'b';
        return true;
    }
    case 12: case 13: case 14: /* a loop of one odd letter, 1000 or 200, broken at random places or once */
        for (size_t i = 0; i < n; i += number == 12 ? 1000 : 200) text[i] = 'b';
        for (size_t i = 0; number < 14 && i < n; i += 1 + (size_t)random_below(&state, 20000)) text[i] = 'c';
        if (number == 14) text[n / 2 + 1] = 'c';
        return true;
    case 15: /* alternating near-loops: each copy differs from the one before in one place */
        for (size_t i = 0; i < n; i++) text[i] = i < 500 ? (uint8_t)random_below(&state, 256) : text[i - 500];
        for (size_t i = 500; i < n; i += 500) text[i + (size_t)random_below(&state, 500) % (n - i)] ^= 1;
        return true;
    case 16: /* gaps that grow: a b aa b aaa b ... */
        for (size_t i = 0, gap = 1; i < n; i += gap++) text[i] = 'b';
        return true;
    case 17: /* a loop of a long unit that is itself nearly one letter */
        for (size_t i = 0; i < n; i += n / 11) text[i] = 'b';
        return true;
    case 18: /* four times the same noise, with a letter between */
        for (size_t i = 0; i < n; i++) text[i] = i < n / 4 ? (uint8_t)random_below(&state, 256) : text[i - n / 4];
        for (size_t i = 1; i < 4; i++) text[i * (n / 4)] ^= (uint8_t)i;
        return true;
    default: return false;
    }
}

static uint64_t work_of(const uint8_t *text, size_t n, uint64_t min_copies) {
    work = 0;
    byte_runs(text, n, min_copies, 64);
    return work;
}

/* Eight times the text may cost little more than eight times the operations (64 times, if they were quadratic), and a
 * byte no more than the anchors that fall on it allow for. */
static void test_work(void) {
    enum { N = 1 << 19 };
    static const uint64_t min_copies[] = {2, 3, 20};
    uint8_t *text = malloc(N);
    CHECK(text != NULL);
    for (int number = 0; make(number, text, N / 8); number++) {
        uint64_t part[3];
        for (int i = 0; i < 3; i++) part[i] = work_of(text, N / 8, min_copies[i]);
        make(number, text, N);
        for (int i = 0; i < 3; i++) {
            uint64_t whole = work_of(text, N, min_copies[i]);
            CHECK(whole <= 32 * part[i] + N);
            CHECK(whole <= 4096 * (uint64_t)N / (min_copies[i] - 1));
        }
    }
    free(text);
}

/* All hostile texts against the definition; too short for fingerprints. */
static void test_hostile(void) {
    enum { N = 2500 };
    uint8_t text[N];
    for (int number = 0; make(number, text, N); number++) {
        check_runs(text, N, 2, 64, 0, byte_runs(text, N, 2, 64));
        check_runs(text, N, 3, 0, 0, byte_runs(text, N, 3, 0));
    }
}

/* The same noise before runs of one period, whose units begin alike but end in different ways. Behind the noise,
 * STRETCH places in a row agreed and the next ones lie in known runs, but less than a period of them has been seen. The
 * lengths make the comparison pause there, and blocks begin there, when it starts at the first anchor. */
static void test_jumps(void) {
    enum { N = 6000, MAX_PERIOD = 2000 };
    static uint8_t text[N];
    uint64_t state = 4;
    for (int round = 0; round < 20; round++) {
        size_t period = 90 + (size_t)random_below(&state, 39), alike = period - 1 - (size_t)random_below(&state, 30);
        size_t into_block = (size_t)random_below(&state, 16), part = 6 * STRETCH + WORD + into_block;
        size_t noise = 2 * STRETCH - 2 * WORD - 2 * into_block - (size_t)random_below(&state, 16);
        for (size_t i = 0; i < N; i++) {
            size_t at = i % part, source = at < noise ? at : noise + (at - noise) % period;
            bool other = i / part % 2 && at >= noise && source - noise >= alike;
            text[i] = other ? 251 : i == source ? (uint8_t)random_below(&state, 250) : text[source];
        }
        size_t n_runs;
        CHECK(lzs_byte_runs(text, N, 2, 64, MAX_PERIOD, found, N_RUNS, &n_runs) == LZS_OK);
        check_runs(text, N, 2, 64, MAX_PERIOD, n_runs);
    }
}

/* A text that needs fingerprints, with a run that passes them: they change nothing. */
static void test_fingerprints(void) {
    enum { BROKEN = 16000, UNIT = 9000, N = BROKEN + 2 * UNIT + 50 };
    static uint8_t text[N];
    uint64_t state = 5;
    make(14, text, BROKEN);
    for (size_t i = BROKEN; i < N; i++) {
        text[i] = i < BROKEN + UNIT ? (uint8_t)random_below(&state, 256) : text[i - UNIT];
    }
    scan s = {.text = text, .size = N, .width = 1, .min_copies = 2, .min_length = 64, .found = found,
              .capacity = N_RUNS};
    CHECK(scan_all(&s, 0) == LZS_OK && s.prints.prefix != NULL);
    CHECK(found[s.n_found - 1].period == UNIT && found[s.n_found - 1].length == N - BROKEN);
    check_runs(text, N, 2, 64, 0, s.n_found);
    free(s.known.runs);
    free(s.fresh.runs);
    free(s.cover);
    free(s.prints.prefix);
}

/* A loop costs its text once, and before that the periods below its own. */
static void test_work_of_loops(void) {
    enum { N = 1 << 19 };
    uint8_t *text = malloc(N);
    CHECK(text != NULL);
    for (size_t period = 1; period <= 10000; period *= 10) {
        for (size_t i = 0; i < N; i++) text[i] = i % period == 0 ? 'b' : 'a';
        CHECK(work_of(text, N, 2) <= (period <= 10 ? 2 : 512) * (uint64_t)N);
    }
    free(text);
}

/* 2^61 - 1 is prime: products against 128-bit ones by long addition. */
static void test_multiply(void) {
    uint64_t state = 3;
    for (int i = 0; i < 2000; i++) {
        uint64_t a = lzs_print_reduced(random_bits(&state) >> (i % 50)), b = lzs_print_reduced(random_bits(&state)), product = 0;
        if (i == 0) a = b = LZS_PRINT_MODULUS - 1;
        for (int bit = 60; bit >= 0; bit--) {
            product = lzs_print_reduced(2 * product);
            if (b >> bit & 1) product = lzs_print_reduced(product + a);
        }
        CHECK(lzs_print_times(a, b) == product);
    }
}

/* ---- hashes ---- */

static void test_folds(void) {
    uint64_t state = 4;
    for (int i = 0; i < 2000; i++) {
        uint64_t a = random_bits(&state) >> (i % 60), b = random_bits(&state), high = 0, low = 0;
        if (i == 0) a = b = UINT64_MAX;
        for (int bit = 63; bit >= 0; bit--) { /* by long addition */
            high = high << 1 | low >> 63;
            low <<= 1;
            if (!(b >> bit & 1)) continue;
            low += a;
            high += low < a;
        }
        CHECK(lzs_fold(a, b) == (low ^ high) && lzs_fold_portably(a, b) == (low ^ high));
    }
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Words of pairs of bits that a multiplication carries to one place, whatever is added before: they have hashes of their own. */
static void test_words_that_collide(void) {
    enum { PAIRS = 12, N = 1 << PAIRS };
    static uint32_t hashes[N];
    uint64_t state = 5, word[2 * PAIRS + 1];
    for (uint32_t i = 0; i < N; i++) {
        for (size_t k = 0; k < 2 * PAIRS + 1; k++) word[k] = 0x6162636465666768;
        for (int pair = 0; pair < PAIRS; pair++) {
            if (!(i >> pair & 1)) continue;
            word[2 * pair] ^= UINT64_C(1) << 63;
            word[2 * pair + 1] ^= UINT64_C(1) << 63 | UINT64_C(1) << 31;
        }
        if (i == 0) state = random_bits(&state) | 1;
        hashes[i] = lzs_hash_bytes((const uint8_t *)word, sizeof word, state);
    }
    qsort(hashes, N, sizeof *hashes, ascending);
    size_t n_equal = 0;
    for (size_t i = 1; i < N; i++) n_equal += hashes[i] == hashes[i - 1];
    CHECK(n_equal < 4);
}

/* ---- the interface ---- */

static void test_arguments(void) {
    const uint8_t text[] = "abababab--abababab";
    const size_t n = sizeof text - 1;
    const int32_t tokens[] = {-5, -5, -5, -5};
    lzs_repetition runs[2] = {{9, 9, 9}, {9, 9, 9}};
    size_t n_runs = 7;
    CHECK(lzs_byte_runs(text, n, 1, 0, 0, runs, 2, &n_runs) == LZS_EINVAL && n_runs == 0);
    CHECK(lzs_byte_runs(text, n, 0, 0, 0, runs, 2, &n_runs) == LZS_EINVAL);
    CHECK(lzs_byte_runs(NULL, n, 2, 0, 0, runs, 2, &n_runs) == LZS_EINVAL);
    CHECK(lzs_byte_runs(text, n, 2, 0, 0, NULL, 2, &n_runs) == LZS_EINVAL);
    CHECK(lzs_byte_runs(text, n, 2, 0, 0, runs, 2, NULL) == LZS_EINVAL);
    CHECK(lzs_token_runs(tokens, SIZE_MAX, 2, 0, 0, runs, 2, &n_runs) == LZS_EINVAL);
    CHECK(lzs_byte_runs(NULL, 0, 2, 0, 0, NULL, 0, &n_runs) == LZS_OK && n_runs == 0);
    CHECK(lzs_byte_runs(text, n, UINT64_MAX, 0, 0, runs, 2, &n_runs) == LZS_OK && n_runs == 0);
    CHECK(lzs_byte_runs(text, n, 2, UINT64_MAX, 0, runs, 2, &n_runs) == LZS_OK && n_runs == 0);
    CHECK(lzs_byte_runs(text, n, 2, n, UINT64_MAX, runs, 2, &n_runs) == LZS_OK && n_runs == 0);

    CHECK(lzs_byte_runs(text, n, 2, 8, 0, runs, 2, &n_runs) == LZS_OK && n_runs == 2);
    CHECK(runs[0].start == 0 && runs[0].length == 8 && runs[0].period == 2);
    CHECK(runs[1].start == 10 && runs[1].length == 8 && runs[1].period == 2);
    CHECK(lzs_byte_runs(text, n, 4, 9, 0, runs, 2, &n_runs) == LZS_OK && n_runs == 0);
    CHECK(lzs_byte_runs(text, n, 4, 0, 1, runs, 2, &n_runs) == LZS_OK && n_runs == 0);

    runs[1].start = 77; /* what does not fit is counted and not written */
    CHECK(lzs_byte_runs(text, n, 4, 0, 0, runs, 1, &n_runs) == LZS_ESPACE && n_runs == 2);
    CHECK(runs[0].start == 0 && runs[1].start == 77);
    CHECK(lzs_byte_runs(text, n, 4, 0, 0, NULL, 0, &n_runs) == LZS_ESPACE && n_runs == 2);
    CHECK(lzs_token_runs(tokens, 4, 4, 0, 0, runs, 2, &n_runs) == LZS_OK && n_runs == 1);
    CHECK(runs[0].start == 0 && runs[0].length == 4 && runs[0].period == 1);
}

int main(void) {
    test_random();
    test_hostile();
    test_multiply();
    test_folds();
    test_words_that_collide();
    test_jumps();
    test_fingerprints();
    test_work();
    test_work_of_loops();
    test_arguments();
    return 0;
}
