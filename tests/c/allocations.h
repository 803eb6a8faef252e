/* allocations.h - counts the allocations of the library under test, and lets one of them fail.
 *
 * The linker's --wrap option sends the calls of malloc, calloc, realloc and free of the whole program through these
 * functions, also under AddressSanitizer. Include this file once in a program, and link it with LZS_WRAP_ALLOCATIONS
 * (tests/c/CMakeLists.txt). Each block begins with its size, so that the bytes in use are known.
 */
#ifndef LZS_TESTS_ALLOCATIONS_H
#define LZS_TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static long n_allocations;           /* that were asked for */
static long n_live;                  /* blocks that were not freed yet */
static size_t live_bytes;            /* of the live blocks */
static size_t peak_bytes;            /* most live bytes since the test set this to live_bytes */
static long fail_after = -1;         /* number of allocations after which one fails; -1 if none does */

typedef union block_header {
    size_t size;
    max_align_t align;
} block_header;

void *__wrap_malloc(size_t size) {
    n_allocations++;
    if (fail_after >= 0 && fail_after-- == 0) return NULL;
    block_header *block = __real_malloc(sizeof *block + size);
    if (!block) return NULL;
    block->size = size;
    n_live++;
    live_bytes += size;
    if (live_bytes > peak_bytes) peak_bytes = live_bytes;
    return block + 1;
}

void *__wrap_calloc(size_t n, size_t size) {
    void *p = __wrap_malloc(n * size);
    if (p) memset(p, 0, n * size);
    return p;
}

/* Moves every block, so that the peak is the highest that any realloc could reach. */
void *__wrap_realloc(void *p, size_t size) {
    void *moved = __wrap_malloc(size);
    if (!moved || !p) return moved;
    size_t old = ((block_header *)p - 1)->size;
    memcpy(moved, p, old < size ? old : size);
    __wrap_free(p);
    return moved;
}

void __wrap_free(void *p) {
    if (!p) return;
    block_header *block = (block_header *)p - 1;
    n_live--;
    live_bytes -= block->size;
    __real_free(block);
}

#endif
