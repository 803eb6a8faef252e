/* proper.c - the tokens of a grammar that are also those that the model's tokenizer would write.
 *
 * Two tokens that the tokenizer never writes side by side are forbidden by the rules of the vocabulary alone. But a token can be
 * wrong only because of what must come: where the grammar goes on with "ame", `"n` is wrong if `"name` is a token. So a token
 * is allowed if tokens that may stand side by side lead from it to the goal: to the end of a text that matches or, where only
 * forced bytes are spelled as the tokenizer would, to where nothing is forced. A search finds the way. Ways are kept by the state
 * and context that they begin in: they serve all tokens that lead there, but for those that must not stand beside their first
 * token, and these are few.
 */
#include "proper.h"

#include <stdlib.h>
#include <string.h>

#include "completion.h"

enum { MAX_LEAD = 48, MAX_FIRST = 12, MIN_TABLE = 256, MANY = 24 };

/* A token on the way, and which tokens were tried behind it. */
struct lzs_try {
    int32_t state, context, token; /* behind the token */
    int32_t first[MAX_FIRST]; /* tokens on a short way to the end, to be tried first */
    int8_t n_first, at_first;
    int32_t next; /* of all tokens, the next one to be tried */
    size_t lowest; /* how far down the stack what was tried behind it depends on */
};

/* ---- life ---- */

void lzs_proper_forget(lzs_proper *p) {
    p->n_turns = 0;
    p->n_notes = p->n_seen = p->n_asked_turns = p->n_lasts = 0;
    for (size_t i = 0; i < p->lasts_size; i++) p->lasts[i].turn = -1;
    for (size_t i = 0; i < p->table_size; i++) p->table[i] = -1;
    if (p->seen_size) memset(p->seen, 0, p->seen_size * sizeof *p->seen);
}

void lzs_proper_free(lzs_proper *p) {
    if (!p) return;
    lzs_contexts_free(&p->contexts);
    free(p->turns);
    free(p->table);
    free(p->notes);
    free(p->distances);
    free(p->class_bytes);
    free(p->seen);
    free(p->lasts);
    free(p->stack);
    free(p->asked);
    free(p->asked_turns);
    free(p->apart_path);
    free(p->either_path);
    free(p->apart_words);
    free(p->either_words);
    free(p->places);
    free(p);
}

size_t lzs_proper_memory(const lzs_proper *p) {
    const lzs_vocabulary *v = p->spelling->vocabulary;
    return sizeof *p + lzs_contexts_memory(&p->contexts) + p->turns_room * sizeof *p->turns + p->table_size * sizeof *p->table +
           p->notes_room * sizeof *p->notes + p->seen_size * sizeof *p->seen + p->stack_room * sizeof *p->stack +
           p->lasts_size * sizeof *p->lasts + p->asked_room * sizeof *p->asked + p->asked_turns_room * sizeof *p->asked_turns + 2 * ((size_t)v->longest + 1) * sizeof(int32_t) + 3 * v->n_words * sizeof(uint32_t);
}

size_t lzs_proper_used(const lzs_proper *p) {
    return (size_t)p->n_turns * (sizeof *p->turns + 2 * sizeof *p->table) + p->n_notes * sizeof *p->notes + 2 * p->n_seen * sizeof *p->seen +
           2 * p->n_lasts * sizeof *p->lasts;
}

/* The bytes from each operation to the end, if every loop could be left at once. */
static void measure(const lzs_program *program, uint32_t *distances) {
    memset(distances, 0xFF, program->n_ops * sizeof *distances);
    for (bool changed = true; changed;) { /* most operations lead to ones that were built before them */
        changed = false;
        for (size_t i = 0; i < program->n_ops; i++) {
            const lzs_op *op = &program->ops[i];
            uint32_t least = UINT32_MAX;
            switch ((lzs_op_kind)op->kind) {
            case LZS_OP_BYTES:
                for (uint32_t k = 0; k < op->n; k++) {
                    uint32_t to = distances[program->edges[op->first + k].to];
                    if (to != UINT32_MAX && to + 1 < least) least = to + 1;
                }
                break;
            case LZS_OP_SPLIT:
                for (uint32_t k = 0; k < op->n; k++) {
                    uint32_t to = distances[program->targets[op->first + k]];
                    if (to < least) least = to;
                }
                break;
            case LZS_OP_ENTER:
                least = distances[program->loops[op->first].entry];
                if (program->loops[op->first].min == 0 && distances[program->loops[op->first].exit] < least) {
                    least = distances[program->loops[op->first].exit];
                }
                break;
            case LZS_OP_NEXT: least = distances[program->loops[op->first].exit]; break;
            case LZS_OP_ACCEPT: least = 0; break;
            }
            if (least < distances[i]) {
                distances[i] = least;
                changed = true;
            }
        }
    }
}

static lzs_status init(lzs_proper *p, const lzs_grammar *g) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_program *program = &g->program;
    p->distances = malloc(program->n_ops * sizeof *p->distances);
    p->class_bytes = calloc(program->n_classes, sizeof *p->class_bytes);
    p->apart_path = malloc(((size_t)v->longest + 1) * sizeof *p->apart_path);
    p->either_path = malloc(((size_t)v->longest + 1) * sizeof *p->either_path);
    p->apart_words = malloc(v->n_words * sizeof *p->apart_words);
    p->either_words = malloc(v->n_words * sizeof *p->either_words);
    p->places = malloc(v->n_words * sizeof *p->places);
    if (!p->distances || !p->class_bytes || !p->apart_path || !p->either_path) return LZS_ENOMEM;
    if (!p->apart_words || !p->either_words || !p->places) return LZS_ENOMEM;
    measure(program, p->distances);
    for (int byte = 0; byte < 256; byte++) p->class_bytes[program->class_of[byte]]++;
    return lzs_contexts_init(&p->contexts, &p->spelling->words);
}

lzs_status lzs_grammar_set_tokenization(lzs_grammar *g, const lzs_spelling *spelling, int32_t tokenization) {
    if (!g || tokenization < LZS_TOKENIZATION_ANY || tokenization > LZS_TOKENIZATION_PROPER) return LZS_EINVAL;
    bool any = tokenization == LZS_TOKENIZATION_ANY;
    if (g->proper || (!any && (!spelling || spelling->vocabulary != g->vocabulary))) return LZS_EINVAL;
    if (g->open && tokenization == LZS_TOKENIZATION_FORCED) return LZS_EINVAL; /* nothing is forced */
    if (any) return LZS_OK;
    lzs_proper *p = calloc(1, sizeof *p);
    if (!p) return LZS_ENOMEM;
    p->spelling = spelling;
    p->tokenization = (lzs_tokenization)tokenization;
    lzs_status status = init(p, g);
    g->proper = status == LZS_OK ? p : NULL;
    if (status != LZS_OK) lzs_proper_free(p);
    return status;
}

/* ---- turns ---- */

static uint64_t mixed(uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ x >> 29;
}

static uint64_t key_of(int32_t state, int32_t context) {
    return (uint64_t)(uint32_t)state << 32 | (uint32_t)context;
}

static size_t slot_of(const lzs_proper *p, int32_t state, int32_t context) {
    for (size_t at = (size_t)mixed(key_of(state, context));; at++) {
        int32_t number = p->table[at & (p->table_size - 1)];
        if (number < 0) return at & (p->table_size - 1);
        if (p->turns[number].state == state && p->turns[number].context == context) return at & (p->table_size - 1);
    }
}

static lzs_status more_table(lzs_proper *p) {
    size_t size = p->table_size ? 2 * p->table_size : MIN_TABLE;
    int32_t *table = malloc(size * sizeof *table);
    if (!table) return LZS_ENOMEM;
    for (size_t i = 0; i < size; i++) table[i] = -1;
    free(p->table);
    p->table = table;
    p->table_size = size;
    for (int32_t i = 0; i < p->n_turns; i++) p->table[slot_of(p, p->turns[i].state, p->turns[i].context)] = i;
    return LZS_OK;
}

static lzs_status turn_of(lzs_proper *p, int32_t state, int32_t context, int32_t *number) {
    if (2 * ((size_t)p->n_turns + 1) > p->table_size) {
        lzs_status status = more_table(p);
        if (status != LZS_OK) return status;
    }
    size_t slot = slot_of(p, state, context);
    if (p->table[slot] < 0) {
        if (!lzs_grow(&p->turns, &p->turns_room, (size_t)p->n_turns + 1, sizeof *p->turns)) return LZS_ENOMEM;
        p->turns[p->n_turns] = (lzs_turn){.state = state, .context = context, .apart = -1, .either = -1, .asked = -1};
        p->table[slot] = p->n_turns++;
    }
    *number = p->table[slot];
    return LZS_OK;
}

static void add_way(lzs_turn *turn, lzs_way way) {
    for (int32_t i = 0; i < turn->n_ways; i++) {
        if (turn->ways[i].token == way.token && turn->ways[i].apart >= way.apart) return;
    }
    if (turn->n_ways == LZS_MAX_WAYS) { /* the oldest ones serve most */
        turn->ways[LZS_MAX_WAYS - 1] = way;
    } else {
        turn->ways[turn->n_ways++] = way;
    }
}

/* ---- states ---- */

static uint32_t distance_of(const lzs_grammar *g, int32_t state) {
    const lzs_dfa_state *s = &g->automaton.states[state];
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t distance = g->proper->distances[lzs_place_op(g->automaton.places[s->first + i])];
        if (distance < least) least = distance;
    }
    return least;
}

static lzs_status note_of(lzs_grammar *g, int32_t state, struct lzs_state_note *note) {
    lzs_proper *p = g->proper;
    while (p->n_notes <= (size_t)state) {
        if (!lzs_grow(&p->notes, &p->notes_room, p->n_notes + 1, sizeof *p->notes)) return LZS_ENOMEM;
        p->notes[p->n_notes++] = (struct lzs_state_note){0};
    }
    if (!p->notes[state].known) {
        struct lzs_state_note found = {true, -1, -1};
        uint32_t least = UINT32_MAX, n_bytes = 0;
        for (uint32_t class = 0; class < g->program.n_classes; class++) {
            int32_t to;
            lzs_status status = lzs_automaton_step(&g->automaton, state, g->program.byte_of[class], &to);
            if (status != LZS_OK) return status;
            if (to == LZS_DEAD) continue;
            n_bytes += p->class_bytes[class];
            uint32_t distance = distance_of(g, to);
            if (found.lead >= 0 && distance >= least) continue;
            least = distance;
            found.lead = g->program.byte_of[class];
        }
        if (n_bytes == 1 && !g->automaton.states[state].accepts) found.forced = found.lead;
        p->notes[state] = found;
    }
    *note = p->notes[state];
    return LZS_OK;
}

/* Whether a state in a context is what the tokens have to lead to. */
static lzs_status is_goal(lzs_grammar *g, int32_t state, int32_t context, bool *goal) {
    lzs_proper *p = g->proper;
    if (p->tokenization == LZS_TOKENIZATION_PROPER) {
        *goal = g->open || (g->automaton.states[state].accepts && lzs_contexts_may_end(&p->contexts, context));
        return LZS_OK;
    }
    struct lzs_state_note note;
    lzs_status status = note_of(g, state, &note);
    *goal = note.forced < 0;
    return status == LZS_OK && *goal ? lzs_viable(g, state, goal) : status;
}

static lzs_status state_behind(lzs_grammar *g, int32_t state, int32_t token, int32_t *to) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    for (size_t i = v->begins[token]; i < v->begins[token + 1] && state != LZS_DEAD && status == LZS_OK; i++) {
        status = lzs_automaton_step(&g->automaton, state, v->bytes[i], &state);
    }
    *to = state;
    return status;
}

/* ---- the search ---- */

static struct lzs_seen *seen_slot(const lzs_proper *p, int32_t state, int32_t context, int32_t token) {
    for (size_t at = (size_t)mixed(mixed(key_of(state, context)) ^ (uint32_t)token);; at++) {
        struct lzs_seen *s = &p->seen[at & (p->seen_size - 1)];
        if (!s->context || (s->token == token && s->state == state && s->context == context)) return s;
    }
}

static lzs_status more_seen(lzs_proper *p) {
    size_t size = p->seen_size ? 2 * p->seen_size : MIN_TABLE, old = p->seen_size;
    struct lzs_seen *before = p->seen;
    p->seen = calloc(size, sizeof *p->seen);
    if (!p->seen) {
        p->seen = before;
        return LZS_ENOMEM;
    }
    p->seen_size = size;
    for (size_t i = 0; i < old; i++) {
        if (before[i].context) *seen_slot(p, before[i].state, before[i].context, before[i].token) = before[i];
    }
    free(before);
    return LZS_OK;
}

/* The tokens on a short way from a state to the end, the longest first. */
static lzs_status find_first(lzs_grammar *g, struct lzs_try *t) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_trie_node *node = v->nodes, *end = node + v->n_nodes;
    int32_t found[4 * MAX_LEAD], n = 0, state = t->state;
    for (int i = 0; i < MAX_LEAD; i++) {
        struct lzs_state_note note;
        lzs_status status = note_of(g, state, &note);
        if (status != LZS_OK) return status;
        while (node < end && node->byte != note.lead) node += node->size;
        if (node >= end || note.lead < 0) break;
        for (int32_t token = node->token; token >= 0 && n < 4 * MAX_LEAD; token = v->same[token]) found[n++] = token;
        status = lzs_automaton_step(&g->automaton, state, (uint8_t)note.lead, &state);
        if (status != LZS_OK) return status;
        end = node + node->size;
        node++;
    }
    t->n_first = (int8_t)(n < MAX_FIRST ? n : MAX_FIRST);
    for (int32_t i = 0; i < t->n_first; i++) t->first[i] = found[n - 1 - i];
    return LZS_OK;
}

static lzs_status push(lzs_grammar *g, int32_t state, int32_t context, int32_t token) {
    lzs_proper *p = g->proper;
    if (!lzs_grow(&p->stack, &p->stack_room, p->n_stack + 1, sizeof *p->stack)) return LZS_ENOMEM;
    if (2 * (p->n_seen + 1) > p->seen_size) {
        lzs_status status = more_seen(p);
        if (status != LZS_OK) return status;
    }
    struct lzs_seen *seen = seen_slot(p, state, context, token);
    if (!seen->context) p->n_seen++;
    *seen = (struct lzs_seen){state, context, token, p->search};
    struct lzs_try *t = &p->stack[p->n_stack];
    *t = (struct lzs_try){.state = state, .context = context, .token = token, .lowest = p->n_stack};
    lzs_status status = find_first(g, t);
    if (status == LZS_OK) p->n_stack++;
    return status;
}

/* The next token to be tried behind the last one of the stack; -1 when all were. */
static lzs_status next_token(lzs_grammar *g, struct lzs_try *t, int32_t *token) {
    *token = -1;
    if (t->at_first < t->n_first) {
        *token = t->first[t->at_first++];
        return LZS_OK;
    }
    int32_t mask;
    lzs_status status = lzs_grammar_mask_number(g, t->state, &mask);
    if (status != LZS_OK) return status;
    *token = lzs_grammar_next_token(g, mask, t->next);
    t->next = *token + 1;
    return LZS_OK;
}

static bool fits(const lzs_proper *p, int32_t token, lzs_way way) {
    return way.apart || lzs_spelling_joint(p->spelling, token, way.token) == LZS_EITHER;
}

/* Notes what the search has found: each token of the stack leads on to the next one, and the last one to `token`. */
static lzs_status note_ways(lzs_proper *p, int32_t token) {
    for (size_t i = p->n_stack; i > 0; i--) {
        const struct lzs_try *t = &p->stack[i - 1];
        lzs_way way = {i < p->n_stack ? p->stack[i].token : token, false};
        int32_t number, apart, either;
        lzs_status status = turn_of(p, t->state, t->context, &number);
        if (status == LZS_OK) status = lzs_spelling_step(p->spelling, &p->contexts, t->context, way.token, LZS_APART, &apart);
        if (status != LZS_OK) return status;
        if (apart) { /* the way was found with another context if the two tokens may stand side by side */
            lzs_joint joint = lzs_spelling_joint(p->spelling, t->token, way.token);
            status = lzs_spelling_step(p->spelling, &p->contexts, t->context, way.token, joint, &either);
            if (status != LZS_OK) return status;
            way.apart = apart == either;
        }
        add_way(&p->turns[number], way);
    }
    return LZS_OK;
}

/* Tries a token behind the last one of the stack: *found if it leads to the goal; else it may be the last one now. */
static lzs_status try(lzs_grammar *g, int32_t token, bool *found) {
    lzs_proper *p = g->proper;
    struct lzs_try *last = &p->stack[p->n_stack - 1];
    int32_t state, context, number;
    lzs_status status = lzs_automaton_work(&g->automaton, 1);
    lzs_joint joint = lzs_spelling_joint(p->spelling, last->token, token);
    if (status == LZS_OK) status = lzs_spelling_step(p->spelling, &p->contexts, last->context, token, joint, &context);
    if (status != LZS_OK || !context) return status;
    status = state_behind(g, last->state, token, &state);
    if (status != LZS_OK || state == LZS_DEAD) return status;
    status = is_goal(g, state, context, found);
    if (status != LZS_OK || *found) return status;
    status = turn_of(p, state, context, &number);
    if (status != LZS_OK) return status;
    for (int32_t i = 0; i < p->turns[number].n_ways && !*found; i++) *found = fits(p, token, p->turns[number].ways[i]);
    if (*found) return LZS_OK;
    const struct lzs_seen *seen = seen_slot(p, state, context, token);
    if (seen->context && seen->search == 0) return LZS_OK;
    if (seen->context && seen->search == p->search) { /* it is on the stack, or depends on something that is */
        last->lowest = 0;
        return LZS_OK;
    }
    return push(g, state, context, token);
}

/* Takes the last token from the stack: there is no way behind it, unless one through a token that is still on the stack. */
static void pop(lzs_proper *p) {
    const struct lzs_try *t = &p->stack[--p->n_stack];
    if (t->lowest >= p->n_stack) seen_slot(p, t->state, t->context, t->token)->search = 0;
    if (p->n_stack && t->lowest < p->n_stack && p->stack[p->n_stack - 1].lowest > t->lowest) {
        p->stack[p->n_stack - 1].lowest = t->lowest;
    }
}

/* Whether there is a way to the goal behind a token, which led to this state and context; if so, it is noted with the turn. */
static lzs_status search(lzs_grammar *g, int32_t state, int32_t context, int32_t token, bool *found) {
    lzs_proper *p = g->proper;
    *found = false;
    if (p->seen_size) {
        const struct lzs_seen *seen = seen_slot(p, state, context, token);
        if (seen->context && seen->search == 0) return LZS_OK;
    }
    p->n_stack = 0;
    if (++p->search == 0) p->search = 1;
    lzs_status status = push(g, state, context, token);
    while (status == LZS_OK && p->n_stack && !*found) {
        int32_t next;
        status = next_token(g, &p->stack[p->n_stack - 1], &next);
        if (status != LZS_OK) break;
        if (next < 0) {
            pop(p);
            continue;
        }
        status = try(g, next, found);
        if (status == LZS_OK && *found) status = note_ways(p, next);
    }
    return status;
}

/* ---- masks ---- */

static void set_bit(uint32_t *words, int32_t token) {
    words[token / 32] |= UINT32_C(1) << (token % 32);
}

static void allow(lzs_proper *p, int32_t token, bool apart, bool either) {
    if (apart) set_bit(p->apart_words, token);
    if (either) set_bit(p->either_words, token);
}

/* A token leads to a state and context: it is allowed if that is the goal, else it is asked about later. */
static lzs_status ask(lzs_grammar *g, int32_t token, int32_t state, int32_t context, bool apart, bool either) {
    lzs_proper *p = g->proper;
    bool goal = false;
    int32_t number;
    lzs_status status = is_goal(g, state, context, &goal);
    if (goal) allow(p, token, apart, either);
    if (status != LZS_OK || goal) return status;
    status = turn_of(p, state, context, &number);
    if (status == LZS_OK && !lzs_grow(&p->asked, &p->asked_room, p->n_asked + 1, sizeof *p->asked)) status = LZS_ENOMEM;
    if (status != LZS_OK) return status;
    if (p->turns[number].asked < 0) {
        if (!lzs_grow(&p->asked_turns, &p->asked_turns_room, p->n_asked_turns + 1, sizeof *p->asked_turns)) return LZS_ENOMEM;
        p->asked_turns[p->n_asked_turns++] = number;
    }
    p->asked[p->n_asked] = (struct lzs_asked){token, p->turns[number].asked, apart, either};
    p->turns[number].asked = (int32_t)p->n_asked++;
    return LZS_OK;
}

/* A token that leads to a state of the automaton, and to these contexts if its bytes are gone through by contexts. */
static lzs_status reach(lzs_grammar *g, int32_t context, int32_t token, int32_t state, int32_t apart, int32_t either) {
    lzs_proper *p = g->proper;
    const lzs_spelling *s = p->spelling;
    lzs_status status = LZS_OK;
    if (lzs_spelling_by_bytes(s, token)) {
        if (!s->merges.written[token]) { /* then it is a word by itself, if it can be written at all */
            either = LZS_NO_CONTEXT;
            if (!s->whole_words) apart = LZS_NO_CONTEXT;
        }
    } else {
        apart = LZS_NO_CONTEXT;
        status = lzs_spelling_step(s, &p->contexts, context, token, LZS_EITHER, &either);
        if (status == LZS_OK && !s->by_scores) apart = either;
    }
    if (status != LZS_OK || apart == either) return status == LZS_OK && apart ? ask(g, token, state, apart, true, true) : status;
    if (apart) status = ask(g, token, state, apart, true, false);
    return status == LZS_OK && either ? ask(g, token, state, either, false, true) : status;
}

/* Goes through all tokens that may follow a state in a context. */
static lzs_status walk(lzs_grammar *g, int32_t state, int32_t context) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    bool by_bytes = !p->spelling->by_scores;
    g->path[0] = state;
    for (size_t i = 0; i < v->n_nodes;) {
        const lzs_trie_node *node = &v->nodes[i];
        size_t depth = node->depth;
        int32_t to, apart = LZS_NO_CONTEXT, either = LZS_NO_CONTEXT;
        lzs_status status = lzs_automaton_step(&g->automaton, g->path[depth - 1], node->byte, &to);
        if (status != LZS_OK) return status;
        if (to == LZS_DEAD) {
            i += node->size;
            continue;
        }
        if (by_bytes && depth == 1) {
            status = lzs_contexts_step(&p->contexts, context, node->byte, LZS_APART, &apart);
            if (status == LZS_OK) status = lzs_contexts_step(&p->contexts, context, node->byte, LZS_EITHER, &either);
        } else if (by_bytes) {
            if (p->apart_path[depth - 1]) {
                status = lzs_contexts_step(&p->contexts, p->apart_path[depth - 1], node->byte, LZS_INSIDE, &apart);
            }
            if (status == LZS_OK && p->either_path[depth - 1] == p->apart_path[depth - 1]) {
                either = apart;
            } else if (status == LZS_OK) {
                status = lzs_contexts_step(&p->contexts, p->either_path[depth - 1], node->byte, LZS_INSIDE, &either);
            }
        }
        if (status != LZS_OK) return status;
        g->path[depth] = to;
        p->apart_path[depth] = apart;
        p->either_path[depth] = either;
        for (int32_t token = node->token; token >= 0 && status == LZS_OK; token = v->same[token]) {
            status = reach(g, context, token, to, apart, either);
        }
        if (status != LZS_OK) return status;
        i++;
    }
    return LZS_OK;
}

/* Allows the tokens that lead to a turn and can go on one of its ways. The others are asked about still. */
static void go_way(lzs_proper *p, lzs_turn *turn, lzs_way way) {
    const lzs_spelling *s = p->spelling;
    int32_t n = 0;
    for (int32_t i = turn->asked; i >= 0 && n <= MANY; i = p->asked[i].next) n++;
    bool marks = n > MANY && !way.apart && s->roles[way.token] == LZS_TOKEN_USUAL && s->merges.written[way.token];
    if (marks) {
        memset(p->places, 0, s->vocabulary->n_words * sizeof *p->places);
        lzs_merges_mark_before(&s->merges, way.token, p->places);
    }
    int32_t *link = &turn->asked;
    while (*link >= 0) {
        struct lzs_asked *asked = &p->asked[*link];
        bool marked = marks && s->roles[asked->token] == LZS_TOKEN_USUAL && s->merges.written[asked->token];
        bool may = marked ? !lzs_bit(p->places, s->merges.by_right.place[asked->token]) : fits(p, asked->token, way);
        if (may) {
            allow(p, asked->token, asked->apart, asked->either);
            *link = asked->next;
        } else {
            link = &asked->next;
        }
    }
}

/* Decides about all tokens that lead to a turn. */
static lzs_status answer(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    for (int32_t i = 0; i < p->turns[number].n_ways; i++) go_way(p, &p->turns[number], p->turns[number].ways[i]);
    while (p->turns[number].asked >= 0) {
        const struct lzs_asked asked = p->asked[p->turns[number].asked];
        bool found;
        lzs_status status = search(g, p->turns[number].state, p->turns[number].context, asked.token, &found);
        if (status != LZS_OK) return status;
        p->turns[number].asked = asked.next;
        if (!found) continue;
        allow(p, asked.token, asked.apart, asked.either);
        go_way(p, &p->turns[number], p->turns[number].ways[p->turns[number].n_ways - 1]);
    }
    return LZS_OK;
}

static lzs_status make(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    int32_t state = p->turns[number].state, context = p->turns[number].context;
    for (size_t i = 0; i < p->n_asked_turns; i++) p->turns[p->asked_turns[i]].asked = -1; /* left by a step that failed */
    p->n_asked = p->n_asked_turns = 0;
    memset(p->apart_words, 0, v->n_words * sizeof *p->apart_words);
    memset(p->either_words, 0, v->n_words * sizeof *p->either_words);
    lzs_status status = walk(g, state, context);
    for (size_t i = 0; i < p->n_asked_turns && status == LZS_OK; i++) status = answer(g, p->asked_turns[i]);
    int32_t apart = -1, either = -1;
    if (status == LZS_OK && !p->spelling->by_scores) status = lzs_grammar_keep(g, p->apart_words, &apart);
    if (status == LZS_OK) status = lzs_grammar_keep(g, p->either_words, &either);
    if (status != LZS_OK) return status;
    p->turns[number].apart = apart;
    p->turns[number].either = either;
    p->turns[number].made = true;
    return LZS_OK;
}

static struct lzs_last *last_slot(const lzs_proper *p, int32_t turn, int32_t last) {
    for (size_t at = (size_t)mixed(key_of(turn, last));; at++) {
        struct lzs_last *slot = &p->lasts[at & (p->lasts_size - 1)];
        if (slot->turn < 0 || (slot->turn == turn && slot->last == last)) return slot;
    }
}

static lzs_status more_lasts(lzs_proper *p) {
    size_t size = p->lasts_size ? 2 * p->lasts_size : MIN_TABLE, old = p->lasts_size;
    struct lzs_last *before = p->lasts, *lasts = malloc(size * sizeof *lasts);
    if (!lasts) return LZS_ENOMEM;
    for (size_t i = 0; i < size; i++) lasts[i].turn = -1;
    p->lasts = lasts;
    p->lasts_size = size;
    for (size_t i = 0; i < old; i++) {
        if (before[i].turn >= 0) *last_slot(p, before[i].turn, before[i].last) = before[i];
    }
    free(before);
    return LZS_OK;
}

/* Keeps the mask of a turn behind a token while there is much room: it is made again in little time. */
static lzs_status keep_last(lzs_grammar *g, int32_t turn, int32_t last, const uint32_t *words) {
    lzs_proper *p = g->proper;
    if (g->mask_bytes > g->max_bytes / 4 || lzs_proper_used(p) > g->max_bytes / 8) return LZS_OK;
    if (2 * (p->n_lasts + 1) > p->lasts_size) {
        lzs_status status = more_lasts(p);
        if (status != LZS_OK) return status;
    }
    int32_t mask;
    lzs_status status = lzs_grammar_keep(g, words, &mask);
    if (status != LZS_OK) return status;
    *last_slot(p, turn, last) = (struct lzs_last){turn, last, mask};
    p->n_lasts++;
    return LZS_OK;
}

/* The tokens that the tokenizer writes behind `last` and that lead to the goal. */
static lzs_status write_proper(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words) {
    lzs_proper *p = g->proper;
    int32_t number;
    lzs_status status = turn_of(p, state, context, &number);
    if (status != LZS_OK) return status;
    if (p->n_lasts) {
        const struct lzs_last *known = last_slot(p, number, last);
        if (known->turn >= 0) {
            lzs_grammar_write(g, known->mask, words);
            return LZS_OK;
        }
    }
    if (!p->turns[number].made) status = make(g, number);
    if (status != LZS_OK) return status;
    lzs_grammar_write(g, p->turns[number].either, words);
    lzs_spelling_forbid(p->spelling, last, words);
    if (p->turns[number].apart >= 0) {
        lzs_grammar_write(g, p->turns[number].apart, p->apart_words);
        for (size_t i = 0; i < g->vocabulary->n_words; i++) words[i] |= p->apart_words[i];
    }
    return keep_last(g, number, last, words);
}

static void allow_others(const lzs_grammar *g, uint32_t *words) {
    const lzs_vocabulary *v = g->vocabulary;
    for (size_t i = 0; i < v->n_words; i++) words[i] |= ~v->texts[i];
    if (v->n_vocab % 32) words[v->n_words - 1] &= (UINT32_C(1) << (v->n_vocab % 32)) - 1;
}

static bool is_empty(const lzs_grammar *g, const uint32_t *words) {
    uint32_t any = 0;
    for (size_t i = 0; i < g->vocabulary->n_words; i++) any |= words[i];
    return !any;
}

int32_t lzs_proper_begin(const lzs_grammar *g) {
    return g->open ? LZS_ANY_CONTEXT : LZS_TEXT_BEGINS;
}

lzs_status lzs_proper_mask(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    if (state == LZS_DEAD || state == LZS_ENDED) return lzs_grammar_mask(g, state, words);
    if (last >= 0 && !lzs_bit(v->texts, last)) last = -1;
    if (p->tokenization == LZS_TOKENIZATION_FORCED) {
        struct lzs_state_note note;
        status = note_of(g, state, &note);
        if (status != LZS_OK || note.forced < 0) return status == LZS_OK ? lzs_grammar_mask(g, state, words) : status;
        status = write_proper(g, last, state, context, words);
        if (status == LZS_OK && is_empty(g, words)) status = write_proper(g, -1, state, LZS_ANY_CONTEXT, words);
        return status == LZS_OK && is_empty(g, words) ? lzs_grammar_mask(g, state, words) : status;
    }
    status = write_proper(g, last, state, context, words);
    if (status != LZS_OK) return status;
    if (g->open) {
        allow_others(g, words);
    } else if (g->automaton.states[state].accepts && lzs_contexts_may_end(&p->contexts, context)) {
        for (size_t i = 0; i < v->n_ends; i++) set_bit(words, v->ends[i]);
    }
    return LZS_OK;
}

lzs_status lzs_proper_accept(lzs_grammar *g, int32_t last, int32_t token, int32_t *state, int32_t *context) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    bool is_text = lzs_bit(v->texts, token);
    if (g->open && !is_text) { /* the text begins anew behind it */
        *context = LZS_TEXT_BEGINS;
        return LZS_OK;
    }
    if (v->is_end[token] && p->tokenization == LZS_TOKENIZATION_PROPER && !lzs_contexts_may_end(&p->contexts, *context)) {
        *state = *state == LZS_ENDED ? LZS_ENDED : LZS_DEAD;
        return LZS_OK;
    }
    lzs_status status = lzs_grammar_accept(g, *state, token, state);
    if (status != LZS_OK || *state == LZS_DEAD || !is_text) return status;
    if (last >= 0 && !lzs_bit(v->texts, last)) last = -1;
    status = lzs_spelling_step(p->spelling, &p->contexts, *context, token, lzs_spelling_joint(p->spelling, last, token), context);
    if (status != LZS_OK || *context) return status;
    *context = LZS_ANY_CONTEXT;
    if (p->tokenization == LZS_TOKENIZATION_PROPER && !g->open) *state = LZS_DEAD;
    return LZS_OK;
}
