/* ways.c - the search for a way from a token to the goal, and what it knows of states and contexts. */
#include "ways.h"

#include <stdlib.h>
#include <string.h>

#include "completion.h"

enum { MAX_LEAD = 48, MIN_TABLE = 256, MAX_FIRST = 12 };

/* ---- turns ---- */

static size_t slot_of(const lzs_proper *p, int32_t state, int32_t context) {
    for (size_t at = (size_t)lzs_mixed(lzs_pair_key(state, context));; at++) {
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

lzs_status lzs_turn_of(lzs_proper *p, int32_t state, int32_t context, int32_t *number) {
    if (2 * ((size_t)p->n_turns + 1) > p->table_size) {
        lzs_status status = more_table(p);
        if (status != LZS_OK) return status;
    }
    size_t slot = slot_of(p, state, context);
    if (p->table[slot] < 0) {
        if (!lzs_grow(&p->turns, &p->turns_room, (size_t)p->n_turns + 1, sizeof *p->turns)) return LZS_ENOMEM;
        p->turns[p->n_turns] = (lzs_turn){.state = state, .context = context, .apart = -1, .either = -1, .same = -1, .asked = -1};
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

lzs_status lzs_note_of(lzs_grammar *g, int32_t state, struct lzs_state_note *note) {
    lzs_proper *p = g->proper;
    while (p->n_notes <= (size_t)state) {
        if (!lzs_grow(&p->notes, &p->notes_room, p->n_notes + 1, sizeof *p->notes)) return LZS_ENOMEM;
        p->notes[p->n_notes++] = (struct lzs_state_note){0};
    }
    if (!p->notes[state].known) {
        struct lzs_state_note found = {true, -1};
        uint32_t least = UINT32_MAX, distance_here = distance_of(g, state); /* the first byte on the shortest way is enough */
        for (uint32_t class = 0; class < g->program.n_classes && least >= distance_here; class++) {
            int32_t to;
            lzs_status status = lzs_automaton_step(&g->automaton, state, g->program.byte_of[class], &to);
            if (status != LZS_OK) return status;
            if (to == LZS_DEAD) continue;
            uint32_t distance = distance_of(g, to);
            if (found.lead >= 0 && distance >= least) continue;
            least = distance;
            found.lead = g->program.byte_of[class];
        }
        p->notes[state] = found;
    }
    *note = p->notes[state];
    return LZS_OK;
}

lzs_status lzs_is_goal(lzs_grammar *g, int32_t state, int32_t context, bool *goal) {
    lzs_proper *p = g->proper;
    if (p->tokenization == LZS_TOKENIZATION_PROPER) {
        *goal = g->open || (g->automaton.states[state].accepts && lzs_contexts_may_end(&p->contexts, context));
        return LZS_OK;
    }
    *goal = !lzs_automaton_forces(&g->automaton, state);
    return *goal ? lzs_viable(g, state, goal) : LZS_OK;
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
    for (size_t at = (size_t)lzs_mixed(lzs_mixed(lzs_pair_key(state, context)) ^ (uint32_t)token);; at++) {
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

/* The first token of a mask that is `from` or more; -1 for none. */
static int32_t next_bit(const uint32_t *words, int32_t from, int32_t n_vocab) {
    for (; from < n_vocab && !lzs_bit(words, from); from++) {
        if (from % 32 == 0) {
            while (from + 32 <= n_vocab && !words[from / 32]) from += 32;
            if (from >= n_vocab || lzs_bit(words, from)) break;
        }
    }
    return from < n_vocab ? from : -1;
}

static lzs_status add_candidate(lzs_proper *p, struct lzs_try *t, int32_t token) {
    if (!lzs_grow(&p->candidates, &p->candidates_room, t->end + 1, sizeof *p->candidates)) return LZS_ENOMEM;
    p->candidates[t->end++] = token;
    return LZS_OK;
}

/* Adds the tokens on a short way from a state to the end to those to be tried, the longest first. */
static lzs_status find_first(lzs_grammar *g, struct lzs_try *t) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_trie_node *node = v->nodes, *end = node + v->n_nodes;
    int32_t found[4 * MAX_LEAD], n = 0, state = t->state;
    for (int i = 0; i < MAX_LEAD; i++) {
        struct lzs_state_note note;
        lzs_status status = lzs_note_of(g, state, &note);
        if (status != LZS_OK) return status;
        while (node < end && node->byte != note.lead) node += node->size;
        if (node >= end || note.lead < 0) break;
        for (int32_t token = node->token; token >= 0 && n < 4 * MAX_LEAD; token = v->same[token]) found[n++] = token;
        status = lzs_automaton_step(&g->automaton, state, (uint8_t)note.lead, &state);
        if (status != LZS_OK) return status;
        end = node + node->size;
        node++;
    }
    for (int32_t i = 0; i < n && i < MAX_FIRST; i++) {
        lzs_status status = add_candidate(g->proper, t, found[n - 1 - i]);
        if (status != LZS_OK) return status;
    }
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
    size_t first = p->n_stack ? t[-1].end : 0;
    *t = (struct lzs_try){.state = state, .context = context, .token = token, .first = first, .at = first, .end = first, .lowest = p->n_stack};
    bool inside = p->contexts.all[context].node != 0; /* a character: few bytes can follow, and most would join */
    lzs_status status = inside ? LZS_OK : find_first(g, t);
    if (status == LZS_OK) p->n_stack++;
    return status;
}

/* Lists the tokens below some nodes that may go on a character behind the last token, where no word can begin. */
static lzs_status list_nodes(lzs_grammar *g, struct lzs_try *t, size_t first, size_t end) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    uint64_t n_nodes = 0;
    for (size_t i = first; i < end && status == LZS_OK; n_nodes++) {
        const lzs_trie_node *node = &v->nodes[i];
        const uint16_t depth = node->depth;
        lzs_joint joint = depth == 1 ? LZS_EITHER : LZS_INSIDE;
        int32_t context = LZS_NO_CONTEXT, state;
        status = lzs_automaton_step(&g->automaton, g->path[depth - 1], node->byte, &state);
        if (status == LZS_OK && state != LZS_DEAD) status = lzs_contexts_step(&p->contexts, p->either_path[depth - 1], node->byte, joint, &context);
        i += context ? 1 : node->size;
        if (!context) continue;
        g->path[depth] = state;
        p->either_path[depth] = context;
        for (int32_t token = node->token; token >= 0 && status == LZS_OK; token = v->same[token]) {
            if (lzs_spelling_joint(p->spelling, t->token, token) == LZS_EITHER) status = add_candidate(p, t, token);
        }
    }
    return status == LZS_OK ? lzs_automaton_work(&g->automaton, n_nodes) : status;
}

/* The same for the next byte with which there are such tokens. */
static lzs_status list_inside(lzs_grammar *g, struct lzs_try *t) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    g->path[0] = t->state;
    g->proper->either_path[0] = t->context;
    t->joined = true;
    t->at = t->end = t->first;
    while (t->end == t->first && t->next >= 0 && status == LZS_OK) {
        uint32_t root = v->roots[t->next];
        if (root != LZS_NO_ROOT) status = list_nodes(g, t, root, root + v->nodes[root].size);
        t->next = t->next < 255 ? t->next + 1 : -1;
    }
    return status;
}

enum { FAR = 16 };

/* Lists the next tokens that the state allows: a few, since most ways are found soon, and then ever more at a time. States that
 * count differently have one mask for this: it allows all that they do, and each token is tried. */
static lzs_status list_more(lzs_grammar *g, struct lzs_try *t) {
    lzs_proper *p = g->proper;
    const lzs_spelling *s = p->spelling;
    size_t many = t->next ? 4 * (t->end - t->first) + MAX_FIRST : MAX_FIRST;
    int32_t mask, state;
    lzs_status status = lzs_automaton_clamp_high(&g->automaton, t->state, FAR, &state);
    if (status == LZS_OK) status = lzs_grammar_mask_number(g, state, &mask);
    if (status != LZS_OK) return status;
    lzs_grammar_write(g, mask, p->before);
    t->joined = s->by_scores; /* it has no words */
    if (t->joined) lzs_spelling_forbid(s, t->token, p->before);
    t->at = t->end = t->first;
    while (t->end - t->first < many && t->next >= 0 && status == LZS_OK) {
        t->next = next_bit(p->before, t->next, g->vocabulary->n_vocab);
        if (t->next >= 0) status = add_candidate(p, t, t->next++);
    }
    return status == LZS_OK ? lzs_automaton_work(&g->automaton, t->end - t->first) : status;
}

/* The next token to be tried behind the last one of the stack; -1 when all were. */
static lzs_status next_token(lzs_grammar *g, struct lzs_try *t, int32_t *token) {
    lzs_proper *p = g->proper;
    bool inside = p->contexts.all[t->context].node != 0 && !p->spelling->by_scores;
    lzs_status status = LZS_OK;
    *token = -1;
    if (t->at == t->end && t->next >= 0) status = inside ? list_inside(g, t) : list_more(g, t);
    if (status == LZS_OK && t->at < t->end) *token = p->candidates[t->at++];
    return status;
}

bool lzs_way_fits(const lzs_proper *p, int32_t token, lzs_way way) {
    return way.apart || lzs_spelling_joint(p->spelling, token, way.token) == LZS_EITHER;
}

/* Notes what the search has found: each token of the stack leads on to the next one, and the last one to `token`. */
static lzs_status note_ways(lzs_proper *p, int32_t token) {
    for (size_t i = p->n_stack; i > 0; i--) {
        const struct lzs_try *t = &p->stack[i - 1];
        lzs_way way = {i < p->n_stack ? p->stack[i].token : token, false, p->way_bytes};
        int32_t number, apart, either;
        lzs_status status = lzs_turn_of(p, t->state, t->context, &number);
        if (status == LZS_OK) status = lzs_spelling_step(p->spelling, &p->contexts, t->context, way.token, LZS_APART, &apart);
        if (status != LZS_OK) return status;
        if (apart) { /* the way was found with another context if the two tokens may stand side by side */
            lzs_joint joint = lzs_spelling_joint(p->spelling, t->token, way.token);
            status = lzs_spelling_step(p->spelling, &p->contexts, t->context, way.token, joint, &either);
            if (status != LZS_OK) return status;
            way.apart = apart == either;
        }
        add_way(&p->turns[number], way);
        p->way_bytes += lzs_token_bytes(p, t->token);
    }
    return LZS_OK;
}

/* Tries a token behind the last one of the stack: *found if it leads to the goal; else it may be the last one now. */
static lzs_status try(lzs_grammar *g, int32_t token, bool *found) {
    lzs_proper *p = g->proper;
    struct lzs_try *last = &p->stack[p->n_stack - 1];
    int32_t state, context, number;
    lzs_status status = lzs_automaton_work(&g->automaton, 1);
    lzs_joint joint = last->joined ? LZS_EITHER : lzs_spelling_joint(p->spelling, last->token, token);
    if (status == LZS_OK) status = lzs_spelling_step(p->spelling, &p->contexts, last->context, token, joint, &context);
    if (status != LZS_OK || !context) return status;
    status = state_behind(g, last->state, token, &state);
    if (status != LZS_OK || state == LZS_DEAD) return status;
    status = lzs_is_goal(g, state, context, found);
    p->way_bytes = lzs_token_bytes(p, token);
    if (status != LZS_OK || *found) return status;
    status = lzs_turn_of(p, state, context, &number);
    if (status != LZS_OK) return status;
    for (int32_t i = 0; i < p->turns[number].n_ways; i++) {
        const lzs_way way = p->turns[number].ways[i];
        if (!lzs_way_fits(p, token, way)) continue;
        *found = true;
        p->way_bytes += way.bytes;
        return LZS_OK;
    }
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

lzs_status lzs_find_way(lzs_grammar *g, int32_t state, int32_t context, int32_t token, bool *found) {
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
