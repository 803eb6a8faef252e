/* libllama.h - the functions of llama.cpp that a preloaded lzsampler calls. They are found at run time, so that a
 * program without llama.cpp can carry the library. */
#ifndef LZS_PRELOAD_LIBLLAMA_H
#define LZS_PRELOAD_LIBLLAMA_H

#include "../llama/abi.h"

typedef lzs_llama_sampler *(*lzs_init_dry)(const void *vocab, float multiplier, float base, int32_t allowed_length,
                                           int32_t penalty_last_n, const char **breakers, size_t n_breakers);

typedef struct lzs_libllama {
    lzs_init_dry init_dry;
    lzs_llama_sampler_init init;
    lzs_llama_sampler *(*init_greedy)(void);
    const char *(*name)(const lzs_llama_sampler *sampler);
    void (*accept)(lzs_llama_sampler *sampler, int32_t token);
    void (*apply)(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates);
    void (*reset)(lzs_llama_sampler *sampler);
    lzs_llama_sampler *(*clone)(const lzs_llama_sampler *sampler);
    void (*free)(lzs_llama_sampler *sampler);
    int32_t (*vocab_type)(const void *vocab); /* 0: the vocabulary has no texts */
    int32_t (*vocab_n_tokens)(const void *vocab);
    int32_t (*token_to_piece)(const void *vocab, int32_t token, char *text, int32_t size, int32_t lstrip, bool special);
    void (*copy)(const lzs_llama_sampler *from, lzs_llama_sampler *to); /* NULL before August 2026 */
    const char *(*version)(void);                                       /* NULL before llama.cpp 0.5 */
} lzs_libllama;

/* Returns llama.cpp's own llama_sampler_init_dry, which is not `ours`, or NULL. caller: an address in the code that
 * called ours. */
lzs_init_dry lzs_libllama_real(lzs_init_dry ours, const void *caller);

/* Returns whether an address is in the program or library that holds `real`. */
bool lzs_libllama_holds(lzs_init_dry real, const void *address);

/* Finds the functions in the object that holds `real`, and tries on samplers of its own whether they are as abi.h says.
 * Returns NULL, or why the functions cannot be used. */
const char *lzs_libllama_find(lzs_init_dry real, lzs_libllama *found);

/* Returns whether a libllama is loaded. */
bool lzs_libllama_is_loaded(void);

#endif
