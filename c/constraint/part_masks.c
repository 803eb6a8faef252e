/* part_masks.c - masks of parts that many grammars have, kept for all of them.
 *
 * Parts are known by all that their programs are (slice.h), and masks by the places of their states, so that nothing rests on
 * hashes that may collide.
 */
#include "part_masks.h"

#include <stdlib.h>
#include <string.h>

#include "../atomics.h"
#include "inner.h"
#include "slice.h"
#include "walk.h"

enum {
    DEFAULT_BYTES = 32 << 20,
    PART_BYTES = 8 << 20, /* of the states of one part */
    MAX_WORK = 10000000,
    MAX_KEY = 1 << 16,
    MIN_TABLE = 256
};

#define NO_PART UINT32_MAX            /* a part of a grammar that is not shared */
#define UNKNOWN_PART (UINT32_MAX - 1) /* one that was not looked for yet */
#define NO_MASK SIZE_MAX

typedef struct shared_part {
    uint32_t *key;
    size_t n_key;
    uint64_t hash;
    lzs_grammar *grammar; /* of the part alone; NULL where it could not be made */
} shared_part;

struct lzs_part_masks {
    const lzs_vocabulary *vocabulary;
    size_t max_bytes, bytes;
    uint64_t epoch; /* changes when everything is forgotten */
    shared_part *parts;
    size_t n_parts, parts_room;
    lzs_shared_mask *masks;
    size_t n_masks, masks_room;
    int32_t *table; /* masks by part and places */
    size_t table_size;
    uint64_t found, made;
    lzs_flag in_use;
};

/* ---- life ---- */

static void forget(lzs_part_masks *m) {
    for (size_t i = 0; i < m->n_parts; i++) {
        free(m->parts[i].key);
        lzs_grammar_free(m->parts[i].grammar);
    }
    for (size_t i = 0; i < m->n_masks; i++) {
        free(m->masks[i].places);
        lzs_kept_base_leave(m->masks[i].mask);
        free(m->masks[i].exits);
        free(m->masks[i].behind);
    }
    for (size_t i = 0; i < m->table_size; i++) m->table[i] = -1;
    m->n_parts = m->n_masks = m->bytes = 0;
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
    m->epoch = 1; /* grammars begin with 0 */
    *masks = m;
    return LZS_OK;
}

void lzs_part_masks_free(lzs_part_masks *m) {
    if (!m) return;
    forget(m);
    free(m->parts);
    free(m->masks);
    free(m->table);
    free(m);
}

lzs_status lzs_part_masks_look(lzs_part_masks *m, lzs_part_masks_figures *figures) {
    if (!lzs_flag_take(&m->in_use)) return LZS_ELIMIT;
    *figures = (lzs_part_masks_figures){m->n_parts, m->n_masks, m->bytes, m->found, m->made};
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

static uint64_t mixed(uint64_t hash, uint64_t x) {
    hash = (hash ^ x) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static size_t part_of_key(const lzs_part_masks *m, const uint32_t *key, size_t n, uint64_t *hash) {
    *hash = n;
    for (size_t i = 0; i < n; i++) *hash = mixed(*hash, key[i]);
    size_t i = 0;
    for (; i < m->n_parts; i++) {
        const shared_part *p = &m->parts[i];
        if (p->hash == *hash && p->n_key == n && memcmp(p->key, key, n * sizeof *key) == 0) break;
    }
    return i;
}

/* The number of the part with a key, which is taken over; a new one if there was none. */
static lzs_status add_part(lzs_part_masks *m, uint32_t *key, size_t n, size_t *number) {
    uint64_t hash;
    *number = part_of_key(m, key, n, &hash);
    if (*number < m->n_parts) {
        free(key);
        return LZS_OK;
    }
    if (!lzs_grow(&m->parts, &m->parts_room, m->n_parts + 1, sizeof *m->parts)) {
        free(key);
        return LZS_ENOMEM;
    }
    m->parts[m->n_parts++] = (shared_part){key, n, hash, NULL};
    m->bytes += sizeof *m->parts + n * sizeof *key;
    return LZS_OK;
}

/* Takes the program over. */
static lzs_status grammar_of(const lzs_vocabulary *v, lzs_program *program, lzs_grammar **made) {
    lzs_grammar *g = calloc(1, sizeof *g);
    if (!g) {
        lzs_program_free(program);
        return LZS_ENOMEM;
    }
    g->vocabulary = v;
    g->program = *program;
    g->max_bytes = PART_BYTES;
    g->whole = true; /* the grammars that ask can complete every place */
    g->path = malloc(((size_t)v->longest + 1) * sizeof *g->path);
    g->words = malloc(v->n_words * sizeof *g->words);
    lzs_status status = g->path && g->words ? lzs_automaton_init(&g->automaton, &g->program, PART_BYTES, MAX_WORK) : LZS_ENOMEM;
    if (status != LZS_OK) {
        lzs_grammar_free(g);
        g = NULL;
    }
    *made = g;
    return status;
}

/* Finds a part of a grammar among those that are shared, or adds it. *number is NO_PART where it cannot be. */
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
        status = grammar_of(m->vocabulary, &slice, &m->parts[found].grammar);
        if (status == LZS_OK) m->bytes += lzs_grammar_memory(m->parts[found].grammar);
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

static size_t slot_of(const lzs_part_masks *m, uint32_t part, const uint64_t *places, size_t n) {
    uint64_t hash = part;
    for (size_t i = 0; i < n; i++) hash = mixed(hash, places[i]);
    for (size_t at = (size_t)hash;; at++) {
        int32_t number = m->table[at & (m->table_size - 1)];
        if (number < 0) return at & (m->table_size - 1);
        const lzs_shared_mask *mask = &m->masks[number];
        if (mask->part == part && mask->n_places == n && memcmp(mask->places, places, n * sizeof *places) == 0) {
            return at & (m->table_size - 1);
        }
    }
}

static lzs_status more_table(lzs_part_masks *m) {
    size_t size = m->table_size ? 2 * m->table_size : MIN_TABLE;
    int32_t *table = malloc(size * sizeof *table);
    if (!table) return LZS_ENOMEM;
    for (size_t i = 0; i < size; i++) table[i] = -1;
    free(m->table);
    m->table = table;
    m->table_size = size;
    for (size_t i = 0; i < m->n_masks; i++) {
        const lzs_shared_mask *mask = &m->masks[i];
        table[slot_of(m, mask->part, mask->places, mask->n_places)] = (int32_t)i;
    }
    return LZS_OK;
}

static bool is_used(const lzs_shared_mask *mask) {
    return mask->n_exits <= LZS_PART_EXITS;
}

static size_t find_mask(const lzs_part_masks *m, uint32_t part, const uint64_t *places, size_t n) {
    int32_t number = m->table_size ? m->table[slot_of(m, part, places, n)] : -1;
    return number < 0 ? NO_MASK : (size_t)number;
}

static void *copied(const void *from, size_t n) {
    void *copy = malloc(n ? n : 1);
    if (copy && n) memcpy(copy, from, n);
    return copy;
}

/* Sorts what follows the exits of a mask by bytes: what may follow the part in a grammar are few of them as a rule. */
static lzs_status sort_behind(const lzs_vocabulary *v, lzs_shared_mask *mask, size_t n_exits) {
    uint32_t begins[256] = {0};
    for (int round = 0; round < 2; round++) { /* counts, and then places */
        for (size_t i = 0; i < n_exits; i++) {
            uint32_t node = mask->exits[i], end = node + v->nodes[node].size;
            for (uint32_t child = node + 1; child < end; child += v->nodes[child].size) {
                uint32_t *at = &begins[v->nodes[child].byte];
                if (round) mask->behind[*at] = child;
                ++*at;
            }
        }
        if (round) break;
        for (int byte = 0; byte < 256; byte++) {
            uint32_t of_byte = begins[byte];
            begins[byte] = mask->n_behind;
            mask->n_behind += of_byte;
        }
        mask->behind = malloc((mask->n_behind ? mask->n_behind : 1) * sizeof *mask->behind);
        if (!mask->behind) return LZS_ENOMEM;
    }
    return LZS_OK;
}

/* Keeps the mask in `words`. */
static lzs_status keep(lzs_part_masks *m, uint32_t part, const uint64_t *places, size_t n, const uint32_t *words,
                       const uint32_t *exits, size_t n_exits, size_t *number) {
    lzs_shared_mask mask = {.part = part, .n_places = (uint32_t)n, .n_exits = (uint32_t)n_exits};
    size_t kept = n_exits <= LZS_PART_EXITS ? n_exits : 0;
    lzs_status status = 2 * (m->n_masks + 1) > m->table_size ? more_table(m) : LZS_OK;
    lzs_kept_mask made;
    if (status == LZS_OK) status = lzs_kept_make(m->vocabulary, words, &made);
    if (status != LZS_OK) return status;
    mask.mask = lzs_kept_base_new(&made);
    if (!mask.mask) {
        lzs_kept_free(&made);
        return LZS_ENOMEM;
    }
    mask.places = copied(places, n * sizeof *places);
    mask.exits = copied(exits, kept * sizeof *exits);
    bool room = mask.places && mask.exits && sort_behind(m->vocabulary, &mask, kept) == LZS_OK;
    if (!room || !lzs_grow(&m->masks, &m->masks_room, m->n_masks + 1, sizeof *m->masks)) {
        lzs_kept_base_leave(mask.mask);
        free(mask.behind);
        free(mask.places);
        free(mask.exits);
        return LZS_ENOMEM;
    }
    *number = m->n_masks;
    m->table[slot_of(m, part, places, n)] = (int32_t)m->n_masks;
    m->masks[m->n_masks++] = mask;
    m->bytes += sizeof mask + 4 * sizeof *m->table + n * sizeof *places + (kept + mask.n_behind + made.n) * sizeof *exits;
    return LZS_OK;
}

static lzs_status mask_of_state(lzs_part_masks *m, uint32_t part, int32_t state, size_t *number);

/* Exits of a clamped state that are fewer than `depth` bytes deep. */
static lzs_status copy_exits(const lzs_part_masks *m, size_t base, uint32_t depth, lzs_exits *exits) {
    const lzs_shared_mask *mask = &m->masks[base];
    if (!lzs_grow(&exits->nodes, &exits->room, mask->n_exits, sizeof *exits->nodes)) return LZS_ENOMEM;
    for (uint32_t i = 0; i < mask->n_exits; i++) {
        if (m->vocabulary->nodes[mask->exits[i]].depth < depth) exits->nodes[exits->n++] = mask->exits[i];
    }
    return LZS_OK;
}

/* Makes the mask of a state of a part, as grammar.c does it, with the exits. */
static lzs_status make_mask(lzs_part_masks *m, uint32_t part, int32_t state, const uint64_t *places, size_t n, size_t *number) {
    static const uint32_t levels[LZS_N_SHORT] = LZS_SHORT_LEVELS;
    const lzs_vocabulary *v = m->vocabulary;
    lzs_grammar *g = m->parts[part].grammar;
    lzs_exits exits = {0};
    lzs_shortcut way;
    size_t base = NO_MASK;
    lzs_status status = lzs_grammar_shorten(g, state, false, &way);
    if (status == LZS_OK && way.level > 0) status = mask_of_state(m, part, way.clamped, &base);
    if (status == LZS_OK && base != NO_MASK && is_used(&m->masks[base])) {
        exits.min_depth = levels[way.level - 1];
        lzs_kept_write(v, lzs_kept_base_mask(m->masks[base].mask), g->words);
        for (size_t i = 0; i < v->n_words; i++) g->words[i] &= v->short_words[way.level - 1][i];
        status = copy_exits(m, base, exits.min_depth, &exits);
    } else {
        if (way.level > 0) way = (lzs_shortcut){0};
        lzs_inner_write(v, way.most, g->words);
    }
    lzs_found found = {.words = g->words, .n_words = v->n_words, .spread = true};
    if (status == LZS_OK) status = lzs_walk_all(g, state, way.level, &found, &exits);
    if (status == LZS_OK) status = keep(m, part, places, n, g->words, exits.nodes, exits.n, number);
    free(exits.nodes);
    m->made += status == LZS_OK;
    return status;
}

/* It calls itself with states whose counts are clamped at ever smaller levels. */
static lzs_status mask_of_state(lzs_part_masks *m, uint32_t part, int32_t state, size_t *number) {
    lzs_automaton *a = &m->parts[part].grammar->automaton;
    *number = NO_MASK;
    lzs_status status = lzs_automaton_clamp(a, state, m->vocabulary->longest, &state);
    if (status != LZS_OK) return status;
    uint64_t places[LZS_PART_PLACES]; /* those of the automaton may move */
    size_t n = a->states[state].n;
    if (n > LZS_PART_PLACES) return LZS_OK;
    memcpy(places, a->places + a->states[state].first, n * sizeof *places);
    *number = find_mask(m, part, places, n);
    return *number == NO_MASK ? make_mask(m, part, state, places, n, number) : LZS_OK;
}

/* The mask of some places of a part; NO_MASK where a limit forbids it. */
static lzs_status mask_of_places(lzs_part_masks *m, uint32_t part, const uint64_t *places, size_t n, size_t *number) {
    *number = find_mask(m, part, places, n);
    if (*number != NO_MASK) {
        m->found++;
        return LZS_OK;
    }
    lzs_grammar *g = m->parts[part].grammar;
    lzs_automaton *a = &g->automaton;
    size_t before = lzs_grammar_memory(g);
    int32_t state = LZS_START;
    lzs_automaton_begin(a);
    lzs_status status = lzs_automaton_used(a) > PART_BYTES / 2 ? lzs_automaton_flush(a, LZS_START, &state) : LZS_OK;
    if (status == LZS_OK) status = lzs_automaton_state_of(a, places, n, &state);
    if (status == LZS_OK) status = make_mask(m, part, state, places, n, number);
    m->bytes += lzs_grammar_memory(g) - before;
    return status == LZS_ELIMIT ? LZS_OK : status;
}

lzs_status lzs_part_masks_find(lzs_part_masks *m, lzs_grammar *g, size_t part, const uint64_t *places, size_t n,
                               const lzs_shared_mask **mask) {
    uint32_t number;
    size_t found = NO_MASK;
    *mask = NULL;
    if (m->bytes > m->max_bytes) forget(m);
    lzs_status status = part_number(m, g, part, &number);
    if (status == LZS_OK && number != NO_PART) status = mask_of_places(m, number, places, n, &found);
    if (status == LZS_OK && found != NO_MASK && is_used(&m->masks[found])) *mask = &m->masks[found];
    return status;
}

bool lzs_part_masks_begin(lzs_part_masks *m) {
    return lzs_flag_take(&m->in_use);
}

void lzs_part_masks_end(lzs_part_masks *m) {
    lzs_flag_give(&m->in_use);
}
