/* grammar.c - makes and frees grammars, judges texts and tokens, and limits memory. */
#include "grammar.h"

#include <stdlib.h>
#include <string.h>

#include "completion.h"
#include "proper.h"
#include "regex.h"
#include "spelling.h"
#include "state_masks.h"
#include "walk.h"

enum { DEFAULT_BYTES = 128 << 20, MAX_WORK = 10000000 /* limit of the work of one step, about a second */ };

/* ---- life ---- */

static lzs_status unusable(lzs_grammar_error *error) {
    return lzs_refuse(error, LZS_WHOLE, "no text that matches can be written with the tokens of this vocabulary");
}

static lzs_status finish(lzs_grammar *g, const lzs_tree *tree, lzs_grammar_error *error) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = lzs_program_build(tree, &g->program, error);
    if (status != LZS_OK) return status;
    g->path = malloc(((size_t)v->longest + 1) * sizeof *g->path);
    g->words = malloc(v->n_words * sizeof *g->words);
    g->found = malloc(v->n_words * sizeof *g->found);
    if (!g->path || !g->words || !g->found) return LZS_ENOMEM;
    lzs_walk_init(g);
    status = lzs_completion_init(g);
    if (status == LZS_OK) status = lzs_automaton_init(&g->automaton, &g->program, g->max_bytes / 2, MAX_WORK);
    bool viable = false;
    if (status == LZS_OK) status = lzs_viable(g, LZS_START, &viable);
    if (status == LZS_ELIMIT) return lzs_refuse(error, LZS_WHOLE, "%s", g->automaton.problem);
    return status == LZS_OK && !viable ? unusable(error) : status;
}

lzs_status lzs_grammar_of_tree(const lzs_tree *tree, const lzs_vocabulary *vocabulary, size_t max_bytes,
                               lzs_grammar_error *error, lzs_grammar **grammar) {
    lzs_grammar *g = calloc(1, sizeof *g);
    if (!g) return LZS_ENOMEM;
    g->vocabulary = vocabulary;
    g->max_bytes = max_bytes ? max_bytes : DEFAULT_BYTES;
    lzs_status status = finish(g, tree, error);
    if (status != LZS_OK) {
        lzs_grammar_free(g);
        return status;
    }
    *grammar = g;
    return LZS_OK;
}

static void no_error(lzs_grammar_error *error) {
    if (error) *error = (lzs_grammar_error){0};
}

lzs_status lzs_grammar_new_regex(const char *pattern, size_t n, const lzs_vocabulary *vocabulary, size_t max_bytes,
                                 lzs_grammar_error *error, lzs_grammar **grammar) {
    lzs_tree tree = {0};
    *grammar = NULL;
    no_error(error);
    if (!vocabulary || (n && !pattern)) return LZS_EINVAL;
    lzs_status status = lzs_regex_parse((const uint8_t *)pattern, n, LZS_WHOLE_TEXT, &tree, &tree.root, error);
    if (status == LZS_OK) status = lzs_grammar_of_tree(&tree, vocabulary, max_bytes, error, grammar);
    lzs_tree_free(&tree);
    return status;
}

static lzs_status choices_tree(const uint8_t *texts, const uint64_t *ends, size_t n, lzs_tree *tree) {
    uint32_t *nodes = malloc(n * sizeof *nodes);
    lzs_status status = nodes ? LZS_OK : LZS_ENOMEM;
    for (size_t i = 0; i < n && status == LZS_OK; i++) {
        uint64_t begin = i ? ends[i - 1] : 0;
        nodes[i] = lzs_tree_literal(tree, ends[i] > begin ? texts + begin : NULL, (size_t)(ends[i] - begin));
        if (nodes[i] == LZS_NO_NODE) status = LZS_ENOMEM;
    }
    if (status == LZS_OK) tree->root = lzs_tree_alt(tree, nodes, n);
    free(nodes);
    return status == LZS_OK && tree->root == LZS_NO_NODE ? LZS_ENOMEM : status;
}

lzs_status lzs_grammar_new_choices(const uint8_t *texts, const uint64_t *ends, size_t n,
                                   const lzs_vocabulary *vocabulary,
                                   size_t max_bytes, lzs_grammar_error *error, lzs_grammar **grammar) {
    *grammar = NULL;
    no_error(error);
    if (!vocabulary || !n || !ends || (!texts && ends[n - 1])) return LZS_EINVAL;
    for (size_t i = 1; i < n; i++) {
        if (ends[i] < ends[i - 1]) return LZS_EINVAL;
    }
    if (ends[n - 1] > LZS_GRAMMAR_MAX_PATTERN) {
        return lzs_refuse(error, LZS_WHOLE, "the choices have %llu bytes, and the most is %d",
                          (unsigned long long)ends[n - 1], LZS_GRAMMAR_MAX_PATTERN);
    }
    lzs_tree tree = {0};
    lzs_status status = choices_tree(texts, ends, n, &tree);
    if (status == LZS_OK) status = lzs_grammar_of_tree(&tree, vocabulary, max_bytes, error, grammar);
    lzs_tree_free(&tree);
    return status;
}

static lzs_status any_tree(lzs_tree *tree) {
    uint32_t nodes[256];
    for (int byte = 0; byte < 256; byte++) {
        nodes[byte] = lzs_tree_literal(tree, &(uint8_t){(uint8_t)byte}, 1);
        if (nodes[byte] == LZS_NO_NODE) return LZS_ENOMEM;
    }
    uint32_t one = lzs_tree_alt(tree, nodes, 256);
    tree->root = one == LZS_NO_NODE ? LZS_NO_NODE : lzs_tree_repeat(tree, one, 0, LZS_UNBOUNDED);
    return tree->root == LZS_NO_NODE ? LZS_ENOMEM : LZS_OK;
}

lzs_status lzs_grammar_new_proper(const lzs_spelling *spelling, size_t max_bytes, lzs_grammar **grammar) {
    *grammar = NULL;
    if (!spelling) return LZS_EINVAL;
    lzs_tree tree = {0};
    lzs_grammar *g = NULL;
    lzs_status status = any_tree(&tree);
    if (status == LZS_OK) status = lzs_grammar_of_tree(&tree, spelling->vocabulary, max_bytes, NULL, &g);
    lzs_tree_free(&tree);
    if (status != LZS_OK) return status;
    g->open = true;
    status = lzs_grammar_set_tokenization(g, spelling, LZS_TOKENIZATION_PROPER);
    if (status != LZS_OK) {
        lzs_grammar_free(g);
        return status;
    }
    *grammar = g;
    return LZS_OK;
}

lzs_status lzs_grammar_new_engine(const lzs_vocabulary *vocabulary, const lzs_grammar_engine *engine,
                                  lzs_grammar **grammar) {
    *grammar = NULL;
    if (!vocabulary || !engine || !engine->accept || !engine->mask || !engine->trim) return LZS_EINVAL;
    lzs_grammar *g = calloc(1, sizeof *g);
    if (!g) return LZS_ENOMEM;
    g->vocabulary = vocabulary;
    g->engine = *engine;
    *grammar = g;
    return LZS_OK;
}

void lzs_grammar_free(lzs_grammar *g) {
    if (!g) return;
    lzs_grammar_forget_masks(g);
    lzs_proper_free(g->proper);
    free(g->part_numbers);
    lzs_automaton_free(&g->automaton);
    lzs_program_free(&g->program);
    free(g->safe);
    free(g->masks);
    free(g->ends);
    free(g->path);
    free(g->open_nodes);
    free(g->words);
    free(g->found);
    free(g);
}

size_t lzs_grammar_memory(const lzs_grammar *g) {
    size_t safe = g->safe ? g->program.n_ops * sizeof *g->safe : 0;
    return sizeof *g + lzs_program_memory(&g->program) + lzs_automaton_memory(&g->automaton) + g->mask_bytes +
           g->masks_room * sizeof *g->masks + ((size_t)g->vocabulary->longest + 1) * sizeof *g->path +
           g->open_room * sizeof *g->open_nodes + 2 * g->vocabulary->n_words * sizeof *g->words + safe +
           (g->proper ? lzs_proper_memory(g->proper) : 0) +
           (g->part_numbers ? g->program.n_parts * sizeof *g->part_numbers : 0);
}

size_t lzs_grammar_states(const lzs_grammar *g) {
    return g->engine.accept ? 0 : (size_t)g->automaton.n_states - LZS_START;
}

const char *lzs_grammar_problem(const lzs_grammar *g) {
    return g->automaton.problem;
}

/* ---- memory ---- */

static void forget_masks(lzs_grammar *g) {
    lzs_grammar_forget_masks(g);
    if (g->proper) lzs_proper_forget(g->proper);
}

static void trim_masks(lzs_grammar *g) {
    size_t proper = g->proper ? lzs_proper_used(g->proper) : 0;
    if (g->mask_bytes > g->max_bytes / 2 || proper > g->max_bytes / 4) forget_masks(g);
}

lzs_status lzs_grammar_trim(lzs_grammar *g, int32_t *state) {
    if (g->engine.accept) {
        int32_t forgot = 0;
        lzs_status status = (lzs_status)g->engine.trim(g->engine.user, *state, &forgot);
        g->epoch += forgot != 0;
        return status;
    }
    lzs_automaton_begin(&g->automaton);
    trim_masks(g);
    if (lzs_automaton_used(&g->automaton) <= g->max_bytes / 4) return LZS_OK;
    int32_t kept;
    forget_masks(g);
    lzs_status status = lzs_automaton_flush(&g->automaton, *state, &kept);
    if (status != LZS_OK) return status; /* the states are unchanged */
    g->epoch++;
    *state = kept;
    return LZS_OK;
}

/* ---- texts ---- */

lzs_status lzs_grammar_free_share(lzs_grammar *g, int32_t state, int32_t token, float *share) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_automaton *a = &g->automaton;
    *share = 1.0f;
    if (g->open || g->engine.accept) return LZS_OK; /* lzs_grammar_engine does not tell which bytes are forced */
    if (v->is_end[token]) {
        bool ends = state == LZS_ENDED || a->states[state].accepts;
        if (ends && lzs_automaton_byte(a, state) == LZS_NO_BYTE) *share = 0.0f;
        return LZS_OK;
    }
    if (!lzs_bit(v->texts, token)) return LZS_OK;
    size_t first = v->begins[token], last = v->begins[token + 1], n_free = 0;
    for (size_t i = first; i < last; i++) {
        n_free += !lzs_automaton_forces(a, state);
        lzs_status status = lzs_automaton_step(a, state, v->bytes[i], &state);
        if (status != LZS_OK || state == LZS_DEAD) return status;
    }
    *share = (float)n_free / (float)(last - first);
    return LZS_OK;
}

lzs_status lzs_grammar_match(lzs_grammar *g, const char *text, size_t n, int32_t *match) {
    int32_t state = LZS_START;
    *match = LZS_NO_MATCH;
    if ((n && !text) || g->engine.accept) return LZS_EINVAL;
    lzs_status status = LZS_OK;
    for (size_t i = 0; i < n && status == LZS_OK && state != LZS_DEAD; i++) {
        status = lzs_grammar_trim(g, &state);
        if (status == LZS_OK) status = lzs_automaton_step(&g->automaton, state, (uint8_t)text[i], &state);
    }
    if (status != LZS_OK || state == LZS_DEAD) return status;
    *match = g->automaton.states[state].accepts ? LZS_MATCH : LZS_BEGINNING;
    return LZS_OK;
}

/* ---- inspection ---- */

static bool is_state(const lzs_grammar *g, int32_t state) {
    return !g->engine.accept && state >= LZS_START && state < g->automaton.n_states;
}

lzs_status lzs_grammar_step(lzs_grammar *g, int32_t state, uint8_t byte, int32_t *next) {
    *next = -1;
    if (!is_state(g, state)) return LZS_EINVAL;
    lzs_automaton_begin(&g->automaton);
    int32_t to;
    lzs_status status = lzs_automaton_step(&g->automaton, state, byte, &to);
    if (status == LZS_OK && to != LZS_DEAD) *next = to;
    return status;
}

lzs_status lzs_grammar_state(lzs_grammar *g, int32_t state, int32_t *matches, uint32_t *words, size_t n_words) {
    if (!is_state(g, state) || !matches || !words || n_words != g->vocabulary->n_words) return LZS_EINVAL;
    lzs_automaton_begin(&g->automaton);
    trim_masks(g); /* forgets only masks, because the caller has numbers of states */
    *matches = g->automaton.states[state].accepts;
    return lzs_grammar_mask(g, state, words);
}
