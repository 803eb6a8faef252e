/* part_masks.c - masks of parts that many grammars have. The masks are kept once for all grammars.
 *
 * A state allows a token if any of its places allows the token, because every place can be completed. So the mask of a
 * state is a union of three masks. The first mask has the tokens that stay inside a part or end exactly with it. The
 * second mask has the tokens that go on after this part. The third mask is for the state's places outside this part,
 * which may be in other parts.
 *
 * Each shared part has a grammar of its own, with states and masks. state_masks.c makes these masks, too, so the two
 * files call each other. Two parts count as the same only if their whole programs are equal (slice.h), so hash
 * collisions do no harm.
 */
#include "part_masks.h"

#include <stdlib.h>
#include <string.h>

#include "../atomics.h"
#include "../table.h"
#include "slice.h"
#include "state_masks.h"
#include "walk.h"

enum {
    DEFAULT_BYTES = 32 << 20,
    PART_BYTES = 8 << 20, /* limit of the bytes that the states of one part take */
    MAX_WORK = 10000000,
    MAX_KEY = 1 << 16,
    MOST_PLACES = 64, /* states with more places are not examined */
    MOST_NESTED = 16  /* limit of the nesting of mask_of_others; each level takes a kilobyte of stack */
};

#define NO_PART UINT32_MAX            /* a value of part_numbers: the part is not shared */
#define UNKNOWN_PART (UINT32_MAX - 1) /* a value of part_numbers: the part was not looked up yet */

typedef struct shared_part {
    uint32_t *key;
    size_t n_key;
    lzs_grammar *grammar; /* the grammar of the part, or NULL if it could not be made */
} shared_part;

struct lzs_part_masks {
    const lzs_vocabulary *vocabulary;
    size_t max_bytes, bytes;
    uint64_t epoch; /* changes whenever all parts are forgotten */
    shared_part *parts;
    size_t n_parts, parts_room;
    lzs_table table; /* finds parts by their keys */
    /* scratch memory as in lzs_grammar; the grammars of all parts share it, because only one mask is made at a time */
    int32_t *path;
    uint32_t *words, *found_words;
    uint64_t found, made;
    lzs_flag in_use;
};

/* ---- life ---- */

static void free_grammar(lzs_grammar *g) {
    if (!g) return;
    lzs_grammar_forget_masks(g);
    lzs_automaton_free(&g->automaton);
    lzs_program_free(&g->program);
    free(g->masks);
    free(g->ends);
    free(g->open_nodes);
    free(g);
}

/* Returns the number of bytes that the grammar of a part takes. */
static size_t bytes_of(const lzs_grammar *g) {
    return sizeof *g + lzs_program_memory(&g->program) + lzs_automaton_memory(&g->automaton) + g->mask_bytes +
           g->masks_room * sizeof *g->masks + g->ends_room * sizeof *g->ends + g->open_room * sizeof *g->open_nodes;
}

static void forget(lzs_part_masks *m) {
    for (size_t i = 0; i < m->n_parts; i++) {
        free(m->parts[i].key);
        free_grammar(m->parts[i].grammar);
    }
    lzs_table_clear(&m->table);
    m->n_parts = m->bytes = 0;
    m->epoch++;
}

lzs_status lzs_part_masks_new(const lzs_vocabulary *vocabulary, size_t max_bytes, lzs_part_masks **masks) {
    *masks = NULL;
    if (!vocabulary) return LZS_EINVAL;
    lzs_part_masks *m = calloc(1, sizeof *m);
    if (!m) return LZS_ENOMEM;
    lzs_flag_give(&m->in_use);
    m->vocabulary = vocabulary;
    m->max_bytes = max_bytes ? max_bytes : DEFAULT_BYTES;
    m->epoch = 1; /* a new grammar has epoch 0, which must differ from this epoch */
    m->path = malloc(((size_t)vocabulary->longest + 1) * sizeof *m->path);
    m->words = malloc(vocabulary->n_words * sizeof *m->words);
    m->found_words = malloc(vocabulary->n_words * sizeof *m->found_words);
    if (lzs_table_init(&m->table, 0) != LZS_OK || !m->path || !m->words || !m->found_words) {
        lzs_part_masks_free(m);
        return LZS_ENOMEM;
    }
    *masks = m;
    return LZS_OK;
}

void lzs_part_masks_free(lzs_part_masks *m) {
    if (!m) return;
    forget(m);
    free(m->parts);
    free(m->table.slots);
    free(m->path);
    free(m->words);
    free(m->found_words);
    free(m);
}

lzs_status lzs_part_masks_look(lzs_part_masks *m, lzs_part_masks_figures *figures) {
    if (!lzs_flag_take(&m->in_use)) return LZS_ELIMIT;
    *figures = (lzs_part_masks_figures){m->n_parts, 0, m->bytes, m->found, m->made};
    for (size_t i = 0; i < m->n_parts; i++) figures->n_masks += m->parts[i].grammar ? m->parts[i].grammar->n_masks : 0;
    lzs_flag_give(&m->in_use);
    return LZS_OK;
}

lzs_status lzs_grammar_share(lzs_grammar *g, lzs_part_masks *m) {
    if (!g || g->engine.accept || (m && m->vocabulary != g->vocabulary)) return LZS_EINVAL;
    if (m && g->program.n_parts && !g->part_numbers) {
        g->part_numbers = malloc(g->program.n_parts * sizeof *g->part_numbers);
        if (!g->part_numbers) return LZS_ENOMEM;
    }
    g->shared = m;
    g->shared_epoch = 0;
    return LZS_OK;
}

/* ---- parts ---- */

/* Finds the part with a key, or adds a new part. Takes ownership of the key. */
static lzs_status add_part(lzs_part_masks *m, uint32_t *key, size_t n, size_t *number) {
    uint32_t tag = lzs_hash_bytes((const uint8_t *)key, n * sizeof *key, m->table.key);
    lzs_slot *slot = NULL;
    while ((slot = lzs_table_next(&m->table, slot, tag))->index) {
        *number = slot->index - 1;
        if (m->parts[*number].n_key != n || memcmp(m->parts[*number].key, key, n * sizeof *key)) continue;
        free(key);
        return LZS_OK;
    }
    *number = m->n_parts;
    if (!lzs_grow(&m->parts, &m->parts_room, m->n_parts + 1, sizeof *m->parts) ||
        lzs_table_add(&m->table, slot, tag, m->n_parts) != LZS_OK) {
        free(key);
        return LZS_ENOMEM;
    }
    m->parts[m->n_parts++] = (shared_part){key, n, NULL};
    m->bytes += sizeof *m->parts + 2 * sizeof *m->table.slots + n * sizeof *key;
    return LZS_OK;
}

/* Makes the grammar of a part's program. Takes ownership of the program. */
static lzs_status grammar_of(lzs_part_masks *m, lzs_program *program, lzs_grammar **made) {
    *made = NULL;
    lzs_grammar *g = calloc(1, sizeof *g);
    if (!g) {
        lzs_program_free(program);
        return LZS_ENOMEM;
    }
    g->vocabulary = m->vocabulary;
    g->program = *program;
    g->is_part = true;
    g->whole = true; /* a grammar uses parts only if tokens of one byte complete every place */
    g->path = m->path;
    g->words = m->words;
    g->found = m->found_words;
    lzs_walk_init(g);
    lzs_status status = lzs_automaton_init(&g->automaton, &g->program, PART_BYTES, MAX_WORK);
    if (status == LZS_OK) {
        *made = g;
    } else {
        free_grammar(g);
    }
    return status;
}

/* Finds the shared part that equals a part of a grammar, or adds a shared part. *number is NO_PART if the part cannot
 * be shared. */
static lzs_status find_part(lzs_part_masks *m, const lzs_grammar *g, const lzs_part_range *range, uint32_t *number) {
    lzs_program slice;
    bool made = false;
    size_t n, found = 0;
    *number = NO_PART;
    lzs_status status = lzs_slice(&g->program, range, &slice, &made);
    uint32_t *key = status == LZS_OK && made ? lzs_slice_key(&slice, &n) : NULL;
    if (status == LZS_OK && made && !key) status = LZS_ENOMEM;
    if (status != LZS_OK || !made || n > MAX_KEY) {
        free(key);
        lzs_program_free(&slice);
        return status;
    }
    status = add_part(m, key, n, &found);
    if (status != LZS_OK || m->parts[found].grammar) {
        lzs_program_free(&slice);
    } else {
        status = grammar_of(m, &slice, &m->parts[found].grammar);
        if (status == LZS_OK) m->bytes += bytes_of(m->parts[found].grammar);
    }
    if (status == LZS_OK) *number = (uint32_t)found;
    return status == LZS_ELIMIT ? LZS_OK : status;
}

static lzs_status part_number(lzs_part_masks *m, lzs_grammar *g, size_t part, uint32_t *number) {
    if (g->shared_epoch != m->epoch) {
        for (size_t i = 0; i < g->program.n_parts; i++) g->part_numbers[i] = UNKNOWN_PART;
        g->shared_epoch = m->epoch;
    }
    *number = g->part_numbers[part];
    if (*number != UNKNOWN_PART) return LZS_OK;
    lzs_status status = find_part(m, g, &g->program.parts[part], number);
    if (status == LZS_OK) g->part_numbers[part] = *number;
    return status;
}

/* ---- masks ---- */

/* Finds the mask of some places of a part. `places` has the results of lzs_slice_place. If a limit is reached, leaves
 * *mask unchanged. *mask is valid until the next call. */
static lzs_status mask_of_places(lzs_part_masks *m, lzs_grammar *g, const uint64_t *places, size_t n,
                                 const lzs_part_ends **mask) {
    lzs_automaton *a = &g->automaton;
    size_t before = bytes_of(g);
    int32_t state, number = -1;
    lzs_automaton_begin(a);
    lzs_status status = LZS_OK;
    if (lzs_automaton_used(a) > PART_BYTES / 2) {
        lzs_grammar_forget_masks(g);
        status = lzs_automaton_flush(a, LZS_START, &state);
    }
    size_t n_masks = g->n_masks;
    if (status == LZS_OK) status = lzs_automaton_state_of(a, places, n, &state);
    if (status == LZS_OK) status = lzs_grammar_mask_number(g, state, &number);
    m->made += g->n_masks - n_masks;
    m->found += status == LZS_OK && g->n_masks == n_masks;
    m->bytes += bytes_of(g) - before;
    if (status == LZS_OK && g->ends[number].n_exits <= LZS_PART_EXITS) *mask = &g->ends[number];
    return status == LZS_ELIMIT ? LZS_OK : status;
}

/* As mask_of_places, for part number `part` of a grammar. *mask is NULL if the part has no mask. */
static lzs_status find_mask(lzs_part_masks *m, lzs_grammar *g, size_t part, const uint64_t *places, size_t n,
                            const lzs_part_ends **mask) {
    uint32_t number;
    *mask = NULL;
    if (m->bytes > m->max_bytes) forget(m);
    lzs_status status = part_number(m, g, part, &number);
    if (status == LZS_OK && number != NO_PART) status = mask_of_places(m, m->parts[number].grammar, places, n, mask);
    return status;
}

/* ---- states with places in a part ---- */

/* A state's places inside one part, and its other places. */
typedef struct inside {
    size_t part;     /* the part's number in the program */
    uint64_t around; /* the counters of the loops around the part */
    uint64_t places[MOST_PLACES]; /* places inside the part, translated by lzs_slice_place */
    size_t n;
    uint64_t others[MOST_PLACES];
    size_t n_others;
} inside;

static bool is_inside(const lzs_program *p, const lzs_part_range *part, uint64_t place, uint64_t around,
                      uint64_t *sliced) {
    uint64_t counters;
    if (lzs_place_op(place) < part->first_op || lzs_place_op(place) >= part->end_op) return false;
    *sliced = lzs_slice_place(p, part, place, &counters);
    return counters == around;
}

/* Returns the number of the part that contains an operation, or n_parts if no part contains it. */
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

/* Finds the part in which a state has places. If there are several such parts, takes the part with the largest
 * operation numbers. This part comes first in the text. */
static void look(const lzs_grammar *g, int32_t state, inside *in) {
    const lzs_program *p = &g->program;
    const lzs_dfa_state *s = &g->automaton.states[state];
    const uint64_t *places = g->automaton.places + s->first;
    uint64_t sliced;
    in->n = in->n_others = 0;
    if (s->n > MOST_PLACES) return;
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

/* Returns the index in `behind` of the first node whose byte is at least `byte`. */
static uint32_t first_behind(const lzs_vocabulary *v, const lzs_part_ends *mask, uint8_t byte) {
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

/* Adds the tokens that go on after the part, if their first byte after the part is `byte`. */
static lzs_status add_behind(lzs_grammar *g, const lzs_part_ends *mask, int32_t tail, uint8_t byte, lzs_found *found) {
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

/* Adds the tokens that go on after the part. */
static lzs_status add_tail(lzs_grammar *g, const lzs_part_ends *mask, int32_t tail, lzs_found *found) {
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

static void add_mask(const lzs_grammar *g, const lzs_kept_mask *mask, lzs_found *found) {
    if (mask->base) add_mask(g, lzs_kept_base_mask(mask->base), found);
    if (mask->form == LZS_KEPT_ALLOWED || mask->form == LZS_KEPT_ADDED) {
        for (uint32_t i = 0; i < mask->n; i++) lzs_found_add(found, (int32_t)mask->data[i]);
    } else {
        if (!found->spread) lzs_found_spread(found);
        lzs_kept_write_more(g->vocabulary, mask, found->words);
    }
}

/* Makes the mask of a state from the mask of a part, and sets *done to true. If the part has no mask, leaves *done
 * unchanged. The caller must have taken the flag m->in_use. */
static lzs_status mask_of(lzs_part_masks *m, lzs_grammar *g, int32_t state, const inside *in, int32_t others,
                          lzs_kept_mask *made, bool *done) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_part_ends *mask;
    lzs_found found = lzs_found_none(g);
    int32_t tail;
    lzs_status status = find_mask(m, g, in->part, in->places, in->n, &mask);
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

/* Finds the number of the mask of the places outside the part. *number is -1 if there are no such places. */
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
    /* m->in_use is not taken yet, because the other places may be in another part */
    lzs_status status = mask_of_others(g, &in, &others);
    g->n_nested--;
    if (status != LZS_OK || !lzs_flag_take(&m->in_use)) return status;
    status = mask_of(m, g, state, &in, others, mask, done);
    lzs_flag_give(&m->in_use);
    return status;
}
