/* program.c - builds the byte automaton of a syntax tree by Thompson's construction, from the end of the text to its
 * beginning.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "regex.h"
#include "../utf8.h"
#include "vocabulary.h"

/* A node under construction. `next` is the operation after the node. In a concatenation or list, which is built from
 * its end, `next` is the operation after the item that is built next. */
typedef struct frame {
    uint32_t node, next;
    uint32_t left;          /* number of children that are not built yet; a separator counts as a child */
    uint32_t loop;          /* number of the counted loop around the node, or LZS_NO_LOOP */
    /* In a repetition, `op` is the operation that the body leads to. In a list, `op` is where the built rest begins if
     * no item comes before the rest. `op` is NONE if an item must come before the rest. */
    uint32_t op;
    uint32_t item;          /* with a separator: the operation where the last built item begins */
    size_t first_start;     /* with alternatives: index in `starts` of the first alternative */
} frame;

typedef struct builder {
    const lzs_tree *tree;
    lzs_program *program;
    lzs_grammar_error *error;
    frame *frames;
    size_t n_frames, frames_room;
    size_t n_visited; /* number of nodes built; a node that is built several times counts each time */
    uint32_t *starts; /* the operations where the built alternatives begin */
    size_t n_starts, starts_room;
    /* number of the shared part's frame, counted from 1; 0 if no shared part is under construction */
    size_t part_frame;
    lzs_part_range part;
} builder;

enum { NONE = UINT32_MAX >> 8 }; /* no operation has this number */
/* The limit of n_visited. LZS_MAX_OPS limits operations, but the node of an empty text makes no operation. */
enum { MAX_VISITED = LZS_MAX_OPS };

void lzs_program_free(lzs_program *program) {
    free(program->ops);
    free(program->edges);
    free(program->targets);
    free(program->loops);
    free(program->parts);
    *program = (lzs_program){0};
}

size_t lzs_program_memory(const lzs_program *program) {
    return program->ops_room * sizeof *program->ops + program->edges_room * sizeof *program->edges +
           program->targets_room * sizeof *program->targets + program->loops_room * sizeof *program->loops +
           program->parts_room * sizeof *program->parts;
}

/* ---- operations ---- */

static lzs_status add_op(builder *b, lzs_op op, uint32_t *made) {
    lzs_program *p = b->program;
    if (p->n_ops >= NONE) {
        return lzs_refuse(b->error, LZS_WHOLE, "the automaton has more than %d operations", LZS_MAX_OPS);
    }
    if (!lzs_grow(&p->ops, &p->ops_room, p->n_ops + 1, sizeof *p->ops)) return LZS_ENOMEM;
    *made = (uint32_t)p->n_ops;
    p->ops[p->n_ops++] = op;
    return LZS_OK;
}

static lzs_status add_bytes(builder *b, const lzs_edge *edges, size_t n, uint32_t loop, uint32_t *made) {
    lzs_program *p = b->program;
    if (!lzs_grow(&p->edges, &p->edges_room, p->n_edges + n, sizeof *edges)) return LZS_ENOMEM;
    lzs_op op = {.kind = LZS_OP_BYTES, .n = (uint32_t)n, .first = (uint32_t)p->n_edges, .loop = loop};
    memcpy(p->edges + p->n_edges, edges, n * sizeof *edges);
    p->n_edges += n;
    return add_op(b, op, made);
}

static lzs_status add_split(builder *b, const uint32_t *targets, size_t n, uint32_t loop, uint32_t *made) {
    lzs_program *p = b->program;
    if (n == 1) {
        *made = targets[0];
        return LZS_OK;
    }
    if (!lzs_grow(&p->targets, &p->targets_room, p->n_targets + n, sizeof *targets)) return LZS_ENOMEM;
    lzs_op op = {.kind = LZS_OP_SPLIT, .n = (uint32_t)n, .first = (uint32_t)p->n_targets, .loop = loop};
    memcpy(p->targets + p->n_targets, targets, n * sizeof *targets);
    p->n_targets += n;
    return add_op(b, op, made);
}

/* ---- literals ---- */

static lzs_status build_literal(builder *b, const lzs_node *node, const frame *f, uint32_t *start) {
    lzs_status status = LZS_OK;
    *start = f->next;
    for (uint32_t i = node->n; i > 0 && status == LZS_OK; i--) {
        uint8_t byte = b->tree->bytes[node->first + i - 1];
        lzs_edge edge = {byte, byte, *start};
        status = add_bytes(b, &edge, 1, f->loop, start);
    }
    return status;
}

/* A node of a tree of literals. Alternatives that begin with the same bytes share these bytes, so a thousand choices do
 * not have a thousand places. */
typedef struct branch {
    uint32_t child, sibling; /* index of the first child and of the next sibling; 0 if there is none */
    uint32_t start;          /* the operation built from this node */
    uint8_t byte;
    bool ends;
} branch;

typedef struct branches {
    branch *all; /* all[0] is the root; a child has a larger index than its parent */
    size_t n, room;
} branches;

static lzs_status add_text(branches *tree, const uint8_t *bytes, size_t n) {
    uint32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t previous = 0, child = tree->all[at].child;
        while (child && tree->all[child].byte < bytes[i]) { /* siblings are in ascending order of their bytes */
            previous = child;
            child = tree->all[child].sibling;
        }
        if (!child || tree->all[child].byte != bytes[i]) {
            bool room = tree->n < NONE && lzs_grow(&tree->all, &tree->room, tree->n + 1, sizeof *tree->all);
            if (!room) return LZS_ENOMEM;
            tree->all[tree->n] = (branch){.byte = bytes[i], .sibling = child};
            child = (uint32_t)tree->n++;
            *(previous ? &tree->all[previous].sibling : &tree->all[at].child) = child;
        }
        at = child;
    }
    tree->all[at].ends = true;
    return LZS_OK;
}

static lzs_status build_branches(builder *b, branches *tree, const frame *f, uint32_t *start) {
    lzs_status status = LZS_OK;
    for (size_t i = tree->n; i > 0 && status == LZS_OK; i--) {
        branch *br = &tree->all[i - 1];
        lzs_edge edges[256];
        size_t n = 0;
        for (uint32_t child = br->child; child; child = tree->all[child].sibling) {
            edges[n++] = (lzs_edge){tree->all[child].byte, tree->all[child].byte, tree->all[child].start};
        }
        uint32_t ways[2] = {f->next, f->next};
        if (n) status = add_bytes(b, edges, n, f->loop, &ways[0]);
        if (status == LZS_OK) status = add_split(b, ways, n && br->ends ? 2 : 1, f->loop, &br->start);
    }
    *start = tree->all[0].start;
    return status;
}

/* Builds all literals among the alternatives of the frame's node. *start is the operation where all of them begin. */
static lzs_status build_literals(builder *b, const frame *f, uint32_t *start) {
    const lzs_node *node = &b->tree->nodes[f->node];
    branches tree = {0};
    if (!lzs_grow(&tree.all, &tree.room, 1, sizeof *tree.all)) return LZS_ENOMEM;
    tree.all[tree.n++] = (branch){0};
    lzs_status status = LZS_OK;
    for (uint32_t i = 0; i < node->n && status == LZS_OK; i++) {
        const lzs_node *child = &b->tree->nodes[b->tree->children[node->first + i]];
        if (child->kind == LZS_NODE_LITERAL) status = add_text(&tree, b->tree->bytes + child->first, child->n);
    }
    if (status == LZS_OK) status = build_branches(b, &tree, f, start);
    free(tree.all);
    return status;
}

/* ---- sets of code points ---- */

/* A set of characters of the same length. Byte i of such a character may be any byte of first[i]..last[i]. */
typedef struct sequence {
    uint8_t first[4], last[4];
} sequence;

typedef struct sequences {
    sequence *all[5]; /* by number of bytes of the characters */
    size_t n[5], room[5];
} sequences;

/* Cuts a range of code points into sequences, in ascending order. */
static bool add_sequences(sequences *made, uint32_t first, uint32_t last) {
    static const uint32_t ends[] = {0, 0x7F, 0x7FF, 0xFFFF, LZS_MAX_CODE_POINT};
    while (first <= last) {
        uint32_t length = 1;
        while (ends[length] < first) length++;
        uint32_t stop = last < ends[length] ? last : ends[length];
        /* cuts the range, so that either the last i bytes take all values or the other bytes are fixed */
        for (uint32_t i = 1; i < length; i++) {
            uint32_t low = (UINT32_C(1) << 6 * i) - 1;
            if ((first & ~low) == (stop & ~low)) continue;
            if (first & low) {
                stop = first | low;
            } else if ((stop & low) != low) {
                stop = (stop & ~low) - 1;
            }
        }
        if (!lzs_grow(&made->all[length], &made->room[length], made->n[length] + 1, sizeof(sequence))) return false;
        sequence *s = &made->all[length][made->n[length]++];
        lzs_utf8_encode(first, s->first);
        lzs_utf8_encode(stop, s->last);
        first = stop + 1;
    }
    return true;
}

enum { LOOK_BACK = 64 }; /* number of previous operations with which a new operation is compared */

/* Finds an operation with these edges among the last LOOK_BACK operations, from first_op on. If there is no such
 * operation, adds one. */
static lzs_status shared_bytes(builder *b, const lzs_edge *edges, size_t n, size_t first_op, uint32_t loop,
                               uint32_t *made) {
    const lzs_program *p = b->program;
    size_t oldest = p->n_ops > first_op + LOOK_BACK ? p->n_ops - LOOK_BACK : first_op;
    for (size_t i = p->n_ops; i > oldest; i--) {
        const lzs_op *op = &p->ops[i - 1];
        bool same = op->n == n;
        for (size_t k = 0; k < n && same; k++) {
            const lzs_edge *edge = &p->edges[op->first + k];
            same = edge->first == edges[k].first && edge->last == edges[k].last && edge->to == edges[k].to;
        }
        if (same) {
            *made = (uint32_t)(i - 1);
            return LZS_OK;
        }
    }
    return add_bytes(b, edges, n, loop, made);
}

/* Builds the edges for byte number `at` of n sequences of one length. The sequences agree in the bytes before `at`. The
 * recursion is at most 3 deep. */
static lzs_status build_sequences(builder *b, const sequence *s, size_t n, int at, int length, size_t first_op,
                                  const frame *f, lzs_edge edges[256], size_t *n_edges) {
    lzs_status status = LZS_OK;
    for (size_t i = 0, end; i < n && status == LZS_OK; i = end) {
        for (end = i + 1; end < n && s[end].first[at] == s[i].first[at] && s[end].last[at] == s[i].last[at];) end++;
        uint32_t to = f->next;
        if (at + 1 < length) {
            lzs_edge *inner = malloc(256 * sizeof *inner);
            size_t n_inner = 0;
            if (!inner) return LZS_ENOMEM;
            status = build_sequences(b, s + i, end - i, at + 1, length, first_op, f, inner, &n_inner);
            if (status == LZS_OK) status = shared_bytes(b, inner, n_inner, first_op, f->loop, &to);
            free(inner);
        }
        lzs_edge *last = *n_edges ? &edges[*n_edges - 1] : NULL;
        if (last && last->to == to && last->last + 1 == s[i].first[at]) {
            last->last = s[i].last[at];
        } else {
            edges[(*n_edges)++] = (lzs_edge){s[i].first[at], s[i].last[at], to};
        }
    }
    return status;
}

static lzs_status build_set(builder *b, const lzs_node *node, const frame *f, uint32_t *start) {
    sequences made = {0};
    lzs_edge edges[256];
    size_t n = 0, first_op = b->program->n_ops;
    lzs_status status = LZS_OK;
    for (uint32_t i = 0; i < node->n && status == LZS_OK; i++) {
        const lzs_range *range = &b->tree->ranges[node->first + i];
        if (!add_sequences(&made, range->first, range->last)) status = LZS_ENOMEM;
    }
    for (int length = 1; length <= 4 && status == LZS_OK; length++) {
        status = build_sequences(b, made.all[length], made.n[length], 0, length, first_op, f, edges, &n);
    }
    if (status == LZS_OK) status = add_bytes(b, edges, n, f->loop, start);
    for (int length = 1; length <= 4; length++) free(made.all[length]);
    return status;
}

/* ---- repetition ---- */

/* Adds the counted loop of a repetition, and the operation to which the body leads. */
static lzs_status begin_loop(builder *b, const lzs_node *node, frame *f) {
    lzs_program *p = b->program;
    const lzs_loop_op *outer = f->loop == LZS_NO_LOOP ? NULL : &p->loops[f->loop];
    uint32_t bytes = b->tree->nodes[node->first].min_bytes;
    lzs_loop_op loop = {.min = bytes ? node->min : 0,
                        .max = node->max,
                        .entry = NONE,
                        .body = NONE,
                        .exit = f->next,
                        .min_bytes = bytes ? bytes : 1,
                        .nullable = bytes == 0,
                        .depth = outer ? (uint8_t)(outer->depth + 1) : 0,
                        .outer = f->loop};
    while (lzs_far_low(&loop) >> loop.width) loop.width++;
    int free_bits = outer ? outer->shift : LZS_COUNTER_BITS;
    if (loop.width > free_bits) {
        return lzs_refuse(b->error, LZS_WHOLE,
                          "counted repetitions are nested too deep: "
                          "their counts together need more than %d bits", LZS_COUNTER_BITS);
    }
    loop.shift = (uint8_t)(free_bits - loop.width);
    if (!lzs_grow(&p->loops, &p->loops_room, p->n_loops + 1, sizeof *p->loops)) return LZS_ENOMEM;
    f->loop = (uint32_t)p->n_loops;
    p->loops[p->n_loops++] = loop;
    return add_op(b, (lzs_op){.kind = LZS_OP_NEXT, .first = f->loop, .loop = f->loop}, &f->op);
}

static bool is_counted(const lzs_node *node, const lzs_tree *tree) {
    if (node->max == LZS_UNBOUNDED) return node->min > 1 && tree->nodes[node->first].min_bytes > 0;
    return node->max > 1;
}

/* Makes the operation to which the body of a repetition leads. The body is built afterwards. */
static lzs_status begin_repeat(builder *b, frame *f) {
    const lzs_node *node = &b->tree->nodes[f->node];
    f->op = f->next;
    if (is_counted(node, b->tree)) return begin_loop(b, node, f);
    if (node->max == 1) return LZS_OK;
    uint32_t ways[2] = {NONE, f->next}; /* ways[0] is set once the body is built */
    return add_split(b, ways, 2, f->loop, &f->op);
}

/* Completes a repetition. Its body and its separator, if it has one, must be built before. *start is where later
 * iterations begin, and becomes the beginning of the repetition. */
static lzs_status end_repeat(builder *b, const frame *f, uint32_t *start) {
    const lzs_node *node = &b->tree->nodes[f->node];
    const bool separated = node->separator != LZS_NO_NODE;
    lzs_program *p = b->program;
    if (is_counted(node, b->tree)) {
        lzs_loop_op *loop = &p->loops[f->loop];
        loop->entry = separated ? f->item : *start;
        loop->body = *start;
        return add_op(b, (lzs_op){.kind = LZS_OP_ENTER, .first = f->loop, .loop = f->loop}, start);
    }
    if (node->max == 1) {
        uint32_t ways[2] = {*start, f->next};
        return add_split(b, ways, 2, f->loop, start);
    }
    p->targets[p->ops[f->op].first] = *start;
    if (node->min == 0 && separated) {
        uint32_t ways[2] = {f->item, f->next};
        return add_split(b, ways, 2, f->loop, start);
    }
    *start = node->min == 0 ? f->op : separated ? f->item : *start;
    return LZS_OK;
}

/* ---- lists ---- */

/* Adds an item before the built rest of a list. A list is built from its end. The rest has two beginnings. If an item
 * comes before the rest, the rest begins at `next`, with a separator. Else the rest begins at `op`. So each item is
 * built only once, however many items may be left out. */
static lzs_status end_item(builder *b, frame *f, uint32_t separator, bool optional) {
    uint32_t after[2] = {separator, f->next}, first[2] = {f->item, f->op};
    lzs_status status = add_split(b, first, optional && f->op != NONE ? 2 : 1, f->loop, &f->op);
    if (status == LZS_OK && separator != NONE) status = add_split(b, after, optional ? 2 : 1, f->loop, &f->next);
    return status;
}

static bool builds_separator(const lzs_node *node, const frame *f) {
    return node->separator != LZS_NO_NODE && (node->kind == LZS_NODE_REPEAT ? f->left == 0 : f->left % 2 == 1);
}

/* Continues a list or repetition after one of its items or separators was built. This item or separator begins at
 * *start. */
static lzs_status end_part(builder *b, frame *f, uint32_t *start) {
    const lzs_node *node = &b->tree->nodes[f->node];
    if (!builds_separator(node, f)) f->item = *start;
    if (node->kind == LZS_NODE_REPEAT || (f->left && !builds_separator(node, f))) return LZS_OK;
    uint32_t child = b->tree->children[node->first + (f->left + 1) / 2];
    lzs_status status = end_item(b, f, f->left ? *start : NONE, lzs_node_is_optional(&b->tree->nodes[child]));
    *start = f->op;
    return status;
}

/* ---- the tree ---- */

/* Begins a shared part. If shared parts are nested, only the outermost of them is shared. */
static void begin_shared(builder *b, uint32_t next, uint32_t loop) {
    lzs_part_range part = {.first_op = (uint32_t)b->program->n_ops, .first_loop = (uint32_t)b->program->n_loops};
    part.exit = next;
    part.outer = loop;
    b->part = part;
    b->part_frame = b->n_frames + 1;
}

static lzs_status end_shared(builder *b) {
    lzs_program *p = b->program;
    b->part_frame = 0;
    b->part.end_op = (uint32_t)p->n_ops;
    b->part.end_loop = (uint32_t)p->n_loops;
    if (b->part.first_op == b->part.end_op) return LZS_OK;
    if (!lzs_grow(&p->parts, &p->parts_room, p->n_parts + 1, sizeof *p->parts)) return LZS_ENOMEM;
    p->parts[p->n_parts++] = b->part;
    return LZS_OK;
}

static lzs_status push_frame(builder *b, uint32_t node, uint32_t next, uint32_t loop) {
    const lzs_node *n = &b->tree->nodes[node];
    if (++b->n_visited > MAX_VISITED) {
        return lzs_refuse(b->error, LZS_WHOLE, "it has more than %d parts, counting each use", MAX_VISITED);
    }
    if (!lzs_grow(&b->frames, &b->frames_room, b->n_frames + 1, sizeof *b->frames)) return LZS_ENOMEM;
    frame f = {.node = node, .next = next, .left = n->kind < LZS_NODE_CONCAT ? 0 : n->n, .loop = loop, .op = NONE};
    if (n->kind == LZS_NODE_LIST) {
        f.left = 2 * n->n - 1; /* there is no separator before the first item */
        if (!n->min) f.op = next;
    }
    f.first_start = b->n_starts;
    if (n->shared && !b->part_frame) begin_shared(b, next, loop);
    lzs_status status = n->kind == LZS_NODE_REPEAT ? begin_repeat(b, &f) : LZS_OK;
    b->frames[b->n_frames++] = f;
    return status;
}

static lzs_status keep_start(builder *b, uint32_t start) {
    if (!lzs_grow(&b->starts, &b->starts_room, b->n_starts + 1, sizeof *b->starts)) return LZS_ENOMEM;
    b->starts[b->n_starts++] = start;
    return LZS_OK;
}

/* Returns the last child that is not built yet, or LZS_NO_NODE. Skips literals among alternatives, because these are
 * built together at the end. */
static uint32_t next_child(const builder *b, frame *f) {
    const lzs_node *node = &b->tree->nodes[f->node];
    while (f->left) {
        f->left--;
        if (builds_separator(node, f)) return node->separator;
        if (node->kind == LZS_NODE_REPEAT) return node->first;
        uint32_t child = b->tree->children[node->first + (node->kind == LZS_NODE_LIST ? f->left / 2 : f->left)];
        const lzs_node *item = &b->tree->nodes[child];
        if (node->kind == LZS_NODE_LIST) return lzs_node_is_optional(item) ? item->first : child;
        if (node->kind != LZS_NODE_ALT || item->kind != LZS_NODE_LITERAL) return child;
    }
    return LZS_NO_NODE;
}

static lzs_status end_alternatives(builder *b, const frame *f, uint32_t *start) {
    const lzs_node *node = &b->tree->nodes[f->node];
    lzs_status status = LZS_OK;
    if (b->n_starts - f->first_start < node->n) {
        status = build_literals(b, f, start);
        if (status == LZS_OK) status = keep_start(b, *start);
    }
    if (status == LZS_OK) {
        status = add_split(b, b->starts + f->first_start, b->n_starts - f->first_start, f->loop, start);
    }
    b->n_starts = f->first_start;
    return status;
}

static lzs_status build_node(builder *b, const frame *f, uint32_t *start) {
    const lzs_node *node = &b->tree->nodes[f->node];
    switch (node->kind) {
    case LZS_NODE_LITERAL: return build_literal(b, node, f, start);
    case LZS_NODE_SET: return build_set(b, node, f, start);
    case LZS_NODE_ALT: return end_alternatives(b, f, start);
    case LZS_NODE_REPEAT: return end_repeat(b, f, start);
    default: return LZS_OK; /* a concatenation begins where its first child begins */
    }
}

static lzs_status build(builder *b) {
    uint32_t start = NONE;
    lzs_status status = add_op(b, (lzs_op){.kind = LZS_OP_ACCEPT, .loop = LZS_NO_LOOP}, &start);
    if (status == LZS_OK) status = push_frame(b, b->tree->root, start, LZS_NO_LOOP);
    bool built = false; /* whether a child was just built; the child begins at `start` */
    while (b->n_frames && status == LZS_OK) {
        frame *f = &b->frames[b->n_frames - 1];
        lzs_node_kind kind = b->tree->nodes[f->node].kind;
        if (built && kind == LZS_NODE_CONCAT) f->next = start;
        if (built && kind == LZS_NODE_ALT) status = keep_start(b, start);
        if (built && kind >= LZS_NODE_REPEAT) status = end_part(b, f, &start);
        uint32_t child = status == LZS_OK ? next_child(b, f) : LZS_NO_NODE;
        built = child == LZS_NO_NODE;
        if (!built) {
            uint32_t next = kind == LZS_NODE_REPEAT ? f->op : f->next;
            status = push_frame(b, child, builds_separator(&b->tree->nodes[f->node], f) ? f->item : next, f->loop);
        } else if (status == LZS_OK) {
            frame done = *f;
            bool shared = b->n_frames == b->part_frame;
            b->n_frames--;
            status = build_node(b, &done, &start);
            if (status == LZS_OK && shared) status = end_shared(b);
        }
    }
    b->program->start = start;
    return status;
}

/* Cuts the bytes into classes, so that every edge takes all bytes of a class or none of them. */
void lzs_program_find_classes(lzs_program *p) {
    bool begins[257] = {false};
    for (size_t i = 0; i < p->n_edges; i++) {
        begins[p->edges[i].first] = begins[p->edges[i].last + 1] = true;
        for (uint32_t byte = p->edges[i].first; byte <= p->edges[i].last; byte++) p->uses[byte] = true;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (byte == 0 || begins[byte]) p->byte_of[p->n_classes++] = (uint8_t)byte;
        p->class_of[byte] = (uint8_t)(p->n_classes - 1);
    }
    bool known[256] = {false};
    for (int byte = 0; byte < 256; byte++) {
        uint8_t class = p->class_of[byte];
        if (!lzs_is_plain((uint8_t)byte) || known[class]) continue;
        known[class] = true;
        p->plain[p->n_plain++] = class;
    }
}

lzs_status lzs_program_build(const lzs_tree *tree, lzs_program *program, lzs_grammar_error *error) {
    *program = (lzs_program){0};
    builder b = {.tree = tree, .program = program, .error = error};
    lzs_status status = build(&b);
    free(b.frames);
    free(b.starts);
    if (status == LZS_OK) lzs_program_find_classes(program);
    return status;
}
