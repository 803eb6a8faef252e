/* token_table.h - a hash table from tokens to the entries in which penalties keep counts and positions.
 *
 * The entries are a dense array, so edits are made entry by entry. A hash index with open addressing, at most half
 * full, finds a token's entry in constant time.
 */
#ifndef LZS_TOKEN_TABLE_H
#define LZS_TOKEN_TABLE_H

#include "../include/lzsampler.h"
#include "../backend/token_entry.h"

typedef struct lzs_token_table {
    lzs_token_entry *entries; /* (n of capacity) the entries, in any order */
    uint32_t n, capacity;
    int32_t *slots; /* (n_slots) index of the entry in each slot; -1: the slot is free */
    uint32_t n_slots; /* number of slots, a power of two */
} lzs_token_table;

/* Makes room for at least `capacity` entries, at most 2^30. On failure the table is as it was. Initialize a table as
 * {0}. */
lzs_status lzs_token_table_reserve(lzs_token_table *table, size_t capacity);
/* Makes `to` equal to `from`; on failure `to` is as it was. */
lzs_status lzs_token_table_copy(lzs_token_table *to, const lzs_token_table *from);
void lzs_token_table_free(lzs_token_table *table);
void lzs_token_table_clear(lzs_token_table *table);
size_t lzs_token_table_memory(const lzs_token_table *table);
/* Returns the index of the token's entry, or -1. */
int32_t lzs_token_table_find(const lzs_token_table *table, int32_t token);
/* Returns the index of the token's entry. If there is no entry, adds an entry with count 0 and last -1. The table must
 * have room for it. */
int32_t lzs_token_table_take(lzs_token_table *table, int32_t token);
/* Removes the entry at an index; the last entry takes its place. */
void lzs_token_table_remove(lzs_token_table *table, int32_t at);

#endif
