/* walk.h - which tokens may follow a state: a walk through the vocabulary's tree and the automaton side by side. */
#ifndef LZS_WALK_H
#define LZS_WALK_H

#include "grammar_data.h"

/* The tokens found so far: a list while they are few, then the bits of a mask. */
typedef struct lzs_found {
    uint32_t *tokens; /* (room), in any order */
    size_t n, room;
    const uint32_t *known; /* a mask whose tokens are in the list already, or NULL */
    uint32_t *words;
    size_t n_words;
    bool spread; /* the tokens are in `words`; else in `tokens` */
} lzs_found;

/* Returns an empty collection that uses the grammar's scratch memory. */
static inline lzs_found lzs_found_none(const lzs_grammar *g) {
    const size_t n_words = g->vocabulary->n_words;
    return (lzs_found){.tokens = g->found, .room = n_words - 1, .words = g->words, .n_words = n_words};
}

/* Turns the list into a mask. */
void lzs_found_spread(lzs_found *found);

static inline void lzs_found_add(lzs_found *found, int32_t token) {
    if (!found->spread && found->known && lzs_bit(found->known, token)) return;
    if (!found->spread && found->n == found->room) lzs_found_spread(found);
    if (found->spread) {
        found->words[token / 32] |= UINT32_C(1) << (token % 32);
    } else {
        found->tokens[found->n++] = (uint32_t)token;
    }
}

/* Lists, for each kind of the vocabulary, the classes of the program with bytes of this kind. */
void lzs_walk_init(lzs_grammar *g);

/* Adds the text tokens below a node of the tree of the vocabulary. g->path has the state before the node. */
lzs_status lzs_walk(lzs_grammar *g, uint32_t node, lzs_found *found);

enum { LZS_WALK_OTHERS = -1 };

/* Adds the text tokens that may follow a state: at least the tokens longer than LZS_SHORT_LEVELS[level - 1] bytes, or
 * with LZS_WALK_OTHERS at least the tokens that are not inner tokens. If `exits` is not NULL, adds the nodes where a
 * text may end to it. */
lzs_status lzs_walk_all(lzs_grammar *g, int32_t state, int level, lzs_found *found, lzs_exits *exits);

/* If a text may end in a state, adds the tokens that end a text. Returns how many. */
size_t lzs_walk_ends(const lzs_grammar *g, int32_t state, lzs_found *found);

#endif
