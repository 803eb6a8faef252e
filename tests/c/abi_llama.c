/* abi_llama.c - c/llama/abi.h against the real llama.h, at compile time. Built where LZS_LLAMA_INCLUDE names the
 * folder of llama.h; tests/test_abi.py compiles it with the header of the installed llama-cpp-python. */
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
    int32_t (*decode)(struct llama_context *, llama_batch) = llama_decode;
    float *(*get_logits)(struct llama_context *, int32_t) = llama_get_logits_ith;
    (void)decode, (void)get_logits;
    (void)name, (void)accept, (void)apply, (void)reset, (void)clone, (void)release;
}

void lzs_test_abi_llama(void);
void lzs_test_abi_llama(void) {
    (void)init;
    signatures();
}
