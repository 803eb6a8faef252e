/* collect.c - lists the tokens that remain after truncation, by ascending id. */
#include <string.h>

#include "backend.h"
#include "sort.h"

/* Packs an id and a logit into a key. In descending order of the keys, the ids ascend. */
static uint64_t by_id(int32_t id, float x) {
    return (uint64_t)(uint32_t)~id << 32 | lzs_float_bits(x);
}

static int32_t id_of(uint64_t key) {
    return (int32_t)~(uint32_t)(key >> 32);
}

static size_t collect_list(lzs_backend *b, int32_t *ids, float *logits, size_t capacity) {
    size_t n = (size_t)b->list.n;
    if (n > capacity) return n;
    uint64_t *keys = b->list.packed;
    for (size_t i = 0; i < n; i++) keys[i] = by_id(lzs_packed_id(keys[i]), lzs_packed_x(keys[i]));
    lzs_sort_keys_with(keys, (int32_t)n, b->scratch.room);
    for (size_t i = 0; i < n; i++) {
        ids[i] = id_of(keys[i]);
        logits[i] = lzs_bits_float((uint32_t)keys[i]);
        keys[i] = lzs_pack(logits[i], ids[i]);
    }
    return n;
}

/* Writes the unedited tokens that stay, in order of ids. */
static size_t collect_row(lzs_backend *b, const lzs_candidates *c, int32_t *ids, float *logits, size_t capacity) {
    float low = lzs_key_float(c->cut.key);
    size_t n = 0;
    for (int32_t at = 0; at < c->row.n;) {
        lzs_list found = {b->scratch.room, 0, LZS_LIST};
        at = b->kernels->gather(&c->row, b->maxima, at, low, INFINITY, &found);
        for (int32_t i = 0; i < found.n; i++) {
            int32_t id = lzs_packed_id(found.packed[i]);
            if (!lzs_inside(c->cut, lzs_packed_key(found.packed[i]), id)) continue;
            if (n < capacity) {
                ids[n] = id;
                logits[n] = lzs_packed_x(found.packed[i]);
            }
            n++;
        }
    }
    return n;
}

size_t lzs_collect(lzs_backend *b, const lzs_candidates *c, int32_t *ids, float *logits, size_t capacity) {
    if (c->listed) return collect_list(b, ids, logits, capacity);
    size_t n_row = collect_row(b, c, ids, logits, capacity), n = n_row;
    for (int32_t i = 0; i < c->n_edits; i++) {
        n += lzs_inside(c->cut, lzs_key(c->values[i]), c->edits[i].token);
    }
    if (n > capacity || n == n_row) return n;
    /* Edited tokens come in any order. So they are sorted in portions of up to LZS_LIST tokens. Each portion is merged
     * into the result, beginning with the largest ids. */
    size_t done = n_row;
    for (int32_t i = 0; i < c->n_edits;) {
        uint64_t *keys = b->list.packed;
        int32_t n_keys = 0;
        for (; i < c->n_edits && n_keys < LZS_LIST; i++) {
            int32_t id = c->edits[i].token;
            if (lzs_inside(c->cut, lzs_key(c->values[i]), id)) keys[n_keys++] = by_id(id, c->values[i]);
        }
        lzs_sort_keys_with(keys, n_keys, b->scratch.room);
        size_t from = done, to = done + (size_t)n_keys;
        done = to;
        for (int32_t k = n_keys - 1; k >= 0; k--) {
            while (from > 0 && ids[from - 1] > id_of(keys[k])) {
                to--;
                from--;
                ids[to] = ids[from];
                logits[to] = logits[from];
            }
            to--;
            ids[to] = id_of(keys[k]);
            logits[to] = lzs_bits_float((uint32_t)keys[k]);
        }
    }
    return n;
}
