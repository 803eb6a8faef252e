/* test_rows.c - what samplers on several threads share is only read: rows of logits, from memory that cannot be written, and the
 * lists of the settings of clones. Under -fsanitize=thread that is a proof; otherwise it compares the tokens. */
#if defined(__unix__) || defined(__APPLE__)
#  define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#  define _DARWIN_C_SOURCE
#  include <pthread.h>
#  include <string.h>
#  include <sys/mman.h>

#  include "check.h"
#  include "lzsampler.h"

enum { N_VOCAB = 3000, STEPS = 300 };

static float *row; /* (N_VOCAB) in pages that are only readable */

static lzs_sampler *new_sampler(int32_t top_k, uint64_t seed) {
    static const lzs_logit_bias bias[] = {{3, 2.0f}, {9, -1.0f}};
    lzs_params p;
    lzs_sampler *s;
    lzs_params_init(&p);
    p.lz_penalty = 0.2f;
    p.repetition_penalty = 1.2f;
    p.dry_multiplier = 0.5f;
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    p.temperature = 0.9f;
    p.top_k = top_k;
    p.top_p = top_k == 40 ? 0.95f : 1.0f;
    p.seed = seed;
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    return s;
}

typedef struct work {
    int32_t top_k;
    uint64_t seed;
    int32_t tokens[STEPS];
} work;

static void *run(void *argument) {
    work *w = argument;
    lzs_sampler *s = new_sampler(w->top_k, w->seed);
    int32_t *ids = malloc(N_VOCAB * sizeof *ids);
    float *probabilities = malloc(N_VOCAB * sizeof *probabilities), *out = malloc(N_VOCAB * sizeof *out);
    uint32_t mask[(N_VOCAB + 31) / 32];
    CHECK(ids && probabilities && out);
    memset(mask, 0xfb, sizeof mask);
    for (int i = 0; i < STEPS; i++) {
        size_t n;
        if (i == 20) CHECK(lzs_set_mask(s, LZS_MASK_USER, mask, sizeof mask / 4) == LZS_OK);
        CHECK(lzs_sample(s, row, &w->tokens[i]) == LZS_OK);
        CHECK(lzs_distribution(s, row, ids, probabilities, N_VOCAB, &n) == LZS_OK && n > 0);
        CHECK(lzs_process(s, row, out) == LZS_OK);
        CHECK(lzs_accept(s, w->tokens[i]) == LZS_OK);
    }
    free(ids);
    free(probabilities);
    free(out);
    lzs_sampler_free(s);
    return NULL;
}

/* A clone that is cloned, copied and freed on a thread of its own. */
static void *use_clone(void *argument) {
    lzs_sampler *s = argument, *clone;
    for (int i = 0; i < STEPS; i++) {
        int32_t token, again;
        CHECK(lzs_sampler_clone(s, &clone) == LZS_OK && lzs_sampler_copy(clone, s) == LZS_OK);
        CHECK(lzs_step(s, row, &token, NULL) == LZS_OK && lzs_sample(clone, row, &again) == LZS_OK && token == again);
        lzs_sampler_free(clone);
    }
    lzs_sampler_free(s);
    return NULL;
}

static void test_clones(void) {
    enum { THREADS = 4 };
    lzs_sampler *s = new_sampler(40, 3), *clones[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(lzs_sampler_clone(s, &clones[i]) == LZS_OK);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, use_clone, clones[i]) == 0);
    lzs_sampler_free(s);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    uint64_t state = 1;
    row = mmap(NULL, N_VOCAB * sizeof *row, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(row != MAP_FAILED);
    for (int i = 0; i < N_VOCAB; i++) row[i] = (float)(12.0 * random_unit(&state) - 6.0);
    CHECK(mprotect(row, N_VOCAB * sizeof *row, PROT_READ) == 0);
    static const int32_t top_ks[] = {0, 40, 1500};
    for (int k = 0; k < 3; k++) {
        static work together[2], alone[2];
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            together[i] = alone[i] = (work){.top_k = top_ks[k], .seed = (uint64_t)i};
            CHECK(pthread_create(&threads[i], NULL, run, &together[i]) == 0);
        }
        for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        for (int i = 0; i < 2; i++) {
            run(&alone[i]);
            CHECK(memcmp(alone[i].tokens, together[i].tokens, sizeof alone[i].tokens) == 0);
        }
    }
    test_clones();
    return 0;
}
#else
int main(void) {
    return 0;
}
#endif
