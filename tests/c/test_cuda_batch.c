/* test_cuda_batch.c - batches, on a machine that is the CPU: whole texts are those of samplers, wherever in the batch a sequence
 * is, and what is wrong is said in one line, leaves nothing behind and disturbs no other row. */
#include <string.h>

#include "cuda_case.h"
#include "cuda_machine.h"

enum { VOCAB = 700, WORDS = VOCAB / 32 + 1, LISTED = 40 + 2 * WORDS, SEQUENCES = 6, STEPS = 60, ROOM = STEPS + 12 };

static const lzs_room h100 = {264, 115712}, small_room = {3, sizeof(lzs_pick_shared) + 300 * sizeof(float)};

static const lzs_batch_shape shape = {.size = sizeof shape, .n_vocab = VOCAB, .n_slots = SEQUENCES + 1, .max_rows = SEQUENCES,
                                      .max_edits = VOCAB, .max_listed = LISTED};

static lzs_batch *new_batch(void) {
    lzs_batch *b;
    char problem[LZS_PROBLEM_SIZE];
    CHECK(lzs_batch_new(&shape, &b, problem) == LZS_OK && lzs_batch_memory(b) > 0);
    return b;
}

/* Six texts of different settings, whose rows are shuffled in each step; half of the sequences have plans from the host. Blocks that
 * share a row change nothing. */
static void test_texts(uint64_t seed) {
    static float logits[SEQUENCES * (VOCAB + 3)];
    static uint32_t masks[SEQUENCES * (VOCAB / 32 + 2)];
    static int32_t histories[SEQUENCES * ROOM];
    int32_t slots[SEQUENCES], starts[SEQUENCES], lengths[SEQUENCES], tokens[SEQUENCES], statuses[SEQUENCES];
    int64_t positions[SEQUENCES];
    uint64_t state = seed;
    const int32_t stride = VOCAB + 3, mask_stride = VOCAB / 32 + 2;
    lzs_sampler *samplers[SEQUENCES];
    int32_t texts[SEQUENCES][ROOM], n_prompt[SEQUENCES];
    lists l[SEQUENCES];
    if (seed % 2) the_cuda_machine.room = small_room; /* a row of three blocks */
    lzs_batch *b = new_batch();
    the_cuda_machine.room = h100;
    choose_schedule(&state);
    for (int i = 0; i < SEQUENCES; i++) {
        source choices = {.state = random_bits(&state)};
        lzs_params params;
        choose_params(&choices, &params, VOCAB, &l[i]);
        params.history = i % 2;
        CHECK(lzs_sampler_new(VOCAB, &params, &samplers[i]) == LZS_OK);
        n_prompt[i] = random_below(&state, 10);
        for (int32_t k = 0; k < n_prompt[i]; k++) texts[i][k] = random_below(&state, 5);
        CHECK(lzs_prime(samplers[i], texts[i], (size_t)n_prompt[i]) == LZS_OK);
        if (i < SEQUENCES / 2) CHECK(lzs_batch_set_params(b, i + 1, &params, NULL) == LZS_OK);
    }
    for (int32_t step = 0; step < STEPS; step++) {
        int32_t n_rows = 1 + random_below(&state, SEQUENCES), first = random_below(&state, SEQUENCES);
        int32_t turn = random_below(&state, 2) ? 1 : SEQUENCES - 1;
        bool masked = random_below(&state, 2);
        for (int32_t r = 0; r < n_rows; r++) {
            int32_t i = (first + r * turn) % SEQUENCES;
            float *row = logits + r * stride;
            fill_row(row, VOCAB, random_below(&state, 3) ? ROW_NORMAL : ROW_TIED, &state);
            row[random_below(&state, 6)] = 4.0f;
            fill_mask(masks + r * mask_stride, VOCAB, &state);
            lzs_set_mask(samplers[i], 0, masked ? masks + r * mask_stride : NULL, masked ? VOCAB / 32 + 1 : 0);
            uint64_t position = lzs_position(samplers[i]);
            slots[r] = i + 1;
            starts[r] = i % 2 ? 0 : n_prompt[i];
            positions[r] = (int64_t)position;
            lengths[r] = n_prompt[i] + (int32_t)position;
            memcpy(histories + r * ROOM, texts[i], (size_t)lengths[r] * sizeof *histories);
            lzs_plan plan;
            CHECK(lzs_sampler_plan(samplers[i], &plan) == LZS_OK);
            if (i >= SEQUENCES / 2) CHECK(lzs_batch_set_plan(b, i + 1, &plan, NULL) == LZS_OK);
        }
        const lzs_batch_step s = {.size = sizeof s, .logits = logits, .row_stride = stride, .slots = slots,
                                  .histories = histories, .history_stride = ROOM, .starts = starts, .lengths = lengths,
                                  .positions = positions, .masks = masked ? masks : NULL, .mask_stride = mask_stride,
                                  .tokens = tokens, .statuses = statuses};
        CHECK(lzs_batch_sample(b, &s, n_rows, NULL) == LZS_OK);
        for (int32_t r = 0; r < n_rows; r++) {
            int32_t i = slots[r] - 1, token;
            lzs_status status = lzs_sample(samplers[i], logits + r * stride, &token);
            CHECK(statuses[r] == status && tokens[r] == token);
            if (status != LZS_OK) continue;
            texts[i][lengths[r]] = token;
            CHECK(lzs_accept(samplers[i], token) == LZS_OK);
        }
        if (step % 10 == 9) { /* the last tokens of one are taken back */
            size_t n = (size_t)lzs_position(samplers[first]) / 2;
            CHECK(lzs_rewind(samplers[first], n) == LZS_OK);
        }
    }
    for (int i = 0; i < SEQUENCES; i++) lzs_sampler_free(samplers[i]);
    lzs_batch_free(b);
}

/* A batch that cannot be made. */
static void refuses(lzs_batch_shape s, lzs_status expected) {
    lzs_batch *b = (lzs_batch *)&s;
    char problem[LZS_PROBLEM_SIZE] = "";
    CHECK(lzs_batch_new(&s, &b, problem) == expected && !b && problem[0] && !strchr(problem, '\n'));
    CHECK(lzs_batch_new(&s, &b, NULL) == expected && !b);
    CHECK(the_cuda_machine.n_blocks == 0);
}

static void test_shapes(void) {
    lzs_batch_shape s = shape;
    s.size--;
    refuses(s, LZS_EINVAL);
    s = shape, s.device = -1;
    refuses(s, LZS_EINVAL);
    s = shape, s.device = 1;
    refuses(s, LZS_EDEVICE);
    s = shape, s.n_vocab = 0;
    refuses(s, LZS_EINVAL);
    s = shape, s.n_vocab = LZS_MAX_VOCAB + 1;
    refuses(s, LZS_EINVAL);
    s = shape, s.n_slots = 0;
    refuses(s, LZS_EINVAL);
    s = shape, s.max_rows = 0;
    refuses(s, LZS_EINVAL);
    s = shape, s.max_edits = VOCAB + 1;
    refuses(s, LZS_EINVAL);
    s = shape, s.max_listed = -1;
    refuses(s, LZS_EINVAL);
    s = shape, s.n_vocab = LZS_MAX_VOCAB;
    refuses(s, LZS_EDEVICE);
    the_cuda_machine.room.n_blocks = 1 << 20;
    s = shape, s.max_rows = INT32_MAX, s.n_vocab = s.max_edits = LZS_MAX_VOCAB; /* 2^67 bytes */
    refuses(s, LZS_ENOMEM);
    the_cuda_machine.room = h100;
    s = shape, s.n_slots = s.max_rows = INT32_MAX, s.max_listed = 1 << 30;
    refuses(s, LZS_ENOMEM);
    the_cuda_machine.is_full = true;
    refuses(shape, LZS_ENOMEM);
    the_cuda_machine.is_full = false;
    the_cuda_machine.is_fused = true;
    refuses(shape, LZS_EDEVICE);
    the_cuda_machine.is_fused = false;
    the_cuda_machine.flushes = true;
    refuses(shape, LZS_EDEVICE);
    the_cuda_machine.flushes = false;
    for (int call = 1; call <= 3 + shape.n_slots; call++) { /* the probe, a clear, the slots, and a wait */
        the_cuda_machine.n_calls = 0;
        the_cuda_machine.fails_at = call;
        lzs_batch *b;
        CHECK(lzs_batch_new(&shape, &b, NULL) == LZS_EDEVICE && !b && the_cuda_machine.n_blocks == 0);
    }
    the_cuda_machine.fails_at = 0;
    lzs_batch_free(NULL);
}

/* The shares of a row on an H100, their tokens, and the rows of a round. */
static void divides(int32_t n_vocab, int32_t n_rows, int32_t n_shares, int32_t share_size, int32_t rows_at_once) {
    static float logits[1];
    static int32_t tokens[256], statuses[256];
    const lzs_batch_shape s = {.size = sizeof s, .n_vocab = n_vocab, .n_slots = 1, .max_rows = 256};
    int32_t slots[256];
    lzs_batch *b;
    for (int i = 0; i < 256; i++) slots[i] = -1; /* no row is read */
    const lzs_batch_step step = {.size = sizeof step, .logits = logits, .row_stride = n_vocab, .slots = slots, .tokens = tokens,
                                 .statuses = statuses};
    CHECK(lzs_batch_new(&s, &b, NULL) == LZS_OK && lzs_batch_sample(b, &step, n_rows, NULL) == LZS_OK);
    CHECK(the_cuda_machine.n_shares == n_shares && the_cuda_machine.share_size == share_size);
    CHECK(the_cuda_machine.rows_at_once == rows_at_once && statuses[n_rows - 1] == LZS_EINVAL);
    lzs_batch_free(b);
}

static void test_shares(void) {
    divides(1, 1, 1, 256, 1);
    divides(700, 256, 1, 768, 256);
    divides(32000, 1, 16, 2048, 1);
    divides(32000, 256, 2, 16128, 132);
    divides(151936, 1, 60, 2560, 1);
    divides(151936, 32, 8, 19200, 32);
    divides(151936, 256, 7, 21760, 37);
    divides(1 << 21, 2, 89, 23808, 2);
}

static void refuses_step(lzs_batch *b, lzs_batch_step step, int32_t n_rows, const char *word) {
    CHECK(lzs_batch_sample(b, &step, n_rows, NULL) == LZS_EINVAL && strstr(lzs_batch_problem(b), word));
}

/* Settings and steps that are refused leave the batch as it was. */
static void test_refusals(void) {
    static float logits[2 * VOCAB];
    static const lzs_logit_bias biases[LISTED + 1];
    static const uint32_t words[WORDS];
    static const lzs_edit edits[VOCAB + 1];
    int32_t tokens[2], statuses[2], slots[2] = {0, 5}, histories[4] = {1, 2, 3, VOCAB}, lengths[2] = {2, 2};
    int64_t positions[2] = {0, 0};
    static uint32_t masks[VOCAB / 32 + 1];
    lzs_batch *b = new_batch();
    lzs_params p;
    lzs_params_init(&p);
    p.repetition_penalty = 2.0f;
    p.temperature = 0.0f;
    CHECK(lzs_batch_set_params(b, -1, &p, NULL) == LZS_EINVAL && strstr(lzs_batch_problem(b), "slot"));
    CHECK(lzs_batch_set_params(b, shape.n_slots, &p, NULL) == LZS_EINVAL);
    lzs_params wrong = p;
    wrong.top_p = 2.0f;
    CHECK(lzs_batch_set_params(b, 0, &wrong, NULL) == LZS_EINVAL && strstr(lzs_batch_problem(b), "top_p"));
    wrong = p;
    wrong.logit_bias = biases;
    wrong.n_logit_bias = LISTED + 1;
    CHECK(lzs_batch_set_params(b, 0, &wrong, NULL) == LZS_ESPACE && strstr(lzs_batch_problem(b), "max_listed"));
    wrong.lz_separators = wrong.lz_commas = words; /* the words of a set count */
    wrong.n_lz_separators = wrong.n_lz_commas = WORDS;
    wrong.n_logit_bias = LISTED - 2 * WORDS;
    CHECK(lzs_batch_set_params(b, 0, &wrong, NULL) == LZS_OK);
    wrong.n_logit_bias++;
    CHECK(lzs_batch_set_params(b, 0, &wrong, NULL) == LZS_ESPACE);
    wrong.n_lz_commas--;
    CHECK(lzs_batch_set_params(b, 0, &wrong, NULL) == LZS_EINVAL && strstr(lzs_batch_problem(b), "lz_commas"));
    lzs_plan plan;
    lzs_plan_settings(&plan, VOCAB, &p);
    CHECK(lzs_batch_set_plan(b, shape.n_slots, &plan, NULL) == LZS_EINVAL);
    plan.n_vocab = VOCAB - 1;
    CHECK(lzs_batch_set_plan(b, 0, &plan, NULL) == LZS_EINVAL && strstr(lzs_batch_problem(b), "n_vocab"));
    plan.n_vocab = VOCAB;
    plan.edits = edits;
    plan.n_edits = VOCAB + 1;
    CHECK(lzs_batch_set_plan(b, 0, &plan, NULL) == LZS_EINVAL && strstr(lzs_batch_problem(b), "edits"));

    const lzs_batch_step good = {.size = sizeof good, .logits = logits, .row_stride = VOCAB, .slots = slots,
                                 .histories = histories, .history_stride = 2, .lengths = lengths, .positions = positions,
                                 .tokens = tokens, .statuses = statuses};
    CHECK(lzs_batch_set_params(b, 0, &p, NULL) == LZS_OK && lzs_batch_set_params(b, 1, &p, NULL) == LZS_OK);
    logits[1] = logits[VOCAB + 3] = 1.0f;
    logits[7] = logits[VOCAB + 7] = 0.75f; /* 1 is halved by the penalty of its own row */
    CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_OK);
    CHECK(statuses[0] == LZS_OK && tokens[0] == 7 && statuses[1] == LZS_EINVAL && tokens[1] == -1); /* slot 5 has no settings */
    slots[1] = 1;
    CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_OK && statuses[1] == LZS_EINVAL && tokens[0] == 7); /* a token too large */
    histories[3] = 3;
    CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_OK && statuses[1] == LZS_OK && tokens[1] == 7);
    for (int i = 0; i < 2; i++) {
        slots[1] = i ? shape.n_slots : -1;
        CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_OK && statuses[1] == LZS_EINVAL && tokens[1] == -1 && tokens[0] == 7);
    }
    slots[1] = 1;
    lengths[1] = 3; /* beyond the row */
    CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_OK && statuses[1] == LZS_EINVAL && tokens[0] == 7);
    lengths[1] = -1;
    CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_OK && statuses[1] == LZS_EINVAL);
    lengths[1] = 2;
    lzs_batch_step s = good;
    s.positions = NULL;
    CHECK(lzs_batch_sample(b, &s, 2, NULL) == LZS_OK && statuses[0] == LZS_EINVAL && statuses[1] == LZS_EINVAL);
    s = good, s.histories = NULL;
    CHECK(lzs_batch_sample(b, &s, 2, NULL) == LZS_OK && statuses[0] == LZS_EINVAL); /* its penalties look at one */
    p.repetition_penalty = 1.0f;
    CHECK(lzs_batch_set_params(b, 0, &p, NULL) == LZS_OK);
    CHECK(lzs_batch_sample(b, &s, 2, NULL) == LZS_OK && statuses[0] == LZS_OK && tokens[0] == 1);

    refuses_step(b, good, 0, "n_rows");
    refuses_step(b, good, shape.max_rows + 1, "n_rows");
    s = good, s.size--;
    refuses_step(b, s, 2, "size");
    s = good, s.dtype = 3;
    refuses_step(b, s, 2, "dtype");
    s = good, s.logits = NULL;
    refuses_step(b, s, 2, "logits");
    s = good, s.logits = (const char *)logits + 2;
    refuses_step(b, s, 2, "multiple");
    s = good, s.row_stride--;
    refuses_step(b, s, 2, "row_stride");
    s = good, s.lengths = NULL;
    refuses_step(b, s, 2, "lengths");
    s = good, s.history_stride = -1;
    refuses_step(b, s, 2, "history_stride");
    s = good, s.masks = masks;
    refuses_step(b, s, 2, "mask_stride");
    s = good, s.tokens = NULL;
    refuses_step(b, s, 2, "tokens");
    s = good, s.statuses = NULL;
    refuses_step(b, s, 2, "statuses");
    the_cuda_machine.fails_at = the_cuda_machine.n_calls + 1;
    CHECK(lzs_batch_sample(b, &good, 2, NULL) == LZS_EDEVICE && lzs_batch_problem(b)[0]);
    the_cuda_machine.fails_at = the_cuda_machine.n_calls + 1;
    CHECK(lzs_batch_set_params(b, 0, &p, NULL) == LZS_EDEVICE);
    plan.n_edits = 1;
    the_cuda_machine.fails_at = the_cuda_machine.n_calls + 1;
    CHECK(lzs_batch_set_plan(b, 0, &plan, NULL) == LZS_EDEVICE);
    the_cuda_machine.fails_at = 0;
    lzs_batch_free(b);
}

/* The token that slot 0 picks from a row of zeros. */
static int32_t token_of_slot(lzs_batch *b) {
    static const float logits[VOCAB];
    static const int64_t position = 0;
    int32_t token, status;
    const lzs_batch_step step = {.size = sizeof step, .logits = logits, .row_stride = VOCAB, .positions = &position, .tokens = &token,
                                 .statuses = &status};
    CHECK(lzs_batch_sample(b, &step, 1, NULL) == LZS_OK && status == LZS_OK);
    return token;
}

/* Settings or a plan that the device does not take leave the slot as it was, whichever copy fails. */
static void test_settings_that_fail(void) {
    const lzs_logit_bias old_biases[] = {{5, 1.0f}, {6, 2.0f}}, new_biases[] = {{6, -1.0f}, {8, 1.0f}};
    const lzs_edit old_edits[] = {{5, 1.0f, 1.0f}, {6, 1.0f, 2.0f}}, new_edits[] = {{6, 1.0f, -1.0f}, {8, 1.0f, 1.0f}};
    lzs_params p;
    lzs_params_init(&p);
    p.temperature = 0.0f;
    lzs_batch *b = new_batch();
    for (int planned = 0; planned < 2; planned++) {
        for (int fail = 1; fail <= 3; fail++) {
            lzs_params before = p, after = p;
            before.logit_bias = old_biases, before.n_logit_bias = 2;
            after.logit_bias = new_biases, after.n_logit_bias = 2;
            lzs_plan plan;
            lzs_plan_settings(&plan, VOCAB, &p);
            plan.edits = old_edits, plan.n_edits = 2;
            CHECK((planned ? lzs_batch_set_plan(b, 0, &plan, NULL) : lzs_batch_set_params(b, 0, &before, NULL)) == LZS_OK);
            CHECK(token_of_slot(b) == 6);
            plan.edits = new_edits;
            the_cuda_machine.fails_at = the_cuda_machine.n_calls + fail;
            lzs_status status = planned ? lzs_batch_set_plan(b, 0, &plan, NULL) : lzs_batch_set_params(b, 0, &after, NULL);
            the_cuda_machine.fails_at = 0;
            CHECK(status == LZS_OK || (status == LZS_EDEVICE && lzs_batch_problem(b)[0]));
            CHECK(token_of_slot(b) == (status == LZS_OK ? 8 : 6));
        }
    }
    lzs_batch_free(b);
}

int main(void) {
    for (uint64_t seed = 1; seed <= 12; seed++) test_texts(seed);
    test_shapes();
    test_shares();
    test_refusals();
    test_settings_that_fail();
    CHECK(the_cuda_machine.n_blocks == 0);
    return 0;
}
