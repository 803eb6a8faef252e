/* decode.c - one token of a decode loop in one call: llama_decode, reading the logits, picking a token.
 *
 * A decode reads all weights of the model, so the code between two decodes runs with cold caches. The time of this code
 * depends on how much memory the code touches. A loop in Python therefore takes several times as long as the pick
 * itself. This function touches little memory besides the memory of llama.cpp and the sampler.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 199309L /* declares clock_gettime, which is not in C11 */
#endif
#include <string.h>
#include <time.h>

#include "../include/lzsampler_llama.h"
#include "abi.h"

typedef int32_t (*decode_function)(void *context, lzs_llama_batch batch);
typedef float *(*get_logits_function)(void *context, int32_t index);

static double seconds(void) {
    struct timespec now;
#ifdef CLOCK_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

lzs_status lzs_llama_step(lzs_llama_loop *loop) {
    if (loop->size != sizeof *loop) return LZS_EINVAL;
    int32_t token = loop->token;
    lzs_llama_batch batch = {.n_tokens = 1, .token = &token};
    decode_function decode;
    get_logits_function get_logits;
    memcpy(&decode, &loop->decode, sizeof decode); /* ISO C has no cast from object to function pointer */
    memcpy(&get_logits, &loop->get_logits_ith, sizeof get_logits);
    double start = seconds();
    loop->token = -1;
    loop->decoded = decode(loop->context, batch);
    double decoded = seconds();
    loop->decode_seconds += decoded - start;
    if (loop->decoded != 0) return LZS_EINVAL;
    const float *logits = get_logits(loop->context, -1);
    double read = seconds();
    loop->logits_seconds += read - decoded;
    if (!logits) return LZS_EINVAL;
    lzs_status status = loop->graph_sampler
                            ? lzs_graph_step(loop->graph_sampler, loop->context, -1, &loop->token, &loop->looping)
                            : lzs_step(loop->sampler, logits, &loop->token, &loop->looping);
    loop->sampling_seconds += seconds() - read;
    return status;
}
