/* params.h - the settings of a sampler as the library keeps them. */
#ifndef LZS_PARAMS_H
#define LZS_PARAMS_H

#include <stdbool.h>

#include "../include/lzsampler.h"

/* Copies settings, also those of an older header, into a whole struct. Fields that `given` lacks get their defaults.
 * Returns false if this library does not know the size of `given`. */
bool lzs_params_whole(const lzs_params *given, lzs_params *whole);

/* Compares two valid lzs_params in the numeric fields that lzsampler.h marks as [fixed]. Returns the name of a field
 * that differs, or NULL. Lists are not compared. */
const char *lzs_params_fixed(const lzs_params *a, const lzs_params *b);

#endif
