/* room.h - memory for arrays with many items: on 32-bit machines, the size of such an array in bytes may exceed a
 * size_t. */
#ifndef LZS_ROOM_H
#define LZS_ROOM_H

#include <stdint.h>
#include <stdlib.h>

/* Reallocates an array for n items of `size` bytes; if `old` is NULL, allocates an array. If there is not enough
 * memory, returns NULL, and `old` stays as it was. 0 items take one byte. */
static inline void *lzs_room(void *old, size_t n, size_t size) {
    if (n > SIZE_MAX / size) return NULL;
    return realloc(old, n ? n * size : 1);
}

#endif
