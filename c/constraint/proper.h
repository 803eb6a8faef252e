/* proper.h - the tokens of a grammar that are also those that the model's tokenizer would write. */
#ifndef LZS_PROPER_H
#define LZS_PROPER_H

#include "grammar.h"
#include "spelling.h"

/* A way on from a state and a context that is known to lead to the goal. */
typedef struct lzs_way {
    int32_t token;
    bool apart;     /* whatever token is before it; else if the two may stand side by side */
    uint32_t bytes; /* of the token and of all behind it, to the goal */
} lzs_way;

enum { LZS_MAX_WAYS = 8, LZS_DESTINATIONS = 256 };

/* A state of the automaton in a context. Its masks are of tokens that the tokenizer writes there, and behind which it can go on
 * to the goal. */
typedef struct lzs_turn {
    int32_t state, context;
    bool made;
    int32_t apart;  /* a mask: tokens that begin a word, whatever is before them; -1 for none */
    int32_t either; /* a mask: tokens where what is before them may stand beside them */
    int32_t n_ways;
    lzs_way ways[LZS_MAX_WAYS];
    uint32_t longest; /* bytes of the longest of the ways, tokens included, for which tokens are allowed */
    int32_t same;     /* the turn whose masks are used for this one; -1 is not known yet */
    int32_t asked; /* while masks are made: the first of the tokens that lead here */
} lzs_turn;

typedef struct lzs_proper {
    const lzs_spelling *spelling;
    lzs_tokenization tokenization;
    lzs_contexts contexts;
    lzs_turn *turns;
    int32_t n_turns;
    size_t turns_room;
    int32_t *table; /* turns by state and context */
    size_t table_size;
    struct lzs_state_note {
        bool known;
        int16_t lead; /* the byte of a short way to the end */
    } *notes; /* by state */
    size_t n_notes, notes_room;
    uint32_t *distances; /* (n_ops) bytes to the end, where counts do not matter */
    /* Tokens behind which the goal was not found, by state and context before them. */
    struct lzs_seen {
        int32_t state, context, token; /* of a slot that is not used, context is LZS_NO_CONTEXT */
        uint32_t search; /* 0 where there is no way at all */
    } *seen;
    size_t n_seen, seen_size;
    uint32_t search;
    /* Masks of a turn behind a token, for as long as there is room. */
    struct lzs_last {
        int32_t turn, last; /* turn is -1 where there is none */
        int32_t mask;
    } *lasts;
    size_t n_lasts, lasts_size;
    uint32_t way_bytes; /* of the way that was found last, and of the token before it */
    uint32_t longest;   /* while masks are made: as in lzs_turn */
    struct lzs_try *stack;
    size_t n_stack, stack_room;
    int32_t *candidates; /* of all tries of the stack, one after the other */
    size_t candidates_room;
    /* What making masks needs. */
    struct lzs_destination {
        int32_t state, context; /* context is LZS_NO_CONTEXT where it is not used */
        int32_t turn;           /* -1 where it is the goal */
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
} lzs_proper;

/* Everything that follows from the states of the automaton, which are no longer valid. */
void lzs_proper_forget(lzs_proper *proper);
void lzs_proper_free(lzs_proper *proper);
size_t lzs_proper_memory(const lzs_proper *proper);
/* The bytes that are forgotten when they become too many. */
size_t lzs_proper_used(const lzs_proper *proper);

/* As lzs_grammar_accept and lzs_grammar_mask, with the token before (-1: none) and the context, which begins as
 * lzs_proper_begin says. */
int32_t lzs_proper_begin(const lzs_grammar *g);
lzs_status lzs_proper_accept(lzs_grammar *g, int32_t last, int32_t token, int32_t *state, int32_t *context);
lzs_status lzs_proper_mask(lzs_grammar *g, int32_t last, int32_t state, int32_t context, uint32_t *words);

#endif
