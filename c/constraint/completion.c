/* completion.c - whether the tokens of the vocabulary can complete a text.
 *
 * From every state of the automaton some bytes complete the text. If each byte of the pattern is a token by itself, as
 * in most vocabularies, tokens complete the text, too. Otherwise there may be a state from which no sequence of tokens
 * completes the text. A token that leads to such a state must not be allowed. A place is safe if tokens of one byte
 * lead from it to the end of the text. The safe places of a program are found only once. If a state has no safe place,
 * a search follows tokens until it finds a safe state or the end.
 */
#include "completion.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 8 };
enum { UNKNOWN, VIABLE, NOT_VIABLE, IN_SEARCH }; /* lzs_dfa_state.viable */

/* ---- safe places ---- */

static bool edge_is_safe(const lzs_grammar *g, const lzs_edge *edge, const bool *safe) {
    if (!safe[edge->to]) return false;
    for (int byte = edge->first; byte <= edge->last; byte++) {
        if (g->vocabulary->single[byte]) return true;
    }
    return false;
}

static bool op_is_safe(const lzs_grammar *g, const lzs_op *op, const bool *safe, const bool *bad) {
    const lzs_program *p = &g->program;
    switch ((lzs_op_kind)op->kind) {
    case LZS_OP_BYTES:
        for (uint32_t i = 0; i < op->n; i++) {
            if (edge_is_safe(g, &p->edges[op->first + i], safe)) return true;
        }
        return false;
    case LZS_OP_SPLIT:
        for (uint32_t i = 0; i < op->n; i++) {
            if (safe[p->targets[op->first + i]]) return true;
        }
        return false;
    case LZS_OP_ENTER:
        if (safe[p->loops[op->first].entry]) return true;
        return p->loops[op->first].min == 0 && safe[p->loops[op->first].exit];
    case LZS_OP_NEXT: return safe[p->loops[op->first].exit] && !bad[op->first];
    default: return true;
    }
}

/* Finds the safe operations. From a safe operation, tokens of one byte lead to the end, whatever the counts are. */
static void find_safe(const lzs_grammar *g, bool *safe, const bool *bad) {
    memset(safe, 0, g->program.n_ops * sizeof *safe);
    /* the loop takes few rounds, because most operations lead to operations with smaller numbers */
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < g->program.n_ops; i++) {
            if (safe[i] || !op_is_safe(g, &g->program.ops[i], safe, bad)) continue;
            safe[i] = changed = true;
        }
    }
}

/* A loop is bad if it needs more than one iteration and tokens of one byte cannot repeat its body. Operations that lead
 * to the end of a bad loop are not safe. */
static bool find_bad(const lzs_program *p, const bool *safe, bool *bad) {
    bool found = false;
    for (size_t i = 0; i < p->n_loops; i++) {
        const lzs_loop_op *loop = &p->loops[i];
        if (bad[i] || loop->min <= 1 || safe[loop->body]) continue;
        bad[i] = found = true;
    }
    return found;
}

lzs_status lzs_completion_init(lzs_grammar *g) {
    const lzs_program *p = &g->program;
    g->whole = true;
    for (int byte = 0; byte < 256; byte++) g->whole &= !p->uses[byte] || g->vocabulary->single[byte];
    if (g->whole) return LZS_OK;
    g->safe = calloc(p->n_ops, sizeof *g->safe);
    bool *bad = calloc(p->n_loops ? p->n_loops : 1, sizeof *bad);
    if (!g->safe || !bad) {
        free(bad);
        return LZS_ENOMEM;
    }
    int round = 0;
    do {
        find_safe(g, g->safe, bad);
    } while (find_bad(p, g->safe, bad) && ++round < MAX_ROUNDS);
    /* after too many rounds no place counts as safe */
    if (round == MAX_ROUNDS) memset(g->safe, 0, p->n_ops * sizeof *g->safe);
    free(bad);
    g->whole = true;
    for (size_t i = 0; i < p->n_ops; i++) g->whole &= p->ops[i].kind != LZS_OP_BYTES || g->safe[i];
    return LZS_OK;
}

/* ---- the search ---- */

/* A state that the search reached, and the index in `all` of the state before it. */
typedef struct reached {
    int32_t state;
    size_t from;
} reached;

typedef struct search {
    reached *all;
    size_t n, room;
    int32_t *path;
} search;

static bool is_safe(const lzs_grammar *g, int32_t state) {
    const lzs_dfa_state *s = &g->automaton.states[state];
    if (s->accepts || state == LZS_ENDED || s->viable == VIABLE) return true;
    for (uint32_t i = 0; i < s->n; i++) {
        if (g->safe[lzs_place_op(g->automaton.places[s->first + i])]) return true;
    }
    return false;
}

static lzs_status reach(lzs_grammar *g, search *s, int32_t state, size_t from, bool *found) {
    const uint8_t known = g->automaton.states[state].viable;
    if (known == NOT_VIABLE || known == IN_SEARCH) return LZS_OK;
    if (!lzs_grow(&s->all, &s->room, s->n + 1, sizeof *s->all)) return LZS_ENOMEM;
    s->all[s->n++] = (reached){state, from};
    *found = is_safe(g, state);
    if (!*found) g->automaton.states[state].viable = IN_SEARCH;
    return LZS_OK;
}

/* Follows all tokens from the state at index `from` of `all`. Stops at a state that is known to be viable. This state
 * is then the last in `all`. */
static lzs_status follow_tokens(lzs_grammar *g, search *s, size_t from, bool *found) {
    const lzs_vocabulary *v = g->vocabulary;
    s->path[0] = s->all[from].state;
    for (size_t i = 0; i < v->n_nodes && !*found;) {
        const lzs_trie_node *node = &v->nodes[i];
        int32_t to;
        lzs_status status = lzs_automaton_step(&g->automaton, s->path[node->depth - 1], node->byte, &to);
        if (status == LZS_OK) status = lzs_automaton_work(&g->automaton, 1);
        if (status == LZS_OK && to != LZS_DEAD && node->token >= 0) status = reach(g, s, to, from, found);
        if (status != LZS_OK) return status;
        s->path[node->depth] = to;
        i += to == LZS_DEAD ? node->size : 1;
    }
    return LZS_OK;
}

lzs_status lzs_viable(lzs_grammar *g, int32_t state, bool *viable) {
    uint8_t known = g->automaton.states[state].viable;
    *viable = g->whole || known == VIABLE;
    if (*viable || known == NOT_VIABLE) return LZS_OK;
    search s = {.path = malloc(((size_t)g->vocabulary->longest + 1) * sizeof *s.path)};
    bool found = false;
    lzs_status status = s.path ? reach(g, &s, state, 0, &found) : LZS_ENOMEM;
    for (size_t next = 0; next < s.n && !found && status == LZS_OK; next++) status = follow_tokens(g, &s, next, &found);
    uint8_t others = status == LZS_OK && !found ? NOT_VIABLE : UNKNOWN;
    for (size_t i = 0; i < s.n; i++) g->automaton.states[s.all[i].state].viable = others;
    for (size_t i = s.n; found && i > 0;) { /* the last state is viable, and so is every state on the path to it */
        g->automaton.states[s.all[i - 1].state].viable = VIABLE;
        i = i == 1 ? 0 : s.all[i - 1].from + 1;
    }
    free(s.all);
    free(s.path);
    *viable = found;
    return status;
}
