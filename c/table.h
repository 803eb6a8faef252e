/* table.h - a hash table of numbers of elements. The user keeps the elements themselves elsewhere. Both liblzsampler
 * and liblzsampler_text use this file.
 *
 * A slot holds the number of an element and 32 bits of the element's hash, the tag. The user compares the elements
 * themselves, so different elements with equal hashes are never confused. Hashes are keyed (hash.h), so nobody can
 * construct an input whose elements collide.
 */
#ifndef LZS_TABLE_H
#define LZS_TABLE_H

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "include/lzsampler_status.h"

enum { LZS_LEAST_SLOTS = 64 };

typedef struct lzs_slot {
    uint32_t tag;   /* 32 bits of the hash; its low bits are the index of the slot where a search begins */
    uint32_t index; /* number of the element plus 1; 0 if the slot is free */
} lzs_slot;

typedef struct lzs_table {
    lzs_slot *slots;
    size_t n_slots, used; /* n_slots is a power of two and at least twice `used` */
    uint64_t key;         /* key of the hashes */
} lzs_table;

/* Makes an empty table that does not grow before it holds `expected` / 2 elements. The caller frees t->slots, also
 * after an error. To grow to m elements, a table needs at most 48 * max(m, expected) bytes, or 512 bytes if that is
 * more. */
static inline lzs_status lzs_table_init(lzs_table *t, size_t expected) {
    *t = (lzs_table){.n_slots = LZS_LEAST_SLOTS};
    while (t->n_slots < expected) t->n_slots *= 2;
    t->slots = calloc(t->n_slots, sizeof *t->slots);
    t->key = lzs_hash_key(t->slots);
    return t->slots ? LZS_OK : LZS_ENOMEM;
}

static inline void lzs_table_clear(lzs_table *t) {
    if (t->slots) memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    t->used = 0;
}

static inline size_t lzs_table_memory(const lzs_table *t) {
    return t->n_slots * sizeof *t->slots;
}

/* Returns the first free slot for a tag. */
static inline lzs_slot *lzs_table_free_slot(const lzs_table *t, uint32_t tag) {
    size_t at = tag & (t->n_slots - 1);
    while (t->slots[at].index) at = (at + 1) & (t->n_slots - 1);
    return &t->slots[at];
}

/* Returns the next slot with this tag after the slot `last`. To begin a search, pass NULL as `last`. If no further slot
 * has the tag, returns a free slot, which ends the search. */
static inline lzs_slot *lzs_table_next(const lzs_table *t, lzs_slot *last, uint32_t tag) {
    size_t mask = t->n_slots - 1, at = last ? (size_t)(last - t->slots + 1) & mask : tag & mask;
    while (t->slots[at].index && t->slots[at].tag != tag) at = (at + 1) & mask;
    return &t->slots[at];
}

static inline lzs_status lzs_table_grow(lzs_table *t) {
    lzs_table grown = {.n_slots = 2 * t->n_slots, .used = t->used, .key = t->key};
    grown.slots = grown.n_slots > SIZE_MAX / sizeof *t->slots / 4 ? NULL : calloc(grown.n_slots, sizeof *t->slots);
    if (!grown.slots) return LZS_ENOMEM;
    for (size_t i = 0; i < t->n_slots; i++) {
        if (t->slots[i].index) *lzs_table_free_slot(&grown, t->slots[i].tag) = t->slots[i];
    }
    free(t->slots);
    *t = grown;
    return LZS_OK;
}

/* Puts the number of an element into the free slot at which a search ended. After LZS_ENOMEM the table is as before. */
static inline lzs_status lzs_table_add(lzs_table *t, lzs_slot *free_slot, uint32_t tag, size_t number) {
    if (2 * (t->used + 1) > t->n_slots) {
        lzs_status status = lzs_table_grow(t);
        if (status != LZS_OK) return status;
        free_slot = lzs_table_free_slot(t, tag);
    }
    *free_slot = (lzs_slot){tag, (uint32_t)number + 1};
    t->used++;
    return LZS_OK;
}

#endif
