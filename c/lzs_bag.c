/* lzs_bag.c - the distinct tokens of the windows: a dense list with a hash index.
 *
 * Removal shifts the following slots back instead of leaving tombstones, so a bag that loses a token for each one it
 * gains (a sliding window) never slows down.
 */
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

static uint32_t home(const lzs_bag *bag, int32_t token) {
    return ((uint32_t)token * 0x9E3779B9u >> 7) & (bag->n_slots - 1); /* Fibonacci hashing; ids are dense and small */
}

/* The slot of a token, or the free one where it would be. */
static uint32_t slot_of(const lzs_bag *bag, int32_t token) {
    uint32_t i = home(bag, token);
    while (bag->slots[i] >= 0 && bag->items[bag->slots[i]].token != token) i = (i + 1) & (bag->n_slots - 1);
    return i;
}

lzs_status lzs_bag_reserve(lzs_bag *bag, size_t capacity) {
    if (capacity <= bag->capacity) return LZS_OK;
    if (capacity < 2 * (size_t)bag->capacity) capacity = 2 * (size_t)bag->capacity;
    uint32_t n_slots = 16;
    while (n_slots < 2 * capacity) n_slots *= 2;
    int32_t *slots = bag->slots;
    if (n_slots > bag->n_slots) {
        slots = malloc(n_slots * sizeof *slots);
        if (!slots) return LZS_ENOMEM;
    }
    struct lzs_item *items = realloc(bag->items, capacity * sizeof *items);
    if (!items) {
        if (slots != bag->slots) free(slots);
        return LZS_ENOMEM;
    }
    bag->items = items;
    bag->capacity = (uint32_t)capacity;
    if (slots == bag->slots) return LZS_OK;
    free(bag->slots);
    bag->slots = slots;
    bag->n_slots = n_slots;
    memset(slots, 0xff, n_slots * sizeof *slots);
    for (uint32_t i = 0; i < bag->n; i++) slots[slot_of(bag, items[i].token)] = (int32_t)i;
    return LZS_OK;
}

lzs_status lzs_bag_copy(lzs_bag *to, const lzs_bag *from) {
    *to = (lzs_bag){0};
    lzs_status status = lzs_bag_reserve(to, from->capacity);
    if (status != LZS_OK) return status;
    if (from->n) memcpy(to->items, from->items, from->n * sizeof *to->items);
    to->n = from->n;
    for (uint32_t i = 0; i < to->n; i++) to->slots[slot_of(to, to->items[i].token)] = (int32_t)i;
    return LZS_OK;
}

void lzs_bag_free(lzs_bag *bag) {
    free(bag->items);
    free(bag->slots);
    *bag = (lzs_bag){0};
}

void lzs_bag_clear(lzs_bag *bag) {
    if (bag->n) memset(bag->slots, 0xff, bag->n_slots * sizeof *bag->slots);
    bag->n = 0;
}

size_t lzs_bag_memory(const lzs_bag *bag) {
    return bag->capacity * sizeof *bag->items + bag->n_slots * sizeof *bag->slots;
}

int32_t lzs_bag_find(const lzs_bag *bag, int32_t token) {
    return bag->n_slots ? bag->slots[slot_of(bag, token)] : -1;
}

int32_t lzs_bag_take(lzs_bag *bag, int32_t token) {
    uint32_t slot = slot_of(bag, token);
    if (bag->slots[slot] >= 0) return bag->slots[slot];
    bag->slots[slot] = (int32_t)bag->n;
    bag->items[bag->n] = (struct lzs_item){token, 0, -1};
    return (int32_t)bag->n++;
}

void lzs_bag_remove(lzs_bag *bag, int32_t at) {
    uint32_t hole = slot_of(bag, bag->items[at].token), wrap = bag->n_slots - 1;
    for (uint32_t i = (hole + 1) & wrap; bag->slots[i] >= 0; i = (i + 1) & wrap) {
        /* a slot may move back to the hole unless its home lies after it */
        uint32_t from = home(bag, bag->items[bag->slots[i]].token);
        if (((i - from) & wrap) >= ((i - hole) & wrap)) {
            bag->slots[hole] = bag->slots[i];
            hole = i;
        }
    }
    bag->slots[hole] = -1;
    struct lzs_item last = bag->items[--bag->n];
    if ((uint32_t)at == bag->n) return;
    bag->slots[slot_of(bag, last.token)] = at; /* found by its old place, which still holds it */
    bag->items[at] = last;
}
