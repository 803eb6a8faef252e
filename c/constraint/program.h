/* program.h - the byte automaton of a syntax tree: nondeterministic, and with counters for what the tree counts.
 *
 * A place in it is 64 bits: 24 for the operation and 40 for the counters of the counted repetitions around it,
 * outermost first. So {m,n} costs as many operations as its body, and the places that a text leads to are few.
 */
#ifndef LZS_PROGRAM_H
#define LZS_PROGRAM_H

#include "../include/lzsampler.h"
#include "tree.h"

enum { LZS_COUNTER_BITS = 40, LZS_MAX_OPS = (1 << 24) - 1 };

#define LZS_NO_LOOP UINT32_MAX

typedef enum lzs_op_kind {
    LZS_OP_BYTES,  /* takes a byte: edges[first .. first + n), by byte, ascending */
    LZS_OP_SPLIT,  /* goes on at each of targets[first .. first + n) */
    LZS_OP_ENTER,  /* begins the counted loop number `first` */
    LZS_OP_NEXT,   /* ends an iteration of it */
    LZS_OP_ACCEPT  /* the text may end here */
} lzs_op_kind;

typedef struct lzs_op {
    uint32_t kind : 3, n : 29;
    uint32_t first;
    uint32_t loop; /* the innermost counted loop around it, or LZS_NO_LOOP */
} lzs_op;

typedef struct lzs_edge {
    uint8_t first, last;
    uint32_t to;
} lzs_edge;

/* A counted repetition. Its counter says how many iterations are complete; two more values stand for counts that are
 * far from where they matter: see automaton.h. */
typedef struct lzs_loop_op {
    uint32_t min, max;
    /* operations: the first iteration, the others, which may begin with a separator, the end */
    uint32_t entry, body, exit;
    uint32_t min_bytes;  /* of an iteration, >= 1: an empty one changes nothing and is left out */
    bool nullable;       /* the body matches the empty text, so that min does not matter */
    uint8_t shift, width; /* of its counter in a place */
    uint8_t depth;        /* counted loops around it */
    uint32_t outer;       /* the next one around it, or LZS_NO_LOOP */
} lzs_loop_op;

/* A part whose masks grammars share. Its operations lie together, and lead on to `exit` alone. */
typedef struct lzs_part_range {
    uint32_t first_op, end_op;     /* its operations */
    uint32_t first_loop, end_loop; /* its counted loops */
    uint32_t exit;
    uint32_t outer; /* the innermost counted loop around it, or LZS_NO_LOOP */
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
    lzs_part_range *parts; /* by their operations, ascending */
    size_t n_parts, parts_room;
    uint32_t start;
    uint8_t class_of[256]; /* bytes of one class have the same edges everywhere */
    uint8_t byte_of[256];  /* one byte of each class */
    uint32_t n_classes;
    uint8_t plain[256]; /* the classes of plain bytes: see vocabulary.h */
    uint32_t n_plain;
    bool uses[256]; /* bytes with an edge */
} lzs_program;

static inline uint32_t lzs_place_op(uint64_t place) {
    return (uint32_t)(place >> LZS_COUNTER_BITS);
}

/* The same counters at another operation. */
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

/* Counts that are written down end here; the two values after stand for "far". */
static inline uint64_t lzs_top_count(const lzs_loop_op *loop) {
    return loop->max == LZS_UNBOUNDED ? loop->min : loop->max;
}

/* The iteration may end the loop and may be followed by another one, and both stay so for as long as it matters. */
static inline uint64_t lzs_far_high(const lzs_loop_op *loop) {
    return lzs_top_count(loop) + 1;
}

/* The iteration must be followed by another one, for as long as it matters. */
static inline uint64_t lzs_far_low(const lzs_loop_op *loop) {
    return lzs_top_count(loop) + 2;
}

void lzs_program_free(lzs_program *program);
size_t lzs_program_memory(const lzs_program *program);

/* Fills class_of, byte_of, n_classes and uses, when everything else is there. */
void lzs_program_find_classes(lzs_program *program);

/* Builds the automaton of a tree; the caller frees the automaton, also after a failure. LZS_EINVAL, with the error
 * filled, if it would be too large. */
lzs_status lzs_program_build(const lzs_tree *tree, lzs_program *program, lzs_grammar_error *error);

#endif
