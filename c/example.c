/* example.c - a toy language model that loves to loop, sampled greedily without and with the LZ penalty.
 *
 *     cc example.c -llzsampler -lm -o example && ./example
 */
#include <stdio.h>

#include <lzsampler.h>

enum { N_VOCAB = 26, N_TOKENS = 60 };

/* After each letter of "loping", the next letter of this word gets the highest logit. All other logits are fixed
 * pseudo-random numbers. */
static void toy_logits(int32_t last, float *logits) {
    static const char wanted[] = "loping";
    for (int32_t t = 0; t < N_VOCAB; t++) logits[t] = (float)((t * 7 + last * 11) % N_VOCAB) / 16.0f;
    for (int i = 0; i < 6; i++) {
        if (wanted[i] - 'a' == last) logits[wanted[(i + 1) % 6] - 'a'] += 3.0f;
    }
}

static int run(float lz_penalty) {
    lzs_params params;
    lzs_params_init(&params);
    params.lz_penalty = lz_penalty;
    params.temperature = 0.0f; /* greedy */
    lzs_sampler *sampler;
    lzs_status status = lzs_sampler_new(N_VOCAB, &params, &sampler);
    int32_t token = 0;
    printf("lz_penalty %.2f: ", (double)lz_penalty);
    for (int i = 0; status == LZS_OK && i < N_TOKENS; i++) {
        float logits[N_VOCAB];
        toy_logits(token, logits);
        status = lzs_sample(sampler, logits, &token);
        if (status == LZS_OK) status = lzs_accept(sampler, token);
        if (status == LZS_OK) putchar('a' + token);
    }
    puts(status == LZS_OK ? "" : lzs_strerror(status));
    lzs_sampler_free(sampler);
    return status != LZS_OK;
}

int main(void) {
    return run(0.0f) | run(1.0f);
}
