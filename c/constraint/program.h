/* program.h - the byte automaton of a syntax tree: a nondeterministic automaton with counters for the tree's counted
 * repetitions.
 *
 * A place in the automaton has 64 bits: 24 bits for the operation, and 40 bits for the counters of the counted
 * repetitions around the operation, outermost first. So {m,n} takes hardly more operations than its body, and a text
 * leads to few places.
 */
#ifndef LZS_PROGRAM_H
#define LZS_PROGRAM_H

#include "../include/lzsampler.h"
#include "tree.h"

enum { LZS_COUNTER_BITS = 40, LZS_MAX_OPS = (1 << 24) - 1 };

#define LZS_NO_LOOP UINT32_MAX

typedef enum lzs_op_kind {
    LZS_OP_BYTES,  /* takes a byte of one of edges[first .. first + n); the edges are sorted by byte */
    LZS_OP_SPLIT,  /* continues at each of targets[first .. first + n) */
    LZS_OP_ENTER,  /* begins the counted loop number `first` */
    LZS_OP_NEXT,   /* ends an iteration of the counted loop number `first` */
    LZS_OP_ACCEPT  /* the text may end here */
} lzs_op_kind;

typedef struct lzs_op {
    uint32_t kind : 3, n : 29;
    uint32_t first;
    uint32_t loop; /* number of the innermost counted loop around the operation, or LZS_NO_LOOP */
} lzs_op;

typedef struct lzs_edge {
    uint8_t first, last;
    uint32_t to;
} lzs_edge;

/* A counted repetition. The counter in a place is the number of complete iterations. Two further values of the counter
 * mean "far": the count is too far from its limits to matter (lzs_far_high, lzs_far_low). */
typedef struct lzs_loop_op {
    uint32_t min, max;
    /* The first iteration begins at operation `entry`. Later iterations begin at `body`, maybe with a separator. After
     * the loop, the text goes on at `exit`. */
    uint32_t entry, body, exit;
    uint32_t min_bytes;  /* least number of bytes of an iteration; at least 1, because empty iterations are left out */
    bool nullable;       /* whether the body matches the empty text; then `min` is 0 */
    uint8_t shift, width; /* lowest bit and number of bits of the counter in a place */
    uint8_t depth;        /* number of counted loops around the loop */
    uint32_t outer;       /* number of the innermost counted loop around the loop, or LZS_NO_LOOP */
} lzs_loop_op;

/* A part of the program whose masks grammars share (part_masks.h). The operations of a part are contiguous, and the
 * only exit of a part is the operation `exit`. */
typedef struct lzs_part_range {
    uint32_t first_op, end_op;     /* the operations [first_op, end_op) */
    uint32_t first_loop, end_loop; /* the counted loops [first_loop, end_loop) */
    uint32_t exit;
    uint32_t outer; /* number of the innermost counted loop around the part, or LZS_NO_LOOP */
} lzs_part_range;

typedef struct lzs_program {
    lzs_op *ops;
    size_t n_ops, ops_room;
    lzs_edge *edges;
    size_t n_edges, edges_room;
    uint32_t *targets;
    size_t n_targets, targets_room;
    lzs_loop_op *loops;
    size_t n_loops, loops_room;
    lzs_part_range *parts; /* sorted by their operation numbers, ascending */
    size_t n_parts, parts_room;
    uint32_t start;
    uint8_t class_of[256]; /* by byte: its class; every edge takes all bytes of a class or none of them */
    uint8_t byte_of[256];  /* by class: its first byte */
    uint32_t n_classes;
    uint8_t plain[256]; /* the classes that have plain bytes (vocabulary.h) */
    uint32_t n_plain;
    bool uses[256]; /* by byte: whether some edge takes the byte */
} lzs_program;

static inline uint32_t lzs_place_op(uint64_t place) {
    return (uint32_t)(place >> LZS_COUNTER_BITS);
}

/* Returns the place at another operation with the same counters. */
static inline uint64_t lzs_at_op(uint64_t place, uint32_t op) {
    return (uint64_t)op << LZS_COUNTER_BITS | (place & ((UINT64_C(1) << LZS_COUNTER_BITS) - 1));
}

static inline uint64_t lzs_counter_mask(const lzs_loop_op *loop) {
    return ((UINT64_C(1) << loop->width) - 1) << loop->shift;
}

static inline uint64_t lzs_counter(const lzs_loop_op *loop, uint64_t place) {
    return (place & lzs_counter_mask(loop)) >> loop->shift;
}

static inline uint64_t lzs_with_counter(const lzs_loop_op *loop, uint64_t place, uint64_t count) {
    return (place & ~lzs_counter_mask(loop)) | count << loop->shift;
}

/* Returns the largest count that is stored exactly. The next two counter values mean "far". */
static inline uint64_t lzs_top_count(const lzs_loop_op *loop) {
    return loop->max == LZS_UNBOUNDED ? loop->min : loop->max;
}

/* Returns the counter value that means: the loop may end or go on now, and at every later point that matters. */
static inline uint64_t lzs_far_high(const lzs_loop_op *loop) {
    return lzs_top_count(loop) + 1;
}

/* Returns the counter value that means: the loop must go on at every point that matters. */
static inline uint64_t lzs_far_low(const lzs_loop_op *loop) {
    return lzs_top_count(loop) + 2;
}

void lzs_program_free(lzs_program *program);
size_t lzs_program_memory(const lzs_program *program);

/* Fills class_of, byte_of, n_classes, plain, n_plain and uses. The edges must be built already. */
void lzs_program_find_classes(lzs_program *program);

/* Builds the automaton of a tree. If the automaton would be too large, returns LZS_EINVAL and fills the error. The
 * caller frees `program`, also after an error. */
lzs_status lzs_program_build(const lzs_tree *tree, lzs_program *program, lzs_grammar_error *error);

#endif
