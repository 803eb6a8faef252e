/* walk.h - which tokens may follow a state: the way through the tree of the vocabulary beside the automaton. */
#ifndef LZS_WALK_H
#define LZS_WALK_H

#include "grammar.h"

/* The tokens that were found: a list while they are few, and then the bits of a mask. */
typedef struct lzs_found {
    uint32_t *tokens; /* (room), in any order */
    size_t n, room;
    const uint32_t *known; /* a mask, or NULL: tokens that the list has already, where they are found */
    uint32_t *words;
    size_t n_words;
    bool spread; /* they are in `words`; else in `tokens` */
} lzs_found;

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

/* Adds the text tokens below a node of the tree of the vocabulary, at least those with more bytes than number level - 1 of
 * LZS_SHORT_LEVELS, or with LZS_WALK_OTHERS those that are not inner ones. g->path has the state before the node. Nodes where a
 * text may end are added to `exits`, which may be NULL. */
lzs_status lzs_walk(lzs_grammar *g, uint32_t node, int level, lzs_found *found, lzs_exits *exits);

/* Adds all text tokens that may follow a state, but for what the level leaves out. */
lzs_status lzs_walk_all(lzs_grammar *g, int32_t state, int level, lzs_found *found, lzs_exits *exits);

#endif
