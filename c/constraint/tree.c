/* tree.c - the syntax tree of a constraint. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

#include "vocabulary.h"

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
    if (node.kind != LZS_NODE_REPEAT && node.kind != LZS_NODE_LIST) node.separator = LZS_NO_NODE;
    tree->nodes[tree->n_nodes] = node;
    return (uint32_t)tree->n_nodes++;
}

static uint32_t capped(uint64_t n) {
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

uint32_t lzs_tree_literal(lzs_tree *tree, const uint8_t *bytes, size_t n) {
    if (n > UINT32_MAX - tree->n_bytes) return LZS_NO_NODE;
    /* one byte more than needed, so `bytes` is never NULL */
    if (!lzs_grow(&tree->bytes, &tree->bytes_room, tree->n_bytes + n + 1, 1)) return LZS_NO_NODE;
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

/* ---- alternatives ---- */

enum { MAX_SPLITS = 8, MIN_LITERALS = 4 };

/* Whether a node is a literal that is not a shared part. */
static bool is_free_literal(const lzs_node *node) {
    return node->kind == LZS_NODE_LITERAL && !node->shared;
}

/* Returns the number of plain bytes with which all literals begin. Plain bytes (vocabulary.h) are whole characters. So
 * no escape and no character of several bytes is cut in two, and lzs_tree_characters can still count the characters. */
static uint32_t common_bytes(const lzs_tree *tree, const uint32_t *literals, size_t n) {
    const lzs_node *first = &tree->nodes[literals[0]];
    uint32_t same = 0;
    while (same < first->n && lzs_is_plain(tree->bytes[first->first + same])) same++;
    for (size_t i = 1; i < n; i++) {
        const lzs_node *other = &tree->nodes[literals[i]];
        uint32_t k = 0;
        while (k < same && k < other->n && tree->bytes[other->first + k] == tree->bytes[first->first + k]) k++;
        same = k;
    }
    return same;
}

/* Sorts literals by their first byte. Literals that are empty, or whose first byte is not plain, come last. */
static bool by_first_byte(const lzs_tree *tree, uint32_t *literals, size_t n, size_t ends[257]) {
    uint32_t *sorted = malloc(n * sizeof *sorted);
    size_t begins[257] = {0};
    if (!sorted) return false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const lzs_node *node = &tree->nodes[literals[i]];
            uint8_t byte = node->n ? tree->bytes[node->first] : 0;
            size_t group = node->n && lzs_is_plain(byte) ? byte : 256;
            if (pass) {
                sorted[begins[group]++] = literals[i];
            } else {
                begins[group]++;
            }
        }
        for (size_t group = 0, sum = 0; group < 257 && !pass; group++) {
            size_t count = begins[group];
            begins[group] = sum;
            ends[group] = sum += count;
        }
    }
    memcpy(literals, sorted, n * sizeof *sorted);
    free(sorted);
    return true;
}

static uint32_t split(lzs_tree *tree, uint32_t *literals, size_t n, int splits);

/* Makes one node for several literals that begin with the same plain byte. */
static uint32_t join(lzs_tree *tree, uint32_t *literals, size_t n, int splits) {
    uint32_t same = common_bytes(tree, literals, n), parts[2];
    uint32_t *rest = malloc(n * sizeof *rest);
    if (!rest) return LZS_NO_NODE;
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        lzs_node tail = tree->nodes[literals[i]];
        tail.first += same;
        tail.n -= same;
        tail.min_bytes = tail.n;
        ok = (rest[i] = add(tree, tail)) != LZS_NO_NODE;
    }
    lzs_node begin = tree->nodes[literals[0]];
    begin.n = begin.min_bytes = same;
    parts[0] = ok ? add(tree, begin) : LZS_NO_NODE;
    parts[1] = parts[0] != LZS_NO_NODE ? split(tree, rest, n, splits) : LZS_NO_NODE;
    free(rest);
    return parts[1] != LZS_NO_NODE ? lzs_tree_concat(tree, parts, 2) : LZS_NO_NODE;
}

/* Makes the node of alternative literals. Literals that begin with the same byte share this byte. So a state of the
 * automaton has one place for each byte that can follow, not one for each literal. Reorders `literals`. */
static uint32_t split(lzs_tree *tree, uint32_t *literals, size_t n, int splits) {
    size_t ends[257], n_made = 0, begin = 0;
    if (splits == 0 || n < MIN_LITERALS) return of_children(tree, LZS_NODE_ALT, literals, n);
    if (!by_first_byte(tree, literals, n, ends)) return LZS_NO_NODE;
    for (size_t group = 0; group < 256; group++) {
        size_t size = ends[group] - begin;
        if (!size) continue;
        uint32_t node = size == 1 ? literals[begin] : join(tree, literals + begin, size, splits - 1);
        if (node == LZS_NO_NODE) return node;
        begin = ends[group];
        literals[n_made++] = node;
    }
    while (begin < n) literals[n_made++] = literals[begin++];
    return n_made == 1 ? literals[0] : of_children(tree, LZS_NODE_ALT, literals, n_made);
}

uint32_t lzs_tree_alt(lzs_tree *tree, const uint32_t *children, size_t n) {
    if (n == 1) return children[0];
    size_t n_literals = 0, n_others = 0;
    for (size_t i = 0; i < n; i++) n_literals += is_free_literal(&tree->nodes[children[i]]);
    if (n_literals < MIN_LITERALS) return of_children(tree, LZS_NODE_ALT, children, n);
    uint32_t *literals = malloc((n + 1) * sizeof *literals), node = LZS_NO_NODE;
    if (!literals) return node;
    uint32_t *others = literals + n_literals + 1;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (is_free_literal(&tree->nodes[children[i]])) {
            literals[k++] = children[i];
        } else {
            others[n_others++] = children[i];
        }
    }
    node = split(tree, literals, n_literals, MAX_SPLITS);
    if (node != LZS_NO_NODE && n_others) {
        others[-1] = node;
        node = of_children(tree, LZS_NODE_ALT, others - 1, n_others + 1);
    }
    free(literals);
    return node;
}

uint32_t lzs_tree_separated(lzs_tree *tree, uint32_t child, uint32_t separator, uint32_t min, uint32_t max) {
    if (max == 0) return lzs_tree_literal(tree, NULL, 0);
    if (min == 1 && max == 1) return child;
    lzs_node node = {.kind = LZS_NODE_REPEAT, .first = child, .n = 1, .min = min, .max = max, .separator = LZS_NO_NODE};
    uint64_t between = 0;
    if (max > 1 && separator != LZS_NO_NODE) {
        node.separator = separator;
        node.n = 2;
        between = min ? (uint64_t)(min - 1) * tree->nodes[separator].min_bytes : 0;
    }
    node.min_bytes = capped((uint64_t)min * tree->nodes[child].min_bytes + between);
    return add(tree, node);
}

uint32_t lzs_tree_repeat(lzs_tree *tree, uint32_t child, uint32_t min, uint32_t max) {
    return lzs_tree_separated(tree, child, LZS_NO_NODE, min, max);
}

uint32_t lzs_tree_list(lzs_tree *tree, const uint32_t *children, size_t n, uint32_t separator, uint32_t min) {
    if (n == 0) return lzs_tree_literal(tree, NULL, 0);
    uint32_t made = of_children(tree, LZS_NODE_LIST, children, n);
    if (made == LZS_NO_NODE) return made;
    lzs_node *list = &tree->nodes[made];
    uint64_t bytes = 0, needed = 0;
    uint32_t shortest = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const lzs_node *child = &tree->nodes[children[i]];
        uint32_t own = lzs_node_is_optional(child) ? tree->nodes[child->first].min_bytes : child->min_bytes;
        if (own < shortest) shortest = own;
        if (lzs_node_is_optional(child)) continue;
        bytes += own;
        needed++;
    }
    if (needed) bytes += (needed - 1) * tree->nodes[separator].min_bytes;
    if (!needed && min) bytes = shortest;
    list->separator = separator;
    list->min = min;
    list->min_bytes = capped(bytes);
    return made;
}

/* ---- characters ---- */

static uint32_t literal_characters(const uint8_t *bytes, uint32_t n, bool json) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; count++) {
        if (json && bytes[i] == '\\') {
            i += bytes[i + 1] == 'u' ? 6 : 2;
        } else {
            for (i++; i < n && (bytes[i] & 0xC0) == 0x80;) i++;
        }
    }
    return count;
}

static uint32_t capped_sum(uint32_t a, uint32_t b) {
    return capped((uint64_t)a + b);
}

/* Recursion is safe: callers pass only nodes of patterns, which are nested at most 250 deep. */
void lzs_tree_characters(const lzs_tree *tree, uint32_t number, bool json, uint32_t *min, uint32_t *max) {
    const lzs_node *node = &tree->nodes[number];
    uint32_t low, high;
    *min = *max = node->kind == LZS_NODE_SET;
    switch (node->kind) {
    case LZS_NODE_LITERAL: *min = *max = literal_characters(tree->bytes + node->first, node->n, json); return;
    case LZS_NODE_SET: return;
    case LZS_NODE_REPEAT:
        lzs_tree_characters(tree, node->first, json, &low, &high);
        *min = capped((uint64_t)low * node->min);
        *max = high == LZS_UNBOUNDED || node->max == LZS_UNBOUNDED ? LZS_UNBOUNDED : capped((uint64_t)high * node->max);
        if (high == 0) *max = 0;
        return;
    default: break;
    }
    for (uint32_t i = 0; i < node->n; i++) {
        lzs_tree_characters(tree, tree->children[node->first + i], json, &low, &high);
        if (node->kind == LZS_NODE_CONCAT) {
            *min = capped_sum(*min, low);
            *max = capped_sum(*max, high); /* the sum is capped, so LZS_UNBOUNDED stays LZS_UNBOUNDED */
        } else {
            *min = i == 0 || low < *min ? low : *min;
            *max = high > *max ? high : *max;
        }
    }
}
