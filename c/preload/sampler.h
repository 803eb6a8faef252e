/* sampler.h - a member of llama.cpp's chain: a sampler of llama.cpp, then lzsampler's penalties. */
#ifndef LZS_PRELOAD_SAMPLER_H
#define LZS_PRELOAD_SAMPLER_H

#include "../include/lzsampler.h"
#include "libllama.h"
#include "vocabulary.h"

/* Makes the sampler. It owns `first` and gives `vocabulary` back; neither changes if making fails. `l` stays. */
lzs_status lzs_preload_sampler_new(const lzs_libllama *l, lzs_llama_sampler *first, lzs_known_vocabulary *vocabulary,
                                   const lzs_params *params, lzs_llama_sampler **made);

#endif
