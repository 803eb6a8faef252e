/* state_masks.c - which tokens a state of a grammar allows.
 *
 * A mask is made by a walk through the vocabulary's tree and the automaton side by side (walk.h). A mask is made when
 * it is first needed, and is then kept with its state. Four shortcuts avoid parts of the walk without changing the
 * mask. Each item says in parentheses how much longer the masks of 18 regular expressions and schemas take without the
 * shortcut (V = 128,256):
 * - If no token can bring a state's counts to their limits, all states that differ only in these counts share one mask
 *   (twice as long).
 * - If only long tokens can bring the counts to their limits, the states share only the short tokens of a mask (43 %).
 * - Inside a string, inner tokens (vocabulary.h) are added by their number of characters (2.7 times as long).
 * - A mask with few tokens is made as a list, and equal masks are kept once (19 %, and 22 % more memory).
 */
#include "state_masks.h"

#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "part_masks.h"
#include "walk.h"

/* ---- masks that are kept ---- */

static void free_ends(lzs_part_ends *ends) {
    if (ends->mask) lzs_kept_base_leave(ends->mask);
    free(ends->exits);
    free(ends->behind);
}

void lzs_grammar_forget_masks(lzs_grammar *g) {
    for (size_t i = 0; i < g->n_masks; i++) {
        if (g->is_part) {
            free_ends(&g->ends[i]);
        } else {
            lzs_kept_free(&g->masks[i]);
        }
    }
    for (int32_t i = 0; i < g->automaton.n_states; i++) g->automaton.states[i].mask = -1;
    g->n_masks = 0;
    g->mask_bytes = 0;
}

/* Keeps a mask under a new number. Takes ownership of the mask. */
static lzs_status keep(lzs_grammar *g, lzs_kept_mask *mask, int32_t *number) {
    if (!lzs_grow(&g->masks, &g->masks_room, g->n_masks + 1, sizeof *g->masks)) {
        lzs_kept_free(mask);
        return LZS_ENOMEM;
    }
    g->mask_bytes += mask->n * sizeof *mask->data;
    *number = (int32_t)g->n_masks;
    g->masks[g->n_masks++] = *mask;
    return LZS_OK;
}

lzs_status lzs_grammar_keep(lzs_grammar *g, const uint32_t *words, int32_t *number) {
    lzs_kept_mask mask;
    lzs_status status = lzs_kept_make(g->vocabulary, words, &mask);
    return status == LZS_OK ? keep(g, &mask, number) : status;
}

void lzs_grammar_write(const lzs_grammar *g, int32_t number, uint32_t *words) {
    lzs_kept_write(g->vocabulary, &g->masks[number], words);
}

/* Makes `behind`: the children of the exits, sorted by byte. A grammar usually allows only a few bytes after a part,
 * and so reads only a few children. */
static lzs_status sort_behind(const lzs_vocabulary *v, lzs_part_ends *ends, size_t n_exits) {
    uint32_t begins[256] = {0};
    for (int round = 0; round < 2; round++) { /* round 0 counts the children by byte, round 1 stores them */
        for (size_t i = 0; i < n_exits; i++) {
            uint32_t node = ends->exits[i], end = node + v->nodes[node].size;
            for (uint32_t child = node + 1; child < end; child += v->nodes[child].size) {
                uint32_t *at = &begins[v->nodes[child].byte];
                if (round) ends->behind[*at] = child;
                ++*at;
            }
        }
        if (round) break;
        for (int byte = 0; byte < 256; byte++) {
            uint32_t of_byte = begins[byte];
            begins[byte] = ends->n_behind;
            ends->n_behind += of_byte;
        }
        ends->behind = malloc((ends->n_behind ? ends->n_behind : 1) * sizeof *ends->behind);
        if (!ends->behind) return LZS_ENOMEM;
    }
    return LZS_OK;
}

/* Keeps the mask and the exits of a part for other grammars. */
static lzs_status keep_part(lzs_grammar *g, lzs_kept_mask *mask, const lzs_exits *exits, int32_t *number) {
    size_t kept = exits->n <= LZS_PART_EXITS ? exits->n : 0;
    lzs_part_ends ends = {.n_exits = (uint32_t)exits->n, .exits = malloc((kept ? kept : 1) * sizeof *ends.exits)};
    bool ok = ends.exits && lzs_grow(&g->ends, &g->ends_room, g->n_masks + 1, sizeof *g->ends);
    if (ok && kept) memcpy(ends.exits, exits->nodes, kept * sizeof *ends.exits);
    ok = ok && sort_behind(g->vocabulary, &ends, kept) == LZS_OK;
    if (ok) ends.mask = lzs_kept_base_new(mask);
    if (!ends.mask) lzs_kept_free(mask);
    if (!ends.mask || !lzs_grow(&g->masks, &g->masks_room, g->n_masks + 1, sizeof *g->masks)) {
        free_ends(&ends);
        return LZS_ENOMEM;
    }
    g->ends[g->n_masks] = ends;
    g->mask_bytes += (kept + ends.n_behind) * sizeof *ends.exits;
    return keep(g, mask, number); /* cannot fail, because there is room; ends.mask owns the data of the mask */
}

/* ---- shortcuts ---- */

/* Says which part of a state's mask is made without a walk. */
typedef struct lzs_shortcut {
    int level;       /* `level` of lzs_walk_all */
    /* if level > 0: a state that allows the same tokens of up to LZS_SHORT_LEVELS[level - 1] bytes */
    int32_t clamped;
    /* if level is LZS_WALK_OTHERS: *most of lzs_inner_reach (inner.h); else 0 */
    int32_t most;
} lzs_shortcut;

/* Finds the shortcut of a state. `open_end` is as in lzs_inner_reach. */
static lzs_status shorten(lzs_grammar *g, int32_t state, bool open_end, lzs_shortcut *way) {
    static const uint32_t levels[LZS_N_SHORT] = LZS_SHORT_LEVELS;
    *way = (lzs_shortcut){0};
    if (!g->whole) return LZS_OK;
    int32_t most = LZS_INNER_UNKNOWN;
    lzs_status status = LZS_OK;
    if (lzs_automaton_few(&g->automaton, state) == LZS_MANY_BYTES) status = lzs_inner_reach(g, state, open_end, &most);
    if (status != LZS_OK || most != LZS_INNER_UNKNOWN) {
        *way = (lzs_shortcut){.level = LZS_WALK_OTHERS, .most = most};
        return status;
    }
    for (way->level = LZS_N_SHORT; way->level > 0; way->level--) {
        if (levels[way->level - 1] >= g->vocabulary->longest) continue;
        status = lzs_automaton_clamp(&g->automaton, state, levels[way->level - 1], &way->clamped);
        if (status != LZS_OK || way->clamped != state) return status;
    }
    return LZS_OK;
}

/* Begins a mask with the short tokens of the clamped state's mask, which has number `number`. If the added tokens are a
 * list, returns their number. Else returns 0. */
static size_t take_short(const lzs_grammar *g, int32_t number, const uint32_t *shorter, lzs_found *found) {
    const lzs_kept_mask *base = &g->masks[number];
    if (base->form == LZS_KEPT_ALLOWED) {
        for (uint32_t i = 0; i < base->n; i++) {
            if (lzs_bit(shorter, (int32_t)base->data[i])) found->tokens[found->n++] = base->data[i];
        }
        found->known = shorter;
    } else {
        lzs_grammar_write(g, number, found->words);
        for (size_t i = 0; i < found->n_words; i++) found->words[i] &= shorter[i];
        found->spread = true;
    }
    return found->n;
}

/* Whether a new mask equals mask number `number`, from which the new mask took its first `taken` tokens. If so, the new
 * mask need not be kept. */
static bool is_same(const lzs_grammar *g, int32_t number, const lzs_found *found, size_t taken, size_t n_ends) {
    const lzs_kept_mask *base = &g->masks[number];
    if (found->spread) return base->form == LZS_KEPT_WORDS && !memcmp(found->words, base->data,
                                                                      found->n_words * sizeof *found->words);
    return found->n == taken + n_ends && base->n == found->n;
}

/* Copies those exits of mask number `base` that are less than exits->min_depth bytes deep. */
static lzs_status copy_exits(const lzs_grammar *g, int32_t base, lzs_exits *exits) {
    const lzs_part_ends *ends = &g->ends[base];
    if (!lzs_grow(&exits->nodes, &exits->room, ends->n_exits, sizeof *exits->nodes)) return LZS_ENOMEM;
    for (uint32_t i = 0; i < ends->n_exits; i++) {
        if (g->vocabulary->nodes[ends->exits[i]].depth < exits->min_depth) exits->nodes[exits->n++] = ends->exits[i];
    }
    return LZS_OK;
}

/* Begins a mask by the shortcut of a state. If tokens were copied from the clamped state's mask, *base is the number of
 * that mask, and *taken is the number of tokens. Else *base is -1. */
static lzs_status begin_mask(lzs_grammar *g, int32_t state, lzs_shortcut *way, lzs_found *found, lzs_exits *exits,
                             int32_t *base, size_t *taken) {
    static const uint32_t levels[LZS_N_SHORT] = LZS_SHORT_LEVELS;
    const lzs_vocabulary *v = g->vocabulary;
    *base = -1;
    lzs_status status = shorten(g, state, !exits, way);
    if (status == LZS_OK && way->level > 0) status = lzs_grammar_mask_number(g, way->clamped, base);
    if (status != LZS_OK) return status;
    if (*base >= 0 && exits && g->ends[*base].n_exits > LZS_PART_EXITS) {
        *base = -1;
        *way = (lzs_shortcut){0};
    }
    if (*base >= 0) {
        *taken = take_short(g, *base, v->short_words[way->level - 1], found);
        if (exits) exits->min_depth = levels[way->level - 1];
        return exits ? copy_exits(g, *base, exits) : LZS_OK;
    }
    if (way->most != 0) {
        lzs_inner_write(v, way->most, g->words);
        found->spread = true;
    }
    return LZS_OK;
}

/* ---- masks ---- */

/* Makes the mask of a state. The first tokens come from the shortcut, and a walk finds the other tokens. */
static lzs_status make_mask(lzs_grammar *g, int32_t state, lzs_exits *exits, int32_t *number) {
    lzs_found found = lzs_found_none(g);
    lzs_shortcut way;
    size_t taken = 0;
    int32_t base;
    lzs_kept_mask mask;
    lzs_status status = begin_mask(g, state, &way, &found, exits, &base, &taken);
    if (status == LZS_OK) status = lzs_walk_all(g, state, way.level, &found, exits);
    if (status != LZS_OK) return status;
    found.known = NULL;
    const size_t n_ends = exits ? 0 : lzs_walk_ends(g, state, &found);
    const bool *accepts = base < 0 || exits ? NULL : &g->automaton.states[way.clamped].accepts;
    if (accepts && *accepts == g->automaton.states[state].accepts && is_same(g, base, &found, taken, n_ends)) {
        *number = base;
        return LZS_OK;
    }
    status = found.spread ? lzs_kept_make(g->vocabulary, found.words, &mask) : lzs_kept_list(found.tokens, found.n,
                                                                                             &mask);
    if (status != LZS_OK) return status;
    return exits ? keep_part(g, &mask, exits, number) : keep(g, &mask, number);
}

/* As make_mask, but if the state has places in a shared part, uses the masks of this part. */
static lzs_status mask_of(lzs_grammar *g, int32_t state, int32_t *number) {
    lzs_exits exits = {0};
    lzs_kept_mask mask;
    bool shared = false;
    lzs_status status = lzs_shared_mask_of(g, state, &mask, &shared);
    if (shared) return keep(g, &mask, number);
    if (status == LZS_OK) status = make_mask(g, state, g->is_part ? &exits : NULL, number);
    free(exits.nodes);
    return status;
}

/* Finds the number of a state's mask, and makes the mask if needed. Each recursive call is for a state that is clamped
 * for fewer bytes. */
lzs_status lzs_grammar_mask_number(lzs_grammar *g, int32_t state, int32_t *number) {
    *number = g->automaton.states[state].mask;
    if (*number >= 0) return LZS_OK;
    int32_t clamped = state;
    lzs_status status = LZS_OK;
    if (g->whole) status = lzs_automaton_clamp(&g->automaton, state, g->vocabulary->longest, &clamped);
    if (status == LZS_OK && clamped != state) {
        status = lzs_grammar_mask_number(g, clamped, number);
    } else if (status == LZS_OK) {
        status = mask_of(g, state, number);
    }
    if (status == LZS_OK) g->automaton.states[state].mask = *number;
    return status;
}

lzs_status lzs_grammar_mask(lzs_grammar *g, int32_t state, uint32_t *words) {
    int32_t number;
    if (g->engine.mask) {
        memset(words, 0, g->vocabulary->n_words * sizeof *words);
        return (lzs_status)g->engine.mask(g->engine.user, state, words, g->vocabulary->n_words);
    }
    lzs_status status = lzs_grammar_mask_number(g, state, &number);
    if (status == LZS_OK) lzs_grammar_write(g, number, words);
    return status;
}

/* ---- tokens ---- */

lzs_status lzs_grammar_spell(lzs_grammar *g, int32_t state, int32_t token, int32_t *next) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    for (size_t i = v->begins[token]; i < v->begins[token + 1] && state != LZS_DEAD && status == LZS_OK; i++) {
        status = lzs_automaton_step(&g->automaton, state, v->bytes[i], &state);
    }
    *next = state;
    return status;
}

lzs_status lzs_grammar_accept(lzs_grammar *g, int32_t state, int32_t token, int32_t *next) {
    const lzs_vocabulary *v = g->vocabulary;
    *next = LZS_DEAD;
    if (g->engine.accept) return (lzs_status)g->engine.accept(g->engine.user, state, token, next);
    if (v->is_end[token]) {
        if (state == LZS_ENDED || g->automaton.states[state].accepts) *next = LZS_ENDED;
        return LZS_OK;
    }
    if (!lzs_bit(v->texts, token)) return LZS_OK;
    return lzs_grammar_spell(g, state, token, next);
}
