/* automaton.c - the deterministic automaton of a program, built lazily while it is used. */
#include "automaton.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_TABLE = 64 };

static size_t state_bytes(const lzs_automaton *a) {
    return sizeof(lzs_dfa_state) + (size_t)a->program->n_classes * sizeof *a->edges;
}

size_t lzs_automaton_memory(const lzs_automaton *a) {
    return a->states_room * sizeof *a->states + a->edges_room * sizeof *a->edges + a->places_room * sizeof *a->places +
           lzs_table_memory(&a->table) + (a->seen_size * sizeof *a->seen + a->todo_room * sizeof *a->todo) +
           a->made_room * sizeof *a->made;
}

size_t lzs_automaton_used(const lzs_automaton *a) {
    return (size_t)a->n_states * state_bytes(a) + a->n_places * sizeof *a->places;
}

void lzs_automaton_free(lzs_automaton *a) {
    free(a->states);
    free(a->edges);
    free(a->places);
    free(a->table.slots);
    free(a->seen);
    free(a->todo);
    free(a->made);
}

void lzs_automaton_begin(lzs_automaton *a) {
    a->work = 0;
    a->problem = NULL;
}

static lzs_status too_much(lzs_automaton *a, const char *problem) {
    a->problem = problem;
    return LZS_ELIMIT;
}

lzs_status lzs_automaton_work(lzs_automaton *a, uint64_t places) {
    a->work += places;
    if (a->work <= a->max_work) return LZS_OK;
    return too_much(a, "one step of the grammar takes too much work: "
                       "the pattern is too ambiguous, or its bytes are not tokens");
}

/* ---- the set of places under construction ---- */

static uint64_t mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static void begin_set(lzs_automaton *a) {
    a->n_seen = a->n_made = a->n_todo = 0;
    if (++a->stamp == 0) { /* the stamp wrapped around, so old stamps could look new */
        if (a->seen_size) memset(a->seen, 0, a->seen_size * sizeof *a->seen);
        a->stamp = 1;
    }
}

static struct lzs_visit *slot_of(struct lzs_visit *seen, size_t size, uint32_t stamp, uint64_t place, uint32_t flags) {
    size_t at = (size_t)mixed(place ^ (uint64_t)flags << 20) & (size - 1);
    while (seen[at].stamp == stamp && (seen[at].place != place || seen[at].flags != flags)) at = (at + 1) & (size - 1);
    return &seen[at];
}

static lzs_status more_seen(lzs_automaton *a) {
    size_t size = a->seen_size ? 2 * a->seen_size : MIN_TABLE;
    struct lzs_visit *seen = calloc(size, sizeof *seen);
    if (!seen) return LZS_ENOMEM;
    for (size_t i = 0; i < a->seen_size; i++) {
        struct lzs_visit *v = &a->seen[i];
        if (v->stamp == a->stamp) *slot_of(seen, size, a->stamp, v->place, v->flags) = *v;
    }
    free(a->seen);
    a->seen = seen;
    a->seen_size = size;
    return LZS_OK;
}

/* Queues a place for `follow`, unless the place was queued before. Bit d of `flags` stands for the loop of depth d
 * around the place. The bit is set if the body of this loop can be empty, and its current iteration has taken no byte
 * yet. */
static lzs_status visit(lzs_automaton *a, uint64_t place, uint32_t flags) {
    if (2 * a->n_seen >= a->seen_size) {
        lzs_status status = more_seen(a);
        if (status != LZS_OK) return status;
    }
    struct lzs_visit *slot = slot_of(a->seen, a->seen_size, a->stamp, place, flags);
    if (slot->stamp == a->stamp) return LZS_OK;
    *slot = (struct lzs_visit){place, flags, a->stamp};
    a->n_seen++;
    if (!lzs_grow(&a->todo, &a->todo_room, a->n_todo + 1, sizeof *a->todo)) return LZS_ENOMEM;
    a->todo[a->n_todo++] = *slot;
    return LZS_OK;
}

static lzs_status add_place(lzs_automaton *a, uint64_t place) {
    if (!lzs_grow(&a->made, &a->made_room, a->n_made + 1, sizeof *a->made)) return LZS_ENOMEM;
    a->made[a->n_made++] = place;
    return LZS_OK;
}

/* Begins an iteration of a loop at operation `op`, after `count` complete iterations. */
static lzs_status iterate(lzs_automaton *a, const lzs_loop_op *loop, uint32_t op, uint64_t place, uint64_t count,
                          uint32_t flags) {
    if (loop->max == LZS_UNBOUNDED && count < lzs_far_high(loop) && count + 1 >= loop->min) count = lzs_far_high(loop);
    if (loop->nullable) flags |= UINT32_C(1) << loop->depth;
    return visit(a, lzs_at_op(lzs_with_counter(loop, place, count), op), flags);
}

static lzs_status leave(lzs_automaton *a, const lzs_loop_op *loop, uint64_t place, uint32_t flags) {
    return visit(a, lzs_at_op(lzs_with_counter(loop, place, 0), loop->exit), flags & ~(UINT32_C(1) << loop->depth));
}

static lzs_status end_iteration(lzs_automaton *a, const lzs_loop_op *loop, uint64_t place, uint32_t flags) {
    if (flags >> loop->depth & 1) return LZS_OK; /* the iteration took no byte */
    uint64_t count = lzs_counter(loop, place);
    bool far_high = count == lzs_far_high(loop), far_low = count == lzs_far_low(loop);
    if (!far_high && !far_low) count++;
    lzs_status status = LZS_OK;
    if (far_high || (!far_low && count >= loop->min)) status = leave(a, loop, place, flags);
    bool may_go_on = far_high || far_low || count < loop->max;
    if (status == LZS_OK && may_go_on) status = iterate(a, loop, loop->body, place, count, flags);
    return status;
}

/* From the queued places, follows all operations that take no byte. */
static lzs_status follow(lzs_automaton *a) {
    const lzs_program *p = a->program;
    lzs_status status = LZS_OK;
    while (a->n_todo && status == LZS_OK) {
        struct lzs_visit v = a->todo[--a->n_todo];
        const lzs_op *op = &p->ops[lzs_place_op(v.place)];
        status = lzs_automaton_work(a, 1);
        if (status != LZS_OK) break;
        switch ((lzs_op_kind)op->kind) {
        case LZS_OP_BYTES:
        case LZS_OP_ACCEPT: status = add_place(a, v.place); break;
        case LZS_OP_SPLIT:
            for (uint32_t i = 0; i < op->n && status == LZS_OK; i++) {
                status = visit(a, lzs_at_op(v.place, p->targets[op->first + i]), v.flags);
            }
            break;
        case LZS_OP_ENTER: {
            const lzs_loop_op *loop = &p->loops[op->first];
            if (loop->min == 0) status = leave(a, loop, v.place, v.flags);
            if (status == LZS_OK) status = iterate(a, loop, loop->entry, v.place, 0, v.flags);
            break;
        }
        case LZS_OP_NEXT: status = end_iteration(a, &p->loops[op->first], v.place, v.flags); break;
        }
    }
    return status;
}

/* Sorts with Shell's method, which is fast here, because almost all sets have only a few places. */
static void sort_places(uint64_t *places, size_t n) {
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (size_t i = gap; i < n; i++) {
            uint64_t place = places[i];
            size_t at = i;
            for (; at >= gap && places[at - gap] > place; at -= gap) places[at] = places[at - gap];
            places[at] = place;
        }
    }
}

/* Compares places that differ only in the innermost count. If one place allows every text that another place allows,
 * removes the other place. Among counts at which the loop may end, the smallest count allows the most further
 * iterations. So even if a text can be split into iterations at many points, a loop has only a few places, not one for
 * each count. */
static size_t without_weaker(const lzs_program *p, uint64_t *places, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        uint64_t place = places[i];
        uint32_t number = p->ops[lzs_place_op(place)].loop;
        if (number == LZS_NO_LOOP) {
            places[kept++] = place;
            i++;
            continue;
        }
        const lzs_loop_op *loop = &p->loops[number];
        uint64_t around = place & ~lzs_counter_mask(loop);
        size_t end = i;
        while (end < n && (places[end] & ~lzs_counter_mask(loop)) == around) end++;
        bool far = false;
        for (size_t k = i; k < end; k++) far |= lzs_counter(loop, places[k]) == lzs_far_high(loop);
        bool last_kept = false;
        for (; i < end; i++) {
            uint64_t count = lzs_counter(loop, places[i]);
            bool may_be_last = count + 1 >= loop->min && count < lzs_far_high(loop);
            if (far ? count != lzs_far_high(loop) : may_be_last && last_kept) continue;
            last_kept |= may_be_last;
            places[kept++] = places[i];
        }
    }
    return kept;
}

/* ---- states ---- */

/* Returns the slot of the state that has these places. If there is no such state, returns the free slot for it. */
static lzs_slot *slot_of_state(const lzs_automaton *a, const uint64_t *places, size_t n, uint32_t *tag) {
    lzs_slot *slot = NULL;
    *tag = lzs_hash_bytes((const uint8_t *)places, n * sizeof *places, a->table.key);
    while ((slot = lzs_table_next(&a->table, slot, *tag))->index) {
        const lzs_dfa_state *s = &a->states[slot->index - 1];
        if (s->n == n && memcmp(a->places + s->first, places, n * sizeof *places) == 0) break;
    }
    return slot;
}

/* Adds a state that has the first n places of `made`. */
static lzs_status add_state(lzs_automaton *a, size_t n, int32_t *state) {
    const lzs_program *p = a->program;
    if (lzs_automaton_used(a) + state_bytes(a) + n * sizeof *a->places > a->max_bytes) {
        return too_much(a, "one step of the grammar needs more memory than the limit");
    }
    size_t next = (size_t)a->n_states + 1;
    if (!lzs_grow(&a->states, &a->states_room, next, sizeof *a->states)) return LZS_ENOMEM;
    if (!lzs_grow(&a->edges, &a->edges_room, next * p->n_classes, sizeof *a->edges)) return LZS_ENOMEM;
    if (!lzs_grow(&a->places, &a->places_room, a->n_places + n, sizeof *a->places)) return LZS_ENOMEM;
    lzs_dfa_state *s = &a->states[a->n_states];
    *s = (lzs_dfa_state){.first = a->n_places, .n = (uint32_t)n, .n_few = LZS_NOT_ASKED, .mask = -1};
    s->next = s->run_to = LZS_NO_STATE;
    if (n) memcpy(a->places + a->n_places, a->made, n * sizeof *a->made);
    a->n_places += n;
    for (size_t i = 0; i < n; i++) s->accepts |= p->ops[lzs_place_op(a->made[i])].kind == LZS_OP_ACCEPT;
    int32_t *edges = a->edges + (size_t)a->n_states * p->n_classes;
    for (uint32_t i = 0; i < p->n_classes; i++) edges[i] = n ? LZS_NO_STATE : LZS_DEAD;
    *state = a->n_states++;
    return LZS_OK;
}

/* Finds the state of the places in `made`, or adds it. The places may be in any order and may repeat. */
static lzs_status intern(lzs_automaton *a, int32_t *state) {
    *state = LZS_DEAD;
    if (!a->n_made) return LZS_OK;
    sort_places(a->made, a->n_made);
    size_t n = 0;
    for (size_t i = 0; i < a->n_made; i++) {
        if (!n || a->made[n - 1] != a->made[i]) a->made[n++] = a->made[i];
    }
    if (a->program->n_loops) n = without_weaker(a->program, a->made, n);
    uint32_t tag;
    lzs_slot *slot = slot_of_state(a, a->made, n, &tag);
    if (slot->index) {
        *state = (int32_t)slot->index - 1;
        return LZS_OK;
    }
    lzs_status status = add_state(a, n, state);
    return status == LZS_OK ? lzs_table_add(&a->table, slot, tag, (size_t)*state) : status;
}

lzs_status lzs_automaton_state_of(lzs_automaton *a, const uint64_t *places, size_t n, int32_t *state) {
    begin_set(a);
    lzs_status status = LZS_OK;
    for (size_t i = 0; i < n && status == LZS_OK; i++) status = add_place(a, places[i]);
    return status == LZS_OK ? intern(a, state) : status;
}

lzs_status lzs_automaton_enter(lzs_automaton *a, uint64_t place, int32_t *state) {
    begin_set(a);
    lzs_status status = visit(a, place, 0);
    if (status == LZS_OK) status = follow(a);
    return status == LZS_OK ? intern(a, state) : status;
}

/* Adds the states LZS_DEAD, LZS_ENDED and LZS_START. */
static lzs_status begin_states(lzs_automaton *a) {
    int32_t state;
    uint64_t work = a->work;
    a->work = 0; /* begins at 0, as when the automaton was made, so the same work succeeds again */
    a->n_states = 0;
    a->n_places = 0;
    lzs_table_clear(&a->table);
    lzs_status status = add_state(a, 0, &state);                     /* LZS_DEAD */
    if (status == LZS_OK) status = add_state(a, 0, &state);          /* LZS_ENDED */
    if (status == LZS_OK) status = lzs_automaton_enter(a, lzs_at_op(0, a->program->start), &state); /* LZS_START */
    a->work += work;
    return status;
}

lzs_status lzs_automaton_init(lzs_automaton *a, const lzs_program *program, size_t max_bytes, uint64_t max_work) {
    *a = (lzs_automaton){.program = program, .max_bytes = max_bytes, .max_work = max_work};
    lzs_status status = lzs_table_init(&a->table, 0);
    return status == LZS_OK ? begin_states(a) : status;
}

lzs_status lzs_automaton_flush(lzs_automaton *a, int32_t keep, int32_t *kept) {
    const lzs_dfa_state *s = &a->states[keep];
    size_t n = s->n;
    *kept = keep;
    uint64_t *places = n ? malloc(n * sizeof *places) : NULL;
    if (n && !places) return LZS_ENOMEM;
    if (n) memcpy(places, a->places + s->first, n * sizeof *places);
    lzs_status status = begin_states(a);
    if (status == LZS_OK && keep > LZS_START) status = lzs_automaton_state_of(a, places, n, kept);
    free(places);
    return status;
}

static const lzs_edge *edge_of(const lzs_program *p, const lzs_op *op, uint8_t byte) {
    const lzs_edge *edges = p->edges + op->first;
    size_t low = 0, high = op->n;
    while (low < high) { /* finds the first edge that does not end before the byte */
        size_t middle = (low + high) / 2;
        if (edges[middle].last < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < op->n && edges[low].first <= byte ? &edges[low] : NULL;
}

lzs_status lzs_automaton_make_edge(lzs_automaton *a, int32_t state, uint32_t class, int32_t *to) {
    const lzs_program *p = a->program;
    uint8_t byte = p->byte_of[class];
    lzs_status status = lzs_automaton_work(a, a->states[state].n);
    begin_set(a);
    for (uint32_t i = 0; i < a->states[state].n && status == LZS_OK; i++) {
        uint64_t place = a->places[a->states[state].first + i];
        const lzs_op *op = &p->ops[lzs_place_op(place)];
        const lzs_edge *edge = op->kind == LZS_OP_BYTES ? edge_of(p, op, byte) : NULL;
        if (edge) status = visit(a, lzs_at_op(place, edge->to), 0);
    }
    if (status == LZS_OK) status = follow(a);
    if (status == LZS_OK) status = intern(a, to);
    if (status == LZS_OK) a->edges[(size_t)state * p->n_classes + class] = *to;
    return status;
}

/* Adds a byte to `few`. Returns false if `few` is full. */
static bool add_few(lzs_dfa_state *s, uint8_t *n, uint8_t byte) {
    for (uint8_t i = 0; i < *n; i++) {
        if (s->few[i] == byte) return true;
    }
    if (*n == LZS_FEW) return false;
    s->few[(*n)++] = byte;
    return true;
}

/* Exactly the bytes of the edges can follow, because every edge of the program leads to a text that matches. */
uint8_t lzs_automaton_find_few(lzs_automaton *a, int32_t state) {
    const lzs_program *p = a->program;
    lzs_dfa_state *s = &a->states[state];
    uint8_t n = 0;
    s->n_few = LZS_MANY_BYTES;
    for (uint32_t i = 0; i < s->n; i++) {
        const lzs_op *op = &p->ops[lzs_place_op(a->places[s->first + i])];
        if (op->kind != LZS_OP_BYTES) continue;
        for (uint32_t k = 0; k < op->n; k++) {
            const lzs_edge *edge = &p->edges[op->first + k];
            for (uint32_t byte = edge->first; byte <= edge->last; byte++) {
                if (!add_few(s, &n, (uint8_t)byte)) return s->n_few;
            }
        }
    }
    int32_t *edges = a->edges + (size_t)state * p->n_classes, known[LZS_FEW];
    for (uint8_t i = 0; i < n; i++) known[i] = edges[p->class_of[s->few[i]]];
    for (uint32_t class = 0; class < p->n_classes; class++) edges[class] = LZS_DEAD;
    for (uint8_t i = 0; i < n; i++) edges[p->class_of[s->few[i]]] = known[i];
    return s->n_few = n;
}

/* ---- counts that do not matter ---- */

static uint64_t clamped_place(const lzs_program *p, uint64_t place, uint32_t n_bytes, bool low) {
    for (uint32_t number = p->ops[lzs_place_op(place)].loop; number != LZS_NO_LOOP; number = p->loops[number].outer) {
        const lzs_loop_op *loop = &p->loops[number];
        uint64_t count = lzs_counter(loop, place);
        if (count >= lzs_far_high(loop)) continue;
        /* largest number of iterations that can end within n_bytes bytes */
        uint64_t ends = 1 + (n_bytes - 1) / loop->min_bytes;
        if (count + 1 >= loop->min && count + ends < loop->max) {
            place = lzs_with_counter(loop, place, lzs_far_high(loop));
        } else if (low && count + ends < loop->min) {
            place = lzs_with_counter(loop, place, lzs_far_low(loop));
        }
    }
    return place;
}

static lzs_status clamp(lzs_automaton *a, int32_t state, uint32_t n_bytes, bool low, int32_t *clamped) {
    *clamped = state;
    if (!a->program->n_loops || a->states[state].n == 0) return LZS_OK;
    begin_set(a);
    bool changed = false;
    lzs_status status = lzs_automaton_work(a, a->states[state].n);
    for (uint32_t i = 0; i < a->states[state].n && status == LZS_OK; i++) {
        uint64_t place = a->places[a->states[state].first + i], other = clamped_place(a->program, place, n_bytes, low);
        changed |= other != place;
        status = add_place(a, other);
    }
    return status == LZS_OK && changed ? intern(a, clamped) : status;
}

lzs_status lzs_automaton_clamp(lzs_automaton *a, int32_t state, uint32_t n_bytes, int32_t *clamped) {
    return clamp(a, state, n_bytes, true, clamped);
}

lzs_status lzs_automaton_clamp_high(lzs_automaton *a, int32_t state, uint32_t n_bytes, int32_t *clamped) {
    return clamp(a, state, n_bytes, false, clamped);
}
