/* automaton.h - the deterministic automaton of a program, built lazily while it is used.
 *
 * A state is a set of places (program.h). The automaton makes a state when a text first leads there, and an edge when
 * it is first needed. So the automaton's size depends on the texts, not on the pattern. From every state except
 * LZS_DEAD some bytes complete a text that matches.
 */
#ifndef LZS_AUTOMATON_H
#define LZS_AUTOMATON_H

#include "../table.h"
#include "program.h"

enum {
    LZS_DEAD = 0,  /* nothing can follow */
    LZS_ENDED = 1, /* after a token that ended the text */
    LZS_START = 2,
    LZS_NO_STATE = -1, /* an edge that was not made yet */
    LZS_MIXED = -2     /* not one state: it depends */
};

enum { LZS_NO_BYTE = -1, LZS_SOME_BYTES = -2 };
enum { LZS_FEW = 7, LZS_MANY_BYTES = 254, LZS_NOT_ASKED = 255 };

typedef struct lzs_dfa_state {
    size_t first; /* index of its first place in `places`; the state's places are ascending */
    uint32_t n;
    bool accepts;
    uint8_t viable; /* for completion.c: whether tokens can complete the text; 0: unknown */
    uint8_t single; /* for inner.c: whether each iteration takes one character; 0: unknown */
    uint8_t n_few;  /* lzs_automaton_few, or LZS_NOT_ASKED */
    uint8_t few[LZS_FEW];
    int32_t mask;   /* for state_masks.c: number of the state's mask, or -1 */
    int32_t next;   /* for inner.c: the state after a character of inner tokens, LZS_MIXED, or LZS_NO_STATE */
    /* for walk.c: the state that all bytes of the kinds in `run` lead to, LZS_DEAD if there is none, or LZS_NO_STATE if
     * unknown */
    int32_t run_to;
    uint32_t run;   /* a bit for each of these kinds (vocabulary.h) */
    uint32_t live;  /* a bit for each kind with a byte that can follow */
} lzs_dfa_state;

typedef struct lzs_automaton {
    const lzs_program *program;
    lzs_dfa_state *states;
    int32_t n_states;
    size_t states_room;
    int32_t *edges; /* (n_states, n_classes) */
    size_t edges_room;
    uint64_t *places;
    size_t n_places, places_room;
    lzs_table table; /* states by their places */
    /* Scratch memory for making a state. */
    struct lzs_visit {
        uint64_t place;
        uint32_t flags, stamp;
    } *seen;
    size_t n_seen, seen_size;
    uint32_t stamp;
    struct lzs_visit *todo;
    size_t n_todo, todo_room;
    uint64_t *made;
    size_t n_made, made_room;
    /* Limits. They are counters and not clocks, so every machine refuses the same grammars. */
    uint64_t work, max_work;   /* places that were looked at since lzs_automaton_begin */
    size_t max_bytes;
    const char *problem; /* the limit that was reached, or NULL */
} lzs_automaton;

lzs_status lzs_automaton_init(lzs_automaton *a, const lzs_program *program, size_t max_bytes, uint64_t max_work);
void lzs_automaton_free(lzs_automaton *a);
size_t lzs_automaton_memory(const lzs_automaton *a);
/* The bytes of all states, which `max_bytes` limits. */
size_t lzs_automaton_used(const lzs_automaton *a);

/* Sets the count of work to 0: `max_work` limits the work from here on. */
void lzs_automaton_begin(lzs_automaton *a);
/* Adds to the count of places that were looked at. LZS_ELIMIT if they are too many. */
lzs_status lzs_automaton_work(lzs_automaton *a, uint64_t places);

/* Forgets all states except the three named states and `keep`. *kept is the new number of `keep`. */
lzs_status lzs_automaton_flush(lzs_automaton *a, int32_t keep, int32_t *kept);

/* The state that a byte leads to. LZS_ELIMIT when a limit is reached. */
lzs_status lzs_automaton_make_edge(lzs_automaton *a, int32_t state, uint32_t class, int32_t *to);

/* lzs_automaton_state_of gives the state of exactly these places. lzs_automaton_enter gives the state of a place and of
 * all places that it leads to without a byte. */
lzs_status lzs_automaton_state_of(lzs_automaton *a, const uint64_t *places, size_t n, int32_t *state);
lzs_status lzs_automaton_enter(lzs_automaton *a, uint64_t place, int32_t *state);

static inline lzs_status lzs_automaton_step(lzs_automaton *a, int32_t state, uint8_t byte, int32_t *to) {
    uint32_t class = a->program->class_of[byte];
    *to = a->edges[(size_t)state * a->program->n_classes + class];
    return *to != LZS_NO_STATE ? LZS_OK : lzs_automaton_make_edge(a, state, class, to);
}

/* If at most LZS_FEW bytes can follow a state, returns how many, and puts them into the state's `few`. Else returns
 * LZS_MANY_BYTES. */
uint8_t lzs_automaton_find_few(lzs_automaton *a, int32_t state);

static inline uint8_t lzs_automaton_few(lzs_automaton *a, int32_t state) {
    uint8_t n = a->states[state].n_few;
    return n != LZS_NOT_ASKED ? n : lzs_automaton_find_few(a, state);
}

/* The only byte that can follow in a state; LZS_NO_BYTE if none can, and LZS_SOME_BYTES if several can. */
static inline int32_t lzs_automaton_byte(lzs_automaton *a, int32_t state) {
    uint8_t n = lzs_automaton_few(a, state);
    return n == 0 ? LZS_NO_BYTE : n == 1 ? a->states[state].few[0] : LZS_SOME_BYTES;
}

/* Whether exactly one byte can follow in a state, and the text may not end there. */
static inline bool lzs_automaton_forces(lzs_automaton *a, int32_t state) {
    return !a->states[state].accepts && lzs_automaton_byte(a, state) >= 0;
}

/* Finds a state that allows the same texts of up to n_bytes bytes. Counts that are too far from their limits to matter
 * within n_bytes are replaced by "far". So many states share the result. It may be the state itself. */
lzs_status lzs_automaton_clamp(lzs_automaton *a, int32_t state, uint32_t n_bytes, int32_t *clamped);

/* As lzs_automaton_clamp, but replaces only counts that are far below their upper limits. The resulting state allows
 * all texts that `state` allows. Of texts longer than n_bytes it may allow further ones. */
lzs_status lzs_automaton_clamp_high(lzs_automaton *a, int32_t state, uint32_t n_bytes, int32_t *clamped);

#endif
