/* lzs_penalty.c - history -> edits.
 *
 * Every penalty is a sparse list of edits, at most one per distinct token of its window. All of them fold into one
 * edit a token: the factors of repetition, frequency and presence multiply, then their biases add, then LZ's.
 */
#include <math.h>
#include <stdlib.h>

#include "lzs_internal.h"

lzs_status lzs_edits_init(lzs_edits_buffer *e, int32_t formula, int32_t n_reach, size_t max_matches) {
    *e = (lzs_edits_buffer){.formula = formula, .n_reach = n_reach, .max_matches = max_matches};
    if (!n_reach) return LZS_OK;
    e->matches = malloc(max_matches * sizeof *e->matches);
    e->log2_distance = malloc(((size_t)n_reach + 1) * sizeof *e->log2_distance);
    if (!e->matches || !e->log2_distance) return LZS_ENOMEM;
    for (int32_t d = 1; d <= n_reach; d++) {
        e->log2_distance[d] = lzs_log2((float)(formula == LZS_LZ_RATE ? d + 1 : d));
    }
    return LZS_OK;
}

lzs_status lzs_edits_reserve(lzs_edits_buffer *e, size_t max_edits) {
    if (max_edits <= e->capacity) return LZS_OK;
    if (max_edits < 2 * e->capacity) max_edits = 2 * e->capacity; /* amortised: the whole-history window grows by one */
    lzs_edit *edits = realloc(e->edits, max_edits * sizeof *edits);
    if (!edits) return LZS_ENOMEM;
    e->edits = edits;
    float *saved = realloc(e->saved, max_edits * sizeof *saved);
    if (!saved) return LZS_ENOMEM;
    e->saved = saved;
    e->capacity = max_edits;
    return LZS_OK;
}

void lzs_edits_free(lzs_edits_buffer *e) {
    free(e->edits);
    free(e->saved);
    free(e->matches);
    free(e->log2_distance);
}

size_t lzs_edits_memory(const lzs_edits_buffer *e) {
    size_t bytes = e->capacity * (sizeof *e->edits + sizeof *e->saved) + e->max_matches * sizeof *e->matches;
    return e->n_reach ? bytes + ((size_t)e->n_reach + 1) * sizeof *e->log2_distance : bytes;
}

/* ---- LZ ---- */

/* The best match of each distinct token in reach. Nearly all have length 1 and are told by the last position of their
 * token; the few longer ones are found by their lengths. (A length-1 match at the nearest distance never beats a longer
 * one there: (c + log2 L) / L <= c for c = log2(D + 1) >= 1.) */
static void find_matches(const lzs_history *h, lzs_edits_buffer *e) {
    bool rate = e->formula == LZS_LZ_RATE;
    for (uint32_t i = 0; i < h->latest.n; i++) {
        int32_t nearest = (int32_t)h->n - h->latest.items[i].value;
        e->matches[i] = (struct lzs_match){rate ? e->log2_distance[nearest] : 0.0f, 1, nearest};
    }
    enum { CHUNK = 1024 };
    int32_t longer[CHUNK], reach = lzs_history_reach(h);
    for (int32_t end = h->n_reach; end > h->n_reach - reach;) { /* nearest chunks and positions first */
        int32_t start = end - CHUNK > h->n_reach - reach ? end - CHUNK : h->n_reach - reach;
        int32_t n = h->kernels->nonzero(h->len + start, end - start, longer);
        while (n-- > 0) {
            int32_t k = start + longer[n], distance = h->n_reach - k, length = h->len[k] + 1;
            struct lzs_match *m = &e->matches[lzs_bag_find(&h->latest, h->tokens[h->n - (size_t)distance])];
            if (length <= m->length) continue; /* no formula likes a match that is further and not longer */
            m->length = length;
            m->distance = distance;
            if (rate) {
                float cost = (e->log2_distance[distance] + lzs_log2((float)length)) / (float)length;
                if (cost < m->bits) m->bits = cost;
            }
        }
        end = start;
    }
}

void lzs_lz_make(lzs_edits_buffer *e, const lzs_history *h, float log2_vocab) {
    find_matches(h, e);
    int32_t longest = 0, at = 0; /* the longest match of the buffer (l) and its nearest distance (d), for codelength */
    for (uint32_t i = 0; e->formula == LZS_LZ_CODELENGTH && i < h->latest.n; i++) {
        const struct lzs_match *m = &e->matches[i];
        if (m->length - 1 > longest || (m->length - 1 == longest && m->distance < at)) {
            longest = m->length - 1;
            at = m->distance;
        }
    }
    for (uint32_t i = 0; i < h->latest.n; i++) {
        struct lzs_match *m = &e->matches[i];
        float cost = m->bits; /* rate */
        if (e->formula == LZS_LZ_DISTANCE) {
            cost = e->log2_distance[m->distance];
        } else if (e->formula == LZS_LZ_CODELENGTH && longest > 0 && m->length == longest + 1) {
            float after = (float)m->length * (float)m->distance, before = (float)longest * (float)at;
            cost = lzs_log2(after / before) - 1.0f;
        } else if (e->formula == LZS_LZ_CODELENGTH) {
            cost = e->log2_distance[(int32_t)h->n - h->latest.items[i].value];
        }
        if (cost > log2_vocab) cost = log2_vocab;
        if (cost < 0.0f && e->formula != LZS_LZ_CODELENGTH) cost = 0.0f;
        m->bits = log2_vocab - cost;
    }
}

/* ---- folding ---- */

/* b^n by squaring: the same products in the same order everywhere. */
static float power(float b, int32_t n) {
    float p = 1.0f;
    for (; n > 0; n >>= 1, b *= b) {
        if (n & 1) p *= b;
    }
    return p;
}

static lzs_edit counted_edit(const lzs_params *p, int32_t token, int32_t count) {
    lzs_edit edit = {token, 1.0f, 0.0f};
    if (p->repetition_method == LZS_MULTIPLICATIVE) {
        edit.repeat *= p->repetition_penalty;
    } else {
        edit.bias -= p->repetition_penalty;
    }
    if (p->frequency_penalty != 0.0f) {
        if (p->frequency_method == LZS_MULTIPLICATIVE) {
            edit.repeat *= power(p->frequency_penalty, count);
        } else {
            edit.bias -= (float)count * p->frequency_penalty;
        }
    }
    if (p->presence_penalty != 0.0f) {
        if (p->presence_method == LZS_MULTIPLICATIVE) {
            edit.repeat *= p->presence_penalty;
        } else {
            edit.bias -= p->presence_penalty;
        }
    }
    /* out of the float range a factor would make NaN of a 0 and -inf of a finite logit */
    edit.repeat = fminf(fmaxf(edit.repeat, FLT_MIN), FLT_MAX);
    edit.bias = fminf(fmaxf(edit.bias, -FLT_MAX), FLT_MAX);
    return edit;
}

static bool is_exempt(const lzs_params *p, int32_t token) {
    size_t low = 0, high = p->n_exempt;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->exempt[middle] < token) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < p->n_exempt && p->exempt[low] == token;
}

static void fold_lz(lzs_edits_buffer *e, const lzs_history *h, float strength) {
    for (uint32_t i = 0; i < h->latest.n; i++) {
        int32_t token = h->latest.items[i].token, at = h->counts.n ? lzs_bag_find(&h->counts, token) : -1;
        float bias = -(strength * e->matches[i].bits);
        if (bias == 0.0f) continue;
        if (at >= 0) {
            e->edits[at].bias = fmaxf(e->edits[at].bias + bias, -FLT_MAX);
        } else {
            e->edits[e->n++] = (lzs_edit){token, 1.0f, fmaxf(bias, -FLT_MAX)};
        }
    }
}

void lzs_edits_make(lzs_edits_buffer *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    if (e->valid) return;
    e->n = 0;
    for (uint32_t i = 0; i < h->counts.n; i++) { /* edit i belongs to count i: fold_lz relies on it */
        e->edits[e->n++] = counted_edit(params, h->counts.items[i].token, h->counts.items[i].value);
    }
    if (h->n_reach) {
        lzs_lz_make(e, h, log2_vocab);
        fold_lz(e, h, params->lz_penalty);
    }
    if (params->n_exempt) {
        size_t kept = 0;
        for (size_t i = 0; i < e->n; i++) {
            if (!is_exempt(params, e->edits[i].token)) e->edits[kept++] = e->edits[i];
        }
        e->n = kept;
    }
    e->valid = true;
}

float lzs_edit_apply(const lzs_edit *edit, float x, bool sign_aware) {
    if (!(fabsf(x) <= FLT_MAX)) return x; /* -inf stays out, +inf in; NaN is reported by the scan */
    float y = (x > 0.0f || !sign_aware ? x / edit->repeat : x * edit->repeat) + edit->bias;
    return fminf(fmaxf(y, -FLT_MAX), FLT_MAX); /* a penalty makes a token unlikely, never impossible */
}
