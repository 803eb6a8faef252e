/* automaton.h - the deterministic automaton of a program, built lazily while it is used.
 *
 * A state is a set of places (program.h). The automaton makes a state when a text first leads to the state, and an edge
 * when the edge is first needed. So the automaton's size depends on the texts, not on the pattern. From every state
 * except LZS_DEAD some bytes complete a text that matches.
 */
#ifndef LZS_AUTOMATON_H
#define LZS_AUTOMATON_H

#include "../table.h"
#include "program.h"

enum {
    LZS_DEAD = 0,  /* no text from here matches */
    LZS_ENDED = 1, /* the state after a token that ends the text */
    LZS_START = 2,
    LZS_NO_STATE = -1, /* stands for an edge that is not made yet */
    LZS_MIXED = -2     /* stands for a state that depends on the next byte or character */
};

enum { LZS_NO_BYTE = -1, LZS_SOME_BYTES = -2 };
enum { LZS_FEW = 7, LZS_MANY_BYTES = 254, LZS_NOT_ASKED = 255 };

typedef struct lzs_dfa_state {
    size_t first; /* index in `places` of the state's first place; the state's places are ascending */
    uint32_t n;
    bool accepts;
    uint8_t viable; /* for completion.c: whether tokens can complete the text from here; 0: unknown */
    /* for inner.c: whether each iteration of the counted repetition around the state takes one character; 0: unknown */
    uint8_t single;
    uint8_t n_few;  /* number of bytes in `few`, LZS_MANY_BYTES, or LZS_NOT_ASKED */
    uint8_t few[LZS_FEW];
    int32_t mask;   /* for state_masks.c: number of the state's mask, or -1 */
    /* for inner.c: the state after a character of inner tokens (vocabulary.h), LZS_MIXED if the state depends on the
     * character, or LZS_NO_STATE if unknown */
    int32_t next;
    /* for walk.c: the state to which all bytes of the kinds in `run` lead, LZS_DEAD if `run` is empty, or LZS_NO_STATE
     * if unknown */
    int32_t run_to;
    uint32_t run;   /* a set of kinds of bytes (vocabulary.h), one bit for each kind */
    uint32_t live;  /* the set of the kinds of all bytes that can follow, one bit for each kind */
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
    lzs_table table; /* finds states by their places */
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
    /* The limits count work and bytes, not time, so every machine refuses the same grammars. */
    uint64_t work, max_work;   /* number of places visited since lzs_automaton_begin */
    size_t max_bytes;
    const char *problem; /* message about the limit that was reached, or NULL */
} lzs_automaton;

lzs_status lzs_automaton_init(lzs_automaton *a, const lzs_program *program, size_t max_bytes, uint64_t max_work);
void lzs_automaton_free(lzs_automaton *a);
size_t lzs_automaton_memory(const lzs_automaton *a);
/* The number of bytes that all states take. `max_bytes` limits this number. */
size_t lzs_automaton_used(const lzs_automaton *a);

/* Sets `work` to 0. `max_work` limits the work after this call. */
void lzs_automaton_begin(lzs_automaton *a);
/* Adds to `work`. Returns LZS_ELIMIT if `work` is then above `max_work`. */
lzs_status lzs_automaton_work(lzs_automaton *a, uint64_t places);

/* Forgets all states except LZS_DEAD, LZS_ENDED, LZS_START and `keep`. *kept gets the new number of state `keep`. */
lzs_status lzs_automaton_flush(lzs_automaton *a, int32_t keep, int32_t *kept);

/* Finds the state after a byte of class `class`. Returns LZS_ELIMIT if a limit is reached. */
lzs_status lzs_automaton_make_edge(lzs_automaton *a, int32_t state, uint32_t class, int32_t *to);

/* lzs_automaton_state_of finds the state that has exactly these places. lzs_automaton_enter finds the state that has
 * `place` and all places that can be reached from `place` without a byte. */
lzs_status lzs_automaton_state_of(lzs_automaton *a, const uint64_t *places, size_t n, int32_t *state);
lzs_status lzs_automaton_enter(lzs_automaton *a, uint64_t place, int32_t *state);

static inline lzs_status lzs_automaton_step(lzs_automaton *a, int32_t state, uint8_t byte, int32_t *to) {
    uint32_t class = a->program->class_of[byte];
    *to = a->edges[(size_t)state * a->program->n_classes + class];
    return *to != LZS_NO_STATE ? LZS_OK : lzs_automaton_make_edge(a, state, class, to);
}

/* If at most LZS_FEW bytes can follow a state, writes them into the state's `few` and returns their number. Else
 * returns LZS_MANY_BYTES. */
uint8_t lzs_automaton_find_few(lzs_automaton *a, int32_t state);

static inline uint8_t lzs_automaton_few(lzs_automaton *a, int32_t state) {
    uint8_t n = a->states[state].n_few;
    return n != LZS_NOT_ASKED ? n : lzs_automaton_find_few(a, state);
}

/* Returns the only byte that can follow a state, LZS_NO_BYTE if none can, or LZS_SOME_BYTES if several can. */
static inline int32_t lzs_automaton_byte(lzs_automaton *a, int32_t state) {
    uint8_t n = lzs_automaton_few(a, state);
    return n == 0 ? LZS_NO_BYTE : n == 1 ? a->states[state].few[0] : LZS_SOME_BYTES;
}

/* Whether exactly one byte can follow a state, and the text cannot end there. */
static inline bool lzs_automaton_forces(lzs_automaton *a, int32_t state) {
    return !a->states[state].accepts && lzs_automaton_byte(a, state) >= 0;
}

/* Finds a state that allows the same continuations of up to n_bytes bytes. Replaces a count by "far" (program.h) if
 * n_bytes bytes cannot bring the count to a limit. Therefore many states have the same result. The result may be the
 * state itself. */
lzs_status lzs_automaton_clamp(lzs_automaton *a, int32_t state, uint32_t n_bytes, int32_t *clamped);

/* As lzs_automaton_clamp, but replaces only counts that are far below their upper limits. The resulting state allows
 * all continuations that `state` allows. The resulting state may also allow further continuations of more than n_bytes
 * bytes. */
lzs_status lzs_automaton_clamp_high(lzs_automaton *a, int32_t state, uint32_t n_bytes, int32_t *clamped);

#endif
