/* graph.c - the edits and the mask of plans as operations in llama.cpp's graph.
 *
 * The logits of the edited tokens are gathered, changed and scattered back. The graph always edits max_edits tokens. If
 * a plan has fewer edits, the free places are filled with other tokens and edits that change nothing. Each token
 * appears once, since set_rows is undefined if a row appears twice. The operations are the same as in lzs_apply_edit.
 * So the results have the same bits if the device rounds each operation by itself. There is one difference: logits that
 * leave the range of floats are not clamped.
 *
 * If several logits are greatest, the best token is the first of these, but argmax may return another of them. So a
 * second row is made. At the greatest logits it holds the width of the row minus the token id, and elsewhere 0. So its
 * maximum is at the first of the greatest logits, which is the best token.
 *
 * llama.cpp also builds graphs only to measure their size, and never runs them. One of these graphs has 131,072 logits
 * whatever the model. So the width of a row is read from its tensor.
 */
#include "graph.h"

#include <math.h>
#include <string.h>

#include "../backend/kernels.h"
#include "../plan/plan.h"
#include "../room.h"

enum { MOST_TENSORS = 64, MOST_COUNTED = 1 << 24 }; /* greatest number of tensors of one row; integers below
                                                     * MOST_COUNTED are exact in a float */

/* The input tensors of a row. */
typedef struct inputs {
    void *ids;     /* (max_edits) tokens of the edits, as int32; NULL if there are no edits */
    void *repeats; /* (max_edits) repeats of the edits, as floats; NULL if no edit has a repeat */
    void *biases;  /* (max_edits) biases of the edits, as floats */
    void *mask;    /* (n_vocab) 0 or -inf for each token, as floats; NULL without a mask */
} inputs;

struct lzs_graph {
    lzs_graph_calls f;
    lzs_graph_settings settings;
    void *device;   /* the device while lzs_graph_fits checks which operations it supports; else NULL */
    bool supported; /* whether the device supports all operations checked so far */
    inputs *rows;   /* (n_rows of max_rows) inputs of the rows of the graph */
    size_t n_rows, max_rows;
    /* Buffers from which the inputs of one row are uploaded: */
    int32_t *ids;   /* (max_edits) tokens */
    float *repeats; /* (max_edits) repeats */
    float *biases;  /* (max_edits) biases */
    float *mask;    /* (n_vocab) 0 or -inf */
    uint32_t *used; /* (lzs_mask_words) bit set of edited tokens; all 0 between calls */
};

_Static_assert(offsetof(lzs_graph_functions, llama_sampler_init) + sizeof(lzs_graph_calls) ==
                   sizeof(lzs_graph_functions),
               "the two lists differ");

/* ---- creating and freeing ---- */

lzs_status lzs_graph_new(const lzs_graph_functions *functions, const lzs_graph_settings *settings, lzs_graph **graph) {
    *graph = NULL;
    if (functions->size != sizeof *functions) return LZS_EINVAL;
    void *addresses[sizeof(lzs_graph_calls) / sizeof(void *)];
    memcpy(addresses, (const char *)functions + offsetof(lzs_graph_functions, llama_sampler_init), sizeof addresses);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        if (!addresses[i]) return LZS_EINVAL;
    }
    if (settings->takes_best && settings->n_vocab >= MOST_COUNTED) return LZS_EINVAL;
    lzs_graph *g = calloc(1, sizeof *g);
    if (!g) return LZS_ENOMEM;
    memcpy(&g->f, addresses, sizeof g->f); /* ISO C has no cast from object to function pointer */
    g->settings = *settings;
    size_t n = settings->max_edits ? settings->max_edits : 1, n_vocab = (size_t)settings->n_vocab;
    g->ids = lzs_room(NULL, n, sizeof *g->ids);
    g->repeats = lzs_room(NULL, n, sizeof *g->repeats);
    g->biases = lzs_room(NULL, n, sizeof *g->biases);
    g->mask = lzs_room(NULL, settings->has_mask ? n_vocab : 0, sizeof *g->mask);
    g->used = calloc(lzs_mask_words(settings->n_vocab), sizeof *g->used);
    if (g->ids && g->repeats && g->biases && g->mask && g->used) {
        *graph = g;
        return LZS_OK;
    }
    lzs_graph_free(g);
    return LZS_ENOMEM;
}

void lzs_graph_free(lzs_graph *g) {
    if (!g) return;
    free(g->rows);
    free(g->ids);
    free(g->repeats);
    free(g->biases);
    free(g->mask);
    free(g->used);
    free(g);
}

const lzs_graph_calls *lzs_graph_calls_of(const lzs_graph *g) {
    return &g->f;
}

const lzs_graph_settings *lzs_graph_settings_of(const lzs_graph *g) {
    return &g->settings;
}

/* ---- building ---- */

/* Returns the operation. While lzs_graph_fits checks a device, asks whether the device supports the operation. */
static void *made(lzs_graph *g, void *operation) {
    if (g->device && !g->f.supports(g->device, operation)) g->supported = false;
    return operation;
}

static void *new_input(lzs_graph *g, void *context, int type, int64_t n) {
    void *tensor = g->f.new_tensor_1d(context, type, n);
    g->f.set_input(tensor);
    return tensor;
}

/* x / repeat if x is positive, else x * repeat. Both operations are always done: the divisor is 1 if x is not positive,
 * and the factor is 1 if x is positive. Selecting by a product with 0 would turn an infinity into NaN. */
static void *repeated(lzs_graph *g, void *context, void *x, void *repeats) {
    const lzs_graph_calls *f = &g->f;
    if (!g->settings.sign_aware) return made(g, f->div(context, x, repeats));
    void *positive = made(g, f->step(context, x));
    void *other = made(g, f->scale_bias(context, positive, -1.0f, 1.0f));
    void *divisor = made(g, f->mul(context, positive, repeats));
    divisor = made(g, f->add(context, divisor, other));
    void *factor = made(g, f->mul(context, other, repeats));
    factor = made(g, f->add(context, factor, positive));
    x = made(g, f->div(context, x, divisor));
    return made(g, f->mul(context, x, factor));
}

/* Adds the operations that edit a row, creates their inputs in *in, and returns the edited row. */
static void *edited(lzs_graph *g, void *context, void *logits, int64_t width, inputs *in) {
    const lzs_graph_calls *f = &g->f;
    int64_t n = (int64_t)g->settings.max_edits;
    in->ids = new_input(g, context, LZS_GGML_TYPE_I32, n);
    in->biases = new_input(g, context, LZS_GGML_TYPE_F32, n);
    if (g->settings.has_repeats) in->repeats = new_input(g, context, LZS_GGML_TYPE_F32, n);
    void *column = f->reshape_2d(context, logits, 1, width);
    void *x = made(g, f->get_rows(context, column, in->ids));
    x = f->reshape_1d(context, x, n);
    if (in->repeats) x = repeated(g, context, x, in->repeats);
    x = made(g, f->add(context, x, in->biases));
    column = made(g, f->set_rows(context, column, f->reshape_2d(context, x, 1, n), in->ids));
    return f->reshape_1d(context, column, width);
}

/* Makes the best token the result. `row` has the logits before the mask. */
static void take_best(lzs_graph *g, void *context, int64_t width, void *row, lzs_llama_sampler_data *data) {
    const lzs_graph_calls *f = &g->f;
    void *logits = data->logits, *column = f->reshape_2d(context, logits, 1, width);
    void *some = made(g, f->argmax(context, logits));
    void *best = f->reshape_1d(context, made(g, f->get_rows(context, column, some)), 1);
    void *gap = made(g, f->sub(context, logits, best));
    gap = made(g, f->scale_bias(context, gap, -1.0f, 0.0f));
    void *below = made(g, f->step(context, gap));
    void *equal = made(g, f->scale_bias(context, below, -1.0f, 1.0f));
    void *falling = made(g, f->arange(context, 0.0f, (float)width, 1.0f));
    falling = made(g, f->scale_bias(context, falling, -1.0f, (float)width));
    void *first = made(g, f->mul(context, equal, falling));
    data->sampled = made(g, f->argmax(context, first));
    data->logits = f->reshape_1d(context, made(g, f->get_rows(context, column, data->sampled)), 1);
    data->probs = made(g, f->sum(context, row));
}

bool lzs_graph_build(lzs_graph *g, void *context, lzs_llama_sampler_data *data) {
    if (g->n_rows == g->max_rows) return false;
    const lzs_graph_calls *f = &g->f;
    inputs *in = &g->rows[g->n_rows++];
    *in = (inputs){0};
    int64_t width = f->n_elements(data->logits);
    void *row = f->reshape_1d(context, data->logits, width);
    if (g->settings.max_edits) row = edited(g, context, row, width, in);
    data->logits = row;
    if (g->settings.has_mask) {
        in->mask = new_input(g, context, LZS_GGML_TYPE_F32, width);
        data->logits = made(g, f->add(context, row, in->mask));
    }
    if (g->settings.takes_best) take_best(g, context, width, row, data);
    return true;
}

bool lzs_graph_fits(lzs_graph *g, void *buffer_type, uint32_t max_rows) {
    const lzs_graph_calls *f = &g->f;
    g->supported = false;
    inputs *rows = lzs_room(g->rows, max_rows, sizeof *rows);
    if (!rows) return false;
    g->rows = rows;
    g->max_rows = max_rows;
    g->n_rows = 0;
    g->device = f->device_of(buffer_type);
    g->supported = true;
    if (g->device) {
        void *context = f->begin((lzs_ggml_init_params){MOST_TENSORS * f->tensor_overhead(), NULL, true});
        g->supported = context != NULL;
        if (context) {
            lzs_llama_sampler_data data = {.logits = f->new_tensor_1d(context, LZS_GGML_TYPE_F32, g->settings.n_vocab)};
            g->supported = lzs_graph_build(g, context, &data) && g->supported;
            f->end(context);
        }
        g->n_rows = 0;
        g->device = NULL;
    }
    return g->supported;
}

bool lzs_graph_is_supported(const lzs_graph *g) {
    return g->supported;
}

void lzs_graph_clear(lzs_graph *g) {
    g->n_rows = 0;
}

size_t lzs_graph_rows(const lzs_graph *g) {
    return g->n_rows;
}

/* ---- uploading ---- */

/* Puts the edits into the first places, and tokens without edits into the other places. The vocabulary has at least as
 * many tokens as there are places. */
static void fill(lzs_graph *g, const lzs_edit *edits, size_t n) {
    for (size_t i = 0; i < n; i++) {
        g->ids[i] = edits[i].token;
        g->repeats[i] = edits[i].repeat;
        g->biases[i] = edits[i].bias;
        g->used[edits[i].token >> 5] |= 1u << (edits[i].token & 31);
    }
    int32_t free_token = 0;
    for (size_t i = n; i < g->settings.max_edits; i++, free_token++) {
        while (g->used[free_token >> 5] >> (free_token & 31) & 1) free_token++;
        g->ids[i] = free_token;
        g->repeats[i] = 1.0f;
        g->biases[i] = 0.0f;
    }
    for (size_t i = 0; i < n; i++) g->used[edits[i].token >> 5] = 0;
}

static void upload_mask(lzs_graph *g, void *tensor, const uint32_t *mask) {
    for (int32_t t = 0; t < g->settings.n_vocab; t++) g->mask[t] = lzs_allowed(mask, t) ? 0.0f : -INFINITY;
    g->f.tensor_set(tensor, g->mask, 0, (size_t)g->settings.n_vocab * sizeof *g->mask);
}

static bool divides(const lzs_plan *plan) {
    for (size_t i = 0; i < plan->n_edits; i++) {
        if (plan->edits[i].repeat != 1.0f) return true;
    }
    return false;
}

lzs_status lzs_graph_upload(lzs_graph *g, size_t row, const lzs_plan *plan) {
    const inputs *in = &g->rows[row];
    size_t n = plan ? plan->n_edits : 0, most = g->settings.max_edits;
    const uint32_t *mask = plan ? plan->mask : NULL;
    bool divides_otherwise = plan && (plan->sign_aware != 0) != g->settings.sign_aware && divides(plan);
    lzs_status status = n > most ? LZS_ESPACE : (mask && !in->mask) || divides_otherwise ? LZS_EINVAL : LZS_OK;
    if (n > most || divides_otherwise) n = 0;
    if (in->ids) {
        fill(g, plan ? plan->edits : NULL, n);
        g->f.tensor_set(in->ids, g->ids, 0, most * sizeof *g->ids);
        g->f.tensor_set(in->biases, g->biases, 0, most * sizeof *g->biases);
    }
    if (in->repeats) g->f.tensor_set(in->repeats, g->repeats, 0, most * sizeof *g->repeats);
    if (in->mask) upload_mask(g, in->mask, mask);
    return status;
}
