/* test_part_masks.c - masks that grammars share: right by the oracle of grammar_case.h wherever a part stands, and found again by
 * other grammars.
 */
#include "grammar_case.h"

static lzs_vocabulary *vocabulary;

enum { N_AROUND = 10, N_BODIES = 9 };

static const char *const bodies[N_BODIES] = {
    "\"[^\"\\\\\\x00-\\x1f]*\"", "\"([^\"\\\\]|\\\\[\"\\\\nu])*\"", "-?(0|[1-9]\\d{0,17})(\\.\\d{1,17})?", "\"[a-z]{2,40}\"", "(ab?){3,90}", "(a|aa)*",
    "a{0,9}b?", "\"([a-c]{1,3} ?){2,30}\"", "(\xc3\xa9|a)+"};

/* The grammar of a body in one of many places, with `other` behind it. */
static lzs_grammar *grammar(size_t body, size_t around, const char *other) {
    char text[200];
    size_t n_body = strlen(bodies[body]), n_other = strlen(other);
    memcpy(text, bodies[body], n_body);
    memcpy(text + n_body, other, n_other);
    memcpy(text + n_body + n_other, ", 1", 3);
    const uint32_t at = (uint32_t)(n_body + n_other);
    static const struct {
        uint32_t kind, min, max;
        bool other, separated;
    } shapes[N_AROUND] = {{LZS_PART_SEQUENCE, 0, 0, false, false}, {LZS_PART_SEQUENCE, 0, 0, true, false}, {LZS_PART_REPEAT, 0, 5, true, false},
                          {LZS_PART_REPEAT, 2, 70, true, true},    {LZS_PART_REPEAT, 0, LZS_PART_UNBOUNDED, false, false},
                          {LZS_PART_REPEAT, 3, LZS_PART_UNBOUNDED, true, true}, {LZS_PART_CHOICE, 0, 0, true, false}, {LZS_PART_LIST, 0, 0, true, false},
                          {LZS_PART_REPEAT, 0, 90, false, false}, {LZS_PART_LIST, 1, 0, false, false}};
    const lzs_part parts[] = {{LZS_PART_REGEX, 0, (uint32_t)n_body, 0, 0},             /* 0: the body */
                              {LZS_PART_SHARED, 0, 1, 0, 0},                           /* 1 */
                              {LZS_PART_TEXT, (uint32_t)n_body, (uint32_t)n_other, 0, 0}, /* 2: what is behind it */
                              {LZS_PART_TEXT, at, 2, 0, 0},                            /* 3: a comma */
                              {LZS_PART_SEQUENCE, 1, shapes[around].other ? 2 : 1, 0, 0}, /* 4: the body, maybe with it */
                              {LZS_PART_REPEAT, 3, 1, 0, 1},                           /* 5: which may be left out */
                              {(int32_t)shapes[around].kind, 0, 0, shapes[around].min, shapes[around].max},
                              {LZS_PART_TEXT, at, 3, 0, 0},
                              {LZS_PART_SEQUENCE, 8, 2, 0, 0}};
    /* the body; body, other; what is repeated and its separator; comma, item, optional item, item; the end */
    const uint32_t children[] = {0, 1, 2, 4, 3, 3, 5, 4, 6, 7};
    lzs_part all[9];
    memcpy(all, parts, sizeof parts);
    switch (shapes[around].kind) {
    case LZS_PART_REPEAT: all[6].first = 3, all[6].n = shapes[around].separated ? 2 : 1; break;
    case LZS_PART_CHOICE: all[6].first = 1, all[6].n = 2; break;
    case LZS_PART_LIST: all[6].first = 5, all[6].n = 3; break;
    default: all[6].first = 3, all[6].n = 1;
    }
    lzs_grammar *g;
    lzs_grammar_error error;
    lzs_status status = lzs_grammar_new_parts(all, 9, children, 10, (const uint8_t *)text, at + 3, vocabulary, 0, &error, &g);
    if (status != LZS_OK) CHECK(shapes[around].separated && strstr(error.reason, "must not match the empty text"));
    return g;
}

static lzs_part_masks_figures figures_of(lzs_part_masks *masks) {
    lzs_part_masks_figures figures;
    CHECK(lzs_part_masks_look(masks, &figures) == LZS_OK);
    return figures;
}

/* Everywhere masks are right, and where another grammar had the part they are found. */
static void masks_are_right(size_t max_bytes) {
    static const char *const others[] = {"", "a", "\"b", ", ", "0"};
    lzs_part_masks *masks;
    CHECK(lzs_part_masks_new(vocabulary, max_bytes, &masks) == LZS_OK);
    for (size_t body = 0; body < N_BODIES; body++) {
        for (size_t around = 0; around < N_AROUND; around++) {
            lzs_grammar *g = grammar(body, around, others[(body + around) % 5]);
            if (!g) continue;
            CHECK(g->program.n_parts > 0);
            CHECK(lzs_grammar_share(g, masks) == LZS_OK);
            for (uint64_t seed = 0; seed < 4; seed++) CHECK(case_walk(g, seed, 25));
            lzs_grammar_free(g);
        }
    }
    lzs_part_masks_figures figures = figures_of(masks);
    CHECK(figures.made > 0 && figures.found > figures.made / 4 && (max_bytes || figures.n_parts >= N_BODIES));
    lzs_part_masks_free(masks);
}

/* Asks for the masks of the states nearest to the beginning. */
static void visit(lzs_grammar *g) {
    static uint32_t words[CASE_MAX_VOCAB / 32 + 1];
    bool seen[500] = {false};
    int32_t order[60] = {LZS_GRAMMAR_START}, n = 1, matches, to;
    for (int32_t at = 0; at < n; at++) {
        CHECK(lzs_grammar_state(g, order[at], &matches, words, lzs_mask_words(case_n_vocab)) == LZS_OK);
        for (int byte = 0; byte < 256; byte++) {
            CHECK(lzs_grammar_step(g, order[at], (uint8_t)byte, &to) == LZS_OK);
            if (to < 0 || to >= 500 || seen[to] || n == 60) continue;
            seen[to] = true;
            order[n++] = to;
        }
    }
}

/* Fills masks with those of all bodies. */
static lzs_part_masks *filled(void) {
    lzs_part_masks *masks;
    CHECK(lzs_part_masks_new(vocabulary, 0, &masks) == LZS_OK);
    for (size_t body = 0; body < N_BODIES; body++) {
        lzs_grammar *g = grammar(body, 1, "a");
        CHECK(lzs_grammar_share(g, masks) == LZS_OK);
        visit(g);
        lzs_grammar_free(g);
    }
    return masks;
}

static void a_second_grammar_makes_none(void) {
    lzs_part_masks *masks = filled();
    lzs_part_masks_figures before = figures_of(masks);
    lzs_grammar *g = grammar(0, 3, "\"b"); /* strings as before, behind them what was never there */
    CHECK(lzs_grammar_share(g, masks) == LZS_OK && case_walk(g, 1, 25));
    lzs_part_masks_figures after = figures_of(masks);
    CHECK(after.made == before.made && after.found > before.found && after.n_parts == before.n_parts);
    CHECK(lzs_grammar_share(g, NULL) == LZS_OK && case_walk(g, 2, 25));
    CHECK(figures_of(masks).found == after.found);
    lzs_grammar_free(g);
    lzs_part_masks_free(masks);
}

static void wrong_arguments(void) {
    lzs_vocabulary *other = case_vocabulary();
    lzs_part_masks *masks;
    lzs_grammar *g = grammar(0, 0, "a");
    CHECK(lzs_part_masks_new(NULL, 0, &masks) == LZS_EINVAL && !masks);
    CHECK(lzs_part_masks_new(other, 0, &masks) == LZS_OK);
    CHECK(lzs_grammar_share(g, masks) == LZS_EINVAL && lzs_grammar_share(NULL, masks) == LZS_EINVAL);
    lzs_part_masks_free(masks);
    lzs_part_masks_free(NULL);
    lzs_grammar_free(g);
    lzs_vocabulary_free(other);
}

int main(void) {
    vocabulary = case_vocabulary();
    masks_are_right(0);
    masks_are_right(20000); /* they are forgotten again and again */
    a_second_grammar_makes_none();
    wrong_arguments();
    lzs_vocabulary_free(vocabulary);
    return 0;
}
