/* slice.h - a part of a program as a program of its own, and the key by which equal parts are known. */
#ifndef LZS_SLICE_H
#define LZS_SLICE_H

#include "program.h"

/* The operations of a part with the end of the text in the place of its exit. *made is false if it does not lead to its
 * exit alone. The caller frees the program in any case. */
lzs_status lzs_slice(const lzs_program *program, const lzs_part_range *part, lzs_program *slice, bool *made);

/* All that a program is, in one form: two programs with the same key have the same places and masks. NULL when memory
 * runs out; the caller frees it. */
uint32_t *lzs_slice_key(const lzs_program *slice, size_t *n);

/* A place inside the part as the slice has it, without the counters around the part, which are in *around. */
uint64_t lzs_slice_place(const lzs_program *program, const lzs_part_range *part, uint64_t place, uint64_t *around);

#endif
