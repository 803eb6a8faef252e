/* grammar_data.h - the data of a grammar. grammar.h has its functions.
 *
 * The files work on this data in layers. completion.c, inner.c and walk.c find the allowed tokens. state_masks.c and
 * part_masks.c make masks of these tokens. proper.c removes tokens that the tokenizer would not write. grammar.c makes,
 * trims and frees the data.
 */
#ifndef LZS_GRAMMAR_DATA_H
#define LZS_GRAMMAR_DATA_H

#include "automaton.h"
#include "kept.h"

/* A node with many children in the vocabulary's tree. The walk visits only the children that can follow (walk.c). */
typedef struct lzs_open_node {
    const lzs_trie_node *node, *last; /* where the walk goes on after the node, and where it ends */
    size_t wide, next;                /* its number among wide nodes, and its next child to walk */
} lzs_open_node;

/* The mask of a part, which other grammars share, and where tokens may leave the part. */
typedef struct lzs_part_ends {
    lzs_kept_base *mask; /* tokens that stay inside the part or end with it */
    uint32_t n_exits;    /* if above LZS_PART_EXITS, other grammars cannot use the mask */
    uint32_t *exits;     /* inner nodes of the vocabulary's tree where the part may end */
    uint32_t n_behind;
    uint32_t *behind;    /* the children of the exits, by ascending byte */
} lzs_part_ends;

struct lzs_grammar {
    const lzs_vocabulary *vocabulary;
    lzs_program program;
    lzs_automaton automaton;
    uint64_t epoch; /* changes when states are forgotten, which makes state numbers invalid */
    bool whole;     /* tokens of one byte complete the text from every place, so no state needs a search */
    bool *safe;     /* (n_ops) whether they do so from this operation; NULL if `whole` */
    lzs_kept_mask *masks;
    size_t n_masks, masks_room;
    size_t mask_bytes, max_bytes;
    int32_t *path;   /* (longest + 1) states on the path to a node */
    lzs_open_node *open_nodes; /* wide nodes on the path to a node */
    size_t open_room;
    uint32_t *words; /* the mask that is being made */
    uint32_t *found; /* (n_words) the mask's tokens, while they are few */
    uint16_t kind_begins[LZS_KINDS + 1]; /* by kind of bytes: where its classes begin in `kind_classes` */
    uint8_t kind_classes[256]; /* by kind: the classes of the program with bytes of this kind */
    bool open;       /* every text is allowed, and also tokens that are not text */
    struct lzs_proper *proper; /* how texts are written as tokens; NULL if it does not matter */
    lzs_part_masks *shared;    /* masks that grammars share, or NULL */
    uint32_t *part_numbers;    /* (program.n_parts) by part: its number in `shared`, valid in `shared_epoch` */
    uint64_t shared_epoch;
    int n_nested; /* nesting depth of masks under construction (part_masks.c) */
    bool is_part; /* the grammar is of a part: its masks omit what follows the part, and have `ends` */
    struct lzs_part_ends *ends; /* (n_masks) by mask, for the grammar of a part; else NULL */
    size_t ends_room;
    /* an engine that replaces program and automaton; if `accept` is NULL, there is none */
    lzs_grammar_engine engine;
};

/* Nodes of the vocabulary's tree that have children and are at least min_depth bytes deep. */
typedef struct lzs_exits {
    uint32_t *nodes;
    size_t n, room;
    uint32_t min_depth;
} lzs_exits;

#endif
