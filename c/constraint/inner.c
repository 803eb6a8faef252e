/* inner.c - how many characters of inner tokens (vocabulary.h) a state allows. */
#include "inner.h"

#include "../utf8.h"

enum { INNER_PLACES = 16 }; /* states with more places are not examined */

/* Returns the first byte after `byte` that is in another class of the program. A class of the program is a range of
 * bytes. */
static uint32_t after_class(const lzs_program *p, uint32_t byte) {
    uint32_t class = (uint32_t)p->class_of[byte] + 1;
    return class < p->n_classes ? p->byte_of[class] : 256;
}

/* Sets *leads to false if some sequence of `more` bytes does not lead from a state to `next`, or if a text may end
 * inside a sequence. The first byte of a sequence is in first..last, and its other bytes are continuation bytes. */
static lzs_status leads_to(lzs_grammar *g, int32_t state, uint32_t first, uint32_t last, int more, int32_t next,
                           bool *leads) {
    const lzs_program *p = &g->program;
    int32_t known = LZS_NO_STATE; /* the state after the previous byte */
    for (uint32_t byte = first; byte <= last && *leads; byte = after_class(p, byte)) {
        int32_t to;
        lzs_status status = lzs_automaton_step(&g->automaton, state, (uint8_t)byte, &to);
        if (status != LZS_OK) return status;
        if (more == 1 || to == LZS_DEAD || to == known) {
            *leads = more == 1 ? to == next : to != LZS_DEAD;
            continue;
        }
        *leads = !g->automaton.states[to].accepts;
        status = leads_to(g, to, 0x80, 0xBF, more - 1, next, leads);
        if (status != LZS_OK) return status;
        known = to;
    }
    return LZS_OK;
}

/* Finds the state after one character of inner tokens, or LZS_MIXED if the state depends on the character. */
static lzs_status find_next(lzs_grammar *g, int32_t state, int32_t *found) {
    const lzs_program *p = &g->program;
    int32_t next = LZS_NO_STATE, to;
    *found = LZS_MIXED;
    for (uint32_t i = 0; i < p->n_plain; i++) {
        lzs_status status = lzs_automaton_step(&g->automaton, state, p->byte_of[p->plain[i]], &to);
        if (status != LZS_OK) return status;
        if (next != LZS_NO_STATE && next != to) return LZS_OK;
        next = to;
    }
    for (size_t i = 0; i < LZS_N_LEADS; i++) {
        const lzs_lead *l = &LZS_LEADS[i];
        for (uint32_t byte = l->first; byte <= l->last; byte = after_class(p, byte)) {
            lzs_status status = lzs_automaton_step(&g->automaton, state, (uint8_t)byte, &to);
            bool leads = (to == LZS_DEAD) == (next == LZS_DEAD);
            if (status == LZS_OK && leads && to != LZS_DEAD) {
                leads = !g->automaton.states[to].accepts;
                status = leads_to(g, to, l->second_first, l->second_last, l->more, next, &leads);
            }
            if (status != LZS_OK || !leads) return status;
        }
    }
    *found = next;
    return LZS_OK;
}

static lzs_status next_of(lzs_grammar *g, int32_t state, int32_t *next) {
    *next = g->automaton.states[state].next;
    if (*next != LZS_NO_STATE) return LZS_OK;
    lzs_status status = find_next(g, state, next);
    if (status == LZS_OK) g->automaton.states[state].next = *next;
    return status;
}

/* ---- counted characters ---- */

/* A state inside a counted repetition, described by its places. The places are those where the next iteration begins,
 * and maybe places after the repetition. */
typedef struct counting {
    const lzs_loop_op *loop;
    uint64_t count;
    uint64_t places[INNER_PLACES]; /* the places where the next iteration begins, with count 0 */
    size_t n;
    int32_t exit;                      /* the state of all places after the repetition */
} counting;

static bool has_place(const lzs_automaton *a, int32_t state, uint64_t place) {
    const lzs_dfa_state *s = &a->states[state];
    for (uint32_t i = 0; i < s->n; i++) {
        if (a->places[s->first + i] == place) return true;
    }
    return false;
}

/* Writes the description of a state inside a counted repetition into *c. For any other state, *found is false. The
 * repetition is the innermost loop around the state's last place. This place is inside the repetition, because
 * operations after a repetition have smaller numbers. */
static lzs_status look(lzs_grammar *g, int32_t state, counting *c, bool *found) {
    lzs_automaton *a = &g->automaton;
    const lzs_program *p = &g->program;
    *found = false;
    if (!p->n_loops || !a->states[state].n || a->states[state].n > INNER_PLACES) return LZS_OK;
    uint64_t last = a->places[a->states[state].first + a->states[state].n - 1];
    uint32_t number = p->ops[lzs_place_op(last)].loop;
    if (number == LZS_NO_LOOP) return LZS_OK;
    *c = (counting){.loop = &p->loops[number], .count = lzs_counter(&p->loops[number], last)};
    if (c->loop->max == LZS_UNBOUNDED || c->loop->nullable || c->count >= c->loop->max) return LZS_OK;
    uint64_t behind = lzs_at_op(lzs_with_counter(c->loop, last, 0), c->loop->exit);
    lzs_status status = lzs_automaton_enter(a, behind, &c->exit);
    if (status != LZS_OK) return status;
    for (uint32_t i = 0; i < a->states[state].n; i++) {
        uint64_t place = a->places[a->states[state].first + i], without = lzs_with_counter(c->loop, place, 0);
        bool inside = p->ops[lzs_place_op(place)].loop == number && lzs_counter(c->loop, place) == c->count &&
                      lzs_at_op(without, 0) == lzs_at_op(behind, 0);
        if (inside) {
            c->places[c->n++] = without;
        } else if (!has_place(a, c->exit, place)) {
            return LZS_OK;
        }
    }
    *found = true;
    return LZS_OK;
}

/* Finds the state that has the places in `c`, with the given count. */
static lzs_status begin_at(lzs_grammar *g, const counting *c, uint64_t count, int32_t *state) {
    uint64_t places[INNER_PLACES];
    for (size_t i = 0; i < c->n; i++) places[i] = lzs_with_counter(c->loop, c->places[i], count);
    return lzs_automaton_state_of(&g->automaton, places, c->n, state);
}

/* Finds whether every character leads from the beginning of an iteration only to the beginning of the next iteration or
 * to the end of the repetition. If this is true for one count, it is true for all counts except the last one, because
 * counts are only compared with their limits. */
static lzs_status find_single(lzs_grammar *g, const counting *c, bool *single) {
    int32_t from, to, next, behind;
    *single = false;
    lzs_status status = begin_at(g, c, c->count, &from);
    if (status == LZS_OK) status = begin_at(g, c, c->count + 1, &next);
    if (status == LZS_OK) status = next_of(g, from, &to);
    if (status == LZS_OK) status = next_of(g, c->exit, &behind);
    if (status != LZS_OK || to == LZS_MIXED || behind != LZS_DEAD) return status;
    const lzs_automaton *a = &g->automaton;
    *single = true;
    for (uint32_t i = 0; i < a->states[to].n && *single; i++) {
        uint64_t place = a->places[a->states[to].first + i];
        *single = has_place(a, next, place) || has_place(a, c->exit, place);
    }
    for (uint32_t i = 0; i < a->states[next].n && *single; i++) {
        *single = has_place(a, to, a->places[a->states[next].first + i]);
    }
    return LZS_OK;
}

enum { UNKNOWN, SINGLE, SINGLE_NOT }; /* lzs_dfa_state.single */

/* If a state is in a counted repetition of single characters, counts the characters that the repetition still
 * allows. */
static lzs_status count_left(lzs_grammar *g, int32_t state, bool open_end, int32_t *most) {
    counting c;
    bool found, single;
    int32_t any; /* the state with count "far", which stores the answer for all counts */
    lzs_status status = look(g, state, &c, &found);
    if (status != LZS_OK || !found || !c.n || (!open_end && g->automaton.states[c.exit].accepts)) return status;
    status = begin_at(g, &c, lzs_far_high(c.loop), &any);
    if (status != LZS_OK) return status;
    if (g->automaton.states[any].single == UNKNOWN) {
        if (c.count + 1 >= c.loop->max) return LZS_OK;
        status = find_single(g, &c, &single);
        if (status != LZS_OK) return status;
        g->automaton.states[any].single = single ? SINGLE : SINGLE_NOT;
    }
    if (g->automaton.states[any].single == SINGLE) *most = (int32_t)(c.loop->max - c.count);
    return LZS_OK;
}

enum { MOST_LINKS = 4 }; /* largest number of characters that lzs_inner_reach looks ahead */

lzs_status lzs_inner_reach(lzs_grammar *g, int32_t state, bool open_end, int32_t *most) {
    *most = LZS_INNER_UNKNOWN;
    if (!g->whole) return LZS_OK;
    lzs_status status = count_left(g, state, open_end, most);
    for (int32_t n = 0; n < MOST_LINKS && status == LZS_OK && *most == LZS_INNER_UNKNOWN; n++) {
        int32_t next;
        status = next_of(g, state, &next);
        if (status != LZS_OK || next == LZS_MIXED) break;
        if (next != LZS_DEAD && !open_end && g->automaton.states[next].accepts) break;
        if (next == state) *most = LZS_INNER_ALL;
        if (next == LZS_DEAD) *most = n;
        state = next;
    }
    return status;
}
