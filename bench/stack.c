/* stack.c - prints how many bytes of stack the calls of lzsampler use.
 *
 * The first line is the name of the kernels, each other line "SETTING CALL BYTES". The calls run in a thread whose stack
 * is memory of ours. Before each call all of it below the caller's frame is painted, and afterwards the lowest byte that
 * lost its paint shows how deep the call went. bench/memory.py builds and runs this file.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lzsampler.h"

enum { N_VOCAB = 151936, STACK = 1 << 20, ROUNDS = 40, PAINT = 0xa5, RED_ZONE = 192, N_CALLS = 5 };

static unsigned char stack[STACK] __attribute__((aligned(4096)));
static float logits[N_VOCAB], out[N_VOCAB];
static int32_t ids[N_VOCAB];

/* What a call needs. */
typedef struct job {
    lzs_sampler *sampler;
    int32_t token;
    lzs_status status;
} job;

typedef struct call {
    const char *name;
    void (*run)(job *j);
} call;

static void sample(job *j) {
    j->status = lzs_sample(j->sampler, logits, &j->token);
}

static void distribution(job *j) {
    size_t n;
    j->status = lzs_distribution(j->sampler, logits, ids, out, N_VOCAB, &n);
}

static void process(job *j) {
    j->status = lzs_process(j->sampler, logits, out);
}

static void accept_token(job *j) {
    j->status = lzs_accept(j->sampler, j->token);
}

static void rewind_one(job *j) {
    j->status = lzs_rewind(j->sampler, 1);
}

static const call calls[N_CALLS] = {{"lzs_sample", sample},
                                    {"lzs_distribution", distribution},
                                    {"lzs_process", process},
                                    {"lzs_accept", accept_token},
                                    {"lzs_rewind", rewind_one}};

/* Paints the stack below its own frame, which is where the call that comes next will be. Returns the end of the paint.
 * The RED_ZONE bytes above it are left alone because compilers may keep variables there. */
static __attribute__((noinline)) volatile unsigned char *paint(void) {
    volatile unsigned char *end = (unsigned char *)__builtin_frame_address(0) - RED_ZONE;
    for (volatile unsigned char *at = stack; at < end; at++) *at = PAINT;
    return end;
}

/* The bytes of stack below this frame that a call uses; RED_ZONE where it uses fewer. */
static __attribute__((noinline)) size_t depth(void (*run)(job *j), job *j) {
    volatile unsigned char *end = paint(), *at = stack;
    run(j);
    while (at < end && *at == PAINT) at++;
    return (size_t)(end - at) + RED_ZONE;
}

static lzs_params setting(const char *name, lzs_params p) {
    p.lz_penalty = 0.15f;
    p.repetition_penalty = 1.1f;
    p.penalty_window = 512;
    p.dry_multiplier = 0.8f;
    p.dry_penalty_last_n = 1024;
    p.loop_max_pattern = 512;
    p.temperature = name[0] == 'g' ? 0.0f : 0.8f; /* greedy */
    switch (name[0]) {
    case 'c': p.top_k = 40, p.top_p = 0.95f, p.min_p = 0.05f; break; /* chain */
    case 'k': p.top_k = 3000, p.top_p = 0.95f; break;                /* k=3000 */
    case 'p': p.top_p = 0.95f; break;                                /* p=0.95 */
    case 'm': p.min_p = 0.05f; break;                                /* min-p */
    default: break;
    }
    return p;
}

static void *measure(void *failed) {
    static const char *const settings[] = {"greedy", "temperature", "chain", "k=3000", "p=0.95", "min-p"};
    job j = {NULL, 0, LZS_OK};
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        lzs_params p;
        lzs_params_init(&p);
        p = setting(settings[s], p);
        if (lzs_sampler_new(N_VOCAB, &p, &j.sampler) != LZS_OK) return failed;
        for (int32_t i = 0; i < 2000; i++) lzs_accept(j.sampler, i * i % 701);
        size_t most[N_CALLS] = {0};
        for (int round = 0; round < ROUNDS; round++) {
            for (int c = 0; c < N_CALLS; c++) {
                j.token = round * round % 211;
                if (calls[c].run != accept_token) lzs_accept(j.sampler, j.token); /* its edits are made anew */
                size_t bytes = depth(calls[c].run, &j);
                if (j.status != LZS_OK) return failed;
                if (round > 0 && bytes > most[c]) most[c] = bytes; /* the first round warms up */
            }
        }
        for (int c = 0; c < N_CALLS; c++) printf("%s %s %zu\n", settings[s], calls[c].name, most[c]);
        lzs_sampler_free(j.sampler);
    }
    return NULL;
}

int main(void) {
    static int failed;
    uint32_t random = 2463534242u; /* xorshift32 */
    for (int32_t t = 0; t < N_VOCAB; t++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        logits[t] = (float)(random >> 8) * 0x1p-21f;
    }
    puts(lzs_kernels_name());
    pthread_t thread;
    pthread_attr_t attributes;
    void *result = &failed;
    if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, STACK)) return 2;
    if (pthread_create(&thread, &attributes, measure, &failed) || pthread_join(thread, &result)) return 2;
    return result != NULL;
}
