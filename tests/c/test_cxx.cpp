// test_cxx.cpp - the public header is C++ as well, and what it declares links.
#include "check.h"
#include "lzsampler.h"

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
    return 0;
}
