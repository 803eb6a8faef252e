/* token_table.c - a hash table from tokens to the entries in which penalties keep counts and positions.
 *
 * Removal shifts the following slots back instead of leaving tombstones. So the table of a sliding window, which loses
 * one token for each new token, never slows down.
 */
#include <string.h>

#include "../room.h"
#include "token_table.h"

static uint32_t home(const lzs_token_table *table, int32_t token) {
    /* Fibonacci hashing, since ids are dense and small */
    return ((uint32_t)token * 0x9E3779B9u >> 7) & (table->n_slots - 1);
}

/* Returns the slot of a token. If the token is not in the table, this is the free slot where to insert it. */
static uint32_t slot_of(const lzs_token_table *table, int32_t token) {
    uint32_t i = home(table, token);
    while (table->slots[i] >= 0 && table->entries[table->slots[i]].token != token) i = (i + 1) & (table->n_slots - 1);
    return i;
}

lzs_status lzs_token_table_reserve(lzs_token_table *table, size_t capacity) {
    enum { MOST = 1 << 30 }; /* greatest size of a vocabulary; the indices of twice as many slots fit into 32 bits */
    if (capacity <= table->capacity) return LZS_OK;
    if (capacity > MOST) return LZS_ENOMEM;
    if (capacity < 2 * (size_t)table->capacity) capacity = 2 * (size_t)table->capacity;
    if (capacity > MOST) capacity = MOST;
    uint32_t n_slots = 16;
    while (n_slots < 2 * (uint64_t)capacity) n_slots *= 2;
    int32_t *slots = table->slots;
    if (n_slots > table->n_slots) {
        slots = lzs_room(NULL, n_slots, sizeof *slots);
        if (!slots) return LZS_ENOMEM;
    }
    lzs_token_entry *entries = lzs_room(table->entries, capacity, sizeof *entries);
    if (!entries) {
        if (slots != table->slots) free(slots);
        return LZS_ENOMEM;
    }
    table->entries = entries;
    table->capacity = (uint32_t)capacity;
    if (slots == table->slots) return LZS_OK;
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    memset(slots, 0xff, n_slots * sizeof *slots);
    for (uint32_t i = 0; i < table->n; i++) slots[slot_of(table, entries[i].token)] = (int32_t)i;
    return LZS_OK;
}

lzs_status lzs_token_table_copy(lzs_token_table *to, const lzs_token_table *from) {
    lzs_status status = lzs_token_table_reserve(to, from->capacity);
    if (status != LZS_OK) return status;
    lzs_token_table_clear(to);
    if (from->n) memcpy(to->entries, from->entries, from->n * sizeof *to->entries);
    to->n = from->n;
    for (uint32_t i = 0; i < to->n; i++) to->slots[slot_of(to, to->entries[i].token)] = (int32_t)i;
    return LZS_OK;
}

void lzs_token_table_free(lzs_token_table *table) {
    free(table->entries);
    free(table->slots);
    *table = (lzs_token_table){0};
}

void lzs_token_table_clear(lzs_token_table *table) {
    if (table->n > table->n_slots / 16) {
        memset(table->slots, 0xff, table->n_slots * sizeof *table->slots);
    } else { /* the table is large and nearly empty, so free only the slots in use */
        for (uint32_t i = 0; i < table->n; i++) {
            uint32_t slot = home(table, table->entries[i].token);
            while (table->slots[slot] != (int32_t)i) slot = (slot + 1) & (table->n_slots - 1);
            table->slots[slot] = -1;
        }
    }
    table->n = 0;
}

size_t lzs_token_table_memory(const lzs_token_table *table) {
    return table->capacity * sizeof *table->entries + table->n_slots * sizeof *table->slots;
}

int32_t lzs_token_table_find(const lzs_token_table *table, int32_t token) {
    return table->n_slots ? table->slots[slot_of(table, token)] : -1;
}

int32_t lzs_token_table_take(lzs_token_table *table, int32_t token) {
    uint32_t slot = slot_of(table, token);
    if (table->slots[slot] >= 0) return table->slots[slot];
    table->slots[slot] = (int32_t)table->n;
    table->entries[table->n] = (lzs_token_entry){token, 0, -1};
    return (int32_t)table->n++;
}

void lzs_token_table_remove(lzs_token_table *table, int32_t at) {
    uint32_t hole = slot_of(table, table->entries[at].token), wrap = table->n_slots - 1;
    for (uint32_t i = (hole + 1) & wrap; table->slots[i] >= 0; i = (i + 1) & wrap) {
        /* a slot may move back to the hole unless its home lies after the hole */
        uint32_t from = home(table, table->entries[table->slots[i]].token);
        if (((i - from) & wrap) >= ((i - hole) & wrap)) {
            table->slots[hole] = table->slots[i];
            hole = i;
        }
    }
    table->slots[hole] = -1;
    lzs_token_entry last = table->entries[--table->n];
    if ((uint32_t)at == table->n) return;
    table->slots[slot_of(table, last.token)] = at; /* `last` is still at its old index in the entries, so slot_of finds
                                                    * its slot */
    table->entries[at] = last;
}
