/* abi.h - a copy of the structs of llama.h and ggml.h that a sampler uses. With this copy, the library builds without
 * llama.cpp and does not link to llama.cpp. tests/c/abi_llama.c compares the copy with the real headers. The Python
 * package compares the copy with the loaded binding.
 *
 * llama_sampler_i had 6 members up to llama-cpp-python 0.3.16, 10 from 0.3.17 and 12 from 0.3.35. llama.cpp adds new
 * members at the end of the struct, and the first six members never moved. libllama reads only the members of its own
 * version. So the copy is longer than any version, and members that we do not provide stay NULL. Members 7 to 12 are as
 * in 0.3.35 and later. In earlier versions, backend_init has one argument less.
 */
#ifndef LZS_LLAMA_ABI_H
#define LZS_LLAMA_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LZS_LLAMA_MEMBERS 32 /* number of pointers in lzs_llama_sampler_i */

typedef struct lzs_llama_token_data {
    int32_t id;
    float logit;
    float p;
} lzs_llama_token_data;

typedef struct lzs_llama_token_data_array {
    lzs_llama_token_data *data;
    size_t size;
    int64_t selected; /* index into data; -1: none */
    bool sorted;
} lzs_llama_token_data_array;

typedef struct lzs_llama_sampler_data { /* each member is a ggml_tensor *, or NULL */
    void *logits;
    void *probs;
    void *sampled;
    void *candidates;
} lzs_llama_sampler_data;

struct lzs_llama_sampler_i;

typedef struct lzs_llama_sampler {
    const struct lzs_llama_sampler_i *iface;
    void *ctx;
} lzs_llama_sampler;

typedef struct lzs_llama_sampler_i {
    const char *(*name)(const lzs_llama_sampler *sampler);
    void (*accept)(lzs_llama_sampler *sampler, int32_t token);
    void (*apply)(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates);
    void (*reset)(lzs_llama_sampler *sampler);
    lzs_llama_sampler *(*clone)(const lzs_llama_sampler *sampler);
    void (*free)(lzs_llama_sampler *sampler);
    bool (*backend_init)(lzs_llama_sampler *sampler, void *buffer_type, uint32_t most_outputs);
    void (*backend_accept)(lzs_llama_sampler *sampler, void *context, void *graph, void *token);
    void (*backend_apply)(lzs_llama_sampler *sampler, void *context, void *graph, lzs_llama_sampler_data *data);
    void (*backend_set_input)(lzs_llama_sampler *sampler);
    void (*backend_reset)(lzs_llama_sampler *sampler);
    void (*copy_state)(const lzs_llama_sampler *from, lzs_llama_sampler *to);
    void *spare[LZS_LLAMA_MEMBERS - 12];
} lzs_llama_sampler_i;

typedef struct lzs_llama_batch {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos; /* If `pos` is NULL, the positions continue the context. If the other arrays are NULL, there is one
                   * sequence, and only the last token gives logits */
    int32_t *n_seq_id;
    int32_t **seq_id;
    int8_t *logits;
} lzs_llama_batch;

/* A copy of ggml_init_params. The numbers of two of ggml's types follow. */
typedef struct lzs_ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
} lzs_ggml_init_params;

enum { LZS_GGML_TYPE_F32 = 0, LZS_GGML_TYPE_I32 = 26 };

typedef lzs_llama_sampler *(*lzs_llama_sampler_init)(const lzs_llama_sampler_i *iface, void *ctx);

#endif
