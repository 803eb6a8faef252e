/* cuda_case.h - random steps for the bodies of the CUDA kernels, run by their twin on the CPU and compared with the library:
 * difficult rows against lzs_backend_sample with the scalar kernels, and histories against the edits of a sampler. */
#ifndef LZS_TESTS_CUDA_CASE_H
#define LZS_TESTS_CUDA_CASE_H

#include "backend/backend.h"
#include "backend/cuda/twin.h"
#include "fuzz_case.h"
#include "rows.h"
#include "sampler.h"

enum { CUDA_VOCAB = 20000, CUDA_EDITS = 300 };

/* Blocks of exactly the size that is needed: AddressSanitizer sees what is read or written beside them. */
static inline void *block_of(size_t n, size_t size) {
    void *block = malloc(n ? n * size : 1);
    CHECK(block);
    memset(block, 0xA5, n * size);
    return block;
}

static inline uint16_t bfloat_of(float x) {
    return (uint16_t)(lzs_float_bits(x) >> 16);
}

/* Some half with a similar value: any will do. */
static inline uint16_t half_of(float x, uint64_t *state) {
    if (x == INFINITY) return 0x7c00;
    if (x == -INFINITY) return 0xfc00;
    uint16_t half = (uint16_t)(random_bits(state) & 0x83ff);
    if (x > 1e-3f || x < -1e-3f) half = (uint16_t)((half & 0x8000) | 0x3000 | (lzs_float_bits(x) >> 13 & 0xfff));
    return half;
}

/* The logits as a kernel reads them, at an address of their own; `row` becomes what they stand for. */
static inline void *logits_of(float *row, int32_t n, int32_t dtype, int32_t offset, uint64_t *state) {
    size_t size = dtype == LZS_F32 ? 4 : 2;
    char *block = block_of((size_t)(n + offset), size);
    for (int32_t i = 0; i < n; i++) {
        uint16_t half = dtype == LZS_BF16 ? bfloat_of(row[i]) : half_of(row[i], state);
        if (dtype != LZS_F32) row[i] = dtype == LZS_BF16 ? lzs_from_bfloat(half) : lzs_from_half(half);
        memcpy(block + (size_t)(i + offset) * size, dtype == LZS_F32 ? (void *)&row[i] : (void *)&half, size);
    }
    return block;
}

/* How the twin runs: another order and another number of threads for each case. */
static inline void choose_schedule(uint64_t *state) {
    static const uint32_t threads[] = {32, 32, 64, 64, 128, 1024};
    lzs_the_twin.threads = threads[random_below(state, 6)];
    lzs_the_twin.order = (lzs_twin_order)random_below(state, LZS_TWIN_ORDERS);
    lzs_the_twin.shuffle = (uint32_t)random_bits(state);
}

/* What runs the block of a fold: the twin, thread by thread in each phase, unless a test says otherwise. */
static lzs_folded (*run_fold)(const lzs_fold_row *row) = lzs_twin_fold;

/* The row's state, and its division into shares: one or a few. */
static inline void divide_row(lzs_pick_row *row, int32_t shares) {
    const int32_t units = ((row->n - 1) / shares + LZS_CUDA_UNIT) / LZS_CUDA_UNIT;
    row->share_size = units * LZS_CUDA_UNIT;
    row->n_shares = shares; /* the last ones may be empty */
}

/* One row by both; whether they agree. */
static inline bool pick_agrees(lzs_backend *b, int32_t n, row_kind kind, uint64_t *state) {
    static float row[CUDA_VOCAB];
    static uint32_t mask[CUDA_VOCAB / 32 + 1];
    static lzs_edit edits[CUDA_EDITS + 1];
    fill_row(row, n, kind, state);
    bool few = random_below(state, n > 2048 ? 2 : 6) == 0; /* two tokens have all of the weight */
    const bool heavy = few && random_below(state, 2) != 0; /* or nearly all: the others are many and 16 bits below */
    for (int32_t i = 0; few && i < n; i++) row[i] = heavy ? 0.3f * random_normal(state) - 1.8f : random_normal(state) - 20.0f;
    if (few) row[0] = row[random_below(state, n)] = 10.0f;
    if (random_below(state, 10) == 0) row[random_below(state, 2) ? random_below(state, n) : 0] = NAN;
    if (random_below(state, 40) == 0) fill_row(row, n, ROW_FLAT, state);
    int32_t dtype = random_below(state, 3) ? LZS_F32 : 1 + random_below(state, 2), offset = random_below(state, 4);
    void *logits = logits_of(row, n, dtype, offset, state);
    lzs_plan plan = random_plan(n, state);
    if (random_below(state, 4) == 0) plan.top_k = 1 + random_below(state, n < 60 ? n : 60);
    if (few) {
        plan.top_k = 0;
        plan.top_p = (heavy ? 0.95f : 0.3f) + (heavy ? 0.05f : 0.6f) * (float)random_unit(state);
        plan.temperature = heavy ? 1000.0f : 1.0f;
        plan.temperature_last = heavy; /* all tokens inside the cut are about equally likely */
    }
    const int32_t shares = random_below(state, 2) ? 1 + random_below(state, random_below(state, 4) ? 6 : 64) : 1;
    const int32_t warps = shares * (int32_t)lzs_the_twin.threads; /* of the twin, each of whose threads is a warp */
    if (!few && warps < n && random_below(state, 4) == 0) {       /* the most for which the warps' best tokens bound top-k */
        plan.top_k = warps;
        plan.temperature = 1000.0f;
        plan.top_p = 1.0f;
        plan.min_p = 0.0f;
    }
    if (random_below(state, 3) == 0) {
        fill_mask(mask, n, state);
        plan.mask = mask;
    }
    if (plan.top_k == warps && 4 * warps <= n) { /* a token in four: a warp has few, and the bound cuts hardly less than top-k */
        memset(mask, 0x11, sizeof mask);
        plan.mask = mask;
    }
    plan.edits = edits;
    if (random_below(state, 2)) plan.n_edits = fill_edits(edits, CUDA_EDITS, n, state);
    if (plan.n_edits && random_below(state, 2)) { /* many of the best tokens become much worse */
        for (size_t i = 0; i < plan.n_edits; i += 2) {
            row[edits[i].token] = 9.0f + 0.01f * (float)random_below(state, 50);
            edits[i].bias = -20.0f;
        }
        free(logits);
        logits = logits_of(row, n, dtype, offset, state);
    }
    if (plan.n_edits && random_below(state, 30) == 0) edits[random_below(state, (int32_t)plan.n_edits)].token = n;
    if (plan.n_edits && plan.n_edits < (size_t)n && random_below(state, 20) == 0) {
        edits[plan.n_edits] = edits[random_below(state, (int32_t)plan.n_edits)]; /* the same token twice */
        plan.n_edits++;
    }
    if (random_below(state, 100) == 0) plan.top_p = 2.0f;
    int32_t token;
    lzs_status status;
    const float *x = row;
    lzs_backend_sample(b, &x, &plan, 1, &token, &status);

    const lzs_pick_settings settings = lzs_pick_settings_of(&plan);
    lzs_pick_row input = {
        .settings = &settings,
        .status = settings.status,
        .logits = (char *)logits + (size_t)offset * (dtype == LZS_F32 ? 4 : 2),
        .dtype = dtype,
        .n = n,
        .mask = plan.mask,
        .edits = plan.edits,
        .n_edits = (int32_t)plan.n_edits,
        .position = plan.position,
        .state = block_of(1, sizeof *input.state),
    };
    divide_row(&input, shares);
    lzs_picked picked = lzs_twin_pick(&input);
    free(input.state);
    free(logits);
    return picked.status == status && picked.token == token;
}

/* The two best scores of this flat row are equal, those of tokens 1,136 and 8,213: the lower id wins. */
static inline bool tie_agrees(lzs_backend *b, int32_t shares) {
    static float row[CUDA_VOCAB];
    static lzs_row_state state;
    lzs_params params;
    lzs_plan plan;
    lzs_params_init(&params);
    lzs_plan_settings(&plan, CUDA_VOCAB, &params);
    plan.seed = 1;
    plan.position = 362844;
    int32_t token;
    const float *x = row;
    CHECK(lzs_backend_sample(b, &x, &plan, 1, &token, NULL) == LZS_OK && token == 1136);
    const lzs_pick_settings settings = lzs_pick_settings_of(&plan);
    lzs_pick_row input = {.settings = &settings, .logits = row, .n = CUDA_VOCAB,
                          .position = plan.position, .state = &state};
    divide_row(&input, shares);
    lzs_picked picked = lzs_twin_pick(&input);
    return picked.status == LZS_OK && picked.token == token;
}

/* The edit of a token, or one that changes nothing. */
static inline lzs_edit edit_among(const lzs_edit *edits, size_t n, int32_t token) {
    for (size_t i = 0; i < n; i++) {
        if (edits[i].token == token) return edits[i];
    }
    return (lzs_edit){token, 1.0f, 0.0f};
}

static inline bool covers(const lzs_edit *a, size_t n_a, const lzs_edit *b, size_t n_b) {
    for (size_t i = 0; i < n_a; i++) {
        lzs_edit other = edit_among(b, n_b, a[i].token);
        if (a[i].repeat != other.repeat || a[i].bias != other.bias) return false;
    }
    return true;
}

/* A history that repeats itself here and there, of few tokens or many. */
static inline int32_t fill_history(int32_t *history, int32_t most, int32_t n_vocab, uint64_t *state) {
    int32_t n = random_below(state, random_below(state, 4) ? 200 : most), few = random_below(state, 2) ? 4 : n_vocab;
    int32_t period = 1 + random_below(state, 40);
    if (few == 4 && random_below(state, 2)) few = 30;
    if (few > n_vocab) few = n_vocab;
    for (int32_t i = 0; i < n; i++) {
        bool copies = i >= period && random_below(state, 50);
        history[i] = copies ? history[i - period] : random_below(state, few);
        if (random_below(state, 50) == 0) period = 1 + random_below(state, random_below(state, 2) ? 40 : i + 1);
    }
    return n;
}

/* A history in which a few tokens come again and again, with others between them, and at its end once more without what follows. */
static inline int32_t fill_short(int32_t *history, int32_t n_vocab, uint64_t *state) {
    const int32_t size = 1 + random_below(state, 6), times = random_below(state, 40);
    int32_t frame[6], n = 0;
    for (int32_t i = 0; i < size; i++) frame[i] = random_below(state, n_vocab);
    for (int32_t k = 0; k <= times; k++) {
        const int32_t begin = random_below(state, 3) ? 0 : random_below(state, size), gap = random_below(state, 6);
        for (int32_t i = 0; i < gap; i++) history[n++] = random_below(state, n_vocab);
        for (int32_t i = begin; i < size; i++) history[n++] = frame[i];
        if (k < times) history[n++] = random_below(state, n_vocab < 3 ? n_vocab : 3);
    }
    return n;
}

/* A list of a few items, of which most are shorter than an lz_min_match of 5, and some are not: what ends an item is a comma or a
 * separator in many sets. */
static inline int32_t fill_list(int32_t *history, int32_t n_vocab, uint64_t *state) {
    int32_t n = 0, n_items = random_below(state, 60), n_ends = 1 + random_below(state, 4), base = random_below(state, n_vocab);
    for (int32_t i = 0; i < n_items; i++) {
        const int32_t item = random_below(state, 3), size = random_below(state, 12) ? 1 + random_below(state, 4) : 5;
        for (int32_t k = 0; k < size; k++) history[n++] = (base + 7 * item + k) % n_vocab;
        history[n++] = random_below(state, n_ends) % n_vocab;
    }
    return n > 0 ? n - random_below(state, 2) : 0;
}

/* The edits of one history by both; whether they agree, and the table is free again. */
static inline bool fold_agrees(uint64_t *state) {
    static int32_t history[4000];
    source choices = {.state = random_bits(state)};
    lists l;
    lzs_params params;
    int32_t n_vocab = 1 + random_below(state, random_below(state, 3) ? 300 : MAX_VOCAB);
    choose_params(&choices, &params, n_vocab, &l);
    params.history = LZS_HISTORY_GENERATED;
    params.loop_max_pattern = params.stuck_threshold = 0;
    const bool alone = random_below(state, 2);
    int32_t kind = 0;
    if (alone) { /* LZ alone, or with DRY */
        params.repetition_penalty = params.repetition_method == LZS_MULTIPLICATIVE ? 1.0f : 0.0f;
        params.frequency_penalty = params.presence_penalty = 0.0f;
    }
    if (random_below(state, 3) == 0 && params.lz_penalty > 0.0f) { /* the defaults of the command line, in small */
        params.lz_rule = LZS_RULE_DEFAULT;
        params.lz_window = 5 + random_below(state, 800);
        params.lz_min_match = 5;
        params.lz_run_penalty = random_below(state, 2) ? 0.3f : 0.0f;
        params.lz_run_allowance = random_below(state, 40);
        params.n_lz_separators = choose_set(&choices, l.separators, n_vocab);
        params.n_lz_commas = choose_set(&choices, l.commas, n_vocab);
        params.lz_separators = l.separators;
        params.lz_commas = l.commas;
        kind = random_below(state, 4);
    }
    CHECK(lzs_params_invalid(&params, n_vocab) == NULL);
    int32_t n = kind == 0 ? fill_history(history, 4000, n_vocab, state) : kind == 1 ? fill_short(history, n_vocab, state) : fill_list(history, n_vocab, state);
    CHECK(n >= 0 && n <= 4000);
    lzs_sampler *s;
    CHECK(lzs_sampler_new(n_vocab, &params, &s) == LZS_OK);
    for (int32_t i = 0; i < n; i++) CHECK(lzs_accept(s, history[i]) == LZS_OK);
    size_t n_edits;
    const lzs_edit *edits = lzs_edits(s, &n_edits);

    /* Where nothing is counted, few of the bad tokens are seen, and hardly one by the thread that comes last. */
    bool bad = n > 0 && random_below(state, alone ? 3 : 20) == 0;
    int32_t *copy = block_of((size_t)n, sizeof *copy);
    if (n) memcpy(copy, history, (size_t)n * sizeof *copy);
    if (bad) copy[n - 1] = random_below(state, 2) ? n_vocab : -1;
    lzs_fold_settings settings = lzs_fold_settings_of(&s->params, n_vocab);
    uint32_t capacity = (uint32_t)n_edits + (uint32_t)random_below(state, 50);
    bool tight = n_edits > 1 && random_below(state, 20) == 0;
    if (tight) capacity = (uint32_t)n_edits / 2;
    uint32_t n_slots = 2;
    while (n_slots < 2 * capacity) n_slots *= 2;
    lzs_fold_row row = {&settings, copy, n, block_of(capacity, sizeof *row.edits), block_of(capacity, sizeof *row.used),
                        capacity, block_of(n_slots, sizeof *row.slots), n_slots};
    memset(row.slots, 0, n_slots * sizeof *row.slots);
    lzs_folded folded = run_fold(&row);
    bool same = true;
    if (bad) { /* it is seen where a penalty looks at all tokens */
        bool paper = params.lz_rule == LZS_RULE_PAPER && settings.lz_window && n > params.lz_buffer;
        bool seen = settings.count_window || paper;
        same = folded.status == LZS_EINVAL || !seen;
    } else if (!tight) {
        same = folded.status == LZS_OK && covers(edits, n_edits, row.edits, (size_t)folded.n_edits) &&
               covers(row.edits, (size_t)folded.n_edits, edits, n_edits);
    } else if (folded.status == LZS_OK) { /* it needs no room for edits that change nothing */
        same = covers(edits, n_edits, row.edits, (size_t)folded.n_edits);
    } else {
        same = folded.status == LZS_ESPACE && folded.n_edits == 0;
    }
    for (uint32_t i = 0; i < n_slots; i++) {
        static const lzs_fold_slot none;
        same = same && memcmp(&row.slots[i], &none, sizeof none) == 0;
    }
    free(copy);
    free(row.edits);
    free(row.used);
    free(row.slots);
    lzs_sampler_free(s);
    return same;
}

#endif
