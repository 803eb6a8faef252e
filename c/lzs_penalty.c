/* lzs_penalty.c - history -> edits.
 *
 * Every penalty is a sparse list of edits, at most one per distinct token of its window. All of them fold into one
 * edit a token: the factors of repetition, frequency and presence multiply, then their biases add, then LZ's.
 */
#include <stdlib.h>

#include "lzs_internal.h"

static float lz_bias(const lzs_params *p, float cost, float log2_vocab) {
    if (cost > log2_vocab) cost = log2_vocab;
    if (cost < 0.0f && p->lz_formula != LZS_LZ_CODELENGTH) cost = 0.0f;
    return lzs_finite(-(p->lz_penalty * (log2_vocab - cost)));
}

lzs_status lzs_edits_init(lzs_edits_buffer *e, const lzs_params *params, float log2_vocab, int32_t n_reach) {
    *e = (lzs_edits_buffer){.n_reach = n_reach};
    if (!n_reach) return LZS_OK;
    e->lz_bias = malloc(((size_t)n_reach + 1) * sizeof *e->lz_bias);
    if (!e->lz_bias) return LZS_ENOMEM;
    for (int32_t d = 1; d <= n_reach; d++) {
        float cost = lzs_log2((float)(params->lz_formula == LZS_LZ_RATE ? d + 1 : d));
        e->lz_bias[d] = lz_bias(params, cost, log2_vocab);
    }
    return LZS_OK;
}

/* realloc that leaves the old block to its owner when it fails. */
static bool resized(void **block, size_t n, size_t item) {
    void *wider = realloc(*block, n * item);
    if (wider) *block = wider;
    return wider != NULL;
}

lzs_status lzs_edits_reserve(lzs_edits_buffer *e, size_t capacity) {
    if (capacity <= e->capacity) return LZS_OK;
    void *edits = e->edits, *saved = e->saved, *matches = e->matches, *matched = e->matched;
    bool ok = resized(&edits, capacity, sizeof *e->edits) && resized(&saved, capacity, sizeof *e->saved);
    if (ok && e->n_reach) {
        ok = resized(&matches, capacity, sizeof *e->matches) && resized(&matched, capacity, sizeof *e->matched);
    }
    e->edits = edits;
    e->saved = saved;
    e->matches = matches;
    e->matched = matched;
    if (!ok) return LZS_ENOMEM;
    for (size_t i = e->capacity; e->n_reach && i < capacity; i++) e->matches[i].stamp = e->stamp - 1;
    e->capacity = capacity;
    return LZS_OK;
}

void lzs_edits_free(lzs_edits_buffer *e) {
    free(e->edits);
    free(e->saved);
    free(e->matches);
    free(e->matched);
    free(e->lz_bias);
}

size_t lzs_edits_memory(const lzs_edits_buffer *e) {
    size_t bytes = e->capacity * (sizeof *e->edits + sizeof *e->saved);
    if (!e->n_reach) return bytes;
    return bytes + e->capacity * (sizeof *e->matches + sizeof *e->matched) +
           ((size_t)e->n_reach + 1) * sizeof *e->lz_bias;
}

/* ---- LZ ---- */

/* Finds the best match of the few tokens that have one longer than 1; that of all others is told by the last position of
 * the token alone. (At one distance a longer match never costs more: (c + log2 L) / L <= c for
 * c = log2(D + 1) >= 1, so the length-1 match at the nearest distance is where every search starts.) */
static uint32_t find_matches(lzs_edits_buffer *e, const lzs_history *h, bool rate) {
    enum { CHUNK = 1024 };
    int32_t longer[CHUNK], reach = lzs_history_reach(h);
    uint32_t n_matched = 0;
    e->stamp++;
    for (int32_t end = h->n_reach; end > h->n_reach - reach;) { /* nearest chunks and positions first */
        int32_t start = end - CHUNK > h->n_reach - reach ? end - CHUNK : h->n_reach - reach;
        int32_t n = h->kernels->nonzero(h->len + start, end - start, longer);
        while (n-- > 0) {
            int32_t k = start + longer[n], distance = h->n_reach - k, length = h->len[k] + 1;
            int32_t item = lzs_bag_find(&h->bag, h->tokens[h->n - (size_t)distance]);
            struct lzs_match *m = &e->matches[item];
            if (m->stamp != e->stamp) {
                int32_t nearest = (int32_t)h->n - h->bag.items[item].last;
                *m = (struct lzs_match){e->stamp, 1, nearest, rate ? lzs_log2((float)(nearest + 1)) : 0.0f};
                e->matched[n_matched++] = item;
            }
            if (length <= m->length) continue; /* no formula likes a match that is further and not longer */
            m->length = length;
            m->distance = distance;
            if (rate) {
                float cost = (lzs_log2((float)(distance + 1)) + lzs_log2((float)length)) / (float)length;
                if (cost < m->value) m->value = cost;
            }
        }
        end = start;
    }
    return n_matched;
}

/* Turns the best matches of the n tokens that have one into biases. */
static void price_matches(lzs_edits_buffer *e, const lzs_history *h, const lzs_params *p, float log2_vocab, uint32_t n) {
    int32_t longest = 0, at = 0; /* the longest match of the buffer (l) and its nearest distance (d), for codelength */
    for (uint32_t i = 0; i < n; i++) {
        const struct lzs_match *m = &e->matches[e->matched[i]];
        if (m->length - 1 > longest || (m->length - 1 == longest && m->distance < at)) {
            longest = m->length - 1;
            at = m->distance;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct lzs_match *m = &e->matches[e->matched[i]];
        float cost = m->value; /* rate */
        if (p->lz_formula == LZS_LZ_DISTANCE) {
            cost = lzs_log2((float)m->distance);
        } else if (p->lz_formula == LZS_LZ_CODELENGTH && m->length == longest + 1) {
            float after = (float)m->length * (float)m->distance, before = (float)longest * (float)at;
            cost = lzs_log2(after / before) - 1.0f;
        } else if (p->lz_formula == LZS_LZ_CODELENGTH) {
            cost = lzs_log2((float)((int32_t)h->n - h->bag.items[e->matched[i]].last));
        }
        m->value = lz_bias(p, cost, log2_vocab);
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
    if (count == 0) return edit;
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
    edit.repeat = lzs_finite(edit.repeat < FLT_MIN ? FLT_MIN : edit.repeat);
    edit.bias = lzs_finite(edit.bias);
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

void lzs_edits_make(lzs_edits_buffer *e, const lzs_history *h, const lzs_params *params, float log2_vocab) {
    if (e->valid) return;
    const struct lzs_item *items = h->bag.items;
    const float *lz_bias_at = e->lz_bias; /* locals, since a write to an edit might change a member; distances unsigned,
                                           * since a signed index costs an instruction an item */
    lzs_edit *edits = e->edits;
    size_t n_edits = h->bag.n;
    int32_t n = (int32_t)h->n;
    e->n = n_edits;
    e->valid = true;
    uint32_t n_matched = 0;
    if (h->n_reach) {
        n_matched = find_matches(e, h, params->lz_formula == LZS_LZ_RATE);
        price_matches(e, h, params, log2_vocab, n_matched);
    }
    if (h->count_window) {
        for (size_t i = 0; i < n_edits; i++) {
            edits[i] = counted_edit(params, items[i].token, items[i].count);
            if (items[i].last < 0) continue; /* not in reach of LZ */
            bool longer = e->matches[i].stamp == e->stamp;
            float bias = edits[i].bias + (longer ? e->matches[i].value : lz_bias_at[(uint32_t)(n - items[i].last)]);
            edits[i].bias = lzs_finite(bias);
        }
    } else { /* LZ alone, so every item is in reach: a look-up each, then the few that have more */
        for (size_t i = 0; i < n_edits; i++) {
            edits[i] = (lzs_edit){items[i].token, 1.0f, lz_bias_at[(uint32_t)(n - items[i].last)]};
        }
        for (uint32_t i = 0; i < n_matched; i++) edits[e->matched[i]].bias = e->matches[e->matched[i]].value;
    }
    for (size_t i = 0; params->n_exempt && i < n_edits; i++) {
        if (is_exempt(params, edits[i].token)) edits[i] = (lzs_edit){edits[i].token, 1.0f, 0.0f};
    }
}
