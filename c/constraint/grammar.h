/* grammar.h - a constraint on texts, for one vocabulary: its states, and which tokens each of them allows. */
#ifndef LZS_GRAMMAR_H
#define LZS_GRAMMAR_H

#include "automaton.h"
#include "kept.h"

/* A node of the tree of the vocabulary with many children, those of which are walked that can follow (walk.c). */
typedef struct lzs_open_node {
    const lzs_trie_node *node, *last; /* where the walk goes on after it, and to where */
    size_t wide, next;                /* its number among such nodes, and how far its children are walked */
} lzs_open_node;

struct lzs_grammar {
    const lzs_vocabulary *vocabulary;
    lzs_program program;
    lzs_automaton automaton;
    uint64_t epoch; /* changes when states are forgotten, so that numbers of states are no longer valid */
    bool whole;     /* every place can be completed by tokens of one byte, so that no state needs a search */
    bool *safe;     /* (n_ops) places that can; NULL where `whole` */
    lzs_kept_mask *masks;
    size_t n_masks, masks_room;
    size_t mask_bytes, max_bytes;
    int32_t *path;   /* (longest + 1) states on the way to a node */
    lzs_open_node *open_nodes; /* on the way to a node */
    size_t open_room;
    uint32_t *words; /* the mask that is being made */
    uint32_t *found; /* (n_words) its tokens, while they are few */
    uint16_t kind_begins[LZS_KINDS + 1]; /* in `kind_classes`, of each kind of bytes */
    uint8_t kind_classes[256]; /* the classes of the program that have bytes of the kind */
    bool open;       /* every text is allowed, and tokens that are not text as well */
    struct lzs_proper *proper; /* how texts are written as tokens; NULL where it does not matter */
    lzs_part_masks *shared;    /* masks that are kept for other grammars as well; NULL for none */
    uint32_t *part_numbers;    /* (program.n_parts) of its parts, there; valid in this epoch of it */
    uint64_t shared_epoch;
    int n_nested; /* masks of other places of a state that are being made (shared.c) */
    lzs_grammar_engine engine; /* what answers in the place of program and automaton; `accept` is NULL where nothing does */
};

/* Nodes of the tree of the vocabulary, at least min_depth bytes deep, that have others below them. */
typedef struct lzs_exits {
    uint32_t *nodes;
    size_t n, room;
    uint32_t min_depth;
} lzs_exits;

/* Makes the grammar of a tree. LZS_EINVAL, with the error filled, where it cannot be used. */
lzs_status lzs_grammar_of_tree(const lzs_tree *tree, const lzs_vocabulary *vocabulary, size_t max_bytes,
                               lzs_grammar_error *error, lzs_grammar **grammar);

/* Before anything that makes states: forgets states and masks when they need too much memory. *state keeps its meaning. */
lzs_status lzs_grammar_trim(lzs_grammar *g, int32_t *state);

/* The state behind a token; LZS_DEAD where the grammar does not allow it. */
lzs_status lzs_grammar_accept(lzs_grammar *g, int32_t state, int32_t token, int32_t *next);

/* The share of a token's bytes that the grammar leaves free behind a state, 0 to 1: those in whose place another byte could
 * follow, or the end of the text. A token that ends the text is free, so 1, where a byte could follow. 1 for what the grammar does
 * not allow. */
lzs_status lzs_grammar_free_share(lzs_grammar *g, int32_t state, int32_t token, float *share);

/* Writes the mask of a state. */
lzs_status lzs_grammar_mask(lzs_grammar *g, int32_t state, uint32_t *words);

/* Masks that are kept, by number, until lzs_grammar_trim forgets them: that of a state, or the one in `words`. */
lzs_status lzs_grammar_mask_number(lzs_grammar *g, int32_t state, int32_t *number);
lzs_status lzs_grammar_keep(lzs_grammar *g, const uint32_t *words, int32_t *number);
void lzs_grammar_write(const lzs_grammar *g, int32_t number, uint32_t *words);

enum { LZS_WALK_OTHERS = -1 };

/* What of the mask of a state need not be walked. */
typedef struct lzs_shortcut {
    int level;       /* for lzs_walk_all */
    int32_t clamped; /* with a level above 0: a state that allows the same tokens of up to LZS_SHORT_LEVELS[level - 1] bytes */
    int32_t most;    /* with LZS_WALK_OTHERS: the inner tokens that are allowed, by their characters, as in inner.h; else 0 */
} lzs_shortcut;

/* Finds it. `open_end`: whether a text may end between the characters of inner tokens. */
lzs_status lzs_grammar_shorten(lzs_grammar *g, int32_t state, bool open_end, lzs_shortcut *way);

#endif
