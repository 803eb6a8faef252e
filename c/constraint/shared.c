/* shared.c - the masks of states that have places inside parts that many grammars have.
 *
 * What a state allows is what any of its places allows, since every place can be completed. So the mask of a state is that of its
 * places inside a part (part_masks.h), with the tokens that end the part and go on behind it, and the mask of its other places,
 * which may be in other parts.
 */
#include "shared.h"

#include "part_masks.h"
#include "slice.h"
#include "walk.h"

enum { MOST_NESTED = 16 }; /* parts that a state is looked for in: each costs a kilobyte of stack */

/* The places of a state inside one part, and the others. */
typedef struct inside {
    size_t part;     /* of the program */
    uint64_t around; /* the counters of the loops around it */
    uint64_t places[LZS_PART_PLACES]; /* as the slice has them */
    size_t n;
    uint64_t others[LZS_PART_PLACES];
    size_t n_others;
} inside;

static bool is_inside(const lzs_program *p, const lzs_part_range *part, uint64_t place, uint64_t around, uint64_t *sliced) {
    uint64_t counters;
    if (lzs_place_op(place) < part->first_op || lzs_place_op(place) >= part->end_op) return false;
    *sliced = lzs_slice_place(p, part, place, &counters);
    return counters == around;
}

/* The last part that begins at or before an operation, if that lies in it; else n_parts. */
static size_t part_at(const lzs_program *p, uint32_t op) {
    size_t low = 0, high = p->n_parts;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->parts[middle].first_op <= op) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low && op < p->parts[low - 1].end_op ? low - 1 : p->n_parts;
}

/* Finds the part that a state has places in, if any: of several, the one that comes first in the text. */
static void look(const lzs_grammar *g, int32_t state, inside *in) {
    const lzs_program *p = &g->program;
    const lzs_dfa_state *s = &g->automaton.states[state];
    const uint64_t *places = g->automaton.places + s->first;
    uint64_t sliced;
    in->n = in->n_others = 0;
    if (s->n > LZS_PART_PLACES) return;
    uint32_t last = s->n;
    while (last > 0 && (in->part = part_at(p, lzs_place_op(places[last - 1]))) == p->n_parts) last--;
    if (!last) return;
    lzs_slice_place(p, &p->parts[in->part], places[last - 1], &in->around);
    for (uint32_t i = 0; i < s->n; i++) {
        if (is_inside(p, &p->parts[in->part], places[i], in->around, &sliced)) {
            in->places[in->n++] = sliced;
        } else {
            in->others[in->n_others++] = places[i];
        }
    }
}

/* The first node behind the part that has this byte or a larger one. */
static uint32_t first_behind(const lzs_vocabulary *v, const lzs_shared_mask *mask, uint8_t byte) {
    uint32_t low = 0, high = mask->n_behind;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (v->nodes[mask->behind[middle]].byte < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Adds the tokens that go on with a byte behind the part. */
static lzs_status add_behind(lzs_grammar *g, const lzs_shared_mask *mask, int32_t tail, uint8_t byte, lzs_found *found) {
    const lzs_trie_node *nodes = g->vocabulary->nodes;
    lzs_status status = LZS_OK;
    for (uint32_t i = first_behind(g->vocabulary, mask, byte); i < mask->n_behind && status == LZS_OK; i++) {
        uint32_t node = mask->behind[i];
        if (nodes[node].byte != byte) break;
        g->path[nodes[node].depth - 1] = tail;
        status = lzs_walk(g, node, found);
    }
    return status;
}

/* Adds the tokens that end the part and go on behind it. */
static lzs_status add_tail(lzs_grammar *g, const lzs_shared_mask *mask, int32_t tail, lzs_found *found) {
    const lzs_program *p = &g->program;
    bool added[256] = {false};
    lzs_status status = LZS_OK;
    for (uint32_t i = 0; i < g->automaton.states[tail].n && status == LZS_OK; i++) {
        uint64_t place = g->automaton.places[g->automaton.states[tail].first + i];
        const lzs_op *op = &p->ops[lzs_place_op(place)];
        const lzs_edge *edge = p->edges + op->first, *end = edge + (op->kind == LZS_OP_BYTES ? op->n : 0);
        for (; edge < end; edge++) {
            for (int byte = edge->first; byte <= edge->last && status == LZS_OK; byte++) {
                if (!added[byte]) status = add_behind(g, mask, tail, (uint8_t)byte, found);
                added[byte] = true;
            }
        }
    }
    return status;
}

/* Begins with the tokens of a mask of this grammar. */
static void add_mask(const lzs_grammar *g, const lzs_kept_mask *mask, lzs_found *found) {
    if (mask->base) add_mask(g, lzs_kept_base_mask(mask->base), found);
    if (mask->form == LZS_KEPT_ALLOWED || mask->form == LZS_KEPT_ADDED) {
        for (uint32_t i = 0; i < mask->n; i++) lzs_found_add(found, (int32_t)mask->data[i]);
    } else {
        if (!found->spread) lzs_found_spread(found);
        lzs_kept_write_more(g->vocabulary, mask, found->words);
    }
}

static lzs_status mask_of(lzs_part_masks *m, lzs_grammar *g, int32_t state, const inside *in, int32_t others,
                          lzs_kept_mask *made, bool *done) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_shared_mask *mask;
    lzs_found found = lzs_found_none(g);
    int32_t tail;
    lzs_status status = lzs_part_masks_find(m, g, in->part, in->places, in->n, &mask);
    if (status != LZS_OK || !mask) return status;
    status = lzs_automaton_enter(&g->automaton, lzs_at_op(in->around, g->program.parts[in->part].exit), &tail);
    if (others >= 0) add_mask(g, &g->masks[others], &found);
    if (status == LZS_OK) status = add_tail(g, mask, tail, &found);
    lzs_walk_ends(g, state, &found);
    if (status == LZS_OK && found.spread) {
        lzs_kept_write_more(v, lzs_kept_base_mask(mask->mask), found.words);
        status = lzs_kept_make(v, found.words, made);
    } else if (status == LZS_OK) {
        status = lzs_kept_add(mask->mask, found.tokens, found.n, made);
    }
    *done = status == LZS_OK;
    return status;
}

/* The number of the mask of the places outside the part, -1 where there are none. */
static lzs_status mask_of_others(lzs_grammar *g, const inside *in, int32_t *number) {
    int32_t state;
    *number = -1;
    if (!in->n_others) return LZS_OK;
    lzs_status status = lzs_automaton_state_of(&g->automaton, in->others, in->n_others, &state);
    return status == LZS_OK ? lzs_grammar_mask_number(g, state, number) : status;
}

lzs_status lzs_shared_mask_of(lzs_grammar *g, int32_t state, lzs_kept_mask *mask, bool *done) {
    lzs_part_masks *m = g->shared;
    inside in;
    int32_t others;
    *done = false;
    if (!m || !g->whole || !g->program.n_parts || g->n_nested == MOST_NESTED) return LZS_OK;
    look(g, state, &in);
    if (!in.n) return LZS_OK;
    g->n_nested++;
    lzs_status status = mask_of_others(g, &in, &others); /* before anything is in use: it may ask for a part as well */
    g->n_nested--;
    if (status != LZS_OK || !lzs_part_masks_begin(m)) return status;
    status = mask_of(m, g, state, &in, others, mask, done);
    lzs_part_masks_end(m);
    return status;
}
