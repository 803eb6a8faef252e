/* parts.c - makes a grammar from a list of parts. A translator of another notation, such as JSON Schema, makes the
 * list.
 */
#include "grammar.h"
#include "regex.h"

#include <stdlib.h>
#include <string.h>

typedef struct parts {
    const lzs_part *all;
    size_t n;
    const uint32_t *children;
    size_t n_children;
    const uint8_t *text;
    size_t n_text;
    lzs_tree tree;
    uint32_t *nodes;   /* (n) by part: its node */
    uint32_t *scratch; /* (n_children) nodes of a part's children */
    lzs_grammar_error *error;
} parts;

static bool within(uint32_t first, uint32_t n, size_t size) {
    return first <= size && n <= size - first;
}

static bool has_count(const lzs_part *part) {
    bool unbounded = part->max == LZS_PART_UNBOUNDED;
    if (part->min > LZS_GRAMMAR_MAX_COUNT) return false;
    return unbounded || (part->max <= LZS_GRAMMAR_MAX_COUNT && part->min <= part->max);
}

/* Whether a part refers to text instead of other parts. */
static bool is_leaf(const lzs_part *part) {
    return part->kind <= LZS_PART_PATTERN || part->kind == LZS_PART_YAML;
}

/* Whether part number i is well formed, and refers only to earlier parts. */
static bool is_valid(const parts *p, size_t i) {
    const lzs_part *part = &p->all[i];
    if (part->kind < LZS_PART_TEXT || part->kind > LZS_PART_SHARED) return false;
    if (is_leaf(part)) return within(part->first, part->n, p->n_text);
    if (!within(part->first, part->n, p->n_children)) return false;
    for (uint32_t k = 0; k < part->n; k++) {
        if (p->children[part->first + k] >= i) return false;
    }
    switch (part->kind) {
    case LZS_PART_CHOICE:
    case LZS_PART_SHARED: return part->n >= 1;
    case LZS_PART_REPEAT: return (part->n == 1 || part->n == 2) && has_count(part);
    case LZS_PART_LIST: return part->n >= 1 && part->min <= 1 && (part->min == 0 || part->n >= 2);
    default: return true;
    }
}

/* ---- lengths of strings ---- */

/* Whether a node repeats single characters. Such a repetition can be built again with other counts. */
static bool repeats_characters(const lzs_tree *tree, uint32_t number) {
    const lzs_node *node = &tree->nodes[number];
    if (node->kind != LZS_NODE_REPEAT || node->separator != LZS_NO_NODE) return false;
    uint32_t low, high;
    lzs_tree_characters(tree, node->first, true, &low, &high);
    return low == 1 && high == 1;
}

static lzs_status cut(parts *p, const lzs_part *part, uint32_t fixed, uint32_t number, uint32_t *made) {
    lzs_node node = p->tree.nodes[number];
    uint32_t min = part->min > fixed ? part->min - fixed : 0, max = LZS_UNBOUNDED;
    if (part->max != LZS_UNBOUNDED) max = part->max > fixed ? part->max - fixed : 0;
    if (min < node.min) min = node.min;
    if (max > node.max) max = node.max;
    if (min > max || (part->max != LZS_UNBOUNDED && fixed > part->max)) {
        return lzs_refuse(p->error, part->first, "no string that the pattern matches has such a length");
    }
    *made = lzs_tree_repeat(&p->tree, node.first, min, max);
    return *made == LZS_NO_NODE ? LZS_ENOMEM : LZS_OK;
}

/* Restricts a pattern to its texts of min to max characters. This is possible if all its texts have such a length, or
 * if their length depends on only one repetition of single characters. Else refuses the part. */
static lzs_status with_length(parts *p, const lzs_part *part, uint32_t *root) {
    uint32_t low, high;
    lzs_tree_characters(&p->tree, *root, true, &low, &high);
    if (low >= part->min && high <= part->max) return LZS_OK;
    if (repeats_characters(&p->tree, *root)) return cut(p, part, 0, *root, root);
    const lzs_node node = p->tree.nodes[*root];
    uint32_t at = LZS_NO_NODE;
    uint64_t fixed = 0;
    bool can = node.kind == LZS_NODE_CONCAT;
    for (uint32_t i = 0; i < node.n && can; i++) {
        uint32_t child = p->tree.children[node.first + i];
        lzs_tree_characters(&p->tree, child, true, &low, &high);
        if (low == high) {
            fixed += low;
        } else {
            can = at == LZS_NO_NODE && repeats_characters(&p->tree, child);
            at = i;
        }
    }
    if (!can || at == LZS_NO_NODE || fixed > LZS_GRAMMAR_MAX_PATTERN) {
        return lzs_refuse(p->error, part->first,
                          "the pattern does not go with these lengths: write counts such as {2,5} in the pattern");
    }
    uint32_t *children = malloc(node.n * sizeof *children), made = LZS_NO_NODE;
    if (!children) return LZS_ENOMEM;
    memcpy(children, p->tree.children + node.first, node.n * sizeof *children);
    lzs_status status = cut(p, part, (uint32_t)fixed, children[at], &made);
    children[at] = made;
    if (status == LZS_OK) *root = lzs_tree_concat(&p->tree, children, node.n);
    free(children);
    return status;
}

/* ---- parts ---- */

static lzs_status parse(parts *p, const lzs_part *part, uint32_t *node) {
    bool json = part->kind != LZS_PART_REGEX;
    lzs_dialect dialect = !json ? LZS_WHOLE_TEXT : part->kind == LZS_PART_YAML ? LZS_YAML_STRING : LZS_JSON_STRING;
    lzs_status status = lzs_regex_parse(p->text + part->first, part->n, dialect, &p->tree, node, p->error);
    if (status == LZS_EINVAL && p->error && p->error->offset != LZS_WHOLE) p->error->offset += part->first;
    return status == LZS_OK && json ? with_length(p, part, node) : status;
}

static lzs_status separated(parts *p, const lzs_part *part, const uint32_t *nodes, uint32_t *node) {
    uint32_t separator = part->n == 2 ? nodes[1] : LZS_NO_NODE;
    if (part->n == 2 && p->tree.nodes[nodes[0]].min_bytes == 0) {
        return lzs_refuse(p->error, LZS_WHOLE,
                          "an item that is repeated with a separator must not match the empty text");
    }
    *node = lzs_tree_separated(&p->tree, nodes[0], separator, part->min, part->max);
    return LZS_OK;
}

static lzs_status make(parts *p, size_t i) {
    const lzs_part *part = &p->all[i];
    uint32_t *node = &p->nodes[i], *nodes = p->scratch;
    lzs_status status = LZS_OK;
    *node = LZS_NO_NODE;
    if (!is_leaf(part)) {
        for (uint32_t k = 0; k < part->n; k++) nodes[k] = p->nodes[p->children[part->first + k]];
    }
    switch ((lzs_part_kind)part->kind) {
    case LZS_PART_TEXT: *node = lzs_tree_literal(&p->tree, part->n ? p->text + part->first : NULL, part->n); break;
    case LZS_PART_REGEX:
    case LZS_PART_YAML:
    case LZS_PART_PATTERN: status = parse(p, part, node); break;
    case LZS_PART_SEQUENCE: *node = lzs_tree_concat(&p->tree, nodes, part->n); break;
    case LZS_PART_CHOICE: *node = lzs_tree_alt(&p->tree, nodes, part->n); break;
    case LZS_PART_SHARED:
        *node = lzs_tree_concat(&p->tree, nodes, part->n);
        if (*node != LZS_NO_NODE) p->tree.nodes[*node].shared = true;
        break;
    case LZS_PART_REPEAT: status = separated(p, part, nodes, node); break;
    case LZS_PART_LIST: *node = lzs_tree_list(&p->tree, nodes + 1, part->n - 1, nodes[0], part->min); break;
    }
    return status == LZS_OK && *node == LZS_NO_NODE ? LZS_ENOMEM : status;
}

lzs_status lzs_grammar_new_parts(const lzs_part *all, size_t n_parts, const uint32_t *children, size_t n_children,
                                 const uint8_t *text, size_t n_text, const lzs_vocabulary *vocabulary, size_t max_bytes,
                                 lzs_grammar_error *error, lzs_grammar **grammar) {
    parts p = {all, n_parts, children, n_children, text, n_text, {0}, NULL, NULL, error};
    *grammar = NULL;
    if (error) *error = (lzs_grammar_error){0};
    if (!vocabulary || !all || !n_parts || (n_children && !children) || (n_text && !text)) return LZS_EINVAL;
    for (size_t i = 0; i < n_parts; i++) {
        if (!is_valid(&p, i)) return LZS_EINVAL;
    }
    if (n_text > LZS_GRAMMAR_MAX_PATTERN) {
        return lzs_refuse(error, LZS_WHOLE, "its parts have texts of %zu bytes together, and the most is %d", n_text,
                          LZS_GRAMMAR_MAX_PATTERN);
    }
    p.nodes = malloc(n_parts * sizeof *p.nodes);
    p.scratch = malloc((n_children + 1) * sizeof *p.scratch);
    lzs_status status = p.nodes && p.scratch ? LZS_OK : LZS_ENOMEM;
    for (size_t i = 0; i < n_parts && status == LZS_OK; i++) status = make(&p, i);
    if (status == LZS_OK) {
        p.tree.root = p.nodes[n_parts - 1];
        status = lzs_grammar_of_tree(&p.tree, vocabulary, max_bytes, error, grammar);
    }
    free(p.nodes);
    free(p.scratch);
    lzs_tree_free(&p.tree);
    return status;
}
