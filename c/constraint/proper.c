/* proper.c - restricts a grammar to the tokens that the model's tokenizer would write.
 *
 * The rules of the vocabulary forbid pairs of tokens that the tokenizer never writes side by side. A token can also be
 * wrong because of the text that must follow. Example: the grammar goes on with "ame", and `"name` is a token. Then
 * `"n` is wrong. So a token is allowed only if a way leads from the token to the goal. A way is a sequence of tokens in
 * which every two neighbours may stand side by side. The goal is the end of a text that matches. With
 * LZS_TOKENIZATION_FORCED, the goal is a state that forces no byte.
 *
 * A turn is a state of the automaton together with a context (words.h), and each turn has masks of its own. A search
 * finds a way, and stores it in the turns along the way. So one way serves all tokens that lead to a turn, except the
 * few tokens that must not stand beside the way's first token.
 */
#include "proper.h"

#include <stdlib.h>
#include <string.h>

#include "../table.h"
#include "completion.h"
#include "spelling.h"
#include "state_masks.h"

#define NO_WAY 0
#define NOT_TRIED UINT32_MAX

enum { MAX_LEAD = 48, MAX_FIRST = 12, MANY = 24 };
enum { FAR = 16 }; /* a count is "far" if it is at least this many bytes from its limit */

/* A way from a turn to the goal. */
typedef struct lzs_way {
    int32_t token;
    bool apart;     /* whether any token may precede `token`, not only a token that may stand beside `token` */
    uint32_t bytes; /* number of bytes of all tokens of the way */
} lzs_way;

enum { LZS_MAX_WAYS = 8, LZS_DESTINATIONS = 256 };

/* A turn. The masks of a turn have the tokens that the tokenizer may write at the turn and that lead to the goal. */
typedef struct lzs_turn {
    int32_t state, context;
    bool made;
    /* number of the mask of tokens that begin a word and so are allowed after any token; -1 if there is none */
    int32_t apart;
    int32_t either; /* number of the mask of tokens that are allowed after each token beside which they may stand */
    int32_t n_ways;
    lzs_way ways[LZS_MAX_WAYS];
    uint32_t longest; /* largest number of bytes of an allowed token together with its way to the goal */
    int32_t same;     /* number of the turn whose masks this turn uses; -1 if unknown */
    int32_t asked; /* used while masks are made: index in `asked` of the first token that leads to this turn, or -1 */
} lzs_turn;

struct lzs_proper {
    const lzs_spelling *spelling;
    lzs_tokenization tokenization;
    lzs_contexts contexts;
    lzs_turn *turns;
    int32_t n_turns;
    size_t turns_room;
    lzs_table of_turns; /* finds turns by state and context */
    struct lzs_state_note {
        bool known;
        int16_t lead; /* first byte of a shortest text from the state to the end, or -1 */
    } *notes; /* (n_notes) by state */
    size_t n_notes, notes_room;
    uint32_t *distances; /* (n_ops) by operation: least number of bytes to the end, as if loops had no counts */
    /* Tokens that searches tried, with the state and context to which they lead. */
    struct lzs_seen {
        int32_t state, context, token;
        /* number of the last search that tried the token, NO_WAY if there is no way to the goal, or NOT_TRIED */
        uint32_t search;
    } *seen;
    size_t n_seen, seen_room;
    lzs_table of_seen;
    uint32_t search;
    /* The mask of turn `turn` after token `last`. These masks are kept only while there is room. */
    struct lzs_last {
        int32_t turn, last, mask;
    } *lasts;
    size_t n_lasts, lasts_room;
    lzs_table of_lasts;
    uint32_t way_bytes; /* number of bytes of the last found way and of the token before this way */
    uint32_t longest;   /* `longest` of the turn whose masks are being made */
    struct lzs_try *stack;
    size_t n_stack, stack_room;
    int32_t *candidates; /* (candidates_room) the candidates of all entries of the stack, contiguous */
    size_t candidates_room;
    /* Scratch memory for making masks. */
    struct lzs_destination {
        int32_t state, context; /* `context` is LZS_NO_CONTEXT in an unused entry */
        int32_t turn;           /* number of the turn, or -1 if state and context are the goal */
    } destinations[LZS_DESTINATIONS];
    struct lzs_asked {
        int32_t token, next;
        bool apart, either;
    } *asked;
    size_t n_asked, asked_room;
    int32_t *asked_turns;
    size_t n_asked_turns, asked_turns_room;
    int32_t *apart_path, *either_path; /* (longest + 1) */
    uint32_t *apart_words, *either_words, *before; /* masks */
};

/* An entry of the search's stack: a token on the way, and the candidates to try after this token. */
struct lzs_try {
    int32_t state, context, token; /* state and context after the token, and the token */
    size_t seen;                   /* index in `seen` of this state, context and token */
    size_t first, at, end; /* the candidates are at [first, end) in `candidates`, and `at` is the next to try */
    bool joined; /* whether all candidates are known to be allowed beside the token */
    /* The listing of candidates goes on at `next`, which is a token id. Inside a character, `next` is the first byte of
     * the next candidates. `next` is -1 if all candidates are listed. */
    int32_t next;
    size_t lowest; /* the failure of candidates may depend on the stack's entries from this index on */
};

static uint32_t token_bytes(const lzs_proper *proper, int32_t token) {
    const size_t *begin = proper->spelling->vocabulary->begins + token;
    return (uint32_t)(begin[1] - begin[0]);
}

static uint64_t pair_key(int32_t a, int32_t b) {
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

/* ---- life ---- */

void lzs_proper_forget(lzs_proper *p) {
    p->n_turns = 0;
    p->n_notes = p->n_seen = p->n_asked_turns = p->n_lasts = 0;
    lzs_table_clear(&p->of_turns);
    lzs_table_clear(&p->of_seen);
    lzs_table_clear(&p->of_lasts);
}

void lzs_proper_free(lzs_proper *p) {
    if (!p) return;
    lzs_contexts_free(&p->contexts);
    free(p->turns);
    free(p->of_turns.slots);
    free(p->of_seen.slots);
    free(p->of_lasts.slots);
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
    size_t tables = lzs_table_memory(&p->of_turns) + lzs_table_memory(&p->of_seen) + lzs_table_memory(&p->of_lasts);
    size_t lists = p->turns_room * sizeof *p->turns + p->notes_room * sizeof *p->notes +
                   p->seen_room * sizeof *p->seen + p->stack_room * sizeof *p->stack +
                   p->candidates_room * sizeof *p->candidates +
                   p->lasts_room * sizeof *p->lasts + p->asked_room * sizeof *p->asked +
                   p->asked_turns_room * sizeof *p->asked_turns;
    return sizeof *p + lzs_contexts_memory(&p->contexts) + tables + lists +
           2 * ((size_t)v->longest + 1) * sizeof(int32_t) + 3 * v->n_words * sizeof(uint32_t);
}

size_t lzs_proper_used(const lzs_proper *p) {
    const size_t slots = 2 * sizeof(lzs_slot);
    return (size_t)p->n_turns * (sizeof *p->turns + slots) + p->n_notes * sizeof *p->notes +
           p->n_seen * (sizeof *p->seen + slots) + p->n_lasts * (sizeof *p->lasts + slots);
}

/* Finds the least number of bytes from each operation to the end, as if every loop could end after any iteration. */
static void measure(const lzs_program *program, uint32_t *distances) {
    memset(distances, 0xFF, program->n_ops * sizeof *distances);
    /* the loop takes few rounds, because most operations lead to operations with smaller numbers */
    for (bool changed = true; changed;) {
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
    bool tables = lzs_table_init(&p->of_turns, 0) == LZS_OK && lzs_table_init(&p->of_seen, 0) == LZS_OK;
    if (!tables || lzs_table_init(&p->of_lasts, 0) != LZS_OK) return LZS_ENOMEM;
    measure(program, p->distances);
    return lzs_contexts_init(&p->contexts, &p->spelling->words);
}

lzs_status lzs_grammar_set_tokenization(lzs_grammar *g, const lzs_spelling *spelling, int32_t tokenization) {
    if (!g || g->engine.accept) return LZS_EINVAL;
    if (tokenization < LZS_TOKENIZATION_ANY || tokenization > LZS_TOKENIZATION_PROPER) return LZS_EINVAL;
    bool any = tokenization == LZS_TOKENIZATION_ANY;
    if (g->proper || (!any && (!spelling || spelling->vocabulary != g->vocabulary))) return LZS_EINVAL;
    /* if every text is allowed, no byte is forced */
    if (g->open && tokenization == LZS_TOKENIZATION_FORCED) return LZS_EINVAL;
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

/* ---- turns ---- */

/* Finds the turn of a state and a context, or adds the turn. */
static lzs_status turn_of(lzs_proper *p, int32_t state, int32_t context, int32_t *number) {
    uint32_t tag = (uint32_t)lzs_fold(pair_key(state, context), p->of_turns.key);
    lzs_slot *slot = NULL;
    while ((slot = lzs_table_next(&p->of_turns, slot, tag))->index) {
        *number = (int32_t)slot->index - 1;
        if (p->turns[*number].state == state && p->turns[*number].context == context) return LZS_OK;
    }
    if (!lzs_grow(&p->turns, &p->turns_room, (size_t)p->n_turns + 1, sizeof *p->turns)) return LZS_ENOMEM;
    p->turns[p->n_turns] = (lzs_turn){.state = state, .context = context, .apart = -1, .either = -1, .same = -1,
                                      .asked = -1};
    *number = p->n_turns;
    lzs_status status = lzs_table_add(&p->of_turns, slot, tag, (size_t)p->n_turns);
    p->n_turns += status == LZS_OK;
    return status;
}

static void add_way(lzs_turn *turn, lzs_way way) {
    for (int32_t i = 0; i < turn->n_ways; i++) {
        if (turn->ways[i].token == way.token && turn->ways[i].apart >= way.apart) return;
    }
    if (turn->n_ways == LZS_MAX_WAYS) { /* the oldest ways serve most tokens, so the newest way is replaced */
        turn->ways[LZS_MAX_WAYS - 1] = way;
    } else {
        turn->ways[turn->n_ways++] = way;
    }
}

/* ---- states ---- */

static uint32_t distance_of(const lzs_grammar *g, int32_t state) {
    const lzs_dfa_state *s = &g->automaton.states[state];
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t distance = g->proper->distances[lzs_place_op(g->automaton.places[s->first + i])];
        if (distance < least) least = distance;
    }
    return least;
}

static lzs_status note_of(lzs_grammar *g, int32_t state, struct lzs_state_note *note) {
    lzs_proper *p = g->proper;
    while (p->n_notes <= (size_t)state) {
        if (!lzs_grow(&p->notes, &p->notes_room, p->n_notes + 1, sizeof *p->notes)) return LZS_ENOMEM;
        p->notes[p->n_notes++] = (struct lzs_state_note){0};
    }
    if (!p->notes[state].known) {
        struct lzs_state_note found = {true, -1};
        /* finds the first byte of a shortest text to the end */
        uint32_t least = UINT32_MAX, distance_here = distance_of(g, state);
        for (uint32_t class = 0; class < g->program.n_classes && least >= distance_here; class++) {
            int32_t to;
            lzs_status status = lzs_automaton_step(&g->automaton, state, g->program.byte_of[class], &to);
            if (status != LZS_OK) return status;
            if (to == LZS_DEAD) continue;
            uint32_t distance = distance_of(g, to);
            if (found.lead >= 0 && distance >= least) continue;
            least = distance;
            found.lead = g->program.byte_of[class];
        }
        p->notes[state] = found;
    }
    *note = p->notes[state];
    return LZS_OK;
}

static lzs_status is_goal(lzs_grammar *g, int32_t state, int32_t context, bool *goal) {
    lzs_proper *p = g->proper;
    if (p->tokenization == LZS_TOKENIZATION_PROPER) {
        *goal = g->open || (g->automaton.states[state].accepts && lzs_contexts_may_end(&p->contexts, context));
        return LZS_OK;
    }
    *goal = !lzs_automaton_forces(&g->automaton, state);
    return *goal ? lzs_viable(g, state, goal) : LZS_OK;
}

/* ---- the search ---- */

/* Finds the entry of `seen` for a token that leads to a state and a context, or adds the entry. */
static lzs_status seen_of(lzs_proper *p, int32_t state, int32_t context, int32_t token, size_t *number) {
    uint32_t tag = (uint32_t)lzs_fold(lzs_fold(pair_key(state, context), p->of_seen.key) ^ (uint32_t)token,
                                      p->of_seen.key);
    lzs_slot *slot = NULL;
    while ((slot = lzs_table_next(&p->of_seen, slot, tag))->index) {
        *number = slot->index - 1;
        const struct lzs_seen *s = &p->seen[*number];
        if (s->token == token && s->state == state && s->context == context) return LZS_OK;
    }
    if (!lzs_grow(&p->seen, &p->seen_room, p->n_seen + 1, sizeof *p->seen)) return LZS_ENOMEM;
    *number = p->n_seen;
    p->seen[*number] = (struct lzs_seen){state, context, token, NOT_TRIED};
    lzs_status status = lzs_table_add(&p->of_seen, slot, tag, *number);
    p->n_seen += status == LZS_OK;
    return status;
}

/* Returns the first token of a mask with an id of at least `from`, or -1 if there is none. */
static int32_t next_bit(const uint32_t *words, int32_t from, int32_t n_vocab) {
    for (; from < n_vocab && !lzs_bit(words, from); from++) {
        if (from % 32 == 0) {
            while (from + 32 <= n_vocab && !words[from / 32]) from += 32;
            if (from >= n_vocab || lzs_bit(words, from)) break;
        }
    }
    return from < n_vocab ? from : -1;
}

static lzs_status add_candidate(lzs_proper *p, struct lzs_try *t, int32_t token) {
    if (!lzs_grow(&p->candidates, &p->candidates_room, t->end + 1, sizeof *p->candidates)) return LZS_ENOMEM;
    p->candidates[t->end++] = token;
    return LZS_OK;
}

/* Adds as candidates the tokens with which a shortest text from the state to the end can begin. The longest token comes
 * first. */
static lzs_status find_first(lzs_grammar *g, struct lzs_try *t) {
    const lzs_vocabulary *v = g->vocabulary;
    const lzs_trie_node *node = v->nodes, *end = node + v->n_nodes;
    int32_t found[4 * MAX_LEAD], n = 0, state = t->state;
    for (int i = 0; i < MAX_LEAD; i++) {
        struct lzs_state_note note;
        lzs_status status = note_of(g, state, &note);
        if (status != LZS_OK) return status;
        while (node < end && node->byte != note.lead) node += node->size;
        if (node >= end || note.lead < 0) break;
        for (int32_t token = node->token; token >= 0 && n < 4 * MAX_LEAD; token = v->same[token]) found[n++] = token;
        status = lzs_automaton_step(&g->automaton, state, (uint8_t)note.lead, &state);
        if (status != LZS_OK) return status;
        end = node + node->size;
        node++;
    }
    for (int32_t i = 0; i < n && i < MAX_FIRST; i++) {
        lzs_status status = add_candidate(g->proper, t, found[n - 1 - i]);
        if (status != LZS_OK) return status;
    }
    return LZS_OK;
}

/* Pushes the token of an entry of `seen` onto the stack. */
static lzs_status push(lzs_grammar *g, size_t seen) {
    lzs_proper *p = g->proper;
    if (!lzs_grow(&p->stack, &p->stack_room, p->n_stack + 1, sizeof *p->stack)) return LZS_ENOMEM;
    const int32_t state = p->seen[seen].state, context = p->seen[seen].context, token = p->seen[seen].token;
    p->seen[seen].search = p->search;
    struct lzs_try *t = &p->stack[p->n_stack];
    size_t first = p->n_stack ? t[-1].end : 0;
    *t = (struct lzs_try){.state = state, .context = context, .token = token, .seen = seen, .lowest = p->n_stack};
    t->first = t->at = t->end = first;
    /* whether the context is inside a character, where a shortest text seldom helps */
    bool inside = p->contexts.all[context].node != 0;
    lzs_status status = inside ? LZS_OK : find_first(g, t);
    if (status == LZS_OK) p->n_stack++;
    return status;
}

/* Adds as candidates the tokens at the nodes [first, end) of the vocabulary's tree that may continue a character.
 * Inside a character no word can begin. */
static lzs_status list_nodes(lzs_grammar *g, struct lzs_try *t, size_t first, size_t end) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    uint64_t n_nodes = 0;
    for (size_t i = first; i < end && status == LZS_OK; n_nodes++) {
        const lzs_trie_node *node = &v->nodes[i];
        const uint16_t depth = node->depth;
        lzs_joint joint = depth == 1 ? LZS_EITHER : LZS_INSIDE;
        int32_t context = LZS_NO_CONTEXT, state;
        status = lzs_automaton_step(&g->automaton, g->path[depth - 1], node->byte, &state);
        if (status == LZS_OK && state != LZS_DEAD) {
            status = lzs_contexts_step(&p->contexts, p->either_path[depth - 1], node->byte, joint, &context);
        }
        i += context ? 1 : node->size;
        if (!context) continue;
        g->path[depth] = state;
        p->either_path[depth] = context;
        for (int32_t token = node->token; token >= 0 && status == LZS_OK; token = v->same[token]) {
            if (lzs_spelling_joint(p->spelling, t->token, token) == LZS_EITHER) status = add_candidate(p, t, token);
        }
    }
    return status == LZS_OK ? lzs_automaton_work(&g->automaton, n_nodes) : status;
}

/* Lists the next candidates inside a character. All of them begin with the same byte. */
static lzs_status list_inside(lzs_grammar *g, struct lzs_try *t) {
    const lzs_vocabulary *v = g->vocabulary;
    lzs_status status = LZS_OK;
    g->path[0] = t->state;
    g->proper->either_path[0] = t->context;
    t->joined = true;
    t->at = t->end = t->first;
    while (t->end == t->first && t->next >= 0 && status == LZS_OK) {
        uint32_t root = v->roots[t->next];
        if (root != LZS_NO_ROOT) status = list_nodes(g, t, root, root + v->nodes[root].size);
        t->next = t->next < 255 ? t->next + 1 : -1;
    }
    return status;
}

/* Lists the next candidates that the state allows. The first list is short, because most ways are found soon, and each
 * further list is four times as long. States that differ only in far counts share one mask here. This mask has all
 * tokens that these states allow, and maybe more, but each candidate is tried anyway. */
static lzs_status list_more(lzs_grammar *g, struct lzs_try *t) {
    lzs_proper *p = g->proper;
    const lzs_spelling *s = p->spelling;
    size_t many = t->next ? 4 * (t->end - t->first) + MAX_FIRST : MAX_FIRST;
    int32_t mask, state;
    lzs_status status = lzs_automaton_clamp_high(&g->automaton, t->state, FAR, &state);
    if (status == LZS_OK) status = lzs_grammar_mask_number(g, state, &mask);
    if (status != LZS_OK) return status;
    lzs_grammar_write(g, mask, p->before);
    t->joined = s->by_scores; /* with scores a text has no words, so every candidate must be allowed beside the token */
    if (t->joined) lzs_spelling_forbid(s, t->token, p->before);
    t->at = t->end = t->first;
    while (t->end - t->first < many && t->next >= 0 && status == LZS_OK) {
        t->next = next_bit(p->before, t->next, g->vocabulary->n_vocab);
        if (t->next >= 0) status = add_candidate(p, t, t->next++);
    }
    return status == LZS_OK ? lzs_automaton_work(&g->automaton, t->end - t->first) : status;
}

/* Finds the next token to try after the top of the stack. *token is -1 if all tokens were tried. */
static lzs_status next_token(lzs_grammar *g, struct lzs_try *t, int32_t *token) {
    lzs_proper *p = g->proper;
    bool inside = p->contexts.all[t->context].node != 0 && !p->spelling->by_scores;
    lzs_status status = LZS_OK;
    *token = -1;
    if (t->at == t->end && t->next >= 0) status = inside ? list_inside(g, t) : list_more(g, t);
    if (status == LZS_OK && t->at < t->end) *token = p->candidates[t->at++];
    return status;
}

static bool way_fits(const lzs_proper *p, int32_t token, lzs_way way) {
    return way.apart || lzs_spelling_joint(p->spelling, token, way.token) == LZS_EITHER;
}

/* Stores the ways that the search found. Each token of the stack leads to the token above it, and the top leads to
 * `token`. */
static lzs_status note_ways(lzs_proper *p, int32_t token) {
    for (size_t i = p->n_stack; i > 0; i--) {
        const struct lzs_try *t = &p->stack[i - 1];
        lzs_way way = {i < p->n_stack ? p->stack[i].token : token, false, p->way_bytes};
        int32_t number, apart, either;
        lzs_status status = turn_of(p, t->state, t->context, &number);
        if (status != LZS_OK) return status;
        status = lzs_spelling_step(p->spelling, &p->contexts, t->context, way.token, LZS_APART, &apart);
        if (status != LZS_OK) return status;
        if (apart) { /* `either` is the context in which the search went on */
            lzs_joint joint = lzs_spelling_joint(p->spelling, t->token, way.token);
            status = lzs_spelling_step(p->spelling, &p->contexts, t->context, way.token, joint, &either);
            if (status != LZS_OK) return status;
            way.apart = apart == either;
        }
        add_way(&p->turns[number], way);
        p->way_bytes += token_bytes(p, t->token);
    }
    return LZS_OK;
}

/* Tries a token after the top of the stack. *found says whether the token leads to the goal. If not, the token may
 * become the new top. */
static lzs_status try(lzs_grammar *g, int32_t token, bool *found) {
    lzs_proper *p = g->proper;
    struct lzs_try *last = &p->stack[p->n_stack - 1];
    int32_t state, context, number;
    lzs_status status = lzs_automaton_work(&g->automaton, 1);
    lzs_joint joint = last->joined ? LZS_EITHER : lzs_spelling_joint(p->spelling, last->token, token);
    if (status == LZS_OK) status = lzs_spelling_step(p->spelling, &p->contexts, last->context, token, joint, &context);
    if (status != LZS_OK || !context) return status;
    status = lzs_grammar_spell(g, last->state, token, &state);
    if (status != LZS_OK || state == LZS_DEAD) return status;
    status = is_goal(g, state, context, found);
    p->way_bytes = token_bytes(p, token);
    if (status != LZS_OK || *found) return status;
    status = turn_of(p, state, context, &number);
    if (status != LZS_OK) return status;
    for (int32_t i = 0; i < p->turns[number].n_ways; i++) {
        const lzs_way way = p->turns[number].ways[i];
        if (!way_fits(p, token, way)) continue;
        *found = true;
        p->way_bytes += way.bytes;
        return LZS_OK;
    }
    size_t seen;
    status = seen_of(p, state, context, token, &seen);
    if (status != LZS_OK || p->seen[seen].search == NO_WAY) return status;
    if (p->seen[seen].search == p->search) { /* the token is on the stack, or its failure depends on the stack */
        last->lowest = 0;
        return LZS_OK;
    }
    return push(g, seen);
}

/* Pops the top of the stack, because no way leads from this token to the goal. If this failure depends on tokens that
 * are still on the stack, the failure is not final. */
static void pop(lzs_proper *p) {
    const struct lzs_try *t = &p->stack[--p->n_stack];
    if (t->lowest >= p->n_stack) p->seen[t->seen].search = NO_WAY;
    if (p->n_stack && t->lowest < p->n_stack && p->stack[p->n_stack - 1].lowest > t->lowest) {
        p->stack[p->n_stack - 1].lowest = t->lowest;
    }
}

static lzs_status find_way(lzs_grammar *g, int32_t state, int32_t context, int32_t token, bool *found) {
    lzs_proper *p = g->proper;
    size_t seen;
    *found = false;
    lzs_status status = seen_of(p, state, context, token, &seen);
    if (status != LZS_OK || p->seen[seen].search == NO_WAY) return status;
    p->n_stack = 0;
    if (++p->search == NOT_TRIED) p->search = NO_WAY + 1;
    status = push(g, seen);
    while (status == LZS_OK && p->n_stack && !*found) {
        int32_t next;
        status = next_token(g, &p->stack[p->n_stack - 1], &next);
        if (status != LZS_OK) break;
        if (next < 0) {
            pop(p);
            continue;
        }
        status = try(g, next, found);
        if (status == LZS_OK && *found) status = note_ways(p, next);
    }
    return status;
}

/* ---- masks ---- */

static void set_bit(uint32_t *words, int32_t token) {
    words[token / 32] |= UINT32_C(1) << (token % 32);
}

/* Allows a token. `behind` is the number of bytes from the end of the token to the goal. */
static void allow(lzs_proper *p, int32_t token, bool apart, bool either, uint32_t behind) {
    uint32_t bytes = token_bytes(p, token) + behind;
    if (bytes > p->longest) p->longest = bytes;
    if (apart) set_bit(p->apart_words, token);
    if (either) set_bit(p->either_words, token);
}

/* Finds the turn of a state and a context, or -1 if state and context are the goal. */
static lzs_status destination(lzs_grammar *g, int32_t state, int32_t context, int32_t *turn) {
    lzs_proper *p = g->proper;
    const uint64_t hash = lzs_fold(pair_key(state, context), p->of_turns.key);
    struct lzs_destination *d = &p->destinations[hash % LZS_DESTINATIONS];
    lzs_status status = LZS_OK;
    if (d->state != state || d->context != context) {
        bool goal;
        *d = (struct lzs_destination){.turn = -1};
        status = is_goal(g, state, context, &goal);
        if (status == LZS_OK && !goal) status = turn_of(p, state, context, &d->turn);
        if (status != LZS_OK) return status;
        d->state = state;
        d->context = context;
    }
    *turn = d->turn;
    return LZS_OK;
}

/* Decides whether a token that leads to a state and context is allowed. If state and context are the goal, allows the
 * token. Else adds the token to the `asked` list of the turn of state and context. */
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
        const size_t n = p->n_asked_turns + 1;
        if (!lzs_grow(&p->asked_turns, &p->asked_turns_room, n, sizeof *p->asked_turns)) return LZS_ENOMEM;
        p->asked_turns[p->n_asked_turns++] = number;
    }
    p->asked[p->n_asked] = (struct lzs_asked){token, *first, apart, either};
    *first = (int32_t)p->n_asked++;
    return LZS_OK;
}

/* As ask, for a token that leads to one of two contexts: `apart` if the token begins a word, and `either` if it may
 * continue a word. */
static lzs_status ask_both(lzs_grammar *g, int32_t token, int32_t state, int32_t apart, int32_t either) {
    if (apart == either) return apart ? ask(g, token, state, apart, true, true) : LZS_OK;
    lzs_status status = apart ? ask(g, token, state, apart, true, false) : LZS_OK;
    return status == LZS_OK && either ? ask(g, token, state, either, false, true) : status;
}

/* As ask_both, for a token of any lzs_token_role. `apart` and `either` are the contexts to which the token's bytes
 * lead. */
static lzs_status reach(lzs_grammar *g, int32_t context, int32_t token, int32_t state, int32_t apart, int32_t either) {
    lzs_proper *p = g->proper;
    const lzs_spelling *s = p->spelling;
    lzs_status status = LZS_OK;
    if (s->by_scores || s->roles[token] != LZS_TOKEN_USUAL) {
        status = lzs_spelling_step(s, &p->contexts, context, token, LZS_EITHER, &either);
        apart = s->by_scores ? LZS_NO_CONTEXT : either;
    } else if (!s->merges.written[token]) { /* such a token can only be a whole word by itself */
        either = LZS_NO_CONTEXT;
        if (!s->whole_words) apart = LZS_NO_CONTEXT;
    }
    return status == LZS_OK ? ask_both(g, token, state, apart, either) : status;
}

/* Calls ask for all tokens that may follow a state in a context. */
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

/* Allows the asked tokens of a turn that may come before a given way. The other tokens stay in the list. */
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
        bool may = marked ? !lzs_bit(p->before, asked->token) : way_fits(p, asked->token, way);
        if (may) {
            allow(p, asked->token, asked->apart, asked->either, way.bytes);
            *link = asked->next;
        } else {
            link = &asked->next;
        }
    }
}

/* Decides for all asked tokens of a turn whether they are allowed. */
static lzs_status answer(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    /* Inside a character, most tokens join with the bytes that follow, so the way of one token seldom serves another
     * token. */
    bool shared = p->contexts.all[p->turns[number].context].node == 0;
    lzs_turn *turn = &p->turns[number]; /* this pointer is valid until a search adds turns */
    for (int32_t i = 0; shared && i < turn->n_ways; i++) go_way(p, turn, turn->ways[i]);
    while (p->turns[number].asked >= 0) {
        const struct lzs_asked asked = p->asked[p->turns[number].asked];
        bool found;
        lzs_status status = find_way(g, p->turns[number].state, p->turns[number].context, asked.token, &found);
        if (status != LZS_OK) return status;
        p->turns[number].asked = asked.next;
        if (!found) continue;
        allow(p, asked.token, asked.apart, asked.either, p->way_bytes - token_bytes(p, asked.token));
        if (shared) go_way(p, &p->turns[number], p->turns[number].ways[p->turns[number].n_ways - 1]);
    }
    return LZS_OK;
}

static lzs_status make(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    const lzs_vocabulary *v = g->vocabulary;
    int32_t state = p->turns[number].state, context = p->turns[number].context;
    /* clears the lists that a failed step may have left */
    for (size_t i = 0; i < p->n_asked_turns; i++) p->turns[p->asked_turns[i]].asked = -1;
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

/* Returns the number of the kept mask of a turn after a token. If no mask is kept, returns -1, and *slot and *tag say
 * where to insert an entry. */
static int32_t last_of(const lzs_proper *p, int32_t turn, int32_t last, lzs_slot **slot, uint32_t *tag) {
    *tag = (uint32_t)lzs_fold(pair_key(turn, last), p->of_lasts.key);
    *slot = NULL;
    while ((*slot = lzs_table_next(&p->of_lasts, *slot, *tag))->index) {
        const struct lzs_last *known = &p->lasts[(*slot)->index - 1];
        if (known->turn == turn && known->last == last) return known->mask;
    }
    return -1;
}

/* Keeps the mask of a turn after a token. If memory is not plentiful, keeps nothing, because making the mask again
 * takes little time. */
static lzs_status keep_last(lzs_grammar *g, int32_t turn, int32_t last, const uint32_t *words, lzs_slot *slot,
                            uint32_t tag) {
    lzs_proper *p = g->proper;
    if (g->mask_bytes > g->max_bytes / 4 || lzs_proper_used(p) > g->max_bytes / 8) return LZS_OK;
    if (!lzs_grow(&p->lasts, &p->lasts_room, p->n_lasts + 1, sizeof *p->lasts)) return LZS_ENOMEM;
    int32_t mask;
    lzs_status status = lzs_grammar_keep(g, words, &mask);
    if (status == LZS_OK) status = lzs_table_add(&p->of_lasts, slot, tag, p->n_lasts);
    if (status == LZS_OK) p->lasts[p->n_lasts++] = (struct lzs_last){turn, last, mask};
    return status;
}

/* Finds a turn that has the same masks as this turn, so not every count needs masks of its own. The state of the other
 * turn has "far" for counts that are far from their limits. The other state allows all tokens that the state of this
 * turn allows. If all ways of a token to the goal are too short for the counts to reach their limits, both states agree
 * about the token. */
static lzs_status find_same(lzs_grammar *g, int32_t number) {
    lzs_proper *p = g->proper;
    const int32_t state = p->turns[number].state, context = p->turns[number].context;
    int32_t far, other, clamped;
    p->turns[number].same = number;
    if (!g->program.n_loops || p->tokenization != LZS_TOKENIZATION_PROPER) return LZS_OK;
    lzs_status status = lzs_automaton_clamp_high(&g->automaton, state, FAR, &far);
    if (status != LZS_OK || far == state) return status;
    status = turn_of(p, far, context, &other);
    /* makes the masks of the other turn only if this turn can use them */
    if (status == LZS_OK && !p->turns[other].made) {
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

/* Writes the mask of tokens that the tokenizer may write after `last` and that lead to the goal. */
static lzs_status write_proper(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words) {
    lzs_proper *p = g->proper;
    int32_t number;
    lzs_status status = turn_of(p, state, context, &number);
    if (status == LZS_OK && p->turns[number].same < 0) {
        status = find_same(g, number);
        if (status != LZS_OK) p->turns[number].same = -1;
    }
    if (status != LZS_OK) return status;
    number = p->turns[number].same;
    lzs_slot *slot;
    uint32_t tag;
    int32_t known = last_of(p, number, last, &slot, &tag);
    if (known >= 0) {
        lzs_grammar_write(g, known, words);
        return LZS_OK;
    }
    if (!p->turns[number].made) status = make(g, number);
    if (status != LZS_OK) return status;
    lzs_grammar_write(g, p->turns[number].either, words);
    lzs_spelling_forbid(p->spelling, last, words);
    if (p->turns[number].apart >= 0) {
        lzs_grammar_write(g, p->turns[number].apart, p->apart_words);
        for (size_t i = 0; i < g->vocabulary->n_words; i++) words[i] |= p->apart_words[i];
    }
    return keep_last(g, number, last, words, slot, tag);
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
    if (g->open && !is_text) { /* a new text begins after a token that is not text */
        *context = LZS_TEXT_BEGINS;
        return LZS_OK;
    }
    if (v->is_end[token] && p->tokenization == LZS_TOKENIZATION_PROPER &&
        !lzs_contexts_may_end(&p->contexts, *context)) {
        *state = *state == LZS_ENDED ? LZS_ENDED : LZS_DEAD;
        return LZS_OK;
    }
    lzs_status status = lzs_grammar_accept(g, *state, token, state);
    if (status != LZS_OK || *state == LZS_DEAD || !is_text) return status;
    if (last >= 0 && !lzs_bit(v->texts, last)) last = -1;
    status = lzs_spelling_step(p->spelling, &p->contexts, *context, token,
                               lzs_spelling_joint(p->spelling, last, token), context);
    if (status != LZS_OK || *context) return status;
    *context = LZS_ANY_CONTEXT;
    if (p->tokenization == LZS_TOKENIZATION_PROPER && !g->open) *state = LZS_DEAD;
    return LZS_OK;
}
