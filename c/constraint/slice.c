/* slice.c - copies a part of a program into a program of its own, and makes a key that is equal for equal parts. */
#include "slice.h"

#include <stdlib.h>
#include <string.h>

/* Returns how many bits of a place the counters inside a part may use. These are the bits below the counters of the
 * loops around the part. */
static uint32_t free_bits(const lzs_program *p, const lzs_part_range *part) {
    return part->outer == LZS_NO_LOOP ? LZS_COUNTER_BITS : p->loops[part->outer].shift;
}

uint64_t lzs_slice_place(const lzs_program *p, const lzs_part_range *part, uint64_t place, uint64_t *around) {
    uint32_t bits = free_bits(p, part);
    uint64_t inside = place & ((UINT64_C(1) << bits) - 1);
    uint64_t counters = place & ((UINT64_C(1) << LZS_COUNTER_BITS) - 1);
    *around = counters ^ inside;
    return lzs_at_op(inside << (LZS_COUNTER_BITS - bits), lzs_place_op(place) - part->first_op + 1);
}

/* Translates the number of an operation into its number in the slice. Returns false if the operation is not in the
 * slice. */
static bool moved(const lzs_part_range *part, uint32_t op, uint32_t *to) {
    *to = op == part->exit ? 0 : op - part->first_op + 1;
    return op == part->exit || (op >= part->first_op && op < part->end_op);
}

static bool moved_loop(const lzs_part_range *part, uint32_t loop, uint32_t *to) {
    *to = loop == part->outer ? LZS_NO_LOOP : loop - part->first_loop;
    return loop == part->outer || (loop >= part->first_loop && loop < part->end_loop);
}

static bool copy_loops(const lzs_program *p, const lzs_part_range *part, lzs_program *slice) {
    uint32_t bits = free_bits(p, part), depth = part->outer == LZS_NO_LOOP ? 0 : p->loops[part->outer].depth + 1u;
    bool ok = true;
    for (uint32_t i = part->first_loop; i < part->end_loop; i++) {
        lzs_loop_op loop = p->loops[i];
        ok = ok && moved(part, loop.entry, &loop.entry) && moved(part, loop.body, &loop.body) && moved(part, loop.exit,
                                                                                                       &loop.exit);
        ok = ok && moved_loop(part, loop.outer, &loop.outer);
        loop.shift = (uint8_t)(loop.shift + LZS_COUNTER_BITS - bits);
        loop.depth = (uint8_t)(loop.depth - depth);
        slice->loops[slice->n_loops++] = loop;
    }
    return ok;
}

static bool copy_ops(const lzs_program *p, const lzs_part_range *part, lzs_program *slice) {
    slice->ops[slice->n_ops++] = (lzs_op){.kind = LZS_OP_ACCEPT, .loop = LZS_NO_LOOP};
    bool ok = true;
    for (uint32_t i = part->first_op; i < part->end_op && ok; i++) {
        lzs_op op = p->ops[i];
        uint32_t loop, first = op.first;
        ok = moved_loop(part, op.loop, &loop);
        op.loop = loop;
        if (op.kind == LZS_OP_BYTES) {
            op.first = (uint32_t)slice->n_edges;
            for (uint32_t k = 0; k < op.n; k++) {
                lzs_edge edge = p->edges[first + k];
                ok = ok && moved(part, edge.to, &edge.to);
                slice->edges[slice->n_edges++] = edge;
            }
        } else if (op.kind == LZS_OP_SPLIT) {
            op.first = (uint32_t)slice->n_targets;
            for (uint32_t k = 0; k < op.n; k++) {
                uint32_t target = 0;
                ok = ok && moved(part, p->targets[first + k], &target);
                slice->targets[slice->n_targets++] = target;
            }
        } else if (op.kind == LZS_OP_ENTER || op.kind == LZS_OP_NEXT) {
            ok = ok && moved_loop(part, first, &loop) && loop != LZS_NO_LOOP;
            op.first = loop;
        } else {
            ok = false;
        }
        slice->ops[slice->n_ops++] = op;
    }
    return ok;
}

lzs_status lzs_slice(const lzs_program *p, const lzs_part_range *part, lzs_program *slice, bool *made) {
    size_t n_edges = 0, n_targets = 0;
    for (uint32_t i = part->first_op; i < part->end_op; i++) {
        if (p->ops[i].kind == LZS_OP_BYTES) n_edges += p->ops[i].n;
        if (p->ops[i].kind == LZS_OP_SPLIT) n_targets += p->ops[i].n;
    }
    *slice = (lzs_program){0};
    size_t n_ops = part->end_op - part->first_op + 1, n_loops = part->end_loop - part->first_loop;
    bool room = lzs_grow(&slice->ops, &slice->ops_room, n_ops, sizeof *slice->ops);
    room = room && lzs_grow(&slice->edges, &slice->edges_room, n_edges, sizeof *slice->edges);
    room = room && lzs_grow(&slice->targets, &slice->targets_room, n_targets, sizeof *slice->targets);
    room = room && lzs_grow(&slice->loops, &slice->loops_room, n_loops, sizeof *slice->loops);
    if (!room) return LZS_ENOMEM;
    *made = copy_loops(p, part, slice) && copy_ops(p, part, slice);
    if (*made) lzs_program_find_classes(slice);
    return LZS_OK;
}

uint32_t *lzs_slice_key(const lzs_program *p, size_t *n) {
    *n = 4 + 3 * p->n_ops + 2 * p->n_edges + p->n_targets + 8 * p->n_loops;
    uint32_t *key = malloc(*n * sizeof *key), *at = key;
    if (!key) return NULL;
    *at++ = (uint32_t)p->n_ops;
    *at++ = (uint32_t)p->n_edges;
    *at++ = (uint32_t)p->n_targets;
    *at++ = (uint32_t)p->n_loops;
    for (size_t i = 0; i < p->n_ops; i++) {
        *at++ = (uint32_t)(p->ops[i].n << 3 | p->ops[i].kind);
        *at++ = p->ops[i].first;
        *at++ = p->ops[i].loop;
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        *at++ = (uint32_t)p->edges[i].first | (uint32_t)p->edges[i].last << 8;
        *at++ = p->edges[i].to;
    }
    for (size_t i = 0; i < p->n_targets; i++) *at++ = p->targets[i];
    for (size_t i = 0; i < p->n_loops; i++) {
        const lzs_loop_op *loop = &p->loops[i];
        const uint32_t fields[] = {loop->min, loop->max, loop->entry, loop->body, loop->exit, loop->min_bytes,
                                   loop->outer,
                                   (uint32_t)loop->shift | (uint32_t)loop->width << 8 | (uint32_t)loop->depth << 16 |
                                       (uint32_t)loop->nullable << 24};
        memcpy(at, fields, sizeof fields);
        at += sizeof fields / sizeof *fields;
    }
    return key;
}
