/* instructions.c - a fixed amount of work, CASE ROUNDS, for bench/instructions.sh to count the instructions of.
 *
 * Times vary with the machine and its load; the instruction counts of one binary do not. The name of a case switches on
 * what it mentions: "accept+lz+8192" accepts tokens with the LZ penalty by the paper's rule and a window of 8,192, and samples none;
 * "accept+lz+default" does so with the LZ penalty as the Python package has it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lzsampler_plan.h"

enum { N_VOCAB = 32000 };

static float logits[N_VOCAB], probabilities[N_VOCAB];
static int32_t ids[N_VOCAB];
static uint32_t separators[N_VOCAB / 32], commas[N_VOCAB / 32];

static uint32_t next_random(void) { /* xorshift32 */
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

/* Token number i of a text that comes again every 100 tokens and begins with a separator: what LZ looks for when it wants long
 * matches, which random tokens do not have. */
static int32_t repeated_text(int i) {
    return i % 100 ? 8 * (i % 100) + 1 : 0;
}

static int fail(const char *message) {
    fprintf(stderr, "instructions: %s\n", message);
    return 2;
}

int main(int argc, char **argv) {
    if (argc != 3) return fail("usage: instructions CASE ROUNDS");
    const char *name = argv[1];
    lzs_params p;
    lzs_params_init(&p);
    p.seed = 1;
    if (strstr(name, "greedy")) p.temperature = 0.0f;
    if (strstr(name, "lz")) {
        p.lz_rule = LZS_RULE_PAPER;
        p.lz_penalty = 0.15f;
        p.lz_window = 512;
    }
    if (strstr(name, "chain")) {
        p.temperature = 0.8f;
        p.top_k = 40;
        p.top_p = 0.95f;
        p.min_p = 0.05f;
    }
    if (strstr(name, "penalties")) {
        p.repetition_penalty = 1.1f;
        p.frequency_penalty = 0.1f;
        p.penalty_window = 512;
    }
    if (strstr(name, "dry")) {
        p.dry_multiplier = 0.8f;
        p.dry_penalty_last_n = 1024;
    }
    if (strstr(name, "top_k_40")) p.top_k = 40;
    if (strstr(name, "top_k_1000")) p.top_k = 1000;
    if (strstr(name, "top_p")) p.top_p = 0.95f;
    if (strstr(name, "min_p")) p.min_p = 0.05f;
    if (strstr(name, "8192")) p.lz_window = 8192;
    bool repeats = strstr(name, "default");
    if (repeats) {
        p.lz_rule = LZS_RULE_DEFAULT;
        p.lz_penalty = 0.3f;
        p.lz_run_penalty = 0.5f;
        p.lz_window = 2048;
        memset(separators, 0x01, sizeof separators); /* every eighth token */
        memset(commas, 0x04, sizeof commas);
        p.lz_separators = separators;
        p.lz_commas = commas;
        p.n_lz_separators = p.n_lz_commas = N_VOCAB / 32;
    }
    if (strstr(name, "loops")) p.loop_max_pattern = 512;
    if (strstr(name, "stuck")) p.stuck_threshold = LZS_MAX_WINDOW;
    for (int i = 0; i < N_VOCAB; i++) { /* a sum of four uniforms: bell-shaped, the same on every machine */
        float sum = 0.0f;
        for (int j = 0; j < 4; j++) sum += (float)(next_random() >> 8) * 0x1p-24f;
        logits[i] = 4.5f * (sum - 2.0f);
    }
    lzs_sampler *sampler;
    if (lzs_sampler_new(N_VOCAB, &p, &sampler) != LZS_OK) return fail("no sampler");
    for (int i = 0; i < 9000; i++) {
        int32_t token = repeats ? repeated_text(i) : (int32_t)(next_random() % (i % 2 ? 300 : N_VOCAB));
        if (lzs_accept(sampler, token) != LZS_OK) return fail("no accept");
    }
    bool lists = strstr(name, "distribution"), samples = !lists && !strstr(name, "accept");
    int rounds = atoi(argv[2]);
    for (int i = 0; i < rounds; i++) {
        int32_t token, next = repeats ? repeated_text(9000 + i) : (int32_t)(next_random() % 300);
        size_t n;
        if (samples && lzs_sample(sampler, logits, &token) != LZS_OK) return fail("no sample");
        if (lists && lzs_distribution(sampler, logits, ids, probabilities, N_VOCAB, &n)) return fail("no distribution");
        lzs_accept(sampler, next);
        if (strstr(name, "rewind")) {
            lzs_rewind(sampler, 1);
            lzs_accept(sampler, next);
        }
        lzs_edits(sampler, &n);
    }
    lzs_sampler_free(sampler);
    return 0;
}
