/* test_grammar_alloc.c - a grammar for which memory runs out: LZS_ENOMEM at every place where that can happen, no leak, and
 * the same masks as before when there is memory again. The linker's --wrap sends the library's malloc family through the
 * counters of allocations.h.
 */
#include "allocations.h"
#include "grammar_case.h"

static const char pattern[] = "((a|bb){2,40}[^\\d\xc3\xa9]?){1,9}|abc(?i:x)|abd";
static const uint8_t choices[] = "ab\n12\n";
static const uint64_t ends[] = {2, 5, 6};
static const uint32_t children[] = {1, 2, 0, 0, 3, 0};
static const lzs_part parts[] = {{LZS_PART_TEXT, 0, 1, 0, 0},
                                 {LZS_PART_PATTERN, 1, 9, 2, 9},
                                 {LZS_PART_SHARED, 0, 1, 0, 0},
                                 {LZS_PART_REPEAT, 1, 2, 0, 8},
                                 {LZS_PART_LIST, 3, 2, 1, 0},
                                 {LZS_PART_CHOICE, 4, 2, 0, 0}};
static const uint8_t part_text[] = "a^b[^\"c]*$";
static const int32_t merges[] = {CASE_BYTES + 'b', CASE_BYTES + 'a', CASE_BYTES + 'a', CASE_BYTES + 'a'}; /* ba, aa */
enum { N_STEPS = 6, REGEX = 0, CHOICES, PARTS, SHARED, PROPER, FORCED, ALL_TEXTS, N_KINDS };

static int32_t next_token(int kind, int step) {
    if (kind == SHARED) return CASE_BYTES + 'b'; /* stays inside the part */
    return CASE_BYTES + (step % 3 ? 'b' : 'a');
}

static lzs_status made(const lzs_vocabulary *v, int kind, const lzs_spelling *spelling, lzs_grammar **g) {
    if (kind == ALL_TEXTS) return lzs_grammar_new_proper(spelling, 0, g);
    if (kind == PROPER || kind == FORCED) {
        lzs_status status = lzs_grammar_new_regex(pattern, sizeof pattern - 1, v, 200000, NULL, g);
        if (status != LZS_OK) return status;
        status = lzs_grammar_set_tokenization(*g, spelling, kind == PROPER ? LZS_TOKENIZATION_PROPER : LZS_TOKENIZATION_FORCED);
        if (status == LZS_OK) return LZS_OK;
        lzs_grammar_free(*g);
        *g = NULL;
        return status;
    }
    if (kind == REGEX) return lzs_grammar_new_regex(pattern, sizeof pattern - 1, v, 200000, NULL, g);
    if (kind == CHOICES) return lzs_grammar_new_choices(choices, ends, 3, v, 0, NULL, g);
    return lzs_grammar_new_parts(parts, 6, children, 6, part_text, sizeof part_text - 1, v, 0, NULL, g);
}

/* Penalties that look at free tokens, so that a step makes edits as well. */
static lzs_params penalised(void) {
    lzs_params params;
    lzs_params_init(&params);
    params.structure = LZS_STRUCTURE_FREE;
    params.presence_penalty = 1.0f;
    params.dry_multiplier = 1.0f;
    params.dry_allowed_length = 1;
    return params;
}

static void add_plan(const lzs_plan *plan, uint64_t *sum) {
    for (size_t i = 0; i < lzs_mask_words(case_n_vocab); i++) *sum = *sum * 31 + plan->mask[i];
    for (size_t i = 0; i < plan->n_edits; i++) *sum += (uint64_t)plan->edits[i].token * (uint64_t)(-1000.0f * plan->edits[i].bias);
}

/* Makes everything and takes a few steps; `sum` is of the masks and edits. */
static lzs_status run(const lzs_vocabulary *v, int kind, uint64_t *sum) {
    lzs_grammar *g = NULL;
    lzs_spelling *spelling = NULL;
    lzs_sampler *s = NULL, *clone = NULL;
    lzs_part_masks *masks = NULL;
    lzs_params params = penalised();
    *sum = 0;
    lzs_status status = LZS_OK;
    if (kind >= PROPER) status = lzs_spelling_new_pairs(v, NULL, merges, 2, LZS_WORDS_LLAMA3, 0, &spelling);
    if (status == LZS_OK) status = made(v, kind, spelling, &g);
    CHECK((status == LZS_OK) == (g != NULL));
    if (status == LZS_OK && kind == SHARED) status = lzs_part_masks_new(v, 0, &masks);
    if (status == LZS_OK && kind == SHARED) status = lzs_grammar_share(g, masks);
    if (status == LZS_OK) status = lzs_sampler_new(case_n_vocab, &params, &s);
    if (status == LZS_OK) status = lzs_sampler_set_grammar(s, g);
    for (int step = 0; step < N_STEPS && status == LZS_OK; step++) {
        lzs_plan plan;
        status = lzs_sampler_plan(s, &plan);
        if (status == LZS_OK) add_plan(&plan, sum);
        if (status == LZS_OK) status = lzs_accept(s, next_token(kind, step));
    }
    if (status == LZS_OK) status = lzs_sampler_clone(s, &clone);
    lzs_sampler_free(clone);
    lzs_sampler_free(s);
    lzs_grammar_free(g);
    lzs_part_masks_free(masks);
    lzs_spelling_free(spelling);
    return status;
}

/* A step that failed for want of memory succeeds when there is some. */
static void a_step_is_repeated(const lzs_vocabulary *v) {
    lzs_params params = penalised();
    for (long after = 0;; after++) {
        lzs_grammar *g;
        lzs_sampler *s;
        CHECK(lzs_grammar_new_regex(pattern, sizeof pattern - 1, v, 0, NULL, &g) == LZS_OK);
        CHECK(lzs_sampler_new(case_n_vocab, &params, &s) == LZS_OK && lzs_sampler_set_grammar(s, g) == LZS_OK);
        uint64_t sum = 0, expected;
        CHECK(run(v, REGEX, &expected) == LZS_OK);
        bool failed = false;
        for (int step = 0; step < N_STEPS; step++) {
            lzs_plan plan;
            fail_after = after;
            lzs_status status = lzs_sampler_plan(s, &plan);
            fail_after = -1;
            if (status != LZS_OK) {
                CHECK(status == LZS_ENOMEM);
                failed = true;
                CHECK(lzs_sampler_plan(s, &plan) == LZS_OK);
            }
            add_plan(&plan, &sum);
            CHECK(lzs_accept(s, next_token(REGEX, step)) == LZS_OK);
        }
        CHECK(sum == expected);
        lzs_sampler_free(s);
        lzs_grammar_free(g);
        if (!failed) return;
    }
}

int main(void) {
    lzs_vocabulary *v = case_vocabulary(), *again;
    static const uint8_t kinds[] = {0, 0, 2}, bytes[] = "abab";
    static const uint64_t token_ends[] = {2, 4, 4};
    long live = n_live;
    for (int kind = 0; kind < N_KINDS; kind++) {
        uint64_t expected, sum;
        CHECK(run(v, kind, &expected) == LZS_OK && n_live == live);
        lzs_status status = LZS_ENOMEM;
        for (long after = 0; status != LZS_OK; after++) {
            fail_after = after;
            status = run(v, kind, &sum);
            fail_after = -1;
            CHECK(n_live == live && (status == LZS_ENOMEM || (status == LZS_OK && sum == expected)));
        }
    }
    lzs_status status = LZS_ENOMEM;
    for (long after = 0; status != LZS_OK; after++) {
        fail_after = after;
        status = lzs_vocabulary_new(3, bytes, token_ends, kinds, &again);
        fail_after = -1;
        CHECK((status == LZS_OK) == (again != NULL));
        lzs_vocabulary_free(again);
        CHECK(n_live == live);
    }
    a_step_is_repeated(v);
    lzs_vocabulary_free(v);
    CHECK(n_live == 0);
    return 0;
}
