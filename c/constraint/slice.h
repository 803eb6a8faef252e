/* slice.h - makes a part of a program a program of its own, and a key that is equal for equal parts. */
#ifndef LZS_SLICE_H
#define LZS_SLICE_H

#include "program.h"

/* Makes a program of a part's operations. Its text ends where the part has its exit. *made is false if the part leads
 * to anything else than its exit. The caller frees `slice`, also after an error. */
lzs_status lzs_slice(const lzs_program *program, const lzs_part_range *part, lzs_program *slice, bool *made);

/* Returns a complete description of a program: two programs with the same key have the same places and masks. NULL if
 * memory runs out. The caller frees the key. */
uint32_t *lzs_slice_key(const lzs_program *slice, size_t *n);

/* Translates a place inside the part into the slice's numbering. The counters of loops around the part go into
 * *around. */
uint64_t lzs_slice_place(const lzs_program *program, const lzs_part_range *part, uint64_t place, uint64_t *around);

#endif
