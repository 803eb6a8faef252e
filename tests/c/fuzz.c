/* fuzz.c - random texts through samplers with random parameters. One sampler for each table of kernels goes through the
 * same steps, and they must agree in edits, tokens, distributions and processed rows. Rows must stay as they are, what a
 * step gives must fit together, plans must survive being bytes, and a sampler that is built anew from the text must be equal
 * to one that came there by rewinds, copies and clones.
 *
 * Built with -DLZS_LIBFUZZER it is a target of libFuzzer, whose bytes are the decisions. Otherwise:
 *
 *     fuzz <seed> <seconds>     random cases, one after the other
 *     fuzz <file>...            replays files of bytes, those of tests/c/corpus/ for instance
 */
#include <time.h>

#include "backend/backend.h"
#include "dry_direct.h"
#include "fuzz_case.h"
#include "lz_direct.h"
#include "on_kernels.h"

enum { MAX_TABLES = 4, MAX_TEXT = 6000, MAX_STEPS = 60, N_WORDS = (MAX_VOCAB + 31) / 32, N_MASKS = 40 };

static struct {
    source s;
    int32_t n_vocab, letters; /* most tokens of the text are of the first few */
    lists lists;
    lzs_params params; /* those of the samplers now */
    int n_tables;
    lzs_sampler *samplers[MAX_TABLES]; /* one for each table of kernels */
    int32_t text[MAX_TEXT];
    size_t n_prompt, n_accepted;
    uint32_t masks[N_MASKS][N_WORDS]; /* borrowed ones stay to the end of the case */
    int n_masks;
} f;

static float row[MAX_VOCAB], kept_row[MAX_VOCAB];

static lzs_sampler *new_sampler(int table) {
    return sampler_on(&f.params, f.n_vocab, lzs_kernels_at(table));
}

/* ---- agreement ---- */

static int by_token(const void *a, const void *b) {
    const lzs_edit *x = a, *y = b;
    return (x->token > y->token) - (x->token < y->token);
}

static size_t sorted_edits(lzs_sampler *s, lzs_edit *edits) {
    size_t n;
    const lzs_edit *made = lzs_edits(s, &n);
    CHECK(n <= lzs_edits_max(&s->params, f.n_vocab) && n <= (size_t)f.n_vocab);
    if (n) memcpy(edits, made, n * sizeof *edits);
    qsort(edits, n, sizeof *edits, by_token);
    for (size_t i = 1; i < n; i++) CHECK(edits[i].token != edits[i - 1].token);
    return n;
}

static void check_same_edits(lzs_sampler *a, lzs_sampler *b) {
    static lzs_edit x[MAX_VOCAB], y[MAX_VOCAB];
    size_t n = sorted_edits(a, x);
    CHECK(n == sorted_edits(b, y) && memcmp(x, y, n * sizeof *x) == 0);
}

/* A sampler that was given the text from the start is in the same state. */
static void check_rebuilt(void) {
    lzs_sampler *fresh = new_sampler(0);
    CHECK(lzs_prime(fresh, f.text, f.n_prompt) == LZS_OK);
    for (size_t i = 0; i < f.n_accepted; i++) CHECK(lzs_accept(fresh, f.text[f.n_prompt + i]) == LZS_OK);
    check_same_edits(fresh, f.samplers[0]);
    lzs_loop a = {9, 9, 9}, b = a;
    CHECK(lzs_loop_found(fresh, &a) == lzs_loop_found(f.samplers[0], &b));
    CHECK(a.start == b.start && a.period == b.period && a.count == b.count);
    lzs_stuck c = {9, 9}, d = c;
    CHECK(lzs_stuck_found(fresh, &c) == lzs_stuck_found(f.samplers[0], &d) && c.start == d.start && c.end == d.end);
    lzs_plan x, y;
    CHECK(lzs_sampler_plan(fresh, &x) == LZS_OK);
    lzs_sampler_plan(f.samplers[0], &y); /* masks are not part of the text */
    CHECK(x.position == y.position && x.seed == y.seed);
    lzs_sampler_free(fresh);
}

/* The tokens that penalties look at. */
static const int32_t *history(int32_t *n) {
    const bool with_prompt = f.params.history == LZS_HISTORY_ALL;
    *n = (int32_t)(with_prompt ? f.n_prompt + f.n_accepted : f.n_accepted);
    return with_prompt ? f.text : f.text + f.n_prompt;
}

/* What DRY says by its index and by a direct comparison. `find` is called apart, since all penalties share the table of
 * the edits. */
static void check_dry(void) {
    static int32_t lengths[MAX_VOCAB];
    lzs_token_table found = {0};
    const lzs_sampler *s = f.samplers[0];
    const lzs_history *h = &s->state.history;
    if (f.params.dry_multiplier == 0.0f || f.params.dry_penalty_last_n == 0) return;
    int32_t n_text;
    const int32_t *text = history(&n_text);
    dry_lengths(&f.params, text, n_text, f.n_vocab, lengths);
    CHECK(lzs_token_table_reserve(&found, MAX_VOCAB) == LZS_OK);
    lzs_token_table_clear(&found);
    if (h->watches[LZS_WATCH_dry].index.window) lzs_penalty_dry.find(&found, h, &s->params, s->log2_vocab);
    for (int32_t t = 0; t < f.n_vocab; t++) {
        int32_t at = lzs_token_table_find(&found, t);
        CHECK((at < 0 ? 0 : found.entries[at].count) == lengths[t]);
    }
    lzs_token_table_free(&found);
}

/* What the default rule of LZ says by its watch and by its definition: in the edits of a sampler that has no other
 * penalty, and in the explanations of this one. */
static void check_lz(void) {
    static lz_direct_price prices[MAX_VOCAB];
    static float bias[MAX_VOCAB];
    static const float zeros[MAX_VOCAB];
    if (f.params.lz_rule != LZS_RULE_DEFAULT || (f.params.lz_penalty == 0.0f && f.params.lz_run_penalty == 0.0f)) return;
    int32_t n_text, tokens[40];
    const int32_t *text = history(&n_text);
    lzs_params alone;
    lzs_params_init(&alone);
    alone.lz_penalty = f.params.lz_penalty;
    alone.lz_window = f.params.lz_window;
    alone.lz_min_match = f.params.lz_min_match;
    alone.lz_run_penalty = f.params.lz_run_penalty;
    alone.lz_run_allowance = f.params.lz_run_allowance;
    alone.lz_separators = f.params.lz_separators;
    alone.n_lz_separators = f.params.n_lz_separators;
    alone.lz_commas = f.params.lz_commas;
    alone.n_lz_commas = f.params.n_lz_commas;
    alone.history = LZS_HISTORY_ALL;
    lz_prices(&alone, text, n_text, f.n_vocab, prices);
    lzs_sampler *s;
    size_t n;
    CHECK(lzs_sampler_new(f.n_vocab, &alone, &s) == LZS_OK && lzs_prime(s, text, (size_t)n_text) == LZS_OK);
    const lzs_edit *edits = lzs_edits(s, &n);
    memset(bias, 0, sizeof bias);
    for (size_t i = 0; i < n; i++) bias[edits[i].token] = edits[i].bias;
    for (int32_t t = 0; t < f.n_vocab; t++) CHECK(lz_same_price(&alone, f.n_vocab, -(double)bias[t], prices[t].price));
    lzs_sampler_free(s);

    lzs_explanation told[40];
    for (int32_t i = 0; i < 40; i++) tokens[i] = i < f.letters ? i : random_below(&f.s.state, f.n_vocab);
    if (lzs_explain(f.samplers[0], zeros, tokens, 40, told) != LZS_OK) return; /* masks leave nothing */
    for (int i = 0; i < 40; i++) CHECK(lz_explained(&alone, text, n_text, f.n_vocab, &told[i], &prices[tokens[i]]));
}

/* ---- a step with logits ---- */

/* The bytes of a plan, given to every table of kernels. */
static void check_plan(const lzs_plan *plan, lzs_status status, int32_t token) {
    size_t size = lzs_plan_size(plan);
    uint64_t *bytes = malloc(size);
    lzs_plan read;
    CHECK(bytes && lzs_plan_write(plan, bytes, size - 1) == LZS_ESPACE && lzs_plan_write(plan, bytes, size) == LZS_OK);
    CHECK(lzs_plan_read(bytes, size, &read) == LZS_OK);
    for (int t = 0; t < f.n_tables; t++) {
        const float *rows[1] = {row};
        int32_t replayed;
        lzs_status again;
        lzs_backend_sample(f.samplers[t]->backend, rows, &read, 1, &replayed, &again);
        CHECK(replayed == token && again == status);
    }
    if (!f.s.bytes || !exhausted(&f.s)) { /* another number somewhere: refused or usable */
        int32_t n_words = (int32_t)(size / 4), at = choose(&f.s, n_words < 24 || one_in(&f.s, 2) ? n_words : 24);
        uint32_t number = one_in(&f.s, 2) ? 0xffffffffu : (uint32_t)choose(&f.s, INT32_MAX);
        memcpy((char *)bytes + (size_t)at * 4, &number, 4);
        const float *rows[1] = {row};
        if (lzs_plan_read(bytes, size, &read) == LZS_OK && read.n_vocab <= f.n_vocab) {
            lzs_backend_sample(f.samplers[0]->backend, rows, &read, 1, &token, &status);
            CHECK((status == LZS_OK) == (token >= 0 && token < read.n_vocab));
        }
    }
    free(bytes);
}

static void check_distribution(const int32_t *ids, const float *probabilities, size_t n, int32_t token) {
    double sum = 0.0;
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        CHECK(ids[i] >= 0 && ids[i] < f.n_vocab && (i == 0 || ids[i] > ids[i - 1]));
        CHECK(probabilities[i] >= 0.0f && probabilities[i] <= 1.0f);
        found |= ids[i] == token;
        sum += probabilities[i];
    }
    CHECK(found && fabs(sum - 1.0) < 1e-4);
}

/* What one token's explanation says happened to it is what lzs_process did. */
static void check_explanation(lzs_status status, const float *processed) {
    int32_t token = choose(&f.s, f.n_vocab);
    lzs_explanation e;
    CHECK(lzs_explain(f.samplers[0], row, &token, 1, &e) == status);
    if (status != LZS_OK) return;
    CHECK(e.token == token && memcmp(&e.logit, &row[token], sizeof e.logit) == 0);
    CHECK(memcmp(&e.after, &processed[token], sizeof e.after) == 0 && (e.allowed || e.after == -INFINITY));
}

/* The token that lzs_sample picked, picked again and accepted in one call. */
static void take_step(lzs_status status, int32_t token) {
    if (f.n_prompt + f.n_accepted == MAX_TEXT) return;
    for (int t = 0; t < f.n_tables; t++) {
        int32_t again, looping;
        lzs_loop loop;
        lzs_stuck stuck;
        CHECK(lzs_step(f.samplers[t], row, &again, &looping) == status && again == (status == LZS_OK ? token : -1));
        int found = lzs_loop_found(f.samplers[t], &loop) || lzs_stuck_found(f.samplers[t], &stuck);
        if (status == LZS_OK) CHECK((looping != 0) == found);
    }
    if (status == LZS_OK) f.text[f.n_prompt + f.n_accepted++] = token;
}

static void step_with_logits(void) {
    static int32_t ids[2][MAX_VOCAB];
    static float probabilities[2][MAX_VOCAB], out[2][MAX_VOCAB];
    size_t bytes = (size_t)f.n_vocab * sizeof *row, n[2] = {0, 0};
    int32_t token[2];
    lzs_status status[2];
    choose_row(&f.s, row, f.n_vocab);
    memcpy(kept_row, row, bytes);
    for (int t = 0; t < f.n_tables; t++) {
        int k = t > 0;
        lzs_sampler *s = f.samplers[t];
        status[k] = lzs_sample(s, row, &token[k]);
        CHECK((status[k] == LZS_OK) == (token[k] >= 0 && token[k] < f.n_vocab));
        CHECK(lzs_distribution(s, row, ids[k], probabilities[k], MAX_VOCAB, &n[k]) == status[k]);
        CHECK(lzs_process(s, row, out[k]) == status[k]);
        CHECK(memcmp(row, kept_row, bytes) == 0);
        if (status[k] == LZS_OK) {
            check_distribution(ids[k], probabilities[k], n[k], token[k]);
            size_t n_left = 0;
            for (int32_t i = 0; i < f.n_vocab; i++) n_left += out[k][i] > -INFINITY;
            CHECK(n_left == n[k] && out[k][token[k]] > -INFINITY);
        }
        if (k == 0) continue;
        CHECK(status[1] == status[0] && token[1] == token[0] && n[1] == n[0]);
        CHECK(memcmp(ids[1], ids[0], n[0] * sizeof *ids[0]) == 0);
        CHECK(memcmp(probabilities[1], probabilities[0], n[0] * sizeof *probabilities[0]) == 0);
        if (status[0] == LZS_OK) CHECK(memcmp(out[1], out[0], bytes) == 0);
    }
    lzs_plan plan;
    if (one_in(&f.s, 3) && lzs_sampler_plan(f.samplers[0], &plan) == LZS_OK) check_plan(&plan, status[0], token[0]);
    if (one_in(&f.s, 4)) check_explanation(status[0], out[0]);
    if (one_in(&f.s, 3)) take_step(status[0], token[0]);
}

/* ---- the other steps ---- */

static int32_t choose_token(void) {
    return one_in(&f.s, 20) ? choose(&f.s, f.n_vocab) : choose(&f.s, f.letters);
}

static void prime(void) {
    size_t n = (size_t)choose(&f.s, 300);
    int32_t *more = f.text + f.n_prompt;
    if (f.n_accepted || f.n_prompt + n > MAX_TEXT / 2) return;
    for (size_t i = 0; i < n; i++) more[i] = choose_token();
    for (int t = 0; t < f.n_tables; t++) CHECK(lzs_prime(f.samplers[t], more, n) == LZS_OK);
    f.n_prompt += n;
}

static void accept_some(void) {
    size_t n = 1 + (size_t)choose(&f.s, 40), period = 1 + (size_t)choose(&f.s, 30);
    bool repeat = one_in(&f.s, 2) && f.n_accepted >= period;
    for (size_t i = 0; i < n && f.n_prompt + f.n_accepted < MAX_TEXT; i++) {
        int32_t *end = f.text + f.n_prompt + f.n_accepted++;
        *end = repeat ? end[-(ptrdiff_t)period] : choose_token();
        for (int t = 0; t < f.n_tables; t++) CHECK(lzs_accept(f.samplers[t], *end) == LZS_OK);
    }
}

static void rewind_some(void) {
    size_t n = (size_t)choose(&f.s, one_in(&f.s, 4) ? 100 : 4);
    bool possible = n <= f.n_accepted;
    for (int t = 0; t < f.n_tables; t++) CHECK(lzs_rewind(f.samplers[t], n) == (possible ? LZS_OK : LZS_EINVAL));
    if (possible) f.n_accepted -= n;
}

static void clone_or_copy(void) {
    bool copy = one_in(&f.s, 2);
    for (int t = 0; t < f.n_tables; t++) {
        lzs_sampler *other;
        if (copy) {
            other = new_sampler(t);
            for (int32_t i = 0; i < 30; i++) CHECK(lzs_accept(other, i % f.n_vocab) == LZS_OK);
            CHECK(lzs_sampler_copy(other, f.samplers[t]) == LZS_OK);
        } else {
            CHECK(lzs_sampler_clone(f.samplers[t], &other) == LZS_OK);
            use_kernels(other, lzs_kernels_at(t));
        }
        lzs_sampler_free(f.samplers[t]);
        f.samplers[t] = other;
    }
}

static void set_mask(void) {
    int32_t owner = choose(&f.s, 2), kind = choose(&f.s, 5);
    size_t n_words = ((size_t)f.n_vocab + 31) / 32;
    bool borrow = one_in(&f.s, 2);
    if (f.n_masks == N_MASKS) return;
    uint32_t *words = f.masks[f.n_masks++];
    if (f.s.bytes) f.s.state = (uint64_t)(uint32_t)choose(&f.s, 1 << 16);
    for (size_t w = 0; w < n_words; w++) {
        words[w] = kind == 0 ? 0 : kind == 1 ? 0xffffffffu : (uint32_t)random_bits(&f.s.state);
        if (kind == 2) words[w] |= (uint32_t)random_bits(&f.s.state) | (uint32_t)random_bits(&f.s.state);
    }
    for (int t = 0; t < f.n_tables; t++) {
        const uint32_t *mask = kind == 4 ? NULL : words;
        CHECK((borrow ? lzs_borrow_mask : lzs_set_mask)(f.samplers[t], owner, mask, n_words) == LZS_OK);
    }
}

static void change_settings(void) {
    if (one_in(&f.s, 3)) {
        f.params.seed = (uint64_t)(uint32_t)choose(&f.s, INT32_MAX);
        for (int t = 0; t < f.n_tables; t++) lzs_sampler_set_seed(f.samplers[t], f.params.seed);
        return;
    }
    choose_step_params(&f.s, &f.params, f.n_vocab);
    const bool runs = f.params.lz_run_penalty > 0.0f, on = f.params.lz_penalty > 0.0f || runs;
    if (on && one_in(&f.s, 2)) {
        f.params.lz_penalty = runs ? ONE_OF(&f.s, 0.1f, 0.0f, FLT_MAX) : ONE_OF(&f.s, 0.1f, 3.0f, FLT_MAX);
        const bool may_run = f.params.lz_rule == LZS_RULE_DEFAULT;
        if (may_run) f.params.lz_run_penalty = f.params.lz_penalty > 0.0f ? ONE_OF(&f.s, 0.0f, 0.1f, FLT_MAX) : 0.3f;
    }
    for (int t = 0; t < f.n_tables; t++) CHECK(lzs_sampler_set_params(f.samplers[t], &f.params) == LZS_OK);
}

static void reset(void) {
    for (int t = 0; t < f.n_tables; t++) lzs_sampler_reset(f.samplers[t]);
    f.n_prompt = f.n_accepted = 0;
    f.n_masks = 0;
}

/* ---- cases ---- */

static long run_case(source s) {
    f.s = s;
    f.n_prompt = f.n_accepted = 0;
    f.n_masks = 0;
    f.n_vocab = 1 + choose(&f.s, one_in(&f.s, 3) ? MAX_VOCAB : 80);
    f.letters = 1 + choose(&f.s, f.n_vocab < 12 ? f.n_vocab : 12);
    choose_params(&f.s, &f.params, f.n_vocab, &f.lists);
    for (f.n_tables = 0; lzs_kernels_at(f.n_tables); f.n_tables++) f.samplers[f.n_tables] = new_sampler(f.n_tables);
    int step = 0;
    for (; step < MAX_STEPS && !exhausted(&f.s); step++) {
        int action = choose(&f.s, 100);
        if (action < 10) prime();
        else if (action < 45) accept_some();
        else if (action < 57) rewind_some();
        else if (action < 62) clone_or_copy();
        else if (action < 70) set_mask();
        else if (action < 75) change_settings();
        else if (action < 76) reset();
        else step_with_logits();
        for (int t = 1; t < f.n_tables; t++) check_same_edits(f.samplers[0], f.samplers[t]);
        if (one_in(&f.s, 8)) check_rebuilt();
        if (one_in(&f.s, 6)) check_dry();
        if (one_in(&f.s, 6)) check_lz();
    }
    for (int t = 0; t < f.n_tables; t++) lzs_sampler_free(f.samplers[t]);
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    run_case((source){.bytes = bytes, .n = n});
    return 0;
}

#ifndef LZS_LIBFUZZER
static void replay(const char *path) {
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) fprintf(stderr, "%s cannot be read\n", path);
    CHECK(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
}

static bool is_number(const char *text) {
    return *text && text[strspn(text, "0123456789")] == 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && is_number(argv[1]) && is_number(argv[2])) {
        uint64_t seed = strtoull(argv[1], NULL, 10);
        time_t end = time(NULL) + atol(argv[2]);
        long n_cases = 0, n_steps = 0;
        for (; time(NULL) < end; n_cases++) { /* each case has a seed of its own, so that it can be run again alone */
            source s = {.state = (seed << 32) + (uint64_t)n_cases};
            n_steps += run_case(s);
        }
        printf("seed %s: %ld cases, %ld steps agree on %d tables\n", argv[1], n_cases, n_steps, f.n_tables);
        return 0;
    }
    for (int i = 1; i < argc; i++) replay(argv[i]);
    printf("%d files replayed\n", argc - 1);
    return 0;
}
#endif
