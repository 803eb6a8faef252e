/* ways.h - the search for a way from a token to the goal, and what it knows of states and contexts. */
#ifndef LZS_WAYS_H
#define LZS_WAYS_H

#include "proper.h"

/* A token on the way, and which tokens were tried behind it. */
struct lzs_try {
    int32_t state, context, token; /* behind the token */
    size_t first, at, end; /* in `candidates`: the tokens to be tried next; at first those on a short way to the end */
    bool joined; /* these may stand beside the token */
    int32_t next; /* the next of all tokens that is to be among them, inside a character the next first byte; -1 behind the last one */
    size_t lowest; /* how far down the stack what was tried behind it depends on */
};

/* The number of the turn of a state and a context. */
lzs_status lzs_turn_of(lzs_proper *proper, int32_t state, int32_t context, int32_t *number);

lzs_status lzs_note_of(lzs_grammar *g, int32_t state, struct lzs_state_note *note);

/* Whether a state in a context is what the tokens have to lead to. */
lzs_status lzs_is_goal(lzs_grammar *g, int32_t state, int32_t context, bool *goal);

/* Whether a token may be followed by a way. */
bool lzs_way_fits(const lzs_proper *proper, int32_t token, lzs_way way);

/* Whether there is a way to the goal behind a token, which led to this state and context; if so, it is noted with the turn. */
lzs_status lzs_find_way(lzs_grammar *g, int32_t state, int32_t context, int32_t token, bool *found);

static inline uint32_t lzs_token_bytes(const lzs_proper *proper, int32_t token) {
    const size_t *begin = proper->spelling->vocabulary->begins + token;
    return (uint32_t)(begin[1] - begin[0]);
}

static inline uint64_t lzs_mixed(uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ x >> 29;
}

static inline uint64_t lzs_pair_key(int32_t a, int32_t b) {
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

#endif
