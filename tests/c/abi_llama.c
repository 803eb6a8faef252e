/* abi_llama.c - c/llama/abi.h against the real llama.h, at compile time. Built where LZS_LLAMA_INCLUDE names the
 * folder of llama.h; tests/test_abi.py compiles it with the header of the installed llama-cpp-python. */
#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>

#include "llama/abi.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours " has another size")
#define SAME_FIELD(ours, theirs, field) \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, field) && \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->field), \
                   #ours "." #field " lies elsewhere")

SAME_SIZE(int32_t, llama_token);

SAME_SIZE(lzs_llama_token_data, llama_token_data);
SAME_FIELD(lzs_llama_token_data, llama_token_data, id);
SAME_FIELD(lzs_llama_token_data, llama_token_data, logit);
SAME_FIELD(lzs_llama_token_data, llama_token_data, p);

SAME_SIZE(lzs_llama_token_data_array, llama_token_data_array);
SAME_FIELD(lzs_llama_token_data_array, llama_token_data_array, data);
SAME_FIELD(lzs_llama_token_data_array, llama_token_data_array, size);
SAME_FIELD(lzs_llama_token_data_array, llama_token_data_array, selected);
SAME_FIELD(lzs_llama_token_data_array, llama_token_data_array, sorted);

SAME_SIZE(lzs_llama_sampler, struct llama_sampler);
SAME_FIELD(lzs_llama_sampler, struct llama_sampler, iface);
SAME_FIELD(lzs_llama_sampler, struct llama_sampler, ctx);

SAME_SIZE(lzs_llama_batch, llama_batch);
SAME_FIELD(lzs_llama_batch, llama_batch, n_tokens);
SAME_FIELD(lzs_llama_batch, llama_batch, token);
SAME_FIELD(lzs_llama_batch, llama_batch, embd);
SAME_FIELD(lzs_llama_batch, llama_batch, pos);
SAME_FIELD(lzs_llama_batch, llama_batch, n_seq_id);
SAME_FIELD(lzs_llama_batch, llama_batch, seq_id);
SAME_FIELD(lzs_llama_batch, llama_batch, logits);

SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, name);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, accept);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, apply);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, reset);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, clone);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, free);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, backend_init);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, backend_accept);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, backend_apply);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, backend_set_input);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, backend_reset);
SAME_FIELD(lzs_llama_sampler_i, struct llama_sampler_i, copy_state);

SAME_SIZE(lzs_llama_sampler_data, struct llama_sampler_data);
SAME_FIELD(lzs_llama_sampler_data, struct llama_sampler_data, logits);
SAME_FIELD(lzs_llama_sampler_data, struct llama_sampler_data, probs);
SAME_FIELD(lzs_llama_sampler_data, struct llama_sampler_data, sampled);
SAME_FIELD(lzs_llama_sampler_data, struct llama_sampler_data, candidates);
/* llama.cpp reads as many members as it knows; ours must have them all */
_Static_assert(sizeof(lzs_llama_sampler_i) >= sizeof(struct llama_sampler_i), "llama_sampler_i outgrew its mirror");

/* The order of parameters, and that they are pointers: the signatures up to the names of the structs. */
static struct llama_sampler *init(const struct llama_sampler_i *iface, void *ctx) {
    return llama_sampler_init((struct llama_sampler_i *)iface, ctx);
}
static const struct llama_sampler_i probe;

static void signatures(void) {
    const char *(*name)(const struct llama_sampler *) = probe.name;
    void (*accept)(struct llama_sampler *, int32_t) = probe.accept;
    void (*apply)(struct llama_sampler *, llama_token_data_array *) = probe.apply;
    void (*reset)(struct llama_sampler *) = probe.reset;
    struct llama_sampler *(*clone)(const struct llama_sampler *) = probe.clone;
    void (*release)(struct llama_sampler *) = probe.free;
    bool (*backend_init)(struct llama_sampler *, ggml_backend_buffer_type_t, uint32_t) = probe.backend_init;
    void (*backend_apply)(struct llama_sampler *, struct ggml_context *, struct ggml_cgraph *, struct llama_sampler_data *) =
        probe.backend_apply;
    void (*set_input)(struct llama_sampler *) = probe.backend_set_input;
    void (*backend_reset)(struct llama_sampler *) = probe.backend_reset;
    int32_t (*sampled)(struct llama_context *, int32_t) = llama_get_sampled_token_ith;
    float *(*sampled_logits)(struct llama_context *, int32_t) = llama_get_sampled_logits_ith;
    float *(*sampled_probs)(struct llama_context *, int32_t) = llama_get_sampled_probs_ith;
    (void)backend_init, (void)backend_apply, (void)set_input, (void)backend_reset;
    (void)sampled, (void)sampled_logits, (void)sampled_probs;
    int32_t (*decode)(struct llama_context *, llama_batch) = llama_decode;
    float *(*get_logits)(struct llama_context *, int32_t) = llama_get_logits_ith;
    (void)decode, (void)get_logits;
    (void)name, (void)accept, (void)apply, (void)reset, (void)clone, (void)release;
}

/* The functions of ggml that c/llama/graph.c calls: their parameters, and what they return. */
typedef struct ggml_tensor tensor;
typedef struct ggml_context context;

static void ggml_signatures(void) {
    context *(*begin)(struct ggml_init_params) = ggml_init;
    void (*end)(context *) = ggml_free;
    size_t (*overhead)(void) = ggml_tensor_overhead;
    int64_t (*n_elements)(const tensor *) = ggml_nelements;
    tensor *(*new_1d)(context *, enum ggml_type, int64_t) = ggml_new_tensor_1d;
    tensor *(*reshape_1d)(context *, tensor *, int64_t) = ggml_reshape_1d;
    tensor *(*reshape_2d)(context *, tensor *, int64_t, int64_t) = ggml_reshape_2d;
    tensor *(*get_rows)(context *, tensor *, tensor *) = ggml_get_rows;
    tensor *(*set_rows)(context *, tensor *, tensor *, tensor *) = ggml_set_rows;
    tensor *(*two[])(context *, tensor *, tensor *) = {ggml_add, ggml_sub, ggml_mul, ggml_div};
    tensor *(*one[])(context *, tensor *) = {ggml_step, ggml_argmax, ggml_sum};
    tensor *(*scale_bias)(context *, tensor *, float, float) = ggml_scale_bias;
    tensor *(*arange)(context *, float, float, float) = ggml_arange;
    void (*set_input)(tensor *) = ggml_set_input;
    void (*tensor_set)(tensor *, const void *, size_t, size_t) = ggml_backend_tensor_set;
    ggml_backend_dev_t (*device)(ggml_backend_buffer_type_t) = ggml_backend_buft_get_device;
    bool (*supports)(ggml_backend_dev_t, const tensor *) = ggml_backend_dev_supports_op;
    (void)begin, (void)end, (void)overhead, (void)n_elements, (void)new_1d, (void)reshape_1d, (void)reshape_2d, (void)get_rows;
    (void)set_rows, (void)two, (void)one, (void)scale_bias, (void)arange, (void)set_input, (void)tensor_set;
    (void)device, (void)supports;
}

_Static_assert((int)LZS_GGML_TYPE_F32 == (int)GGML_TYPE_F32, "F32 has another number");
_Static_assert((int)LZS_GGML_TYPE_I32 == (int)GGML_TYPE_I32, "I32 has another number");
SAME_SIZE(lzs_ggml_init_params, struct ggml_init_params);
SAME_FIELD(lzs_ggml_init_params, struct ggml_init_params, mem_size);
SAME_FIELD(lzs_ggml_init_params, struct ggml_init_params, mem_buffer);
SAME_FIELD(lzs_ggml_init_params, struct ggml_init_params, no_alloc);

void lzs_test_abi_llama(void);
void lzs_test_abi_llama(void) {
    (void)init;
    signatures();
    ggml_signatures();
}
