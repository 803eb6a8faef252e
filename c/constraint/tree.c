/* tree.c - the syntax tree of a constraint. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

bool lzs_grow(void *array, size_t *room, size_t needed, size_t size) {
    if (needed <= *room) return true;
    size_t more = *room < 8 ? 16 : *room + *room / 2;
    if (more < needed) more = needed;
    if (more > SIZE_MAX / size) return false;
    void *old;
    memcpy(&old, array, sizeof old);
    void *moved = realloc(old, more * size);
    if (!moved) return false;
    memcpy(array, &moved, sizeof moved);
    *room = more;
    return true;
}

void lzs_tree_free(lzs_tree *tree) {
    free(tree->nodes);
    free(tree->children);
    free(tree->bytes);
    free(tree->ranges);
    *tree = (lzs_tree){0};
}

static uint32_t add(lzs_tree *tree, lzs_node node) {
    if (tree->n_nodes >= LZS_NO_NODE - 1) return LZS_NO_NODE;
    if (!lzs_grow(&tree->nodes, &tree->nodes_room, tree->n_nodes + 1, sizeof *tree->nodes)) return LZS_NO_NODE;
    tree->nodes[tree->n_nodes] = node;
    return (uint32_t)tree->n_nodes++;
}

static uint32_t capped(uint64_t n) {
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

uint32_t lzs_tree_literal(lzs_tree *tree, const uint8_t *bytes, size_t n) {
    if (n > UINT32_MAX - tree->n_bytes) return LZS_NO_NODE;
    if (!lzs_grow(&tree->bytes, &tree->bytes_room, tree->n_bytes + n + 1, 1)) return LZS_NO_NODE; /* never NULL */
    if (n) memcpy(tree->bytes + tree->n_bytes, bytes, n);
    lzs_node node = {.kind = LZS_NODE_LITERAL, .first = (uint32_t)tree->n_bytes, .n = (uint32_t)n};
    node.min_bytes = (uint32_t)n;
    tree->n_bytes += n;
    return add(tree, node);
}

uint32_t lzs_tree_set(lzs_tree *tree, const lzs_charset *set) {
    if (set->n > UINT32_MAX - tree->n_ranges) return LZS_NO_NODE;
    if (!lzs_grow(&tree->ranges, &tree->ranges_room, tree->n_ranges + set->n, sizeof *tree->ranges)) return LZS_NO_NODE;
    memcpy(tree->ranges + tree->n_ranges, set->ranges, set->n * sizeof *set->ranges);
    lzs_node node = {.kind = LZS_NODE_SET, .first = (uint32_t)tree->n_ranges, .n = (uint32_t)set->n};
    uint32_t lowest = set->ranges[0].first;
    node.min_bytes = lowest < 0x80 ? 1 : lowest < 0x800 ? 2 : lowest < 0x10000 ? 3 : 4;
    tree->n_ranges += set->n;
    return add(tree, node);
}

static uint32_t of_children(lzs_tree *tree, lzs_node_kind kind, const uint32_t *children, size_t n) {
    if (n > UINT32_MAX - tree->n_children) return LZS_NO_NODE;
    if (!lzs_grow(&tree->children, &tree->children_room, tree->n_children + n, sizeof *children)) return LZS_NO_NODE;
    lzs_node node = {.kind = kind, .first = (uint32_t)tree->n_children, .n = (uint32_t)n};
    if (kind == LZS_NODE_ALT) node.min_bytes = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        uint32_t bytes = tree->nodes[children[i]].min_bytes;
        if (kind == LZS_NODE_CONCAT) node.min_bytes = capped((uint64_t)node.min_bytes + bytes);
        if (kind == LZS_NODE_ALT && bytes < node.min_bytes) node.min_bytes = bytes;
        tree->children[tree->n_children + i] = children[i];
    }
    tree->n_children += n;
    return add(tree, node);
}

uint32_t lzs_tree_concat(lzs_tree *tree, const uint32_t *children, size_t n) {
    if (n == 1) return children[0];
    return n ? of_children(tree, LZS_NODE_CONCAT, children, n) : lzs_tree_literal(tree, NULL, 0);
}

uint32_t lzs_tree_alt(lzs_tree *tree, const uint32_t *children, size_t n) {
    return n == 1 ? children[0] : of_children(tree, LZS_NODE_ALT, children, n);
}

uint32_t lzs_tree_repeat(lzs_tree *tree, uint32_t child, uint32_t min, uint32_t max) {
    if (max == 0) return lzs_tree_literal(tree, NULL, 0);
    if (min == 1 && max == 1) return child;
    lzs_node node = {.kind = LZS_NODE_REPEAT, .first = child, .n = 1, .min = min, .max = max};
    node.min_bytes = capped((uint64_t)min * tree->nodes[child].min_bytes);
    return add(tree, node);
}
