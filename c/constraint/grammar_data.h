/* grammar_data.h - what a grammar holds. grammar.h has what it does.
 *
 * Its files work on this data in layers: completion.c, inner.c and walk.c find tokens, state_masks.c and part_masks.c
 * make masks of them, proper.c takes out what a tokenizer does not write, and grammar.c makes, trims and frees all of
 * it.
 */
#ifndef LZS_GRAMMAR_DATA_H
#define LZS_GRAMMAR_DATA_H

#include "automaton.h"
#include "kept.h"

/* A node of the tree of the vocabulary with many children, those of which are walked that can follow (walk.c). */
typedef struct lzs_open_node {
    const lzs_trie_node *node, *last; /* where the walk goes on after it, and to where */
    size_t wide, next;                /* its number among such nodes, and how far its children are walked */
} lzs_open_node;

/* The mask of a part, for other grammars, and where the part may end. */
typedef struct lzs_part_ends {
    lzs_kept_base *mask; /* tokens that stay inside the part or end with it */
    uint32_t n_exits;    /* more than LZS_PART_EXITS if the mask is of no use to another grammar */
    uint32_t *exits;     /* nodes of the tree of tokens at which the part may end, and that others follow */
    uint32_t n_behind;
    uint32_t *behind;    /* the nodes that follow these, by their bytes, ascending */
} lzs_part_ends;

struct lzs_grammar {
    const lzs_vocabulary *vocabulary;
    lzs_program program;
    lzs_automaton automaton;
    uint64_t epoch; /* changes when states are forgotten, so that numbers of states are no longer valid */
    bool whole;     /* every place can be completed by tokens of one byte, so that no state needs a search */
    bool *safe;     /* (n_ops) places that can; NULL if `whole` */
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
    struct lzs_proper *proper; /* how texts are written as tokens; NULL if it does not matter */
    lzs_part_masks *shared;    /* masks that are kept for other grammars as well; NULL for none */
    uint32_t *part_numbers;    /* (program.n_parts) of its parts, there; valid in this epoch of it */
    uint64_t shared_epoch;
    int n_nested; /* masks of other places of a state that are being made (part_masks.c) */
    bool is_part; /* the grammar of a part: its masks leave out what follows it, and have `ends` */
    struct lzs_part_ends *ends; /* (n_masks) of a part, else NULL */
    size_t ends_room;
    /* what answers in the place of program and automaton; `accept` is NULL if nothing does */
    lzs_grammar_engine engine;
};

/* Nodes of the tree of the vocabulary, at least min_depth bytes deep, that have others below them. */
typedef struct lzs_exits {
    uint32_t *nodes;
    size_t n, room;
    uint32_t min_depth;
} lzs_exits;

#endif
