/* graph.h - the edits and the mask of plans as operations in llama.cpp's graph. */
#ifndef LZS_LLAMA_GRAPH_H
#define LZS_LLAMA_GRAPH_H

#include <stdbool.h>

#include "../include/lzsampler_llama.h"
#include "abi.h"

typedef struct lzs_graph lzs_graph;

/* The functions of lzs_graph_functions, in the same order. */
typedef struct lzs_graph_calls {
    lzs_llama_sampler_init sampler_init;
    int32_t (*sampled_token)(void *context, int32_t index);
    float *(*sampled_logits)(void *context, int32_t index);
    float *(*sampled_probs)(void *context, int32_t index);
    void *(*begin)(struct lzs_ggml_init_params params);
    void (*end)(void *context);
    size_t (*tensor_overhead)(void);
    int64_t (*n_elements)(const void *tensor);
    void *(*new_tensor_1d)(void *context, int type, int64_t n);
    void *(*reshape_1d)(void *context, void *a, int64_t n);
    void *(*reshape_2d)(void *context, void *a, int64_t n0, int64_t n1);
    void *(*get_rows)(void *context, void *a, void *ids);
    void *(*set_rows)(void *context, void *to, void *rows, void *ids);
    void *(*add)(void *context, void *a, void *b);
    void *(*sub)(void *context, void *a, void *b);
    void *(*mul)(void *context, void *a, void *b);
    void *(*div)(void *context, void *a, void *b);
    void *(*step)(void *context, void *a);
    void *(*argmax)(void *context, void *a);
    void *(*sum)(void *context, void *a);
    void *(*scale_bias)(void *context, void *a, float scale, float bias);
    void *(*arange)(void *context, float start, float stop, float step);
    void (*set_input)(void *tensor);
    void (*tensor_set)(void *tensor, const void *data, size_t offset, size_t size);
    void *(*device_of)(void *buffer_type);
    bool (*supports)(void *device, const void *operation);
} lzs_graph_calls;

typedef struct lzs_graph_settings {
    int32_t n_vocab;
    size_t max_edits;  /* greatest number of edits of one row */
    bool has_mask;     /* whether a row of biases is added to the edited logits */
    bool has_repeats;  /* whether edits may have a `repeat` other than 1 */
    bool sign_aware;   /* sign_aware of lzs_plan, which must be the same in all plans that divide logits */
    bool takes_best;   /* whether the result is the best token, its logit, and the sum of the row (NaN if a logit is
                        * NaN) */
} lzs_graph_settings;

lzs_status lzs_graph_new(const lzs_graph_functions *functions, const lzs_graph_settings *settings, lzs_graph **graph);
void lzs_graph_free(lzs_graph *g);
const lzs_graph_calls *lzs_graph_calls_of(const lzs_graph *g);
const lzs_graph_settings *lzs_graph_settings_of(const lzs_graph *g);

/* Allocates memory for max_rows rows. Returns whether memory sufficed and the device of the buffer type supports all
 * operations. */
bool lzs_graph_fits(lzs_graph *g, void *buffer_type, uint32_t max_rows);

/* Returns the last result of lzs_graph_fits; false before the first call. */
bool lzs_graph_is_supported(const lzs_graph *g);

/* Forgets all rows of the graph that was built last. */
void lzs_graph_clear(lzs_graph *g);

/* Adds the operations of one more row. Returns false if there is no room; nothing is then added. */
bool lzs_graph_build(lzs_graph *g, void *context, lzs_llama_sampler_data *data);

/* Returns the number of rows that were added. */
size_t lzs_graph_rows(const lzs_graph *g);

/* Uploads the edits and the mask of a plan for a row. If `plan` is NULL, uploads edits and a mask that change nothing.
 * LZS_ESPACE if there are too many edits. LZS_EINVAL if an edit divides logits and `sign_aware` differs between plan
 * and graph. In these two cases, edits that change nothing are uploaded. LZS_EINVAL if the plan has a mask and the
 * graph has none. In this case only the edits are uploaded. */
lzs_status lzs_graph_upload(lzs_graph *g, size_t row, const lzs_plan *plan);

#endif
