/* test_text_alloc.c - the promises of the text library about memory: bounds, failed allocations, and no leaks. */
#include "allocations.h"
#include "check.h"
#include "lzsampler_text.h"

static const lzs_prefilter_rules rules = {100, 20, 3, 20, 3, 20, 8};

/* Fails each allocation of a scan in turn. The text needs all that a scan can need: two lists of runs, `cover` and
 * fingerprints. */
static void test_runs_failures(void) {
    enum { N = 24000 };
    static uint8_t text[N];
    size_t n_runs = 0;
    for (size_t i = 0; i < N; i++) text[i] = i % 200 && i != N / 2 + 1 ? 'a' : 'b';
    memset(text, 'c', 600);
    lzs_status status = LZS_ENOMEM;
    for (int fail = 0; status != LZS_OK; fail++) {
        long before = n_allocations;
        fail_after = fail;
        status = lzs_byte_runs(text, N, 2, 64, 0, NULL, 0, &n_runs);
        bool failed = fail_after < 0;
        fail_after = -1;
        CHECK(status == (failed ? LZS_ENOMEM : LZS_ESPACE) && (n_runs > 100) == !failed);
        CHECK(n_live == 0);
        if (failed) continue;
        CHECK(n_allocations - before >= 6); /* two lists that grow, two tables */
        status = LZS_OK;
    }
}

/* Fails each allocation of the figures and of the prefilter in turn. The tables of this text grow. */
static void test_figures_failures(void) {
    enum { N = 6000 };
    static uint8_t text[N];
    static lzs_span words[N];
    static int32_t ids[N];
    size_t n_words, n_distinct;
    uint64_t state = 5;
    for (size_t i = 0; i < N; i++) text[i] = (uint8_t)"abcdefghijklmnopqrstuvwx   \n"[random_below(&state, 28)];
    CHECK(lzs_split(text, N, LZS_SPLIT_WORDS, words, N, &n_words) == LZS_OK);
    lzs_status status = LZS_ENOMEM;
    lzs_figures figures;
    lzs_prefilter_result result;
    for (int fail = 0; status != LZS_OK; fail++) {
        long before = n_allocations;
        fail_after = fail;
        status = lzs_intern(text, N, words, n_words, ids, &n_distinct);
        if (status == LZS_OK) status = lzs_text_figures(text, N, words, ids, n_words, &figures);
        if (status == LZS_OK) status = lzs_number_figures(ids, n_words, &figures);
        if (status == LZS_OK) status = lzs_prefilter(text, N, &rules, NULL, 0, &result);
        bool failed = fail_after < 0;
        fail_after = -1;
        CHECK(status == (failed ? LZS_ENOMEM : LZS_OK));
        CHECK(n_live == 0);
        CHECK(failed || n_allocations - before >= 15);
    }
}

/* Fails each allocation of the search for stuck stretches in turn, and refuses rules that are out of range. */
static void test_stuck_failures(void) {
    enum { N = 3000 };
    static int32_t ids[N];
    const lzs_stuck_rules stuck = {40, 4, 3, 1, 500};
    lzs_stuck_stretch found[2];
    size_t n_found;
    for (int32_t i = 0; i < N; i++) ids[i] = i < 1000 ? i : i % 25;
    lzs_status status = LZS_ENOMEM;
    for (int fail = 0; status != LZS_OK; fail++) {
        fail_after = fail;
        status = lzs_stuck_stretches(ids, N, &stuck, found, 2, &n_found);
        bool failed = fail_after < 0;
        fail_after = -1;
        CHECK(status == (failed ? LZS_ENOMEM : LZS_OK) && n_found == !failed);
        CHECK(n_live == 0);
    }
    CHECK(found[0].start == 1050 && found[0].end == N && found[0].old == N - 1050 && found[0].score == N - 1050);
    CHECK(lzs_stuck_stretches(ids, N, &stuck, NULL, 0, &n_found) == LZS_ESPACE && n_found == 1);
    CHECK(lzs_stuck_stretches(NULL, 0, &stuck, NULL, 0, &n_found) == LZS_OK && n_found == 0);
    CHECK(lzs_stuck_stretches(NULL, N, &stuck, found, 2, &n_found) == LZS_EINVAL);
    for (int i = 0; i < 4; i++) {
        lzs_stuck_rules bad = stuck;
        *(i == 0 ? &bad.threshold : i == 1 ? &bad.ngram : i == 2 ? &bad.min_count : &bad.window) = i == 2;
        CHECK(lzs_stuck_stretches(ids, N, &bad, found, 2, &n_found) == LZS_EINVAL);
    }
}

/* Returns the most bytes that the figures of a text had in use. */
static size_t memory_of_figures(const uint8_t *text, size_t n, lzs_span *words, int32_t *ids, size_t n_words) {
    lzs_figures figures;
    peak_bytes = live_bytes;
    size_t before = live_bytes;
    CHECK(lzs_text_figures(text, n, words, ids, n_words, &figures) == LZS_OK);
    CHECK(live_bytes == before);
    return peak_bytes - before;
}

enum { PIECE = 4 << 20, SMALL = 4096 }; /* SMALL is what the smallest tables need */

/* Checks that the figures of a text of one piece, and of three, need 80 bytes a word or line of a piece and one for
 * each of its bytes: short words that repeat, words that do not, and lines without a word. */
static void test_memory_of_figures(void) {
    enum { N = 3 * PIECE };
    static const struct {
        size_t gap;        /* bytes from one space to the next */
        int32_t n_letters; /* 0 makes lines without a word */
    } kinds[] = {{3, 26}, {8, 26}, {2, 0}};
    uint8_t *text = malloc(N);
    lzs_span *words = malloc((N / 2 + 1) * sizeof *words);
    int32_t *ids = malloc((N / 2 + 1) * sizeof *ids);
    CHECK(text && words && ids);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        uint64_t state = kind;
        size_t gap = kinds[kind].gap, n_units = PIECE / gap + 1;
        for (size_t i = 0; i < N; i++) {
            bool space = i % gap == gap - 1;
            if (kinds[kind].n_letters == 0) text[i] = space ? '\n' : ' ';
            else text[i] = space ? ' ' : (uint8_t)('a' + random_below(&state, kinds[kind].n_letters));
        }
        for (size_t n = PIECE; n <= N; n += N - PIECE) {
            size_t n_words, n_distinct;
            CHECK(lzs_split(text, n, LZS_SPLIT_WORDS, words, N / 2 + 1, &n_words) == LZS_OK);
            CHECK(lzs_intern(text, n, words, n_words, ids, &n_distinct) == LZS_OK);
            CHECK(memory_of_figures(text, n, words, ids, n_words) <= 80 * n_units + PIECE + SMALL);
        }
    }
    free(text);
    free(words);
    free(ids);
    CHECK(n_live == 0);
}

/* Checks the same bound for a text of twelve pieces whose words are all distinct, so that their numbers are much larger
 * than the number of words of a piece. */
static void test_memory_of_many_pieces(void) {
    enum { WORD = 16, N = 12 * PIECE, N_WORDS = N / WORD };
    uint8_t *text = malloc(N);
    lzs_span *words = malloc(N_WORDS * sizeof *words);
    int32_t *ids = malloc(N_WORDS * sizeof *ids);
    CHECK(text && words && ids);
    memset(text, ' ', N);
    for (uint32_t i = 0; i < N_WORDS; i++) {
        uint32_t start = WORD * i, end = start;
        for (uint32_t rest = i + 1; rest; rest /= 20) text[end++] = (uint8_t)('a' + rest % 20);
        words[i] = (lzs_span){start, end};
        ids[i] = (int32_t)i;
    }
    CHECK(memory_of_figures(text, N, words, ids, N_WORDS) <= 80 * (PIECE / WORD + 1) + PIECE + SMALL);
    free(text);
    free(words);
    free(ids);
}

/* Checks that the prefilter needs 48 bytes a byte for texts of short words and of lines, none of which has many
 * runs. */
static void test_memory_of_prefilter(void) {
    enum { N = 1 << 20 };
    uint8_t *text = malloc(N);
    CHECK(text);
    for (int kind = 0; kind < 4; kind++) {
        uint8_t separator = kind < 2 ? ' ' : '\n';
        size_t gap = kind % 2 ? 2 : 3;
        uint64_t state = (uint64_t)kind;
        lzs_prefilter_result result;
        for (size_t i = 0; i < N; i++) {
            text[i] = i % gap ? (uint8_t)('a' + random_below(&state, 26)) : separator;
        }
        size_t before = peak_bytes = live_bytes;
        CHECK(lzs_prefilter(text, N, &rules, NULL, 0, &result) == LZS_OK);
        CHECK(peak_bytes - before <= (size_t)48 * N + SMALL);
    }
    free(text);
    CHECK(n_live == 0);
}

/* Interning needs 48 bytes a span, or what the smallest table needs, also while its table grows. */
static void test_memory_of_numbers(void) {
    enum { MOST = 5000 };
    static uint8_t text[4 * MOST];
    static lzs_span spans[MOST];
    static int32_t ids[MOST];
    size_t n_distinct;
    for (uint32_t i = 0; i < MOST; i++) {
        memcpy(text + 4 * i, &i, 4);
        spans[i] = (lzs_span){4 * i, 4 * i + 4};
    }
    for (size_t n = 0; n <= MOST; n += 1 + n / 50) {
        peak_bytes = live_bytes;
        CHECK(lzs_intern(text, sizeof text, spans, n, ids, &n_distinct) == LZS_OK && n_distinct == n);
        CHECK(live_bytes == 0 && (peak_bytes <= 48 * n || peak_bytes <= 512));
    }
}

int main(void) {
    test_runs_failures();
    test_figures_failures();
    test_stuck_failures();
    test_memory_of_figures();
    test_memory_of_many_pieces();
    test_memory_of_prefilter();
    test_memory_of_numbers();
    return 0;
}
