/* proper.c - the tokens of a grammar that are also those that the model's tokenizer would write.
 *
 * Two tokens that the tokenizer never writes side by side are forbidden by the rules of the vocabulary alone. But a token can be
 * wrong only because of what must come: where the grammar goes on with "ame", `"n` is wrong if `"name` is a token. So a token
 * is allowed if tokens that may stand side by side lead from it to the goal: to the end of a text that matches or, where only
 * forced bytes are spelled as the tokenizer would, to where nothing is forced. A search finds the way. Ways are kept by the state
 * and context that they begin in: they serve all tokens that lead there, but for those that must not stand beside their first
 * token, and these are few.
 */
#include "proper.h"

#include <stdlib.h>
#include <string.h>

#include "ways.h"

enum { MIN_TABLE = 256, MANY = 24 };

/* ---- life ---- */

void lzs_proper_forget(lzs_proper *p) {
    p->n_turns = 0;
    p->n_notes = p->n_seen = p->n_asked_turns = p->n_lasts = 0;
    for (size_t i = 0; i < p->lasts_size; i++) p->lasts[i].turn = -1;
    for (size_t i = 0; i < p->table_size; i++) p->table[i] = -1;
    if (p->seen_size) memset(p->seen, 0, p->seen_size * sizeof *p->seen);
}

void lzs_proper_free(lzs_proper *p) {
    if (!p) return;
    lzs_contexts_free(&p->contexts);
    free(p->turns);
    free(p->table);
    free(p->notes);
    free(p->distances);
    free(p->seen);
    free(p->lasts);
    free(p->stack);
    free(p->candidates);
    free(p->asked);
    free(p->asked_turns);
    free(p->apart_path);
    free(p->either_path);
    free(p->apart_words);
    free(p->either_words);
    free(p->before);
    free(p);
}

size_t lzs_proper_memory(const lzs_proper *p) {
    const lzs_vocabulary *v = p->spelling->vocabulary;
    return sizeof *p + lzs_contexts_memory(&p->contexts) + p->turns_room * sizeof *p->turns + p->table_size * sizeof *p->table +
           p->notes_room * sizeof *p->notes + p->seen_size * sizeof *p->seen + p->stack_room * sizeof *p->stack +
           p->candidates_room * sizeof *p->candidates +
           p->lasts_size * sizeof *p->lasts + p->asked_room * sizeof *p->asked + p->asked_turns_room * sizeof *p->asked_turns +
           2 * ((size_t)v->longest + 1) * sizeof(int32_t) + 3 * v->n_words * sizeof(uint32_t);
}

size_t lzs_proper_used(const lzs_proper *p) {
    return (size_t)p->n_turns * (sizeof *p->turns + 2 * sizeof *p->table) + p->n_notes * sizeof *p->notes + 2 * p->n_seen * sizeof *p->seen +
           2 * p->n_lasts * sizeof *p->lasts;
}

/* The bytes from each operation to the end, if every loop could be left at once. */
static void measure(const lzs_program *program, uint32_t *distances) {
    memset(distances, 0xFF, program->n_ops * sizeof *distances);
    for (bool changed = true; changed;) { /* most operations lead to ones that were built before them */
        changed = false;
        for (size_t i = 0; i < program->n_ops; i++) {
            const lzs_op *op = &program->ops[i];
            uint32_t least = UINT32_MAX;
            switch ((lzs_op_kind)op->kind) {
            case LZS_OP_BYTES:
                for (uint32_t k = 0; k < op->n; k++) {
                    uint32_t to = distances[program->edges[op->first + k].to];
                    if (to != UINT32_MAX && to + 1 < least) least = to + 1;
                }
                break;
            case LZS_OP_SPLIT:
                for (uint32_t k = 0; k < op->n; k++) {
                    uint32_t to = distances[program->targets[op->first + k]];
                    if (to < least) least = to;
                }
                break;
            case LZS_OP_ENTER:
                least = distances[program->loops[op->first].entry];
                if (program->loops[op->first].min == 0 && distances[program->loops[op->first].exit] < least) {
                    least = distances[program->loops[op->first].exit];
                }
                break;
            case LZS_OP_NEXT: least = distances[program->loops[op->first].exit]; break;
            case LZS_OP_ACCEPT: least = 0; break;
            }
            if (least < distances[i]) {
                distances[i] = least;
                changed = true;
            }
        }
    }
}

static lzs_status init(lzs_proper *p, const lzs_grammar *g) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_program *program = &g->program;
    p->distances = malloc(program->n_ops * sizeof *p->distances);
    p->apart_path = malloc(((size_t)v->longest + 1) * sizeof *p->apart_path);
    p->either_path = malloc(((size_t)v->longest + 1) * sizeof *p->either_path);
    p->apart_words = malloc(v->n_words * sizeof *p->apart_words);
    p->either_words = malloc(v->n_words * sizeof *p->either_words);
    p->before = malloc(v->n_words * sizeof *p->before);
    if (!p->distances || !p->apart_path || !p->either_path) return LZS_ENOMEM;
    if (!p->apart_words || !p->either_words || !p->before) return LZS_ENOMEM;
    measure(program, p->distances);
    return lzs_contexts_init(&p->contexts, &p->spelling->words);
}

lzs_status lzs_grammar_set_tokenization(lzs_grammar *g, const lzs_spelling *spelling, int32_t tokenization) {
    if (!g || g->engine.accept || tokenization < LZS_TOKENIZATION_ANY || tokenization > LZS_TOKENIZATION_PROPER) return LZS_EINVAL;
    bool any = tokenization == LZS_TOKENIZATION_ANY;
    if (g->proper || (!any && (!spelling || spelling->vocabulary != g->vocabulary))) return LZS_EINVAL;
    if (g->open && tokenization == LZS_TOKENIZATION_FORCED) return LZS_EINVAL; /* nothing is forced */
    if (any) return LZS_OK;
    lzs_proper *p = calloc(1, sizeof *p);
    if (!p) return LZS_ENOMEM;
    p->spelling = spelling;
    p->tokenization = (lzs_tokenization)tokenization;
    lzs_status status = init(p, g);
    g->proper = status == LZS_OK ? p : NULL;
    if (status != LZS_OK) lzs_proper_free(p);
    return status;
}

/* ---- masks ---- */

static void set_bit(uint32_t *words, int32_t token) {
    words[token / 32] |= UINT32_C(1) << (token % 32);
}

/* Allows a token from which so many bytes lead to the goal. */
static void allow(lzs_proper *p, int32_t token, bool apart, bool either, uint32_t behind) {
    uint32_t bytes = lzs_token_bytes(p, token) + behind;
    if (bytes > p->longest) p->longest = bytes;
    if (apart) set_bit(p->apart_words, token);
    if (either) set_bit(p->either_words, token);
}

/* The turn of a state and a context, or -1 for the goal. */
static lzs_status destination(lzs_grammar *g, int32_t state, int32_t context, int32_t *turn) {
    lzs_proper *p = g->proper;
    struct lzs_destination *d = &p->destinations[lzs_mixed(lzs_pair_key(state, context)) % LZS_DESTINATIONS];
    lzs_status status = LZS_OK;
    if (d->state != state || d->context != context) {
        bool goal;
        *d = (struct lzs_destination){.turn = -1};
        status = lzs_is_goal(g, state, context, &goal);
        if (status == LZS_OK && !goal) status = lzs_turn_of(p, state, context, &d->turn);
        if (status != LZS_OK) return status;
        d->state = state;
        d->context = context;
    }
    *turn = d->turn;
    return LZS_OK;
}

/* A token leads to a state and context: it is allowed if that is the goal, else it is asked about later. */
static lzs_status ask(lzs_grammar *g, int32_t token, int32_t state, int32_t context, bool apart, bool either) {
    lzs_proper *p = g->proper;
    int32_t number;
    lzs_status status = destination(g, state, context, &number);
    if (status != LZS_OK) return status;
    if (number < 0) {
        allow(p, token, apart, either, 0);
        return LZS_OK;
    }
    if (!lzs_grow(&p->asked, &p->asked_room, p->n_asked + 1, sizeof *p->asked)) return LZS_ENOMEM;
    int32_t *first = &p->turns[number].asked;
    if (*first < 0) {
        if (!lzs_grow(&p->asked_turns, &p->asked_turns_room, p->n_asked_turns + 1, sizeof *p->asked_turns)) return LZS_ENOMEM;
        p->asked_turns[p->n_asked_turns++] = number;
    }
    p->asked[p->n_asked] = (struct lzs_asked){token, *first, apart, either};
    *first = (int32_t)p->n_asked++;
    return LZS_OK;
}

/* A token that leads to a state, and to one of two contexts. */
static lzs_status ask_both(lzs_grammar *g, int32_t token, int32_t state, int32_t apart, int32_t either) {
    if (apart == either) return apart ? ask(g, token, state, apart, true, true) : LZS_OK;
    lzs_status status = apart ? ask(g, token, state, apart, true, false) : LZS_OK;
    return status == LZS_OK && either ? ask(g, token, state, either, false, true) : status;
}

/* The same for a token of any kind; the contexts are those that its bytes lead to. */
static lzs_status reach(lzs_grammar *g, int32_t context, int32_t token, int32_t state, int32_t apart, int32_t either) {
    lzs_proper *p = g->proper;
    const lzs_spelling *s = p->spelling;
    lzs_status status = LZS_OK;
    if (s->by_scores || s->roles[token] != LZS_TOKEN_USUAL) {
        status = lzs_spelling_step(s, &p->contexts, context, token, LZS_EITHER, &either);
        apart = s->by_scores ? LZS_NO_CONTEXT : either;
    } else if (!s->merges.written[token]) { /* then it is a word by itself, if it can be written at all */
        either = LZS_NO_CONTEXT;
        if (!s->whole_words) apart = LZS_NO_CONTEXT;
    }
    return status == LZS_OK ? ask_both(g, token, state, apart, either) : status;
}

/* Goes through all tokens that may follow a state in a context. */
static lzs_status walk(lzs_grammar *g, int32_t state, int32_t context) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    bool by_bytes = !p->spelling->by_scores;
    g->path[0] = state;
    for (size_t i = 0; i < v->n_nodes;) {
        const lzs_trie_node *node = &v->nodes[i];
        size_t depth = node->depth;
        int32_t to, apart = LZS_NO_CONTEXT, either = LZS_NO_CONTEXT;
        lzs_status status = lzs_automaton_step(&g->automaton, g->path[depth - 1], node->byte, &to);
        if (status != LZS_OK) return status;
        if (to == LZS_DEAD) {
            i += node->size;
            continue;
        }
        if (by_bytes && depth == 1) {
            status = lzs_contexts_step(&p->contexts, context, node->byte, LZS_APART, &apart);
            if (status == LZS_OK) status = lzs_contexts_step(&p->contexts, context, node->byte, LZS_EITHER, &either);
        } else if (by_bytes) {
            if (p->apart_path[depth - 1]) {
                status = lzs_contexts_step(&p->contexts, p->apart_path[depth - 1], node->byte, LZS_INSIDE, &apart);
            }
            if (status == LZS_OK && p->either_path[depth - 1] == p->apart_path[depth - 1]) {
                either = apart;
            } else if (status == LZS_OK) {
                status = lzs_contexts_step(&p->contexts, p->either_path[depth - 1], node->byte, LZS_INSIDE, &either);
            }
        }
        if (status != LZS_OK) return status;
        if (by_bytes && !apart && !either && !p->spelling->some_whole) {
            i += node->size;
            continue;
        }
        g->path[depth] = to;
        p->apart_path[depth] = apart;
        p->either_path[depth] = either;
        if (p->spelling->plain[i]) {
            status = ask_both(g, node->token, to, apart, either);
        } else {
            for (int32_t token = node->token; token >= 0 && status == LZS_OK; token = v->same[token]) {
                status = reach(g, context, token, to, apart, either);
            }
        }
        if (status != LZS_OK) return status;
        i++;
    }
    return LZS_OK;
}

/* Allows the tokens that lead to a turn and can go on one of its ways. The others are asked about still. */
static void go_way(lzs_proper *p, lzs_turn *turn, lzs_way way) {
    const lzs_spelling *s = p->spelling;
    int32_t n = 0;
    for (int32_t i = turn->asked; i >= 0 && n <= MANY; i = p->asked[i].next) n++;
    bool marks = n > MANY && !way.apart && s->roles[way.token] == LZS_TOKEN_USUAL && s->merges.written[way.token];
    if (marks) {
        memset(p->before, 0, s->vocabulary->n_words * sizeof *p->before);
        lzs_merges_mark_before(&s->merges, way.token, p->before);
    }
    int32_t *link = &turn->asked;
    while (*link >= 0) {
        struct lzs_asked *asked = &p->asked[*link];
        bool marked = marks && s->roles[asked->token] == LZS_TOKEN_USUAL && s->merges.written[asked->token];
        bool may = marked ? !lzs_bit(p->before, asked->token) : lzs_way_fits(p, asked->token, way);
        if (may) {
            allow(p, asked->token, asked->apart, asked->either, way.bytes);
            *link = asked->next;
        } else {
            link = &asked->next;
        }
    }
}

/* Decides about all tokens that lead to a turn. */
static lzs_status answer(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    /* Inside a character most bytes would join with most tokens, so that a way of one token is seldom that of another. */
    bool shared = p->contexts.all[p->turns[number].context].node == 0;
    for (int32_t i = 0; shared && i < p->turns[number].n_ways; i++) go_way(p, &p->turns[number], p->turns[number].ways[i]);
    while (p->turns[number].asked >= 0) {
        const struct lzs_asked asked = p->asked[p->turns[number].asked];
        bool found;
        lzs_status status = lzs_find_way(g, p->turns[number].state, p->turns[number].context, asked.token, &found);
        if (status != LZS_OK) return status;
        p->turns[number].asked = asked.next;
        if (!found) continue;
        allow(p, asked.token, asked.apart, asked.either, p->way_bytes - lzs_token_bytes(p, asked.token));
        if (shared) go_way(p, &p->turns[number], p->turns[number].ways[p->turns[number].n_ways - 1]);
    }
    return LZS_OK;
}

static lzs_status make(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    int32_t state = p->turns[number].state, context = p->turns[number].context;
    for (size_t i = 0; i < p->n_asked_turns; i++) p->turns[p->asked_turns[i]].asked = -1; /* left by a step that failed */
    p->n_asked = p->n_asked_turns = 0;
    p->longest = 0;
    memset(p->destinations, 0, sizeof p->destinations);
    memset(p->apart_words, 0, v->n_words * sizeof *p->apart_words);
    memset(p->either_words, 0, v->n_words * sizeof *p->either_words);
    lzs_status status = walk(g, state, context);
    for (size_t i = 0; i < p->n_asked_turns && status == LZS_OK; i++) status = answer(g, p->asked_turns[i]);
    int32_t apart = -1, either = -1;
    if (status == LZS_OK && !p->spelling->by_scores) status = lzs_grammar_keep(g, p->apart_words, &apart);
    if (status == LZS_OK) status = lzs_grammar_keep(g, p->either_words, &either);
    if (status != LZS_OK) return status;
    p->turns[number].apart = apart;
    p->turns[number].either = either;
    p->turns[number].longest = p->longest;
    p->turns[number].made = true;
    return LZS_OK;
}

static struct lzs_last *last_slot(const lzs_proper *p, int32_t turn, int32_t last) {
    for (size_t at = (size_t)lzs_mixed(lzs_pair_key(turn, last));; at++) {
        struct lzs_last *slot = &p->lasts[at & (p->lasts_size - 1)];
        if (slot->turn < 0 || (slot->turn == turn && slot->last == last)) return slot;
    }
}

static lzs_status more_lasts(lzs_proper *p) {
    size_t size = p->lasts_size ? 2 * p->lasts_size : MIN_TABLE, old = p->lasts_size;
    struct lzs_last *before = p->lasts, *lasts = malloc(size * sizeof *lasts);
    if (!lasts) return LZS_ENOMEM;
    for (size_t i = 0; i < size; i++) lasts[i].turn = -1;
    p->lasts = lasts;
    p->lasts_size = size;
    for (size_t i = 0; i < old; i++) {
        if (before[i].turn >= 0) *last_slot(p, before[i].turn, before[i].last) = before[i];
    }
    free(before);
    return LZS_OK;
}

/* Keeps the mask of a turn behind a token while there is much room: it is made again in little time. */
static lzs_status keep_last(lzs_grammar *g, int32_t turn, int32_t last, const uint32_t *words) {
    lzs_proper *p = g->proper;
    if (g->mask_bytes > g->max_bytes / 4 || lzs_proper_used(p) > g->max_bytes / 8) return LZS_OK;
    if (2 * (p->n_lasts + 1) > p->lasts_size) {
        lzs_status status = more_lasts(p);
        if (status != LZS_OK) return status;
    }
    int32_t mask;
    lzs_status status = lzs_grammar_keep(g, words, &mask);
    if (status != LZS_OK) return status;
    *last_slot(p, turn, last) = (struct lzs_last){turn, last, mask};
    p->n_lasts++;
    return LZS_OK;
}

enum { FAR = 16 }; /* bytes to the limit of a count from which on it may be far */

/* Finds a turn with the same masks, so that not every count has its own: that of the state without the counts that are far from
 * their limits. What such a state does not allow is not allowed here either. What it allows is allowed here if all its ways to
 * the goal are short enough for the counts. */
static lzs_status find_same(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    const int32_t state = p->turns[number].state, context = p->turns[number].context;
    int32_t far, other, clamped;
    p->turns[number].same = number;
    if (!g->program.n_loops || p->tokenization != LZS_TOKENIZATION_PROPER) return LZS_OK;
    lzs_status status = lzs_automaton_clamp_high(&g->automaton, state, FAR, &far);
    if (status != LZS_OK || far == state) return status;
    status = lzs_turn_of(p, far, context, &other);
    if (status == LZS_OK && !p->turns[other].made) { /* it is worth making where it will do */
        status = lzs_automaton_clamp_high(&g->automaton, state, g->vocabulary->longest, &clamped);
        if (status == LZS_OK && clamped != far) return LZS_OK;
        if (status == LZS_OK) status = make(g, other);
    }
    if (status != LZS_OK) return status;
    uint32_t longest = p->turns[other].longest;
    status = lzs_automaton_clamp_high(&g->automaton, state, longest ? longest : 1, &clamped);
    if (status == LZS_OK && clamped == far) p->turns[number].same = other;
    return status;
}

/* The tokens that the tokenizer writes behind `last` and that lead to the goal. */
static lzs_status write_proper(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words) {
    lzs_proper *p = g->proper;
    int32_t number;
    lzs_status status = lzs_turn_of(p, state, context, &number);
    if (status == LZS_OK && p->turns[number].same < 0) {
        status = find_same(g, number);
        if (status != LZS_OK) p->turns[number].same = -1;
    }
    if (status != LZS_OK) return status;
    number = p->turns[number].same;
    if (p->n_lasts) {
        const struct lzs_last *known = last_slot(p, number, last);
        if (known->turn >= 0) {
            lzs_grammar_write(g, known->mask, words);
            return LZS_OK;
        }
    }
    if (!p->turns[number].made) status = make(g, number);
    if (status != LZS_OK) return status;
    lzs_grammar_write(g, p->turns[number].either, words);
    lzs_spelling_forbid(p->spelling, last, words);
    if (p->turns[number].apart >= 0) {
        lzs_grammar_write(g, p->turns[number].apart, p->apart_words);
        for (size_t i = 0; i < g->vocabulary->n_words; i++) words[i] |= p->apart_words[i];
    }
    return keep_last(g, number, last, words);
}

static void allow_others(const lzs_grammar *g, uint32_t *words) {
    const lzs_vocabulary *v = g->vocabulary;
    for (size_t i = 0; i < v->n_words; i++) words[i] |= ~v->texts[i];
    if (v->n_vocab % 32) words[v->n_words - 1] &= (UINT32_C(1) << (v->n_vocab % 32)) - 1;
}

static bool is_empty(const lzs_grammar *g, const uint32_t *words) {
    uint32_t any = 0;
    for (size_t i = 0; i < g->vocabulary->n_words; i++) any |= words[i];
    return !any;
}

int32_t lzs_proper_begin(const lzs_grammar *g) {
    return g->open ? LZS_ANY_CONTEXT : LZS_TEXT_BEGINS;
}

lzs_status lzs_proper_mask(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    if (state == LZS_DEAD || state == LZS_ENDED) return lzs_grammar_mask(g, state, words);
    if (last >= 0 && !lzs_bit(v->texts, last)) last = -1;
    if (p->tokenization == LZS_TOKENIZATION_FORCED) {
        if (!lzs_automaton_forces(&g->automaton, state)) return lzs_grammar_mask(g, state, words);
        status = write_proper(g, last, state, context, words);
        if (status == LZS_OK && is_empty(g, words)) status = write_proper(g, -1, state, LZS_ANY_CONTEXT, words);
        return status == LZS_OK && is_empty(g, words) ? lzs_grammar_mask(g, state, words) : status;
    }
    status = write_proper(g, last, state, context, words);
    if (status != LZS_OK) return status;
    if (g->open) {
        allow_others(g, words);
    } else if (g->automaton.states[state].accepts && lzs_contexts_may_end(&p->contexts, context)) {
        for (size_t i = 0; i < v->n_ends; i++) set_bit(words, v->ends[i]);
    }
    return LZS_OK;
}

lzs_status lzs_proper_accept(lzs_grammar *g, int32_t last, int32_t token, int32_t *state, int32_t *context) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    bool is_text = lzs_bit(v->texts, token);
    if (g->open && !is_text) { /* the text begins anew behind it */
        *context = LZS_TEXT_BEGINS;
        return LZS_OK;
    }
    if (v->is_end[token] && p->tokenization == LZS_TOKENIZATION_PROPER && !lzs_contexts_may_end(&p->contexts, *context)) {
        *state = *state == LZS_ENDED ? LZS_ENDED : LZS_DEAD;
        return LZS_OK;
    }
    lzs_status status = lzs_grammar_accept(g, *state, token, state);
    if (status != LZS_OK || *state == LZS_DEAD || !is_text) return status;
    if (last >= 0 && !lzs_bit(v->texts, last)) last = -1;
    status = lzs_spelling_step(p->spelling, &p->contexts, *context, token, lzs_spelling_joint(p->spelling, last, token), context);
    if (status != LZS_OK || *context) return status;
    *context = LZS_ANY_CONTEXT;
    if (p->tokenization == LZS_TOKENIZATION_PROPER && !g->open) *state = LZS_DEAD;
    return LZS_OK;
}
