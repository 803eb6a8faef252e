/* text.h - what the files of the text library share: characters, hashes and the hash table of indices.
 *
 * The table maps a hash to the indices of elements that its user keeps elsewhere. It stores 32 bits of the hash, called
 * the tag, next to each index; the user compares the elements themselves, so two of them are never taken for equal
 * because their hashes are. Hashes are keyed (hash.h), so a text cannot be made to fill one place of the table.
 */
#ifndef LZS_TEXT_H
#define LZS_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "../hash.h"
#include "lzsampler_text.h"

/* ---- characters ---- */

/* Counts in blocks whose sums fit in a byte, which compilers make into instructions on many bytes at once. */
static inline uint64_t count_characters(const uint8_t *text, size_t n) {
    uint64_t count = 0;
    for (; n >= 128; n -= 128, text += 128) {
        uint8_t of_block = 0;
        for (size_t i = 0; i < 128; i++) of_block += (text[i] & 0xC0) != 0x80;
        count += of_block;
    }
    for (size_t i = 0; i < n; i++) count += (text[i] & 0xC0) != 0x80;
    return count;
}

/* Returns the span without the white space at its two ends (words.c). */
lzs_span lzs_text_strip(const uint8_t *text, lzs_span span);

/* ---- figures (figures.c) ---- */

#define LZS_TEXT_PIECE ((size_t)4 << 20) /* bytes of a piece of a long text, whose figures are those of its pieces */

/* Computes what lzs_text_figures does of valid arguments. *longest is the most words that come twice in the same order, wherever that is, or
 * SIZE_MAX where it is not known: in a text of several pieces, and where they are many. */
lzs_status lzs_text_figures_of(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                               lzs_figures *figures, size_t *longest);

/* Computes what lzs_text_figures does, with only the words of one piece in memory at a time. LZS_ESPACE if a piece has no
 * word that ends in it: *figures is then useless. */
lzs_status lzs_text_figures_by_piece(const uint8_t *text, size_t n, lzs_figures *figures);

/* ---- hashes ---- */

static inline uint32_t hash_bytes(const uint8_t *bytes, size_t n, uint64_t key) {
    uint64_t hash = n, word = 0;
    for (size_t at = 0; at + sizeof word < n; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = lzs_fold(hash ^ word, key);
    }
    if (n >= sizeof word) {
        memcpy(&word, bytes + n - sizeof word, sizeof word); /* some of them for the second time, unless n is a multiple */
    } else if (n) {
        memcpy(&word, bytes, n);
    }
    return (uint32_t)lzs_fold(hash ^ word, key);
}

/* ---- hash table of indices (words.c) ---- */

typedef struct slot {
    uint32_t tag;   /* the hash, whose low bits are the number of the slot where the search for it begins */
    uint32_t index; /* the index plus 1, or 0 if the slot is free */
} slot;

typedef struct table {
    slot *slots;
    size_t n_slots, used; /* n_slots is a power of two and at least twice `used` */
    uint64_t key; /* of the hashes: see hash.h */
} table;

/* Makes an empty table that does not grow before it holds `expected` / 2 indices. The caller frees t->slots, also after
 * an error. Growing to m indices needs at most 48 bytes for each of max(m, expected), or 512 bytes. */
lzs_status lzs_text_table_init(table *t, size_t expected);
void lzs_text_table_clear(table *t);
lzs_status lzs_text_table_grow(table *t);

/* Puts an index into the free slot at which a search ended. */
static inline lzs_status table_add(table *t, slot *free_slot, uint32_t tag, size_t index) {
    *free_slot = (slot){tag, (uint32_t)index + 1};
    return ++t->used <= t->n_slots / 2 ? LZS_OK : lzs_text_table_grow(t);
}

/* Continues a search after the slot it last returned (NULL to begin one): returns the next slot that has this tag, or a
 * free slot, which ends the search. */
static inline slot *table_next(const table *t, slot *last, uint32_t tag) {
    size_t mask = t->n_slots - 1, at = last ? (size_t)(last - t->slots + 1) & mask : tag & mask;
    while (t->slots[at].index && t->slots[at].tag != tag) at = (at + 1) & mask;
    return &t->slots[at];
}

#endif
