/* interrupt.c - a llama_decode that Ctrl-C ends.
 *
 * Python runs its signal handlers only between two instructions of Python. So Python handles Ctrl-C only after
 * llama_decode returns, which takes seconds for a batch of a prompt. During lzs_llama_decode, a signal sets a flag.
 * llama.cpp reads the flag after every operation of the graph. The caller then sees the flag and raises what its own
 * signal handler would have raised.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* declares sigaction, which is not in C11 */
#endif
#include <stdbool.h>
#include <string.h>
#if !defined(_WIN32) && !defined(__wasm__)
#  include <signal.h>
#  define HAS_SIGACTION 1
#endif

#include "../include/lzsampler_llama.h"
#include "abi.h"

typedef int32_t (*decode_function)(void *context, lzs_llama_batch batch);
typedef bool (*abort_callback)(void *flag);
typedef void (*set_abort_function)(void *context, abort_callback callback, void *flag);

static bool is_stopped(void *flag) {
    return *(const volatile int32_t *)flag != 0;
}

#ifdef HAS_SIGACTION
static const int signals[] = {SIGINT, SIGTERM, SIGHUP}; /* in the order of the bits of `catches` */
#  define N_SIGNALS 3
static volatile int32_t *volatile at_signal; /* flag of the innermost decode of the main thread; no other thread uses
                                              * this variable */

static void stop(int number) {
    *at_signal = number;
}
#endif

int32_t lzs_llama_decode(lzs_llama_decoder *decoder, const void *batch, int32_t catches) {
    decode_function decode;
    set_abort_function set_abort;
    lzs_llama_batch tokens;
    memcpy(&decode, &decoder->decode, sizeof decode); /* ISO C has no cast from object to function pointer */
    memcpy(&set_abort, &decoder->set_abort_callback, sizeof set_abort);
    memcpy(&tokens, batch, sizeof tokens);
    if (!decoder->is_asked) set_abort(decoder->context, is_stopped, &decoder->stopped);
    decoder->is_asked = 1;
#ifdef HAS_SIGACTION
    const bool is_main = catches != 0;
    volatile int32_t *outer = NULL;
    struct sigaction before[N_SIGNALS], ours = {.sa_handler = stop, .sa_flags = SA_RESTART};
    sigemptyset(&ours.sa_mask);
    if (is_main) {
        outer = at_signal;
        at_signal = &decoder->stopped;
    }
    for (int i = 0; i < N_SIGNALS; i++)
        if (catches & 1 << i && sigaction(signals[i], &ours, &before[i])) catches ^= 1 << i;
    int32_t status = decode(decoder->context, tokens);
    for (int i = 0; i < N_SIGNALS; i++)
        if (catches & 1 << i) sigaction(signals[i], &before[i], NULL);
    if (is_main) at_signal = outer;
#else /* on Windows a separate thread handles Ctrl-C, and the decode runs to its end */
    (void)catches;
    int32_t status = decode(decoder->context, tokens);
#endif
    return status;
}
