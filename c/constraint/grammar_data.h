/* grammar_data.h - the data of a grammar. grammar.h declares the functions of a grammar.
 *
 * The files form layers. completion.c, inner.c and walk.c find the allowed tokens. state_masks.c and part_masks.c make
 * masks of these tokens. proper.c removes tokens that the tokenizer would not write. grammar.c makes, trims and frees
 * the data.
 */
#ifndef LZS_GRAMMAR_DATA_H
#define LZS_GRAMMAR_DATA_H

#include "automaton.h"
#include "kept.h"

/* A node of the vocabulary's tree that has many children. The walk visits only children whose byte can follow
 * (walk.c). */
typedef struct lzs_open_node {
    const lzs_trie_node *node, *last; /* the node, and the end of the range in which the walk goes on after the node */
    /* `wide` is the node's index in the vocabulary's `wide`. `next` is the index of the next child to try. If few bytes
     * can follow, `next` is an index in the state's `few` instead. */
    size_t wide, next;
} lzs_open_node;

/* The mask of a part (part_masks.h) and the nodes where tokens may leave the part. Other grammars share the mask. */
typedef struct lzs_part_ends {
    lzs_kept_base *mask; /* the tokens that stay inside the part or end exactly with it */
    uint32_t n_exits;    /* number of exits; other grammars can use the mask only if n_exits <= LZS_PART_EXITS */
    /* (n_exits) the nodes of the vocabulary's tree that have children and where the part may end */
    uint32_t *exits;
    uint32_t n_behind;
    uint32_t *behind;    /* (n_behind) the children of the exits, sorted by byte */
} lzs_part_ends;

struct lzs_grammar {
    const lzs_vocabulary *vocabulary;
    lzs_program program;
    lzs_automaton automaton;
    uint64_t epoch; /* changes whenever states are forgotten, which makes state numbers invalid */
    /* whether tokens of one byte complete the text from every place, so no state needs a search (completion.c) */
    bool whole;
    bool *safe;     /* (n_ops) by operation: whether tokens of one byte complete the text from here; NULL if `whole` */
    lzs_kept_mask *masks;
    size_t n_masks, masks_room;
    size_t mask_bytes, max_bytes;
    int32_t *path;   /* (longest + 1) by depth: the states on the path to a node */
    lzs_open_node *open_nodes; /* the nodes with many children on the path to a node */
    size_t open_room;
    uint32_t *words; /* the mask under construction */
    uint32_t *found; /* (n_words) list of the tokens of the mask under construction, while the tokens are few */
    /* by kind of bytes (vocabulary.h): index of its first class in `kind_classes` */
    uint16_t kind_begins[LZS_KINDS + 1];
    uint8_t kind_classes[256]; /* for each kind, the program's classes that have a byte of the kind */
    bool open;       /* whether the grammar allows every text, and every token that is not text */
    struct lzs_proper *proper; /* restricts the grammar to tokens that the tokenizer would write, or NULL */
    lzs_part_masks *shared;    /* masks that grammars share, or NULL */
    /* (program.n_parts) by part: its number in `shared`; valid while `shared_epoch` is the epoch of `shared` */
    uint32_t *part_numbers;
    uint64_t shared_epoch;
    int n_nested; /* nesting depth of the masks under construction (part_masks.c) */
    /* whether this is the grammar of a part (part_masks.h); its masks omit what follows the part */
    bool is_part;
    struct lzs_part_ends *ends; /* (n_masks) by mask: the mask of a part with its exits; NULL if not `is_part` */
    size_t ends_room;
    /* an engine that replaces `program` and `automaton`; if engine.accept is NULL, there is none */
    lzs_grammar_engine engine;
};

/* The nodes that have children and where a part may end. A walk adds only nodes that are at least min_depth bytes
 * deep. */
typedef struct lzs_exits {
    uint32_t *nodes;
    size_t n, room;
    uint32_t min_depth;
} lzs_exits;

#endif
