// test_cxx.cpp - the public headers are C++ as well, together in one file, and what they declare links.
#include "check.h"
#include "lzsampler.h"
#include "lzsampler_explain.h"
#include "lzsampler_llama.h"
#include "lzsampler_plan.h"
#include "lzsampler_text.h"
#include "lzsampler_threads.h"
#include "lzsampler_verify.h"

int main() {
    lzs_params params;
    lzs_params_init(&params);
    params.lz_penalty = 0.15f;
    lzs_sampler *sampler = nullptr;
    CHECK(lzs_sampler_new(3, &params, &sampler) == LZS_OK);
    float logits[3] = {0.0f, 1.0f, 2.0f};
    int32_t token = -1;
    CHECK(lzs_sample(sampler, logits, &token) == LZS_OK && token >= 0 && token < 3);
    CHECK(lzs_accept(sampler, token) == LZS_OK);
    lzs_sampler_free(sampler);
    const uint8_t text[] = {'a', 'b', 'a', 'b'};
    lzs_repetition run;
    size_t n_runs;
    CHECK(lzs_byte_runs(text, 4, 2, 0, 0, &run, 1, &n_runs) == LZS_OK && n_runs == 1 && run.period == 2);
    lzs_llama_grammar_free(nullptr);
    return 0;
}
