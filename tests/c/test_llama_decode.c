/* test_llama_decode.c - lzs_llama_step against a llama_decode of its own, which makes logits of the tokens so far; and Ctrl-C
 * within lzs_llama_decode. */
#ifndef _WIN32
#  define _POSIX_C_SOURCE 200809L
#endif
#include <math.h>
#ifndef _WIN32
#  include <pthread.h>
#  include <unistd.h>
#endif
#include <signal.h>
#include <stdbool.h>
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

#ifndef _WIN32
typedef struct long_context {
    bool (*asked)(void *flag);
    void *flag;
    int32_t n_asked, until; /* how often llama.cpp asked, and before which time a signal comes */
    int number;             /* of the signal */
    struct long_context *inner;
    struct other *other;
    lzs_llama_decoder decoder;
    int32_t n_set; /* how often the callback was set */
} long_context;

/* A decode of another thread, which begins before one of the main thread and ends within it. */
typedef struct other {
    pthread_t thread;
    int begun[2], may_end[2]; /* pipes: a byte comes when that is so */
} other;

static volatile sig_atomic_t n_handled;

static void handle(int number) {
    CHECK(number == SIGINT || number == SIGTERM || number == SIGHUP);
    n_handled++;
}

static void set_abort(void *opaque, bool (*asked)(void *flag), void *flag) {
    long_context *c = opaque;
    c->asked = asked;
    c->flag = flag;
    c->n_set++;
}

static int32_t decode_long(void *opaque, lzs_llama_batch batch);

static int32_t decode_with_signal(long_context *c, int32_t catches) {
    int32_t (*const decode_address)(void *, lzs_llama_batch) = decode_long;
    void (*const set_abort_address)(void *, bool (*)(void *), void *) = set_abort;
    c->decoder.context = c;
    memcpy(&c->decoder.decode, &decode_address, sizeof decode_address);
    memcpy(&c->decoder.set_abort_callback, &set_abort_address, sizeof set_abort_address);
    lzs_llama_batch batch = {.n_tokens = 7};
    int32_t status = lzs_llama_decode(&c->decoder, &batch, catches);
    CHECK(c->n_set == 1 && c->flag == &c->decoder.stopped);
    return status;
}

static int32_t decode_long(void *opaque, lzs_llama_batch batch) {
    long_context *c = opaque;
    CHECK(batch.n_tokens == 7 && c->asked);
    for (c->n_asked = 0; c->n_asked < 100; c->n_asked++) {
        if (c->inner && c->n_asked == 1) { /* a decode within a decode, which ends by itself */
            CHECK(decode_with_signal(c->inner, 1) == 2 && c->inner->decoder.stopped == SIGINT);
        }
        if (c->other && c->n_asked == 2) {
            CHECK(write(c->other->may_end[1], "", 1) == 1 && pthread_join(c->other->thread, NULL) == 0);
        }
        if (c->n_asked == c->until) raise(c->number);
        if (c->asked(c->flag)) return 2;
    }
    return 0;
}

static int32_t decode_other(void *opaque, lzs_llama_batch batch) {
    other *o = opaque;
    char byte;
    CHECK(batch.n_tokens == 7 && write(o->begun[1], "", 1) == 1 && read(o->may_end[0], &byte, 1) == 1);
    return 0;
}

static void ignore_abort(void *opaque, bool (*asked)(void *flag), void *flag) {
    CHECK(opaque && asked && flag);
}

static void *run_other(void *opaque) {
    int32_t (*const decode_address)(void *, lzs_llama_batch) = decode_other;
    void (*const set_abort_address)(void *, bool (*)(void *), void *) = ignore_abort;
    lzs_llama_decoder decoder = {.context = opaque};
    memcpy(&decoder.decode, &decode_address, sizeof decode_address);
    memcpy(&decoder.set_abort_callback, &set_abort_address, sizeof set_abort_address);
    lzs_llama_batch batch = {.n_tokens = 7};
    CHECK(lzs_llama_decode(&decoder, &batch, 0) == 0 && decoder.stopped == 0);
    return NULL;
}

/* The end of a decode of another thread takes nothing from the main thread, whose flag the signal sets. */
static void test_other_thread(void) {
    other o;
    char byte;
    CHECK(pipe(o.begun) == 0 && pipe(o.may_end) == 0);
    CHECK(pthread_create(&o.thread, NULL, run_other, &o) == 0 && read(o.begun[0], &byte, 1) == 1);
    long_context c = {.until = 5, .number = SIGINT, .other = &o};
    CHECK(decode_with_signal(&c, 7) == 2 && c.decoder.stopped == SIGINT && c.n_asked == 5);
    for (int i = 0; i < 2; i++) CHECK(close(o.begun[i]) == 0 && close(o.may_end[i]) == 0);
}

static void test_signal(int number, int32_t bit) {
    struct sigaction ours = {.sa_handler = handle}, now;
    CHECK(sigaction(number, &ours, NULL) == 0);
    n_handled = 0;
    long_context c = {.until = 5, .number = number}, inner = {.until = 3, .number = SIGINT};
    int32_t *const stopped = &c.decoder.stopped;
    CHECK(decode_with_signal(&c, 7) == 2 && *stopped == number && c.n_asked == 5 && n_handled == 0);
    CHECK(sigaction(number, NULL, &now) == 0 && now.sa_handler == handle);
    *stopped = 0;
    CHECK(decode_with_signal(&c, 7 & ~bit) == 0 && *stopped == 0 && c.n_asked == 100 && n_handled == 1);
    c.until = 100;
    CHECK(decode_with_signal(&c, 7) == 0 && *stopped == 0);
    *stopped = 1; /* by another thread, before it began */
    CHECK(decode_with_signal(&c, 0) == 2 && c.n_asked == 0);
    c = (long_context){.until = 9, .number = number, .inner = &inner};
    CHECK(decode_with_signal(&c, bit) == 2 && *stopped == number && c.n_asked == 9 && n_handled == 1);
    CHECK(sigaction(number, NULL, &now) == 0 && now.sa_handler == handle);
}
#endif

int main(void) {
#ifndef _WIN32
    test_signal(SIGINT, 1);
    test_signal(SIGTERM, 2);
    test_signal(SIGHUP, 4);
    test_other_thread();
#endif
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
