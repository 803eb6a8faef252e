/* test_structure.c - penalties under a grammar: shares of bytes against an oracle that follows every byte, edits scaled by them, and
 * a history of free tokens alone; after rewinds, in clones and copies, and under speculation.
 */
#include <math.h>

#include "grammar_case.h"
#include "lzsampler_verify.h"
#include "penalty/params.h"
#include "sampler.h"

static lzs_vocabulary *vocabulary;

static const char *const patterns[] = {
    "(abc12 the[ab]){30}", "(abc|abd)*", "\"a[abc]{1,9}\"(,\"a[abc]{1,9}\"){0,40}", "(aa|ab){20,30}", "a{30,90}", "[^a]*", "(12|345|00?)*",
    "(\xc3\xa9|\xe2\x82\xac){9}", "(ab ?){5,60}", "(\"a\",?){1,50}", ".{1,500}", "(abc1|abc2){30}"};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

static lzs_grammar *grammar_of(const char *pattern) {
    lzs_grammar *g;
    CHECK(lzs_grammar_new_regex(pattern, strlen(pattern), vocabulary, 0, NULL, &g) == LZS_OK);
    return g;
}

/* Settings in which every penalty is on in some cases. */
static lzs_params settings(int k, int32_t structure) {
    static const int32_t exempt[] = {CASE_BYTES + 'b'};
    static uint32_t separators[CASE_MAX_VOCAB / 32 + 1];
    separators[(CASE_BYTES + '1') / 32] |= 1u << ((CASE_BYTES + '1') % 32);
    static const lzs_logit_bias bias[] = {{CASE_BYTES + 'a', 0.75f}, {CASE_BYTES + '1', -1.5f}};
    lzs_params p;
    lzs_params_init(&p);
    p.structure = structure;
    p.history = k & 1;
    p.temperature = k % 3 ? 0.8f : 0.0f;
    p.lz_penalty = k % 4 ? 0.4f : 0.0f;
    p.lz_window = 60;
    p.lz_buffer = 3;
    p.lz_rule = k & 2 ? LZS_RULE_DEFAULT : LZS_RULE_PAPER;
    p.lz_min_match = 2;
    p.lz_run_penalty = k & 2 && k & 8 ? 0.2f : 0.0f;
    p.lz_run_allowance = k % 2;
    p.lz_separators = separators;
    p.n_lz_separators = k & 2 && k & 4 ? lzs_mask_words(case_n_vocab) : 0;
    p.lz_formula = k % 3;
    p.repetition_penalty = k & 4 ? 1.7f : 1.0f;
    p.frequency_penalty = k % 5 ? 0.3f : 0.0f;
    p.presence_penalty = 0.2f;
    p.penalty_window = k % 3 * 20;
    p.dry_multiplier = k & 2 ? 0.8f : 0.0f;
    p.dry_allowed_length = 1;
    p.exempt = exempt;
    p.n_exempt = k % 2;
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    return p;
}

static lzs_sampler *sampler_of(const lzs_params *p) {
    static const int32_t prompt[] = {CASE_BYTES + 'a', CASE_BYTES + '1', CASE_BYTES + 'a'};
    lzs_sampler *s;
    CHECK(lzs_sampler_new(case_n_vocab, p, &s) == LZS_OK && lzs_prime(s, prompt, 3) == LZS_OK);
    return s;
}

/* The state behind the bytes of tokens; none of them ends the text. */
static int32_t state_behind(lzs_grammar *g, const int32_t *tokens, size_t n) {
    int32_t state = LZS_GRAMMAR_START;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < case_length[tokens[i]]; k++) {
            CHECK(lzs_grammar_step(g, state, (uint8_t)case_text[tokens[i]][k], &state) == LZS_OK && state >= 0);
        }
    }
    return state;
}

static int n_next(lzs_grammar *g, int32_t state) {
    int n = 0;
    for (int byte = 0; byte < 256; byte++) {
        int32_t next;
        CHECK(lzs_grammar_step(g, state, (uint8_t)byte, &next) == LZS_OK);
        n += next >= 0;
    }
    return n;
}

static float expected_share(lzs_grammar *g, int32_t state, int32_t token) {
    if (token == CASE_END) return g->automaton.states[state].accepts && !n_next(g, state) ? 0.0f : 1.0f;
    if (token == CASE_SPECIAL) return 1.0f;
    int n_free = 0;
    for (size_t i = 0; i < case_length[token]; i++) {
        n_free += g->automaton.states[state].accepts || n_next(g, state) != 1;
        CHECK(lzs_grammar_step(g, state, (uint8_t)case_text[token][i], &state) == LZS_OK);
        if (state < 0) return 1.0f;
    }
    return (float)n_free / (float)case_length[token];
}

/* The whole list of edits by token, those that change nothing as well. */
static void edits_of(lzs_sampler *s, lzs_edit *edits) {
    lzs_plan plan;
    CHECK(lzs_sampler_plan(s, &plan) == LZS_OK);
    for (int32_t t = 0; t < case_n_vocab; t++) edits[t] = (lzs_edit){t, 1.0f, 0.0f};
    for (size_t i = 0; i < plan.n_edits; i++) edits[plan.edits[i].token] = plan.edits[i];
}

static bool same_edit(lzs_edit a, lzs_edit b) {
    return a.token == b.token && a.repeat == b.repeat && a.bias == b.bias;
}

static int32_t random_allowed(lzs_sampler *s, uint64_t *seed) {
    lzs_plan plan;
    int32_t chosen = CASE_END, n = 0;
    CHECK(lzs_sampler_plan(s, &plan) == LZS_OK);
    for (int32_t token = CASE_BYTES; token < case_n_vocab; token++) {
        if (lzs_bit(plan.mask, token) && random_below(seed, ++n) == 0) chosen = token;
    }
    return chosen;
}

/* What a step is: unscaled edits of a sampler without a grammar, which was given what penalties look at, multiplied by the share. */
static void check_step(lzs_grammar *g, lzs_sampler *s, int k, int32_t *n_part, int32_t *n_none) {
    static lzs_edit made[CASE_MAX_VOCAB], plain[CASE_MAX_VOCAB];
    static lzs_explanation told[CASE_MAX_VOCAB];
    static int32_t every[CASE_MAX_VOCAB];
    static float row[CASE_MAX_VOCAB];
    const int32_t structure = s->params.structure;
    size_t n;
    const int32_t *tokens = lzs_tokens(s, &n);
    tokens += n - lzs_position(s);
    n = (size_t)lzs_position(s);
    lzs_params p = settings(k, LZS_STRUCTURE_OFF);
    p.n_logit_bias = 0;
    if (structure != LZS_STRUCTURE_OFF) p.lz_run_allowance *= LZS_GRAMMAR_ALLOWANCE;
    lzs_sampler *alone = sampler_of(&p);
    for (size_t i = 0; i < n; i++) {
        bool is_free = structure != LZS_STRUCTURE_FREE || expected_share(g, state_behind(g, tokens, i), tokens[i]) > 0.0f;
        if (is_free) CHECK(lzs_accept(alone, tokens[i]) == LZS_OK);
    }
    edits_of(alone, plain);
    edits_of(s, made);
    for (int32_t t = 0; t < case_n_vocab; t++) every[t] = t;
    CHECK(lzs_explain(s, row, every, (size_t)case_n_vocab, told) == LZS_OK);
    for (int32_t t = 0; t < case_n_vocab; t++) {
        float share = structure == LZS_STRUCTURE_OFF ? 1.0f : expected_share(g, state_behind(g, tokens, n), t);
        CHECK(told[t].free_share == share && same_edit((lzs_edit){t, told[t].repeat, told[t].bias}, made[t]));
        *n_part += share > 0.0f && share < 1.0f && plain[t].bias != 0.0f;
        *n_none += share == 0.0f && plain[t].bias != 0.0f;
        plain[t].repeat = share == 1.0f ? plain[t].repeat : 1.0f + share * (plain[t].repeat - 1.0f);
        plain[t].bias *= share;
        for (size_t i = 0; i < s->params.n_logit_bias; i++) {
            if (s->params.logit_bias[i].token == t) plain[t].bias += s->params.logit_bias[i].bias;
        }
        CHECK(same_edit(plain[t], made[t]));
    }
    lzs_sampler_free(alone);
}

static void test_edits(void) {
    int32_t n_part = 0, n_none = 0;
    for (int k = 0; k < 12 * N_PATTERNS; k++) {
        uint64_t seed = (uint64_t)k + 1;
        lzs_grammar *g = grammar_of(patterns[k % N_PATTERNS]);
        lzs_params p = settings(k, (k + k / N_PATTERNS) % 3);
        lzs_sampler *s = sampler_of(&p), *other = sampler_of(&p);
        CHECK(lzs_sampler_set_grammar(s, g) == LZS_OK);
        for (int step = 0; step < 40; step++) {
            if (step % 3 == 0) check_step(g, s, k, &n_part, &n_none);
            int32_t token = random_allowed(s, &seed);
            if (token == CASE_END) break;
            CHECK(lzs_accept(s, token) == LZS_OK);
            if (random_below(&seed, 5) == 0) CHECK(lzs_rewind(s, (size_t)random_below(&seed, (int32_t)lzs_position(s) + 1)) == LZS_OK);
            if (random_below(&seed, 5) == 0) {
                lzs_sampler *clone = NULL;
                if (step % 2) {
                    CHECK(lzs_sampler_clone(s, &clone) == LZS_OK);
                    lzs_sampler_free(s);
                } else {
                    CHECK(lzs_sampler_copy(other, s) == LZS_OK);
                    clone = other;
                    other = s;
                    lzs_sampler_reset(other);
                }
                s = clone;
            }
        }
        check_step(g, s, k, &n_part, &n_none);
        lzs_sampler_free(s);
        lzs_sampler_free(other);
        lzs_grammar_free(g);
    }
    CHECK(n_part > 300 && n_none > 100);
}

static const float *random_row(uint64_t seed) {
    static float row[CASE_MAX_VOCAB];
    for (int32_t t = 0; t < case_n_vocab; t++) row[t] = (float)(6.0 * random_unit(&seed));
    return row;
}

/* A text whose tokens were drafted is the text without a draft. */
static void test_speculation(void) {
    for (int k = 0; k < 2 * N_PATTERNS; k++) {
        lzs_grammar *g = grammar_of(patterns[k % N_PATTERNS]);
        lzs_params p = settings(k, k < N_PATTERNS ? LZS_STRUCTURE_FREE : LZS_STRUCTURE_SCALE);
        lzs_sampler *s = sampler_of(&p), *plain = sampler_of(&p);
        lzs_speculation *spec;
        int32_t end = CASE_END;
        CHECK(lzs_sampler_set_grammar(s, g) == LZS_OK && lzs_sampler_set_grammar(plain, g) == LZS_OK);
        CHECK(lzs_speculation_new(s, k % 2 ? LZS_SPEC_GUMBEL : LZS_SPEC_MATCH, 5, case_n_vocab, &end, 1, &spec) == LZS_OK);
        for (uint64_t i = 0; i < 60;) {
            static float kept[6][CASE_MAX_VOCAB];
            const float *rows[6];
            size_t n = 0;
            for (; n < 1 + (size_t)(i % 5); n++) { /* a draft that is often right */
                int32_t token;
                lzs_status status = lzs_draft(spec, random_row(n % 3 == 2 ? i + n + 1000 : i + n), 0.0f, &token);
                CHECK(status == LZS_OK);
                if (token == CASE_END) {
                    n++;
                    break;
                }
            }
            for (size_t r = 0; r <= n; r++) {
                memcpy(kept[r], random_row(i + r), sizeof kept[r]);
                rows[r] = kept[r];
            }
            lzs_verified made;
            CHECK(lzs_verify(spec, rows, n + 1, &made) == LZS_OK);
            size_t n_made = (size_t)made.n_accepted + (made.token >= 0);
            for (size_t r = 0; r < n_made; r++) {
                int32_t token;
                CHECK(lzs_step(plain, random_row(i + r), &token, NULL) == LZS_OK);
            }
            i += n_made;
            CHECK(lzs_position(plain) == i && lzs_position(s) == i);
            size_t n_tokens;
            const int32_t *ours = lzs_tokens(s, &n_tokens), *theirs = lzs_tokens(plain, &n_tokens);
            CHECK(memcmp(ours, theirs, n_tokens * sizeof *ours) == 0);
            if (made.ended) break;
        }
        lzs_speculation_free(spec);
        lzs_sampler_free(s);
        lzs_sampler_free(plain);
        lzs_grammar_free(g);
    }
}

/* Which tokens were free depends on the grammar that they were taken under, and on no other. */
static void test_grammars_that_change(void) {
    lzs_grammar *forced = grammar_of("a{20}"), *any = grammar_of("[ab]{20}");
    lzs_params p = settings(1, LZS_STRUCTURE_FREE);
    p.history = LZS_HISTORY_GENERATED;
    p.lz_penalty = p.lz_run_penalty = 0.0f;
    p.repetition_penalty = 1.0f;
    p.frequency_penalty = 1.0f;
    p.presence_penalty = 0.0f;
    p.penalty_window = 0;
    p.n_exempt = p.n_logit_bias = 0;
    lzs_sampler *s = sampler_of(&p), *replayed = sampler_of(&p);
    const int32_t a = CASE_BYTES + 'a';
    lzs_edit edits[CASE_MAX_VOCAB];
#define FEED(n) \
    for (int i = 0; i < (n); i++) CHECK(lzs_accept(s, a) == LZS_OK)
    FEED(1); /* without a grammar */
    CHECK(lzs_sampler_set_grammar(s, forced) == LZS_OK);
    FEED(4);
    CHECK(lzs_sampler_set_grammar(s, any) == LZS_OK);
    FEED(2);
    edits_of(s, edits);
    CHECK(edits[a].bias == -3.0f);
    CHECK(lzs_sampler_set_grammar(s, forced) == LZS_OK);
    FEED(90); /* more than a cursor keeps, and more than the grammar allows: those are free */
    CHECK(lzs_sampler_set_grammar(s, NULL) == LZS_OK);
    edits_of(s, edits);
    CHECK(edits[a].bias == -73.0f);
    FEED(1);
    CHECK(lzs_rewind(s, 71) == LZS_OK); /* to the last that was forced */
    lzs_plan plan;
    CHECK(lzs_sampler_plan(s, &plan) == LZS_EMASKED); /* a grammar was here, which is not known any more */
    CHECK(lzs_sampler_set_grammar(s, any) == LZS_OK);
    edits_of(s, edits);
    CHECK(edits[a].bias == -3.0f);
    CHECK(lzs_rewind(s, lzs_position(s)) == LZS_OK);
    CHECK(lzs_sampler_set_grammar(s, NULL) == LZS_OK);
    edits_of(s, edits);
    CHECK(edits[a].bias == 0.0f);

    lzs_params off = p, scale = p; /* what may change between steps */
    off.structure = LZS_STRUCTURE_OFF;
    scale.structure = LZS_STRUCTURE_SCALE;
    CHECK(lzs_sampler_set_params(s, &off) == LZS_EINVAL && lzs_sampler_copy(s, replayed) == LZS_OK);
    CHECK(strcmp(lzs_params_fixed(&p, &scale), "structure") == 0 && !lzs_params_fixed(&off, &scale));
    off.structure = 3;
    CHECK(strcmp(lzs_params_invalid(&off, case_n_vocab), "structure") == 0);
    lzs_sampler_free(s);
    CHECK(lzs_sampler_new(case_n_vocab, &scale, &s) == LZS_OK && lzs_sampler_set_grammar(s, forced) == LZS_OK);
    FEED(2);
    edits_of(s, edits);
    CHECK(edits[a].bias == 0.0f);
    off.structure = LZS_STRUCTURE_OFF;
    CHECK(lzs_sampler_set_params(s, &off) == LZS_OK);
    edits_of(s, edits);
    CHECK(edits[a].bias == -2.0f);
#undef FEED
    lzs_sampler_free(s);
    lzs_sampler_free(replayed);
    lzs_grammar_free(forced);
    lzs_grammar_free(any);
}

int main(void) {
    vocabulary = case_vocabulary();
    test_edits();
    test_speculation();
    test_grammars_that_change();
    lzs_vocabulary_free(vocabulary);
    return 0;
}
