/* shared.c - the masks of states inside parts that many grammars have.
 *
 * A state of a grammar lies in a part if all its places do, but for those that follow the part where it may end. Its mask is that
 * of the part (part_masks.h), with the tokens that end the part and go on behind it.
 */
#include "shared.h"

#include <string.h>

#include "part_masks.h"
#include "slice.h"

/* Where a state is in a part. */
typedef struct inside {
    size_t part;     /* of the program */
    uint64_t around; /* the counters of the loops around it */
    uint64_t places[LZS_PART_PLACES]; /* as the slice has them */
    size_t n;
    int32_t tail;    /* the state behind its end */
    bool ended;      /* the part may end here */
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

/* Whether the places outside are those behind the end of the part. */
static bool is_tail(const lzs_grammar *g, const inside *in, const uint64_t *others, size_t n_others) {
    const lzs_dfa_state *s = &g->automaton.states[in->tail];
    const lzs_part_range *part = &g->program.parts[in->part];
    size_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t place = g->automaton.places[s->first + i], sliced;
        if (is_inside(&g->program, part, place, in->around, &sliced)) continue;
        if (n == n_others || others[n++] != place) return false;
    }
    return n == n_others;
}

/* Finds the part that a state lies in, if any. */
static lzs_status look(lzs_grammar *g, int32_t state, inside *in, bool *found) {
    lzs_automaton *a = &g->automaton;
    const lzs_program *p = &g->program;
    const lzs_dfa_state *s = &a->states[state];
    uint64_t others[LZS_PART_PLACES], sliced;
    size_t n_others = 0;
    *found = false;
    if (!s->n || s->n >= LZS_PART_PLACES) return LZS_OK;
    uint64_t last = a->places[s->first + s->n - 1]; /* what follows a part has smaller numbers */
    in->part = part_at(p, lzs_place_op(last));
    if (in->part == p->n_parts) return LZS_OK;
    const lzs_part_range *part = &p->parts[in->part];
    lzs_slice_place(p, part, last, &in->around);
    in->n = 1; /* room for the end of the part */
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t place = a->places[s->first + i];
        if (is_inside(p, part, place, in->around, &sliced)) {
            in->places[in->n++] = sliced;
        } else {
            others[n_others++] = place;
        }
    }
    lzs_status status = lzs_automaton_enter(a, lzs_at_op(in->around, part->exit), &in->tail);
    if (status != LZS_OK) return status;
    in->ended = n_others > 0;
    *found = !in->ended || (in->tail != state && is_tail(g, in, others, n_others));
    in->places[0] = 0;
    if (!in->ended) memmove(in->places, in->places + 1, --in->n * sizeof *in->places);
    return LZS_OK;
}

/* Adds what may follow the part to the mask of the part. */
static lzs_status add_tail(lzs_grammar *g, const lzs_shared_mask *mask, int32_t tail, uint32_t *words) {
    const lzs_trie_node *nodes = g->vocabulary->nodes;
    lzs_status status = LZS_OK;
    for (uint32_t i = 0; i < mask->n_exits && status == LZS_OK; i++) {
        uint32_t node = mask->exits[i];
        g->path[nodes[node].depth] = tail;
        status = lzs_grammar_walk(g, node + 1, node + nodes[node].size, 0, words, NULL);
    }
    return status;
}

static lzs_status words_of(lzs_part_masks *m, lzs_grammar *g, const inside *in, uint32_t *words, bool *done) {
    const lzs_shared_mask *mask;
    lzs_status status = lzs_part_masks_find(m, g, in->part, in->places, in->n, &mask);
    if (status != LZS_OK || !mask) return status;
    lzs_kept_write(g->vocabulary, &mask->mask, words);
    *done = true;
    g->path[0] = in->tail;
    if (in->ended) status = lzs_grammar_walk(g, 0, g->vocabulary->n_nodes, 0, words, NULL);
    return status == LZS_OK ? add_tail(g, mask, in->tail, words) : status;
}

lzs_status lzs_shared_words(lzs_grammar *g, int32_t state, uint32_t *words, bool *done) {
    lzs_part_masks *m = g->shared;
    inside in;
    bool found = false;
    *done = false;
    if (!g->whole || !g->program.n_parts) return LZS_OK;
    lzs_status status = look(g, state, &in, &found);
    if (status != LZS_OK || !found || !lzs_part_masks_begin(m)) return status;
    status = words_of(m, g, &in, words, done);
    lzs_part_masks_end(m);
    return status;
}
