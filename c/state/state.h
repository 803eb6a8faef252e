/* state.h - the state of one sequence: everything that depends on its tokens, and nothing that depends on logits. */
#ifndef LZS_STATE_H
#define LZS_STATE_H

#include "../constraint/cursor.h"
#include "free_text.h"
#include "loop.h"
#include "mask.h"
#include "stuck.h"

typedef struct lzs_state {
    lzs_history history;      /* all tokens of the sequence; penalties look at them if free_text is NULL */
    lzs_free_text *free_text; /* NULL unless penalties look at free tokens only */
    lzs_masks masks;
    lzs_cursor cursor; /* the grammar, and the state of the text in the grammar */
    uint32_t *allowed; /* (masks.n_words) mask of the tokens that grammar and masks allow; NULL until there is a
                        * grammar */
    lzs_detector *detector; /* detector of loops; NULL if it is off */
    lzs_stuck_detector *stuck; /* detector of stuck texts; NULL if it is off */
    uint64_t position;      /* number of accepted tokens */
} lzs_state;

/* `params` must be valid, and `shape` must be the history shape for these params. After a failure the caller still
 * calls lzs_state_free. */
lzs_status lzs_state_init(lzs_state *state, const lzs_params *params, const lzs_history_shape *shape,
                          const lzs_kernels *kernels);
/* Makes `to`, a state of the same parameters, equal to `from`; on failure `to` is as after a reset. */
lzs_status lzs_state_copy(lzs_state *to, const lzs_state *from);
void lzs_state_free(lzs_state *state);
void lzs_state_reset(lzs_state *state);
size_t lzs_state_memory(const lzs_state *state);

/* These functions do what lzs_prime, lzs_accept and lzs_rewind do. On failure nothing has changed. The tokens must be
 * in the vocabulary. */
lzs_status lzs_state_prime(lzs_state *state, const int32_t *tokens, size_t n);
lzs_status lzs_state_accept(lzs_state *state, int32_t token);
void lzs_state_rewind(lzs_state *state, size_t n);

/* Takes back the last n tokens of the prompt. */
void lzs_state_unprime(lzs_state *state, size_t n);

/* The history that penalties look at, as of the last lzs_state_look. */
static inline const lzs_history *lzs_state_looked_at(const lzs_state *state) {
    return state->free_text ? &state->free_text->history : &state->history;
}
/* Updates free_text, if there is one, with the tokens accepted since the last call. */
lzs_status lzs_state_look(lzs_state *state);

/* Sets the grammar of the following tokens (borrowed; NULL: none). On failure nothing has changed. */
lzs_status lzs_state_set_grammar(lzs_state *state, lzs_grammar *grammar);
/* Gives the grammar in force (NULL: none) and its present state. The state is valid until the grammar is used again. */
lzs_status lzs_state_place(lzs_state *state, lzs_grammar **grammar, int32_t *place);
/* Gives the mask of the tokens that masks and grammar allow now (NULL: all tokens). LZS_EMASKED if a mask or grammar in
 * force is no longer known. */
lzs_status lzs_state_allowed(lzs_state *state, const uint32_t **words);

#endif
