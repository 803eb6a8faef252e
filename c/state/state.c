/* state.c - the state of one sequence: everything that depends on its tokens, and nothing that depends on logits. */
#include "state.h"

#include <stdlib.h>

lzs_status lzs_state_init(lzs_state *state, const lzs_params *p, const lzs_history_shape *shape,
                          const lzs_kernels *kernels) {
    const bool part = p->structure == LZS_STRUCTURE_FREE;
    const lzs_history_shape tokens_alone = {.n_vocab = shape->n_vocab};
    *state = (lzs_state){0};
    lzs_masks_init(&state->masks, shape->n_vocab);
    lzs_status status = lzs_history_init(&state->history, part ? &tokens_alone : shape, kernels);
    if (status == LZS_OK && part) {
        state->free_text = malloc(sizeof *state->free_text);
        if (!state->free_text) return LZS_ENOMEM;
        status = lzs_free_text_init(state->free_text, shape, kernels);
    }
    if (status == LZS_OK && p->loop_max_pattern) {
        state->detector = lzs_detector_new(p);
        if (!state->detector) status = LZS_ENOMEM;
    }
    if (status == LZS_OK && p->stuck_threshold) {
        state->stuck = lzs_stuck_new(p);
        if (!state->stuck) status = LZS_ENOMEM;
    }
    return status;
}

static lzs_status room_for_allowed(lzs_state *state) {
    if (!state->allowed) state->allowed = malloc(state->masks.n_words * sizeof *state->allowed);
    return state->allowed ? LZS_OK : LZS_ENOMEM;
}

lzs_status lzs_state_copy(lzs_state *to, const lzs_state *from) {
    lzs_state_reset(to);
    lzs_status status = lzs_history_copy(&to->history, &from->history);
    if (status == LZS_OK && to->free_text) status = lzs_free_text_copy(to->free_text, from->free_text);
    if (status == LZS_OK) status = lzs_masks_copy(&to->masks, &from->masks);
    if (status == LZS_OK && from->cursor.grammar) status = room_for_allowed(to);
    if (status != LZS_OK) {
        lzs_state_reset(to);
        return status;
    }
    if (to->detector) lzs_detector_copy(to->detector, from->detector);
    if (to->stuck) lzs_stuck_copy(to->stuck, from->stuck);
    to->cursor = from->cursor;
    to->position = from->position;
    return LZS_OK;
}

void lzs_state_free(lzs_state *state) {
    lzs_history_free(&state->history);
    if (state->free_text) lzs_free_text_free(state->free_text);
    free(state->free_text);
    lzs_masks_free(&state->masks);
    free(state->allowed);
    free(state->detector);
    free(state->stuck);
}

void lzs_state_reset(lzs_state *state) {
    lzs_history_clear(&state->history);
    if (state->free_text) lzs_free_text_clear(state->free_text);
    lzs_masks_clear(&state->masks);
    lzs_cursor_reset(&state->cursor);
    if (state->detector) lzs_detector_clear(state->detector);
    if (state->stuck) lzs_stuck_clear(state->stuck);
    state->position = 0;
}

size_t lzs_state_memory(const lzs_state *state) {
    size_t bytes = lzs_history_memory(&state->history) + lzs_masks_memory(&state->masks);
    if (state->free_text) bytes += sizeof *state->free_text + lzs_free_text_memory(state->free_text);
    if (state->allowed) bytes += state->masks.n_words * sizeof *state->allowed;
    if (state->detector) bytes += lzs_detector_memory(state->detector);
    if (state->stuck) bytes += lzs_stuck_memory(state->stuck);
    return bytes;
}

lzs_status lzs_state_prime(lzs_state *state, const int32_t *tokens, size_t n) {
    lzs_status status = lzs_history_append(&state->history, tokens, n);
    if (status != LZS_OK || !state->free_text) return status;
    status = lzs_history_append(&state->free_text->history, tokens, n);
    if (status != LZS_OK) lzs_history_rewind(&state->history, n);
    return status;
}

void lzs_state_unprime(lzs_state *state, size_t n) {
    lzs_history_rewind(&state->history, n);
    if (state->free_text) lzs_history_rewind(&state->free_text->history, n);
}

static const int32_t *accepted(const lzs_state *state) {
    return state->history.tokens + (state->history.n - state->position);
}

void lzs_state_rewind(lzs_state *state, size_t n) {
    if (state->stuck && n) { /* rewound before the history, because lzs_stuck_rewind reads the tokens that are taken
                              * back */
        lzs_stuck_rewind(state->stuck, accepted(state), state->position - n);
    }
    lzs_history_rewind(&state->history, n);
    state->position -= n;
    if (state->free_text) lzs_free_text_rewind(state->free_text, state->position);
    lzs_masks_rewind(&state->masks, state->position);
    lzs_cursor_rewind(&state->cursor, state->position);
    if (state->detector && n) lzs_detector_rewind(state->detector, accepted(state), state->position);
}

static lzs_status place_after(lzs_state *state, uint64_t position, int32_t *place) {
    return lzs_cursor_state(&state->cursor, position ? accepted(state) : NULL, position, place);
}

lzs_status lzs_state_look(lzs_state *state) {
    lzs_free_text *text = state->free_text;
    while (text && text->position < state->position) {
        int32_t token = accepted(state)[text->position], place = LZS_DEAD;
        float share = 1.0f;
        lzs_status status = LZS_OK;
        if (state->cursor.grammar) { /* tokens before the grammar were classified when the grammar was set */
            status = place_after(state, text->position, &place);
            if (status == LZS_OK) status = lzs_grammar_free_share(state->cursor.grammar, place, token, &share);
        }
        if (status == LZS_OK) status = lzs_free_text_add(text, token, share > 0.0f);
        if (status != LZS_OK) return status;
    }
    return LZS_OK;
}

lzs_status lzs_state_accept(lzs_state *state, int32_t token) {
    lzs_status status = lzs_history_append(&state->history, &token, 1);
    if (status != LZS_OK) return status;
    state->position++;
    if (state->detector) lzs_detector_accept(state->detector, accepted(state), state->position);
    if (state->stuck) lzs_stuck_accept(state->stuck, accepted(state), state->position);
    if (!state->free_text || state->cursor.grammar) return LZS_OK;
    status = lzs_state_look(state); /* look now, so that sampling without a grammar allocates no memory */
    if (status != LZS_OK) lzs_state_rewind(state, 1);
    return status;
}

lzs_status lzs_state_set_grammar(lzs_state *state, lzs_grammar *grammar) {
    lzs_status status = lzs_state_look(state); /* classify the tokens with the grammar under which they were accepted */
    if (status == LZS_OK && grammar) status = room_for_allowed(state);
    if (status == LZS_OK) lzs_cursor_set(&state->cursor, grammar, state->position);
    return status;
}

lzs_status lzs_state_place(lzs_state *state, lzs_grammar **grammar, int32_t *place) {
    *grammar = state->cursor.grammar;
    lzs_status status = lzs_state_look(state); /* first, because the cursor cannot return to a token */
    return status == LZS_OK && *grammar ? place_after(state, state->position, place) : status;
}

lzs_status lzs_state_allowed(lzs_state *state, const uint32_t **words) {
    lzs_cursor *cursor = &state->cursor;
    lzs_status status = lzs_masks_allowed(&state->masks, words);
    if (status == LZS_OK && cursor->unknown) status = LZS_EMASKED;
    if (status == LZS_OK) status = lzs_state_look(state); /* first, because the cursor cannot return to a token */
    if (status != LZS_OK || !cursor->grammar) return status;
    status = lzs_cursor_mask(cursor, state->position ? accepted(state) : NULL, state->position, state->allowed);
    if (status != LZS_OK) return status;
    for (size_t i = 0; *words && i < state->masks.n_words; i++) state->allowed[i] &= (*words)[i];
    *words = state->allowed;
    return LZS_OK;
}
