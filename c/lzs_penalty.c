/* lzs_penalty.c - history -> edits.
 *
 * Every penalty is a sparse list of edits, at most one per distinct token of its window. All of them fold into one
 * edit a token: the factors of repetition, frequency and presence multiply, then their biases add, then LZ's.
 */
#include <math.h>
#include <stdlib.h>

#include "lzs_internal.h"

lzs_status lzs_edits_init(lzs_edits_buffer *e, size_t max_matches) {
    *e = (lzs_edits_buffer){.max_matches = max_matches};
    if (max_matches) {
        e->matches = malloc(max_matches * sizeof *e->matches);
        if (!e->matches || lzs_map_init(&e->match_index, (uint32_t)max_matches) != LZS_OK) return LZS_ENOMEM;
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
    lzs_map_free(&e->match_index);
}

size_t lzs_edits_memory(const lzs_edits_buffer *e) {
    return e->capacity * (sizeof *e->edits + sizeof *e->saved) + e->max_matches * sizeof *e->matches +
           lzs_map_memory(&e->match_index);
}

/* ---- LZ ---- */

/* Bits to code a match of length L at distance D, per token coded: the authors' code of March 2025. */
static float rate_cost(int32_t distance, int32_t length) {
    return (lzs_log2((float)(distance + 1)) + lzs_log2((float)length)) / (float)length;
}

/* The best match of each distinct token. Positions are visited from the nearest on: a position further back with the
 * same or a shorter length can improve no formula, so most cost one look-up. */
static void find_matches(const lzs_history *h, lzs_edits_buffer *e, int32_t reach, bool rate) {
    lzs_map_clear(&e->match_index);
    for (int32_t d = 1; d <= reach; d++) {
        int32_t token = h->tokens[h->n - (size_t)d], length = h->len[d - 1] + 1;
        int32_t at = lzs_map_find(&e->match_index, token);
        if (at < 0) {
            at = (int32_t)e->match_index.n;
            lzs_map_set(&e->match_index, token, at);
            e->matches[at] = (struct lzs_match){token, length, d, d, rate ? rate_cost(d, length) : 0.0f};
            continue;
        }
        struct lzs_match *m = &e->matches[at];
        if (length <= m->length) continue;
        m->length = length;
        m->distance = d;
        if (rate) {
            float cost = rate_cost(d, length);
            if (cost < m->cost) m->cost = cost;
        }
    }
}

void lzs_lz_each(const lzs_history *h, lzs_edits_buffer *e, int32_t formula, float log2_vocab,
                 void (*emit)(void *to, int32_t token, float bits), void *to) {
    /* position i = n - d must hold a token with a whole buffer before it in the window: d <= w - buffer */
    if (h->n <= (size_t)h->buffer) return;
    int32_t reach = h->n - (size_t)h->buffer < (size_t)h->n_len ? (int32_t)(h->n - (size_t)h->buffer) : h->n_len;
    find_matches(h, e, reach, formula == LZS_LZ_RATE);

    int32_t longest = 0, at = 0; /* the longest match of the buffer (l) and its nearest distance (d), for codelength */
    for (uint32_t i = 0; formula == LZS_LZ_CODELENGTH && i < e->match_index.n; i++) {
        const struct lzs_match *m = &e->matches[i];
        if (m->length - 1 > longest || (m->length - 1 == longest && m->distance < at)) {
            longest = m->length - 1;
            at = m->distance;
        }
    }
    for (uint32_t i = 0; i < e->match_index.n; i++) {
        const struct lzs_match *m = &e->matches[i];
        float cost;
        if (formula == LZS_LZ_RATE) {
            cost = m->cost;
        } else if (formula == LZS_LZ_DISTANCE) {
            cost = lzs_log2((float)m->distance);
        } else if (longest > 0 && m->length == longest + 1) {
            float after = (float)m->length * (float)m->distance, before = (float)longest * (float)at;
            cost = lzs_log2(after / before) - 1.0f;
        } else {
            cost = lzs_log2((float)m->nearest);
        }
        if (cost > log2_vocab) cost = log2_vocab;
        if (cost < 0.0f && formula != LZS_LZ_CODELENGTH) cost = 0.0f;
        float bits = log2_vocab - cost;
        if (bits != 0.0f) emit(to, m->token, bits);
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

struct fold {
    lzs_edits_buffer *e;
    const lzs_history *h;
    const lzs_params *params;
};

static void fold_lz(void *to, int32_t token, float bits) {
    struct fold *f = to;
    float bias = -(f->params->lz_penalty * bits);
    int32_t at = f->h->count_window ? lzs_map_find(&f->h->count_index, token) : -1;
    if (at >= 0) {
        f->e->edits[at].bias = fmaxf(f->e->edits[at].bias + bias, -FLT_MAX);
    } else {
        f->e->edits[f->e->n++] = (lzs_edit){token, 1.0f, bias};
    }
}

void lzs_edits_make(lzs_edits_buffer *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    if (e->valid) return;
    e->n = 0;
    for (uint32_t i = 0; i < h->n_counts; i++) { /* edit i belongs to count i: fold_lz relies on it */
        e->edits[e->n++] = counted_edit(params, h->counts[i].token, h->counts[i].count);
    }
    if (h->n_len) {
        struct fold fold = {e, h, params};
        lzs_lz_each(h, e, params->lz_formula, log2_vocab, fold_lz, &fold);
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
