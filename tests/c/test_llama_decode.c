/* test_llama_decode.c - lzs_llama_step against a llama_decode of its own, which makes logits of the tokens so far. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "llama/abi.h"
#include "lzsampler_llama.h"

enum { N_VOCAB = 32 };

typedef struct context {
    int32_t n, last, fails; /* what decode returns instead of decoding */
    int silent;             /* no logits */
    float row[N_VOCAB];
} context;

static void make_row(float *row, int32_t n, int32_t last) {
    uint64_t seed = (uint64_t)n * 1000 + (uint64_t)last;
    for (int32_t i = 0; i < N_VOCAB; i++) row[i] = (float)(8.0 * random_unit(&seed));
}

static int32_t decode(void *opaque, lzs_llama_batch batch) {
    context *c = opaque;
    CHECK(batch.n_tokens == 1 && batch.token && !batch.embd && !batch.pos && !batch.n_seq_id && !batch.seq_id && !batch.logits);
    if (c->fails) return c->fails;
    c->n++;
    c->last = *batch.token;
    make_row(c->row, c->n, c->last);
    return 0;
}

static float *get_logits(void *opaque, int32_t index) {
    context *c = opaque;
    CHECK(index == -1);
    return c->silent ? NULL : c->row;
}

int main(void) {
    lzs_params p;
    lzs_params_init(&p);
    p.lz_penalty = 0.2f;
    p.loop_max_pattern = 3;
    p.loop_min_pattern = 1;
    p.loop_min_count = 3;
    lzs_sampler *a, *b;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &a) == LZS_OK && lzs_sampler_new(N_VOCAB, &p, &b) == LZS_OK);
    context c = {0};
    int32_t (*const decode_address)(void *, lzs_llama_batch) = decode;
    float *(*const logits_address)(void *, int32_t) = get_logits;
    lzs_llama_loop loop = {.size = sizeof loop, .context = &c, .sampler = a, .token = 5};
    memcpy(&loop.decode, &decode_address, sizeof loop.decode);
    memcpy(&loop.get_logits_ith, &logits_address, sizeof loop.get_logits_ith);
    int32_t token = 5;
    for (int32_t i = 0; i < 200; i++) {
        float row[N_VOCAB];
        lzs_loop found;
        make_row(row, i + 1, token);
        CHECK(lzs_llama_step(&loop) == LZS_OK && c.last == token && c.n == i + 1 && loop.decoded == 0);
        CHECK(lzs_sample(b, row, &token) == LZS_OK && lzs_accept(b, token) == LZS_OK);
        CHECK(loop.token == token && loop.looping == lzs_loop_found(b, &found));
    }
    CHECK(loop.decode_seconds > 0.0 && loop.logits_seconds >= 0.0 && loop.sampling_seconds > 0.0);
    c.fails = 1;
    CHECK(lzs_llama_step(&loop) == LZS_EINVAL && loop.decoded == 1 && loop.token == -1 && lzs_position(a) == 200);
    c.fails = 0;
    c.silent = 1;
    loop.token = 3;
    CHECK(lzs_llama_step(&loop) == LZS_EINVAL && loop.decoded == 0 && loop.token == -1 && lzs_position(a) == 200);
    c.silent = 0;
    loop.token = 3;
    CHECK(lzs_llama_step(&loop) == LZS_OK && lzs_position(a) == 201);
    loop.size--;
    CHECK(lzs_llama_step(&loop) == LZS_EINVAL && c.n == 202 && lzs_position(a) == 201);
    lzs_sampler_free(a);
    lzs_sampler_free(b);
    return 0;
}
