/* cursor.c - the state of a sequence in its grammar.
 *
 * Accepting a token does not change the cursor. When a mask is needed, lzs_cursor_state processes the tokens accepted
 * since the last mask. So a grammar costs time only in steps that sample, and accepting a token cannot fail because of
 * the grammar.
 */
#include "cursor.h"

#include "proper.h"
#include "words.h"

void lzs_cursor_set(lzs_cursor *cursor, lzs_grammar *grammar, uint64_t position) {
    bool replaced = cursor->replaced || cursor->unknown || (cursor->grammar && cursor->begin < position);
    *cursor = (lzs_cursor){.grammar = grammar, .begin = position, .replaced = replaced};
}

void lzs_cursor_rewind(lzs_cursor *cursor, uint64_t position) {
    if (position < cursor->begin) {
        cursor->unknown |= cursor->replaced;
        cursor->grammar = NULL;
        cursor->begin = position;
        cursor->known = false;
    }
    if (cursor->known && position < cursor->oldest) cursor->known = false;
    if (cursor->newest > position) cursor->newest = position;
}

void lzs_cursor_reset(lzs_cursor *cursor) {
    cursor->begin = 0;
    cursor->replaced = cursor->unknown = cursor->known = false;
}

static void restart(lzs_cursor *cursor, int32_t state, int32_t context, uint64_t position) {
    cursor->known = true;
    cursor->epoch = cursor->grammar->epoch;
    cursor->oldest = cursor->newest = position;
    cursor->states[position % LZS_CURSOR_STATES] = state;
    cursor->contexts[position % LZS_CURSOR_STATES] = context;
}

/* Returns the token that led to the newest state, or -1 if no token did. */
static int32_t last_of(const lzs_cursor *cursor, const int32_t *accepted) {
    return cursor->newest > cursor->begin ? accepted[cursor->newest - 1] : -1;
}

lzs_status lzs_cursor_state(lzs_cursor *cursor, const int32_t *accepted, uint64_t position, int32_t *behind) {
    lzs_grammar *g = cursor->grammar;
    if (!cursor->known || cursor->epoch != g->epoch) {
        restart(cursor, LZS_START, g->proper ? lzs_proper_begin(g) : LZS_NO_CONTEXT, cursor->begin);
    }
    for (;;) {
        size_t at = (size_t)(cursor->newest % LZS_CURSOR_STATES);
        int32_t state = cursor->states[at], context = cursor->contexts[at];
        lzs_status status = lzs_grammar_trim(g, &state);
        if (status != LZS_OK) return status;
        if (cursor->epoch != g->epoch) restart(cursor, state, context, cursor->newest);
        if (cursor->newest == position) {
            *behind = state;
            return LZS_OK;
        }
        int32_t token = accepted[cursor->newest], last = last_of(cursor, accepted);
        if (g->proper) {
            status = lzs_proper_accept(g, last, token, &state, &context);
        } else {
            status = lzs_grammar_accept(g, state, token, &state);
        }
        if (status != LZS_OK) return status;
        cursor->newest++;
        if (cursor->newest - cursor->oldest >= LZS_CURSOR_STATES) cursor->oldest++;
        cursor->states[cursor->newest % LZS_CURSOR_STATES] = state;
        cursor->contexts[cursor->newest % LZS_CURSOR_STATES] = context;
    }
}

lzs_status lzs_cursor_mask(lzs_cursor *cursor, const int32_t *accepted, uint64_t position, uint32_t *words) {
    lzs_grammar *g = cursor->grammar;
    int32_t state;
    lzs_status status = lzs_cursor_state(cursor, accepted, position, &state);
    if (status != LZS_OK || !g->proper) return status == LZS_OK ? lzs_grammar_mask(g, state, words) : status;
    int32_t context = cursor->contexts[position % LZS_CURSOR_STATES];
    return lzs_proper_mask(g, last_of(cursor, accepted), state, context, words);
}
