/* lzsampler_threads.h - a sampler in a host that cannot promise to use it from one thread at a time, such as a
 * binding. */
#ifndef LZSAMPLER_THREADS_H
#define LZSAMPLER_THREADS_H

#include "lzsampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* Such a host holds the sampler for every call but lzs_try_*, which hold it themselves. lzs_hold never waits: it
 * answers LZS_EBUSY while the sampler is held, also by the same thread. Any thread may release it. */
LZS_API lzs_status lzs_hold(lzs_sampler *sampler);
LZS_API void lzs_release(lzs_sampler *sampler);

/* lzs_try_sample returns the token, lzs_try_step twice the token plus *looping, and both a negative lzs_status on
 * failure: LZS_EBUSY also for a sampler with a grammar, which other samplers may be using. */
LZS_API int32_t lzs_try_sample(lzs_sampler *sampler, const float *logits);
LZS_API int64_t lzs_try_step(lzs_sampler *sampler, const float *logits);
LZS_API lzs_status lzs_try_accept(lzs_sampler *sampler, int32_t token);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
