/* slice.h - copies a part of a program into a program of its own, and makes a key that is equal for equal parts. The
 * copy is called a slice.
 */
#ifndef LZS_SLICE_H
#define LZS_SLICE_H

#include "program.h"

/* Makes a program of a part's operations. A text of this program ends at the exit of the part. If an operation of the
 * part leads to an operation that is neither in the part nor its exit, *made is false. The caller frees `slice`, also
 * after an error. */
lzs_status lzs_slice(const lzs_program *program, const lzs_part_range *part, lzs_program *slice, bool *made);

/* Returns a complete description of a program as *n numbers. Two programs with the same key have the same places and
 * masks. Returns NULL if memory runs out. The caller frees the key. */
uint32_t *lzs_slice_key(const lzs_program *slice, size_t *n);

/* Returns the place of the slice that corresponds to a place inside the part. *around gets the counters of the loops
 * around the part. */
uint64_t lzs_slice_place(const lzs_program *program, const lzs_part_range *part, uint64_t place, uint64_t *around);

#endif
