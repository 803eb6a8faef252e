/* tree.h - the syntax tree of a constraint. The parsers build the tree, and program.c makes the byte automaton from the
 * tree.
 *
 * Nodes are made bottom up, and a child has a smaller number than its parent. If a node is a child of several nodes,
 * the automaton has a copy of the node for each of them. Every node matches at least one text.
 */
#ifndef LZS_TREE_H
#define LZS_TREE_H

#include "charset.h"

typedef enum lzs_node_kind {
    LZS_NODE_LITERAL, /* bytes[first .. first + n), maybe none */
    LZS_NODE_SET,     /* one code point of ranges[first .. first + n), encoded as UTF-8 */
    LZS_NODE_CONCAT,  /* children[first .. first + n) one after the other */
    LZS_NODE_ALT,     /* one of children[first .. first + n) */
    LZS_NODE_REPEAT,  /* node number `first` repeated min to max times, with `separator` in between */
    /* children[first .. first + n) one after the other, with `separator` between them. A child that repeats its node 0
     * to 1 times may be left out. `min` is 1 if at least one child must be present, else 0. */
    LZS_NODE_LIST
} lzs_node_kind;

#define LZS_UNBOUNDED UINT32_MAX
#define LZS_NO_NODE UINT32_MAX

typedef struct lzs_node {
    lzs_node_kind kind;
    uint32_t first, n;
    uint32_t min, max;
    uint32_t separator; /* number of a node, or LZS_NO_NODE */
    uint32_t min_bytes; /* number of bytes of the node's shortest text, capped at UINT32_MAX */
    bool shared;        /* whether grammars share the masks of this node (part_masks.h) */
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

/* The functions below return the number of a new node, or LZS_NO_NODE if memory runs out or there are too many
 * nodes. */
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

/* Finds the least and the largest number of characters of a node's texts. *max is LZS_UNBOUNDED if there is no largest
 * number. If `json`, an escape of a JSON string counts as one character. */
void lzs_tree_characters(const lzs_tree *tree, uint32_t node, bool json, uint32_t *min, uint32_t *max);

/* Makes room for `needed` items of `size` bytes in an array. Returns false if memory runs out. */
bool lzs_grow(void *array, size_t *room, size_t needed, size_t size);

#endif
