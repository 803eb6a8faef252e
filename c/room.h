/* room.h - memory for arrays whose number of items may be large: on 32-bit machines their bytes need not fit in a
 * size_t. */
#ifndef LZS_ROOM_H
#define LZS_ROOM_H

#include <stdint.h>
#include <stdlib.h>

/* realloc for n items of a size, and malloc if `old` is NULL. NULL, with `old` as it was, if there is not so much
 * memory; of no items it is one byte. */
static inline void *lzs_room(void *old, size_t n, size_t size) {
    if (n > SIZE_MAX / size) return NULL;
    return realloc(old, n ? n * size : 1);
}

#endif
