/* walk.c - which tokens may follow a state.
 *
 * The walk visits the nodes of the vocabulary's tree in order, and skips the subtree of a byte that cannot follow.
 * Three shortcuts save memory accesses. Each item says in parentheses how much longer the masks of 18 regular
 * expressions and schemas take without the shortcut (V = 128,256):
 * - Few bytes: if at most LZS_FEW bytes can follow, the walk looks up their nodes (12 % on average, 117 % on 1,000
 *   choices).
 * - Wide nodes: if a node has many children, their bytes are in a list. The walk reads only children whose byte can
 *   follow (8 %, 35 % on short masks).
 * - Runs: the run of a state is a set of kinds of bytes (vocabulary.h) that all lead to the same next state. Tokens of
 *   these bytes are added from a list at once (15 % in all, 156 % on e-mail addresses).
 */
#include "walk.h"

#include <string.h>

#include "completion.h"

enum { MIN_ASKED = 4 }; /* if a subtree has fewer nodes, finding out which bytes can follow saves no time */

void lzs_found_spread(lzs_found *found) {
    memset(found->words, 0, found->n_words * sizeof *found->words);
    for (size_t i = 0; i < found->n; i++) found->words[found->tokens[i] / 32] |= UINT32_C(1) << (found->tokens[i] % 32);
    found->spread = true;
}

static void add_tokens(lzs_found *found, const int32_t *tokens, size_t n) {
    if (found->spread || found->known || n > found->room - found->n) {
        for (size_t i = 0; i < n; i++) lzs_found_add(found, tokens[i]);
    } else {
        for (size_t i = 0; i < n; i++) found->tokens[found->n + i] = (uint32_t)tokens[i];
        found->n += n;
    }
}

/* ---- runs: kinds of bytes that all lead from a state to the same state ---- */

void lzs_walk_init(lzs_grammar *g) {
    const lzs_program *p = &g->program;
    uint32_t kinds[256] = {0}; /* by class: the kinds of its bytes */
    for (int byte = 0; byte < 256; byte++) kinds[p->class_of[byte]] |= UINT32_C(1) << g->vocabulary->kind_of[byte];
    size_t n = 0;
    for (uint32_t kind = 0; kind < LZS_KINDS; kind++) {
        g->kind_begins[kind] = (uint16_t)n;
        for (uint32_t class = 0; class < p->n_classes; class++) {
            if (kinds[class] >> kind & 1) g->kind_classes[n++] = (uint8_t)class;
        }
    }
    g->kind_begins[LZS_KINDS] = (uint16_t)n;
}

/* Finds the run of a state, unless it is known already. */
static lzs_status find_run(lzs_grammar *g, int32_t state) {
    lzs_automaton *a = &g->automaton;
    if (a->states[state].run_to != LZS_NO_STATE) return LZS_OK;
    int32_t to_of[LZS_KINDS];
    uint32_t live = 0, tried = 0, run = 0;
    int32_t run_to = LZS_DEAD, most = 0;
    for (uint32_t kind = 0; kind < LZS_KINDS; kind++) {
        to_of[kind] = LZS_NO_STATE;
        for (size_t i = g->kind_begins[kind]; i < g->kind_begins[kind + 1]; i++) {
            int32_t to;
            lzs_status status = lzs_automaton_step(a, state, g->program.byte_of[g->kind_classes[i]], &to);
            if (status != LZS_OK) return status;
            if (to != LZS_DEAD) live |= UINT32_C(1) << kind;
            to_of[kind] = to_of[kind] == LZS_NO_STATE || to_of[kind] == to ? to : LZS_MIXED;
        }
    }
    for (uint32_t kind = 0; kind < LZS_KINDS; kind++) {
        if (to_of[kind] <= LZS_DEAD || tried >> kind & 1) continue;
        uint32_t same = 0;
        int32_t n = 0;
        for (uint32_t other = kind; other < LZS_KINDS; other++) {
            if (to_of[other] != to_of[kind]) continue;
            same |= UINT32_C(1) << other;
            n++;
        }
        tried |= same;
        if (n <= most) continue;
        most = n;
        run = same;
        run_to = to_of[kind];
    }
    lzs_dfa_state *s = &a->states[state];
    s->run_to = run_to;
    s->run = run;
    s->live = live;
    return LZS_OK;
}

enum { MOST_PLACES = 32 };

/* Whether to look ahead from a state. Looking ahead may make states that no text needs. So it happens only if the state
 * has few places and memory is plentiful. */
static bool looks_ahead(const lzs_automaton *a, int32_t state) {
    return a->states[state].n <= MOST_PLACES && lzs_automaton_used(a) <= a->max_bytes / 4;
}

/* ---- the walk ---- */

static lzs_status add_exit(lzs_exits *exits, uint32_t node) {
    if (!lzs_grow(&exits->nodes, &exits->room, exits->n + 1, sizeof *exits->nodes)) return LZS_ENOMEM;
    exits->nodes[exits->n++] = node;
    return LZS_OK;
}

/* Adds the tokens that end at a node. */
static inline lzs_status add_node(lzs_grammar *g, const lzs_trie_node *node, int32_t state, lzs_found *found) {
    if (node->token < 0) return LZS_OK;
    bool viable = g->whole;
    lzs_status status = viable ? LZS_OK : lzs_viable(g, state, &viable);
    const int32_t *same = g->vocabulary->same;
    for (int32_t token = viable ? node->token : -1; token >= 0; token = same[token]) lzs_found_add(found, token);
    return status;
}

/* Adds a wide node to the list of open nodes. The number of open nodes depends on the vocabulary, so the list can
 * grow. */
static lzs_status open_node(lzs_grammar *g, size_t *n_open, const lzs_trie_node *node, const lzs_trie_node *last) {
    const lzs_vocabulary *v = g->vocabulary;
    if (!lzs_grow(&g->open_nodes, &g->open_room, *n_open + 1, sizeof *g->open_nodes)) return LZS_ENOMEM;
    g->open_nodes[(*n_open)++] = (lzs_open_node){node, last, lzs_wide_number(v, (uint32_t)(node - v->nodes)), 0};
    return LZS_OK;
}

/* Returns the next child of an open node whose byte can follow, or NULL. The bytes of the children are in a list, so
 * only nodes whose byte can follow are read. */
static const lzs_trie_node *next_child(const lzs_grammar *g, lzs_open_node *open) {
    const lzs_vocabulary *v = g->vocabulary;
    const int32_t state = g->path[open->node->depth];
    const lzs_dfa_state *s = &g->automaton.states[state];
    const int32_t *edges = g->automaton.edges + (size_t)state * g->program.n_classes;
    const size_t begin = v->wide_begins[open->wide], n = v->wide_begins[open->wide + 1] - begin;
    const uint8_t *bytes = v->wide_bytes + begin;
    if (s->n_few != LZS_MANY_BYTES) {
        while (open->next < s->n_few) {
            const uint8_t *at = memchr(bytes, s->few[open->next++], n);
            if (at) return &v->nodes[v->wide_nodes[at - v->wide_bytes]];
        }
        return NULL;
    }
    while (open->next < n) {
        size_t i = open->next++;
        if (edges[g->program.class_of[bytes[i]]] != LZS_DEAD) return &v->nodes[v->wide_nodes[begin + i]];
    }
    return NULL;
}

static lzs_status walk_nodes(lzs_grammar *g, size_t first, size_t end, int level, lzs_found *found, lzs_exits *exits) {
    const lzs_vocabulary *v = g->vocabulary;
    const uint8_t *class_of = g->program.class_of;
    const size_t n_classes = g->program.n_classes;
    const int32_t *edges = g->automaton.edges;
    const lzs_trie_node *node = v->nodes + first, *last = v->nodes + end;
    int32_t *path = g->path;
    size_t n_open = 0;
    for (;;) {
        while (node == last) { /* reached the end of an open node's child, or of the walk */
            if (!n_open) return LZS_OK;
            lzs_open_node *open = &g->open_nodes[n_open - 1];
            node = next_child(g, open);
            last = node ? node + node->size : open->last;
            if (node) break;
            node = open->node + open->node->size;
            n_open--;
        }
        if (level == LZS_WALK_OTHERS && node->inner) {
            node += node->size;
            continue;
        }
        int32_t from = path[node->depth - 1], to = LZS_DEAD;
        if (node->level >= level) to = edges[(size_t)from * n_classes + class_of[node->byte]];
        lzs_status status = LZS_OK;
        if (to == LZS_NO_STATE) {
            status = lzs_automaton_step(&g->automaton, from, node->byte, &to);
            if (status != LZS_OK) return status;
            edges = g->automaton.edges; /* making an edge may move the array */
        }
        if (to == LZS_DEAD) {
            node += node->size;
            continue;
        }
        path[node->depth] = to;
        if (exits && g->automaton.states[to].accepts && node->size > 1 && node->depth >= exits->min_depth) {
            status = add_exit(exits, (uint32_t)(node - v->nodes));
        }
        if (status == LZS_OK) status = add_node(g, node, to, found);
        edges = g->automaton.edges;
        uint8_t n_few = node->size < MIN_ASKED ? LZS_MANY_BYTES : lzs_automaton_few(&g->automaton, to);
        if (status == LZS_OK && node->wide) {
            status = open_node(g, &n_open, node, last);
            node = last;
        } else {
            node += n_few == 0 ? node->size : 1;
        }
        if (status != LZS_OK) return status;
    }
}

/* ---- runs as a whole ---- */

enum { MOST_STATES = 64 }; /* largest number of states in a chain */

/* A chain is a sequence of states and a set of kinds. Each byte of these kinds leads from one state to the next. The
 * last state leads to itself, or no byte of these kinds can follow it. */
typedef struct chain {
    int32_t states[MOST_STATES];
    uint32_t last;  /* the index of the last state */
    bool loops;     /* whether the last state leads to itself */
    uint32_t kinds; /* the set of kinds; 0 if there is no chain */
    uint32_t leave; /* the set of other kinds that can follow one of the states */
} chain;

/* Finds the chain that begins with a state and its run. If `exits`, no text may end at a state of the chain, because a
 * chain records no exits. */
static lzs_status find_chain(lzs_grammar *g, int32_t state, bool exits, chain *c) {
    uint32_t live = 0;
    *c = (chain){.kinds = UINT32_MAX};
    for (;; c->last++) {
        bool goes_on = c->last < MOST_STATES && looks_ahead(&g->automaton, state);
        lzs_status status = goes_on ? find_run(g, state) : LZS_OK;
        const lzs_dfa_state *s = &g->automaton.states[state];
        if (status != LZS_OK || !goes_on || (exits && s->accepts)) {
            c->kinds = 0;
            return status;
        }
        c->states[c->last] = state;
        live |= s->live;
        if (c->last && !(s->live & c->kinds)) break;
        c->kinds &= c->kinds & s->run ? s->run : ~s->live; /* tokens with bytes of a removed kind are found by a walk */
        if (!c->kinds || !(s->live & c->kinds)) break;
        c->loops = s->run_to == state;
        if (c->loops) break;
        state = s->run_to;
    }
    if (!c->last && !c->loops) c->kinds = 0; /* no byte of these kinds can follow */
    c->leave = live & ~c->kinds;
    return LZS_OK;
}

/* Returns the index of a group's first token that is longer than `n` bytes. */
static size_t longer_than(const lzs_vocabulary *v, size_t group, size_t n) {
    size_t low = v->group_begins[group], high = v->group_begins[group + 1];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (v->grouped_bytes[middle] <= n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Finds the tokens at and below the nodes [first, end) that have a byte whose kind is not in the chain. */
static lzs_status walk_linked(lzs_grammar *g, const chain *c, size_t first, size_t end, int level, lzs_found *found,
                              lzs_exits *exits) {
    const lzs_vocabulary *v = g->vocabulary;
    for (size_t i = first; i < end;) {
        const lzs_trie_node *node = &v->nodes[i];
        uint32_t kind = UINT32_C(1) << v->kind_of[node->byte], before = node->depth - 1u;
        bool linked = kind & c->kinds && (before < c->last || c->loops);
        lzs_status status = LZS_OK;
        if (kind & c->leave && node->level >= level) {
            g->path[before] = c->states[before < c->last ? before : c->last];
            status = walk_nodes(g, i, i + node->size, level, found, exits);
        }
        if (status != LZS_OK) return status;
        i += linked && node->kinds & c->leave && node->level >= level ? 1 : node->size;
    }
    return LZS_OK;
}

/* Adds the tokens that may follow the first state of a chain. Tokens whose bytes are all of the chain's kinds are
 * allowed up to the chain's length. A walk finds the tokens with other bytes. */
static lzs_status walk_chain(lzs_grammar *g, const chain *c, int level, lzs_found *found, lzs_exits *exits) {
    static const size_t levels[LZS_N_SHORT] = LZS_SHORT_LEVELS;
    const lzs_vocabulary *v = g->vocabulary;
    for (size_t i = 0; i < v->n_groups; i++) {
        if (v->group_kinds[i] & ~c->kinds) continue;
        size_t first = level ? longer_than(v, i, levels[level - 1]) : v->group_begins[i];
        size_t end = c->loops ? v->group_begins[i + 1] : longer_than(v, i, c->last);
        if (first < end) add_tokens(found, v->grouped + first, end - first);
    }
    lzs_status status = LZS_OK;
    for (int byte = 0; byte < 256 && status == LZS_OK; byte++) { /* reads only nodes whose byte can follow */
        size_t root = v->roots[byte];
        if (root == LZS_NO_ROOT || !((c->kinds | c->leave) >> v->kind_of[byte] & 1)) continue;
        status = walk_linked(g, c, root, root + v->nodes[root].size, level, found, exits);
    }
    return status;
}

lzs_status lzs_walk_all(lzs_grammar *g, int32_t state, int level, lzs_found *found, lzs_exits *exits) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_automaton *a = &g->automaton;
    uint8_t n_few = lzs_automaton_few(a, state);
    lzs_status status = LZS_OK;
    g->path[0] = state;
    if (n_few != LZS_MANY_BYTES) {
        for (uint8_t i = 0; i < n_few && status == LZS_OK; i++) {
            size_t root = v->roots[a->states[state].few[i]];
            if (root != LZS_NO_ROOT) status = walk_nodes(g, root, root + v->nodes[root].size, level, found, exits);
        }
        return status;
    }
    if (level >= 0 && g->whole) {
        chain c;
        status = find_chain(g, state, exits != NULL, &c);
        if (status != LZS_OK || c.kinds) return status == LZS_OK ? walk_chain(g, &c, level, found, exits) : status;
    }
    for (int byte = 0; byte < 256 && status == LZS_OK; byte++) { /* reads only nodes whose byte can follow */
        size_t root = v->roots[byte];
        if (root == LZS_NO_ROOT ||
            a->edges[(size_t)state * g->program.n_classes + g->program.class_of[byte]] == LZS_DEAD) continue;
        status = walk_nodes(g, root, root + v->nodes[root].size, level, found, exits);
    }
    return status;
}

lzs_status lzs_walk(lzs_grammar *g, uint32_t node, lzs_found *found) {
    return walk_nodes(g, node, node + g->vocabulary->nodes[node].size, 0, found, NULL);
}

size_t lzs_walk_ends(const lzs_grammar *g, int32_t state, lzs_found *found) {
    const lzs_vocabulary *v = g->vocabulary;
    const size_t n = state == LZS_ENDED || g->automaton.states[state].accepts ? v->n_ends : 0;
    for (size_t i = 0; i < n; i++) lzs_found_add(found, v->ends[i]);
    return n;
}
