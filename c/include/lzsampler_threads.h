/* lzsampler_threads.h - for hosts that cannot guarantee that only one thread at a time uses a sampler, such as bindings
 * of other languages. */
#ifndef LZSAMPLER_THREADS_H
#define LZSAMPLER_THREADS_H

#include "lzsampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* A host with several threads calls lzs_hold before every call with a sampler, and lzs_release after the call. The
 * lzs_try_* functions hold and release the sampler themselves. lzs_hold never waits: it returns LZS_EBUSY while any
 * thread, also the calling thread, holds the sampler. Any thread may release the sampler. */
LZS_API lzs_status lzs_hold(lzs_sampler *sampler);
LZS_API void lzs_release(lzs_sampler *sampler);

/* lzs_try_sample returns the token. lzs_try_step returns twice the token, plus 1 if the text is looping (see lzs_step).
 * On failure both return a negative lzs_status. For a sampler with a grammar they return LZS_EBUSY, since other
 * samplers may be using the grammar. */
LZS_API int32_t lzs_try_sample(lzs_sampler *sampler, const float *logits);
LZS_API int64_t lzs_try_step(lzs_sampler *sampler, const float *logits);
LZS_API lzs_status lzs_try_accept(lzs_sampler *sampler, int32_t token);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
