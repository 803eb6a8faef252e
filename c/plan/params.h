/* params.h - the settings of a sampler as the library keeps them. */
#ifndef LZS_PARAMS_H
#define LZS_PARAMS_H

#include <stdbool.h>

#include "../include/lzsampler.h"

/* Copies settings of any size that this library knows into a whole struct, the rest being defaults. Returns false for
 * another size. */
bool lzs_params_whole(const lzs_params *given, lzs_params *whole);

#endif
