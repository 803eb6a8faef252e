/* test_threads.c - what threads may share, built with ThreadSanitizer, which sees each access that nothing orders: the choice of
 * kernels, a vocabulary, a spelling, the masks of parts, a sampler that only is cloned, a sampler that is held, and texts. Every
 * thread must get what one thread alone gets. It knows the public headers only.
 */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "lzsampler_plan.h"
#include "lzsampler_text.h"
#include "lzsampler_threads.h"

enum { N_THREADS = 4, N_VOCAB = 300, N_STEPS = 60, N_ROUNDS = 6, N_TEXT = 20000, N_HELD = 3000, END = 0 };

static float rows[N_STEPS][N_VOCAB]; /* only read by all threads */
static uint8_t text[N_TEXT];
static lzs_vocabulary *vocabulary;
static lzs_spelling *spelling;
static lzs_part_masks *masks;
static lzs_sampler *original; /* which only is cloned */
static lzs_sampler *held;

typedef struct work {
    uint64_t number;
    int32_t tokens[N_STEPS];
    uint64_t sum;
    uint64_t done; /* calls on the sampler that is held */
} work;

/* Runs a function in all threads at a time. */
static void together(void *(*run)(void *), work *works) {
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, &works[i]) == 0);
    for (int i = 0; i < N_THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- what is shared ---- */

/* A token for each byte, and some words; the first token ends a text. */
static void make_vocabulary(void) {
    static const char *const words[] = {"ab", "abc", "12", "345", " the", "\": ", "\", \"", "true", "aaaa", "00"};
    uint8_t bytes[N_VOCAB * 8], kinds[N_VOCAB] = {LZS_TOKEN_END};
    uint64_t ends[N_VOCAB], at = 0;
    float scores[N_VOCAB];
    for (int i = 0; i < N_VOCAB; i++) {
        const char *word = i > 256 ? words[(i - 257) % 10] : NULL;
        size_t n = i == END ? 0 : word ? strlen(word) : 1;
        if (word) memcpy(bytes + at, word, n);
        if (!word && n) bytes[at] = (uint8_t)(i - 1);
        ends[i] = at += n;
        scores[i] = (float)n - (float)i / 1000.0f;
    }
    CHECK(lzs_vocabulary_new(N_VOCAB, bytes, ends, kinds, &vocabulary) == LZS_OK);
    CHECK(lzs_spelling_new_scores(vocabulary, NULL, scores, &spelling) == LZS_OK);
    CHECK(lzs_part_masks_new(vocabulary, 0, &masks) == LZS_OK);
}

/* The settings of a sampler with every list and set of tokens. */
static void make_params(lzs_params *params, int32_t *tokens) {
    static uint32_t sets[(N_VOCAB + 31) / 32];
    for (int32_t i = 0; i < N_VOCAB / 3; i++) tokens[i] = 3 * i;
    for (int32_t i = 0; i < N_VOCAB; i += 5) sets[i / 32] |= 1u << (i % 32);
    lzs_params_init(params);
    params->lz_penalty = 0.3f;
    params->lz_min_match = 3;
    params->dry_multiplier = 0.8f;
    params->dry_allowed_length = 2;
    params->exempt = tokens;
    params->dry_breakers = tokens + 1;
    params->lz_separators = params->lz_commas = sets;
    params->n_exempt = 5;
    params->n_dry_breakers = 40;
    params->n_lz_separators = params->n_lz_commas = (N_VOCAB + 31) / 32;
    params->lz_run_penalty = 0.1f;
    params->lz_run_allowance = 5;
    params->loop_max_pattern = 20;
    params->loop_min_count = 5;
    params->top_k = 20;
    params->temperature = 0.8f;
}

/* A string, or a list of numbers: what it has of masks of parts it finds in `masks`, or makes for the other threads. */
static lzs_grammar *make_grammar(void) {
    static const char parts_text[] = "\"[a-z0-9 ]{2,40}\"(0|[1-9]\\d{0,9})\", ";
    static const lzs_part parts[] = {{LZS_PART_REGEX, 0, 17, 0, 0}, {LZS_PART_SHARED, 0, 1, 0, 0},  {LZS_PART_REGEX, 17, 17, 0, 0},
                                     {LZS_PART_SHARED, 1, 1, 0, 0}, {LZS_PART_TEXT, 35, 2, 0, 0},   {LZS_PART_CHOICE, 2, 2, 0, 0},
                                     {LZS_PART_REPEAT, 4, 2, 1, 9}};
    static const uint32_t children[] = {0, 2, 1, 3, 5, 4};
    lzs_grammar *made;
    CHECK(lzs_grammar_new_parts(parts, 7, children, 6, (const uint8_t *)parts_text, 37, vocabulary, 0, NULL, &made) == LZS_OK);
    CHECK(lzs_grammar_share(made, masks) == LZS_OK);
    return made;
}

/* ---- what threads do ---- */

static void *ask_for_kernels(void *argument) {
    ((work *)argument)->sum = (uint64_t)lzs_kernels_name()[0];
    return NULL;
}

static void steps(work *w, lzs_sampler *s, lzs_grammar *grammar) {
    lzs_sampler *clone;
    CHECK(lzs_sampler_set_grammar(s, grammar) == LZS_OK);
    lzs_sampler_set_seed(s, 7 * w->number);
    for (int i = 0; i < N_STEPS; i++) {
        int32_t looping;
        CHECK(lzs_step(s, rows[i], &w->tokens[i], &looping) == LZS_OK && w->tokens[i] >= 0);
        w->sum = 31 * w->sum + (uint64_t)w->tokens[i];
        if (i % 20 != 19) continue;
        CHECK(lzs_sampler_clone(s, &clone) == LZS_OK && lzs_rewind(clone, 5) == LZS_OK);
        CHECK(lzs_sampler_copy(s, clone) == LZS_OK);
        for (int k = i - 4; k <= i; k++) CHECK(lzs_accept(s, w->tokens[k]) == LZS_OK);
        lzs_sampler_free(clone);
    }
}

/* Clones of one sampler, each with a grammar of its own, or without one. */
static void *clone_and_step(void *argument) {
    work *w = argument;
    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        lzs_sampler *s;
        lzs_grammar *grammar = NULL;
        CHECK(lzs_sampler_clone(original, &s) == LZS_OK);
        if (round % 3 == 1) grammar = make_grammar();
        if (round % 3 == 2) CHECK(lzs_grammar_new_proper(spelling, 0, &grammar) == LZS_OK);
        steps(w, s, grammar);
        lzs_sampler_free(s);
        lzs_grammar_free(grammar);
    }
    return NULL;
}

/* A busy sampler refuses. What it does for a thread, it does whole. */
static void *use_the_one(void *argument) {
    work *w = argument;
    for (int i = 0; i < N_HELD; i++) {
        int64_t made = 0;
        switch ((i + (int)w->number) % 4) {
        case 0: made = lzs_try_step(held, rows[i % N_STEPS]); break;
        case 1: made = lzs_try_sample(held, rows[i % N_STEPS]); break;
        case 2: made = lzs_try_accept(held, i % N_VOCAB); break;
        default:
            made = lzs_hold(held);
            if (made != LZS_OK) break;
            size_t n;
            const lzs_edit *edits = lzs_edits(held, &n);
            for (size_t k = 0; k < n; k++) w->sum += (uint64_t)edits[k].token;
            if (lzs_position(held) > 400) lzs_sampler_reset(held);
            CHECK(lzs_hold(held) == LZS_EBUSY && lzs_try_accept(held, 1) == LZS_EBUSY);
            lzs_release(held);
        }
        CHECK(made >= 0 || made == LZS_EBUSY);
        w->done += made >= 0;
    }
    return NULL;
}

static void *look_at_the_text(void *argument) {
    work *w = argument;
    static const uint32_t fold[] = {0, 1, 2, 3};
    const lzs_prefilter_rules rules = {50, 10, 4, 10, 4, 10, 4};
    const lzs_stuck_rules stuck = {20, 4, 2, 2, 500};
    lzs_span *spans = malloc(N_TEXT * sizeof *spans);
    int32_t *ids = malloc(N_TEXT * sizeof *ids);
    uint8_t *normal = malloc(N_TEXT);
    CHECK(spans && ids && normal);
    lzs_prefilter_result found;
    lzs_repetition runs[16];
    lzs_stuck_stretch stretches[16];
    lzs_figures figures;
    size_t n, n_distinct, n_runs, n_normal, n_stretches;
    CHECK(lzs_prefilter(text, N_TEXT, &rules, fold, 4, &found) == LZS_OK);
    CHECK(lzs_split(text, N_TEXT, LZS_SPLIT_WORDS, spans, N_TEXT, &n) == LZS_OK);
    CHECK(lzs_intern(text, N_TEXT, spans, n, ids, &n_distinct) == LZS_OK);
    CHECK(lzs_text_figures(text, N_TEXT, spans, ids, n, &figures) == LZS_OK);
    lzs_status status = lzs_byte_runs(text, N_TEXT, 4, 20, 0, runs, 16, &n_runs);
    CHECK(status == LZS_OK || status == LZS_ESPACE);
    status = lzs_stuck_stretches(ids, n, &stuck, stretches, 16, &n_stretches);
    CHECK(status == LZS_OK || status == LZS_ESPACE);
    CHECK(lzs_normalize(text, N_TEXT, fold, 4, normal, &n_normal, NULL, 0) == LZS_OK);
    w->sum = found.n_long_runs + n + n_distinct + n_runs + n_normal + n_stretches + figures.words + figures.distinct[2];
    free(spans);
    free(ids);
    free(normal);
    return NULL;
}

/* Runs a function in all threads, and in one: every thread must get what it gets alone. */
static void same_alone(void *(*run)(void *)) {
    work works[N_THREADS], alone;
    memset(works, 0, sizeof works);
    for (uint64_t i = 0; i < N_THREADS; i++) works[i].number = i;
    together(run, works);
    for (uint64_t i = 0; i < N_THREADS; i++) {
        memset(&alone, 0, sizeof alone);
        alone.number = i;
        run(&alone);
        CHECK(memcmp(&alone, &works[i], sizeof alone) == 0);
    }
}

int main(void) {
    uint64_t seed = 5, done = 0;
    int32_t tokens[N_VOCAB];
    lzs_params params;
    work works[N_THREADS];
    memset(works, 0, sizeof works);
    for (int i = 0; i < N_STEPS; i++) {
        for (int k = 0; k < N_VOCAB; k++) rows[i][k] = (float)(8.0 * random_unit(&seed));
    }
    for (int i = 0; i < N_TEXT; i++) text[i] = i % 900 < 200 ? "a b "[i % 4] : (uint8_t)" etaoinshr\n"[random_below(&seed, 11)];
    same_alone(ask_for_kernels);
    make_vocabulary();
    make_params(&params, tokens);
    CHECK(lzs_sampler_new(N_VOCAB, &params, &original) == LZS_OK && lzs_sampler_new(N_VOCAB, &params, &held) == LZS_OK);
    for (int i = 0; i < 100; i++) CHECK(lzs_accept(original, i % 9) == LZS_OK);
    same_alone(clone_and_step);
    same_alone(look_at_the_text);
    for (uint64_t i = 0; i < N_THREADS; i++) works[i].number = i;
    together(use_the_one, works);
    for (int i = 0; i < N_THREADS; i++) done += works[i].done;
    CHECK(done > 0 && lzs_hold(held) == LZS_OK);
    lzs_sampler_free(held);
    lzs_sampler_free(original);
    lzs_part_masks_free(masks);
    lzs_spelling_free(spelling);
    lzs_vocabulary_free(vocabulary);
    return 0;
}
