/* on_kernels.h - samplers that use a table of kernels of the test's choice. */
#ifndef ON_KERNELS_H
#define ON_KERNELS_H

#include "check.h"
#include "sampler.h"

static inline void use_kernels(lzs_sampler *s, const lzs_kernels *table) {
    s->backend->kernels = s->state.history.kernels = table;
    if (s->state.free_text) s->state.free_text->history.kernels = table;
}

static inline lzs_sampler *sampler_on(const lzs_params *p, int32_t n_vocab, const lzs_kernels *table) {
    lzs_sampler *s;
    CHECK(lzs_sampler_new(n_vocab, p, &s) == LZS_OK);
    use_kernels(s, table);
    return s;
}

#endif
