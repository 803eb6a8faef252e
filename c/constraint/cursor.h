/* cursor.h - the state of a sequence in its grammar. */
#ifndef LZS_CURSOR_H
#define LZS_CURSOR_H

#include "grammar.h"

enum { LZS_CURSOR_STATES = 64 };

/* The cursor keeps the last few states, so a rewind of drafted tokens costs nothing. After a longer rewind the cursor
 * goes through the accepted tokens again. A cursor is plain data: a copy of the struct is a clone. */
typedef struct lzs_cursor {
    lzs_grammar *grammar; /* NULL if every token is allowed */
    uint64_t begin;       /* the first position at which the grammar is in force */
    bool replaced;        /* whether another grammar was in force before `begin` */
    bool unknown;         /* whether a rewind went to a position before `begin`, where another grammar was in force */
    /* whether the states of positions oldest..newest are known; position p is at index p % LZS_CURSOR_STATES */
    bool known;
    uint64_t epoch, oldest, newest;
    int32_t states[LZS_CURSOR_STATES], contexts[LZS_CURSOR_STATES]; /* words.h defines contexts */
} lzs_cursor;

void lzs_cursor_set(lzs_cursor *cursor, lzs_grammar *grammar, uint64_t position);
void lzs_cursor_rewind(lzs_cursor *cursor, uint64_t position);
/* Keeps the grammar, and returns to its start state. */
void lzs_cursor_reset(lzs_cursor *cursor);

/* Finds the state after the first `position` accepted tokens. `position` must not be before the position of the last
 * call. The state's number is valid until the next call that uses the grammar. */
lzs_status lzs_cursor_state(lzs_cursor *cursor, const int32_t *accepted, uint64_t position, int32_t *state);

/* Writes the mask of tokens that the grammar allows after the first `position` accepted tokens. */
lzs_status lzs_cursor_mask(lzs_cursor *cursor, const int32_t *accepted, uint64_t position, uint32_t *words);

#endif
