/* tree.h - the syntax tree of a constraint: the parsers build it, and program.c makes the byte automaton from it.
 *
 * Nodes are made bottom up, and a child has a smaller number than its parent. A node may be a child of several nodes.
 * The automaton then has a copy of it for each. Every node matches at least one text, so no node built of others can be
 * a dead end.
 */
#ifndef LZS_TREE_H
#define LZS_TREE_H

#include "charset.h"

typedef enum lzs_node_kind {
    LZS_NODE_LITERAL, /* bytes[first .. first + n), maybe none */
    LZS_NODE_SET,     /* one code point of ranges[first .. first + n), encoded as UTF-8 */
    LZS_NODE_CONCAT,  /* children[first .. first + n) one after the other */
    LZS_NODE_ALT,     /* one of children[first .. first + n) */
    LZS_NODE_REPEAT,  /* node number `first`, min to max times, with `separator` between them */
    LZS_NODE_LIST     /* children[first .. first + n) one after the other, with `separator` between them. A child that
                       * is a REPEAT of 0 to 1 may be left out. At least `min` children must be there: 0 or 1. */
} lzs_node_kind;

#define LZS_UNBOUNDED UINT32_MAX
#define LZS_NO_NODE UINT32_MAX

typedef struct lzs_node {
    lzs_node_kind kind;
    uint32_t first, n;
    uint32_t min, max;
    uint32_t separator; /* a node, or LZS_NO_NODE */
    uint32_t min_bytes; /* bytes of its shortest text, capped at UINT32_MAX; 0: the empty text matches */
    bool shared;        /* grammars that have this part share its masks (part_masks.h) */
} lzs_node;

typedef struct lzs_tree {
    lzs_node *nodes;
    size_t n_nodes, nodes_room;
    uint32_t *children;
    size_t n_children, children_room;
    uint8_t *bytes;
    size_t n_bytes, bytes_room;
    lzs_range *ranges;
    size_t n_ranges, ranges_room;
    uint32_t root;
} lzs_tree;

void lzs_tree_free(lzs_tree *tree);

/* These functions return the number of a new node, or LZS_NO_NODE if memory runs out or there are too many nodes. */
uint32_t lzs_tree_literal(lzs_tree *tree, const uint8_t *bytes, size_t n);
uint32_t lzs_tree_set(lzs_tree *tree, const lzs_charset *set); /* the set is normalized and not empty */
uint32_t lzs_tree_concat(lzs_tree *tree, const uint32_t *children, size_t n);
uint32_t lzs_tree_alt(lzs_tree *tree, const uint32_t *children, size_t n); /* n >= 1 */
uint32_t lzs_tree_repeat(lzs_tree *tree, uint32_t child, uint32_t min, uint32_t max);
uint32_t lzs_tree_separated(lzs_tree *tree, uint32_t child, uint32_t separator, uint32_t min, uint32_t max);
uint32_t lzs_tree_list(lzs_tree *tree, const uint32_t *children, size_t n, uint32_t separator, uint32_t min);

static inline bool lzs_node_is_optional(const lzs_node *node) {
    return node->kind == LZS_NODE_REPEAT && node->min == 0 && node->max == 1;
}

/* Finds the least and the most characters of a node's texts. *max is LZS_UNBOUNDED if there is no limit. If `json`, an
 * escape of a JSON string counts as one character. */
void lzs_tree_characters(const lzs_tree *tree, uint32_t node, bool json, uint32_t *min, uint32_t *max);

/* Makes room for `needed` items of `size` bytes in an array. Returns false if memory runs out. */
bool lzs_grow(void *array, size_t *room, size_t needed, size_t size);

#endif
