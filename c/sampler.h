/* sampler.h - the struct of a sampler. */
#ifndef LZS_SAMPLER_H
#define LZS_SAMPLER_H

#include "backend/backend.h"
#include "atomics.h"
#include "penalty/penalty.h"
#include "include/lzsampler_threads.h"
#include "penalty/token_classes.h"
#include "state/state.h"

struct lzs_sampler {
    lzs_params params; /* its lists and sets point into `classes` */
    lzs_token_classes *classes; /* shared with the clones of the sampler */
    int32_t n_vocab;
    float log2_vocab;
    lzs_state state;
    lzs_edit_list edits;
    lzs_backend *backend;
    bool owns_backend;
    lzs_flag held; /* taken by lzs_hold */
};

/* Does the second half of lzs_step: accepts a picked token (unless it is negative) and sets *looping. */
lzs_status lzs_take(lzs_sampler *s, int32_t token, int32_t *looping);

/* Gives the edits of the next step. Only a grammar can make this fail; then there are no edits. */
lzs_status lzs_sampler_edits(lzs_sampler *s, const lzs_edit **edits, size_t *n);

/* Returns the edit of a token among the edits of lzs_sampler_edits, or NULL. */
static inline const lzs_edit *lzs_sampler_edit_of(const lzs_sampler *s, int32_t token) {
    return lzs_edit_list_find(&s->edits, lzs_state_looked_at(&s->state), &s->params, token);
}

#endif
