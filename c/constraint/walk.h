/* walk.h - which tokens may follow a state: the way through the tree of the vocabulary beside the automaton. */
#ifndef LZS_WALK_H
#define LZS_WALK_H

#include "grammar_data.h"

/* The tokens that were found: a list while they are few, and then the bits of a mask. */
typedef struct lzs_found {
    uint32_t *tokens; /* (room), in any order */
    size_t n, room;
    const uint32_t *known; /* a mask, or NULL: tokens of it that are found are in the list already */
    uint32_t *words;
    size_t n_words;
    bool spread; /* they are in `words`; else in `tokens` */
} lzs_found;

/* None yet, in the memory that a grammar has for them. */
static inline lzs_found lzs_found_none(const lzs_grammar *g) {
    const size_t n_words = g->vocabulary->n_words;
    return (lzs_found){.tokens = g->found, .room = n_words - 1, .words = g->words, .n_words = n_words};
}

/* Puts the list into the mask. */
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

/* Lists which classes of the program make up the kinds of the vocabulary. */
void lzs_walk_init(lzs_grammar *g);

/* Adds the text tokens below a node of the tree of the vocabulary. g->path has the state before the node. */
lzs_status lzs_walk(lzs_grammar *g, uint32_t node, lzs_found *found);

enum { LZS_WALK_OTHERS = -1 };

/* Adds the text tokens that may follow a state: at least those longer than LZS_SHORT_LEVELS[level - 1] bytes, or with
 * LZS_WALK_OTHERS those that are not inner tokens. Nodes where a text may end are added to
 * `exits`, which may be NULL. */
lzs_status lzs_walk_all(lzs_grammar *g, int32_t state, int level, lzs_found *found, lzs_exits *exits);

/* Adds the tokens that end a text, if one may end in a state; how many. */
size_t lzs_walk_ends(const lzs_grammar *g, int32_t state, lzs_found *found);

#endif
