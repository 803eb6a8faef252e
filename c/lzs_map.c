/* lzs_map.c - a small hash map from token to index: open addressing, linear probing, at most half full.
 *
 * Removal shifts the following entries back instead of leaving tombstones, so a map that loses a token for each one
 * it gains (a sliding window) never slows down.
 */
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

static uint32_t home(const lzs_map *map, int32_t token) {
    return ((uint32_t)token * 0x9E3779B9u >> 7) & (map->capacity - 1); /* Fibonacci hashing; ids are dense and small */
}

static uint32_t slot_of(const lzs_map *map, int32_t token) {
    uint32_t i = home(map, token);
    while (map->keys[i] >= 0 && map->keys[i] != token) i = (i + 1) & (map->capacity - 1);
    return i;
}

lzs_status lzs_map_init(lzs_map *map, uint32_t max_keys) {
    uint32_t capacity = 16;
    while (capacity < 2 * max_keys) capacity *= 2;
    int32_t *room = malloc(2 * (size_t)capacity * sizeof *room);
    if (!room) return LZS_ENOMEM;
    *map = (lzs_map){room, room + capacity, capacity, 0};
    memset(map->keys, 0xff, capacity * sizeof *map->keys);
    return LZS_OK;
}

lzs_status lzs_map_copy(lzs_map *to, const lzs_map *from) {
    size_t bytes = 2 * (size_t)from->capacity * sizeof *from->keys;
    int32_t *room = malloc(bytes);
    if (!room) return LZS_ENOMEM;
    memcpy(room, from->keys, bytes);
    *to = (lzs_map){room, room + from->capacity, from->capacity, from->n};
    return LZS_OK;
}

lzs_status lzs_map_grow(lzs_map *map, uint32_t max_keys) {
    if (2 * max_keys <= map->capacity) return LZS_OK;
    lzs_map wider;
    lzs_status status = lzs_map_init(&wider, max_keys);
    if (status != LZS_OK) return status;
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->keys[i] >= 0) lzs_map_set(&wider, map->keys[i], map->values[i]);
    }
    lzs_map_free(map);
    *map = wider;
    return LZS_OK;
}

void lzs_map_free(lzs_map *map) {
    free(map->keys);
    *map = (lzs_map){0};
}

void lzs_map_clear(lzs_map *map) {
    if (map->n) memset(map->keys, 0xff, map->capacity * sizeof *map->keys);
    map->n = 0;
}

size_t lzs_map_memory(const lzs_map *map) {
    return 2 * (size_t)map->capacity * sizeof *map->keys;
}

int32_t lzs_map_find(const lzs_map *map, int32_t token) {
    uint32_t i = slot_of(map, token);
    return map->keys[i] == token ? map->values[i] : -1;
}

void lzs_map_set(lzs_map *map, int32_t token, int32_t value) {
    uint32_t i = slot_of(map, token);
    if (map->keys[i] < 0) {
        map->keys[i] = token;
        map->n++;
    }
    map->values[i] = value;
}

void lzs_map_remove(lzs_map *map, int32_t token) {
    uint32_t hole = slot_of(map, token), wrap = map->capacity - 1;
    if (map->keys[hole] < 0) return;
    map->n--;
    for (uint32_t i = (hole + 1) & wrap; map->keys[i] >= 0; i = (i + 1) & wrap) {
        /* an entry may move back to the hole unless its home lies after it */
        if (((i - home(map, map->keys[i])) & wrap) >= ((i - hole) & wrap)) {
            map->keys[hole] = map->keys[i];
            map->values[hole] = map->values[i];
            hole = i;
        }
    }
    map->keys[hole] = -1;
}
