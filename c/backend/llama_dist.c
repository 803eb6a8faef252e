/* llama_dist.c - what llama.cpp's `dist` draws, for users who compare: float exponentials of the C library, summed in
 * double in the order in which llama.cpp's own chain leaves the candidates. */
#include "backend.h"
#include "sort.h"

static float weight(float x, float max, float t) {
    if (x == max) return 1.0f;
    float w = expf(x / t - max / t);
    return w == w ? w : 0.0f; /* inf - inf: both quotients overflow, and x is below the maximum */
}

lzs_status lzs_llama_dist_pick(lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan, int32_t *token) {
    lzs_list *list = &b->list;
    if (!c->listed) {
        float low = lzs_key_float(c->cut.key);
        list->n = 0;
        if (b->kernels->gather(&c->row, b->maxima, 0, low, INFINITY, list) < c->row.n) return LZS_ESPACE;
        if (list->n + c->n_edits > list->capacity) return LZS_ESPACE;
        for (int32_t i = 0; i < c->n_edits; i++) {
            if (c->values[i] >= low) list->packed[list->n++] = lzs_pack(c->values[i], c->edits[i].token);
        }
        int32_t n = 0;
        for (int32_t i = 0; i < list->n; i++) {
            uint64_t packed = list->packed[i];
            if (lzs_inside(c->cut, lzs_packed_key(packed), lzs_packed_id(packed))) list->packed[n++] = packed;
        }
        list->n = n;
    }
    uint64_t *packed = list->packed;
    bool sorted = plan->top_k > 0 || plan->top_p < 1.0f; /* min-p and the temperature keep the order of ids */
    if (!sorted) {
        for (int32_t i = 0; i < list->n; i++) packed[i] = packed[i] << 32 | packed[i] >> 32;
    }
    lzs_sort_keys_with(packed, list->n, b->scratch.room);
    if (!sorted) {
        for (int32_t i = 0; i < list->n; i++) packed[i] = packed[i] << 32 | packed[i] >> 32;
    }
    float t = plan->temperature, max = c->top.max;
    double sum = 0.0, run = 0.0;
    for (int32_t i = 0; i < list->n; i++) sum += weight(lzs_packed_x(packed[i]), max, t);
    double target = sum * plan->uniform;
    int32_t last = -1;
    for (int32_t i = 0; i < list->n; i++) {
        float w = weight(lzs_packed_x(packed[i]), max, t);
        if (w == 0.0f) continue; /* a token of probability 0 is never drawn */
        last = lzs_packed_id(packed[i]);
        run += w;
        if (run >= target) break;
    }
    *token = last;
    return LZS_OK;
}
