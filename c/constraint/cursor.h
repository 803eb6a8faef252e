/* cursor.h - where a sequence is in its grammar. */
#ifndef LZS_CURSOR_H
#define LZS_CURSOR_H

#include "grammar.h"

enum { LZS_CURSOR_STATES = 64 };

/* The cursor keeps the last few states, so that a rewind of drafted tokens costs nothing. After a longer rewind it goes
 * through the accepted tokens again. It is plain data: a copy is a clone. */
typedef struct lzs_cursor {
    lzs_grammar *grammar; /* NULL: there is none, and everything is allowed */
    uint64_t begin;       /* the position from which on it is in force */
    bool replaced;        /* before that position another one was */
    bool unknown;         /* a rewind went back to a time of another one */
    bool known;           /* the states of the positions oldest..newest are in `states`, by their remainders */
    uint64_t epoch, oldest, newest;
    int32_t states[LZS_CURSOR_STATES], contexts[LZS_CURSOR_STATES]; /* contexts: see proper.h */
} lzs_cursor;

void lzs_cursor_set(lzs_cursor *cursor, lzs_grammar *grammar, uint64_t position);
void lzs_cursor_rewind(lzs_cursor *cursor, uint64_t position);
/* The grammar stays, and begins anew. */
void lzs_cursor_reset(lzs_cursor *cursor);

/* The state after the first `position` of the accepted tokens, which is at or after the last position that was asked
 * for. It holds until the grammar is used for something else. */
lzs_status lzs_cursor_state(lzs_cursor *cursor, const int32_t *accepted, uint64_t position, int32_t *state);

/* What the grammar allows after the `position` accepted tokens. */
lzs_status lzs_cursor_mask(lzs_cursor *cursor, const int32_t *accepted, uint64_t position, uint32_t *words);

#endif
