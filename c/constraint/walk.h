/* walk.h - which tokens may follow a state: a walk through the vocabulary's tree and the automaton side by side. */
#ifndef LZS_WALK_H
#define LZS_WALK_H

#include "grammar_data.h"

/* The tokens found so far. Few tokens are kept as a list, and more tokens as a mask. */
typedef struct lzs_found {
    uint32_t *tokens; /* (room) the list, in any order */
    size_t n, room;
    const uint32_t *known; /* a mask whose tokens are in the list already and are not added again, or NULL */
    uint32_t *words;
    size_t n_words;
    bool spread; /* whether the tokens are in `words` instead of `tokens` */
} lzs_found;

/* Returns an empty set of tokens that uses the grammar's scratch memory. */
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

/* For each kind of bytes (vocabulary.h), lists the classes of the program that have bytes of this kind. */
void lzs_walk_init(lzs_grammar *g);

/* Adds those text tokens at and below a node of the vocabulary's tree that the grammar allows. g->path must have the
 * state before the node's byte. */
lzs_status lzs_walk(lzs_grammar *g, uint32_t node, lzs_found *found);

enum { LZS_WALK_OTHERS = -1 };

/* Adds text tokens that may follow a state. If level > 0, may omit tokens of at most LZS_SHORT_LEVELS[level - 1] bytes
 * (vocabulary.h). If `level` is LZS_WALK_OTHERS, may omit inner tokens (vocabulary.h). If `exits` is not NULL, adds to
 * it the nodes where a text may end. */
lzs_status lzs_walk_all(lzs_grammar *g, int32_t state, int level, lzs_found *found, lzs_exits *exits);

/* If a text may end in a state, adds the tokens that end a text. Returns the number of tokens added. */
size_t lzs_walk_ends(const lzs_grammar *g, int32_t state, lzs_found *found);

#endif
