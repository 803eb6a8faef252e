/* test_speculation.c - drafting and verifying: the same text as without a draft, the state after every block, and errors. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "lzsampler_verify.h"
#include "on_kernels.h"
#include "verify/rejection.h"

enum { N_VOCAB = 150, MASK_WORDS = (N_VOCAB + 31) / 32, MOST = 1200 };

static const int32_t END = 3;

/* ---- a model: rows that the last tokens decide ---- */

typedef enum draft_kind { DRAFT_EQUAL, DRAFT_NEAR, DRAFT_GARBAGE, DRAFT_KINDS } draft_kind;

static uint64_t hash_of(const int32_t *tokens, size_t n, uint64_t salt) {
    for (size_t i = n > 2 ? n - 2 : 0; i < n; i++) salt = (salt ^ (uint64_t)tokens[i]) * 0x9E3779B97F4A7C15u + 1;
    return salt ^ salt >> 29;
}

static void target_row(const int32_t *tokens, size_t n, float *row) {
    uint64_t state = hash_of(tokens, n, 7);
    for (int32_t i = 0; i < N_VOCAB; i++) row[i] = (float)(random_unit(&state) * 5.0);
    if (n > 3) row[tokens[n - 3]] += 4.5f; /* it repeats itself, so that penalties and detectors have work */
    row[END] = 4.5f;
}

static void draft_row(draft_kind kind, const int32_t *tokens, size_t n, float *row) {
    uint64_t state = hash_of(tokens, n, 11);
    target_row(tokens, n, row);
    for (int32_t i = 0; i < N_VOCAB && kind != DRAFT_EQUAL; i++) {
        float other = (float)(random_unit(&state) * 5.0);
        row[i] = kind == DRAFT_NEAR ? row[i] + 0.3f * other : other;
    }
}

/* What the target says of the token that comes next. */
static void next_row(const lzs_sampler *s, float *row) {
    size_t n;
    const int32_t *tokens = lzs_tokens(s, &n);
    target_row(tokens, n, row);
}

/* The mask that is set at a position, where one is: the last tokens decide. */
static void put_mask(lzs_sampler *s, bool masks) {
    uint32_t words[MASK_WORDS];
    size_t n;
    const int32_t *tokens = lzs_tokens(s, &n);
    uint64_t state = hash_of(tokens, n, 13);
    if (!masks || random_below(&state, 2)) return; /* the one in force stays */
    for (int i = 0; i < MASK_WORDS; i++) words[i] = (uint32_t)random_bits(&state) | (uint32_t)random_bits(&state);
    CHECK(lzs_set_mask(s, LZS_MASK_GRAMMAR, random_below(&state, 5) ? words : NULL, MASK_WORDS) == LZS_OK);
}

static lzs_params settings(int which) {
    lzs_params p;
    lzs_params_init(&p);
    p.seed = 99 + (uint64_t)which;
    if (which % 4 == 3) p.temperature = 0.0f;
    if (which % 3 == 0) return p;
    p.lz_penalty = 0.15f;
    p.lz_window = 40;
    p.lz_buffer = 8;
    p.lz_rule = which % 3 == 1 ? LZS_RULE_PAPER : LZS_RULE_DEFAULT;
    p.lz_min_match = 2;
    p.repetition_penalty = 1.1f;
    p.dry_multiplier = 0.5f;
    p.dry_base = 1.5f;
    p.dry_penalty_last_n = 60;
    p.presence_penalty = 0.2f;
    p.top_k = 20;
    p.top_p = 0.95f;
    p.min_p = 0.01f;
    p.loop_min_pattern = 1;
    p.loop_max_pattern = 8;
    p.loop_min_count = 3;
    p.stuck_threshold = 30;
    p.stuck_ngram = 2;
    p.stuck_window = 64;
    return p;
}

static lzs_sampler *new_sampler(const lzs_params *p, const lzs_kernels *kernels) {
    return sampler_on(p, N_VOCAB, kernels);
}

static lzs_speculation *new_speculation(lzs_sampler *s, int32_t mode, int32_t k) {
    lzs_speculation *spec;
    CHECK(lzs_speculation_new(s, mode, k, N_VOCAB, &END, 1, &spec) == LZS_OK);
    return spec;
}

/* Drafts up to k tokens, and verifies them by the target's rows. */
static lzs_status run_block(lzs_sampler *s, lzs_speculation *spec, draft_kind kind, int32_t k, bool masks, lzs_verified *v) {
    static float rows[LZS_MAX_DRAFT + 1][N_VOCAB], row[N_VOCAB];
    const float *pointers[LZS_MAX_DRAFT + 1];
    size_t n;
    for (int32_t i = 0; i <= k; i++) {
        pointers[i] = rows[i];
        put_mask(s, masks);
        const int32_t *tokens = lzs_tokens(s, &n);
        target_row(tokens, n, rows[i]);
        if (i == k) break;
        int32_t token;
        draft_row(kind, tokens, n, row);
        CHECK(lzs_draft(spec, row, 0.0f, &token) == LZS_OK && token >= 0 && token < N_VOCAB);
    }
    return lzs_verify(spec, pointers, (size_t)k + 1, v);
}

/* The text of a loop over lzs_step, up to the first end token, or where a loop is found. */
static size_t plain_text(lzs_sampler *s, size_t most, bool masks, int32_t *text) {
    float row[N_VOCAB];
    int32_t looping = 0;
    for (size_t n = 0; n < most; n++) {
        put_mask(s, masks);
        next_row(s, row);
        CHECK(lzs_step(s, row, &text[n], &looping) == LZS_OK);
        if (text[n] == END || looping) return n + 1;
    }
    return most;
}

/* The text of blocks of up to k tokens, which ends as plain_text does. */
static size_t drafted_text(lzs_sampler *s, int32_t mode, draft_kind kind, int32_t k, size_t most, bool masks, int32_t *text) {
    lzs_speculation *spec = new_speculation(s, mode, k);
    size_t n = 0;
    while (n < most) {
        lzs_verified v;
        int32_t drafts = (size_t)k < most - n ? k : (int32_t)(most - n) - 1;
        CHECK(run_block(s, spec, kind, drafts, masks, &v) == LZS_OK);
        size_t before = n;
        const int32_t *tokens = lzs_tokens(s, &n);
        CHECK(n == before + (size_t)v.n_accepted + (v.token >= 0) && n > before && lzs_position(s) == n);
        CHECK(v.token < 0 || v.token == tokens[n - 1]);
        memcpy(text + before, tokens + before, (n - before) * sizeof *text);
        CHECK(v.ended == (text[n - 1] == END));
        for (size_t i = before; i + 1 < n; i++) CHECK(text[i] != END);
        if (v.ended || v.looping) break;
    }
    lzs_speculation_free(spec);
    return n;
}

/* Gumbel and match: the very text of lzs_step, whatever the draft, on every table of kernels. Mode mrs: the same text on each. */
static void test_the_draft_changes_no_text(void) {
    static int32_t plain[MOST], text[MOST], first[MOST];
    const lzs_kernels *kernels;
    size_t compared = 0, ended = 0, looped = 0;
    for (int which = 0; which < 12; which++) {
        lzs_params p = settings(which);
        bool masks = which & 1;
        lzs_sampler *s = new_sampler(&p, lzs_kernels_at(0));
        size_t n = plain_text(s, 150, masks, plain);
        lzs_loop loop;
        lzs_stuck stuck;
        ended += plain[n - 1] == END;
        looped += lzs_loop_found(s, &loop) || lzs_stuck_found(s, &stuck);
        lzs_sampler_free(s);
        for (int32_t k = 0; k <= 8; k += 1 + (k > 3)) {
            for (draft_kind kind = 0; kind < DRAFT_KINDS; kind++) {
                for (int32_t mode = LZS_SPEC_GUMBEL; mode <= LZS_SPEC_MATCH; mode++) {
                    size_t n_first = 0;
                    for (int t = 0; (kernels = lzs_kernels_at(t)); t++) {
                        s = new_sampler(&p, kernels);
                        size_t m = drafted_text(s, mode, kind, k, 150, masks, text);
                        if (mode != LZS_SPEC_MRS || k == 0) CHECK(m == n && memcmp(text, plain, n * sizeof *text) == 0);
                        if (t == 0) memcpy(first, text, (n_first = m) * sizeof *text);
                        CHECK(m == n_first && memcmp(text, first, m * sizeof *text) == 0);
                        lzs_sampler_free(s);
                        compared += t == 0 ? m : 0; /* how many tables there are depends on the machine */
                    }
                }
            }
        }
    }
    CHECK(compared > 40000 && ended >= 2 && looped >= 2); /* and some texts came to the limit */
}

/* A good draft is accepted, so blocks are long: else the test above would show little. */
static void test_acceptance(void) {
    for (int32_t mode = LZS_SPEC_GUMBEL; mode <= LZS_SPEC_MATCH; mode++) {
        for (draft_kind kind = 0; kind < DRAFT_KINDS; kind++) {
            lzs_params p = settings(1);
            p.loop_max_pattern = p.stuck_threshold = 0;
            lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
            lzs_speculation *spec = new_speculation(s, mode, 4);
            int32_t accepted = 0;
            for (int i = 0; i < 500; i++) {
                lzs_verified v;
                CHECK(run_block(s, spec, kind, 4, false, &v) == LZS_OK);
                accepted += v.n_accepted + (v.ended && v.token < 0 ? 4 - v.n_accepted : 0);
            }
            if (kind == DRAFT_EQUAL && mode != LZS_SPEC_MATCH) CHECK(accepted == 2000);
            if (kind == DRAFT_NEAR && mode != LZS_SPEC_MATCH) CHECK(accepted > 600);
            if (kind == DRAFT_GARBAGE) CHECK(accepted < 200);
            lzs_speculation_free(spec);
            lzs_sampler_free(s);
        }
    }
}

/* ---- the state after a block ---- */

/* Everything that a sampler knows of its text, as one number. */
static uint64_t fingerprint(lzs_sampler *s) {
    float row[N_VOCAB], probabilities[N_VOCAB];
    int32_t ids[N_VOCAB];
    size_t n, n_edits, n_tokens;
    const int32_t *tokens = lzs_tokens(s, &n_tokens);
    const lzs_edit *edits = lzs_edits(s, &n_edits);
    lzs_loop loop = {0, 0, 0};
    lzs_stuck stuck = {0, 0};
    uint64_t sum = lzs_position(s) * 1000003u + n_tokens, edited = 0;
    if (lzs_loop_found(s, &loop)) sum += (loop.start * 1000003u + (uint64_t)loop.period) * 1000003u + (uint64_t)loop.count;
    if (lzs_stuck_found(s, &stuck)) sum = sum * 1000003u + stuck.start * 1000003u + stuck.end;
    for (size_t i = 0; i < n_tokens; i++) sum = sum * 1000003u + (uint64_t)tokens[i];
    for (size_t i = 0; i < n_edits; i++) { /* in no particular order */
        uint64_t repeat = lzs_float_bits(edits[i].repeat), bias = lzs_float_bits(edits[i].bias);
        edited += (((uint64_t)edits[i].token * 1000003u + repeat) * 1000003u + bias) * 0x9E3779B97F4A7C15u;
    }
    target_row(tokens, n_tokens, row);
    CHECK(lzs_distribution(s, row, ids, probabilities, N_VOCAB, &n) == LZS_OK);
    for (size_t i = 0; i < n; i++) sum = (sum * 1000003u + (uint64_t)ids[i]) * 1000003u + lzs_float_bits(probabilities[i]);
    return sum + edited;
}

/* What a new sampler knows that takes the same tokens, with the same masks. */
static uint64_t replayed(const lzs_params *p, lzs_sampler *of, bool masks) {
    lzs_sampler *s = new_sampler(p, lzs_kernels_best());
    size_t n;
    const int32_t *tokens = lzs_tokens(of, &n);
    for (size_t i = 0; i < n; i++) {
        put_mask(s, masks);
        CHECK(lzs_accept(s, tokens[i]) == LZS_OK);
    }
    put_mask(s, masks);
    uint64_t sum = fingerprint(s);
    lzs_sampler_free(s);
    return sum;
}

static void test_random_rounds(void) {
    uint64_t state = 5;
    int rounds = 0, fell = 0, detected = 0;
    for (int which = 0; rounds < 10000; which++) {
        lzs_params p = settings(which);
        bool masks = random_below(&state, 2);
        int32_t mode = random_below(&state, 3), most = 1 + random_below(&state, 12);
        lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
        lzs_speculation *spec = new_speculation(s, mode, most);
        size_t bytes = lzs_speculation_memory(spec);
        for (int i = 0; i < 20; i++, rounds++) {
            lzs_verified v;
            uint64_t before = fingerprint(s);
            int32_t k = random_below(&state, most + 1);
            if (random_below(&state, 8) == 0 && k) { /* tokens that nobody drew, half of which are taken back */
                for (int32_t j = 0; j < k; j++) {
                    put_mask(s, masks);
                    CHECK(lzs_draft_token(spec, random_below(&state, N_VOCAB)) == LZS_OK);
                }
                if (random_below(&state, 2)) {
                    lzs_undraft(spec);
                    CHECK(masks || fingerprint(s) == before);
                    continue;
                }
                lzs_undraft(spec);
            }
            uint64_t position = lzs_position(s);
            CHECK(run_block(s, spec, (draft_kind)random_below(&state, DRAFT_KINDS), k, masks, &v) == LZS_OK);
            CHECK(lzs_position(s) == position + (uint64_t)v.n_accepted + (v.token >= 0));
            fell += v.n_accepted < k;
            detected += v.looping;
            put_mask(s, masks);
            CHECK(fingerprint(s) == replayed(&p, s, masks));
        }
        CHECK(lzs_speculation_memory(spec) == bytes);
        lzs_speculation_free(spec);
        lzs_sampler_free(s);
    }
    CHECK(fell > 4000 && detected > 500);
}

/* ---- what verified tokens may be ---- */

/* No token has probability 0 where it stands, in mode mrs too. */
static void test_support(void) {
    for (int which = 1; which < 6; which++) {
        lzs_params p = settings(which);
        lzs_sampler *s = new_sampler(&p, lzs_kernels_best()), *plain = new_sampler(&p, lzs_kernels_best());
        lzs_speculation *spec = new_speculation(s, LZS_SPEC_MRS, 5);
        float row[N_VOCAB];
        for (int i = 0; i < 400; i++) {
            lzs_verified v;
            size_t n, from = (size_t)lzs_position(s);
            CHECK(run_block(s, spec, DRAFT_GARBAGE, 5, true, &v) == LZS_OK);
            const int32_t *tokens = lzs_tokens(s, &n);
            for (size_t at = from; at < n; at++) {
                put_mask(plain, true);
                target_row(tokens, at, row);
                CHECK(lzs_process(plain, row, row) == LZS_OK && row[tokens[at]] > -INFINITY);
                CHECK(lzs_accept(plain, tokens[at]) == LZS_OK);
            }
        }
        lzs_speculation_free(spec);
        lzs_sampler_free(plain);
        lzs_sampler_free(s);
    }
}

/* Rejection sampling by itself: any supports, and the numbers of each position's own streams. */
static void test_rejection(void) {
    static const int32_t low[] = {0, 1}, high[] = {4, 7}, some[] = {1, 4, 7};
    static const float halves[] = {0.5f, 0.5f}, thirds[] = {0.25f, 0.25f, 0.5f};
    lzs_sparse p = {high, halves, 2}, q = {low, halves, 2}, r = {some, thirds, 3}, none = {0};
    int counts[8] = {0};
    for (uint64_t position = 0; position < 4000; position++) {
        lzs_noise_key key = lzs_noise_key_of(17, position);
        double u = lzs_uniform(key, LZS_DOMAIN_ACCEPTANCE), v = lzs_uniform(key, LZS_DOMAIN_RESIDUAL);
        CHECK(u >= 0.0 && u < 1.0 && v >= 0.0 && v < 1.0 && u != v);
        CHECK(lzs_mrs_token(&p, &q, 1, key) == (v < 0.5 ? 4 : 7)); /* nothing in common: always p */
        CHECK(lzs_mrs_token(&p, &p, 7, key) == 7);                 /* p = q: always kept */
        CHECK(lzs_mrs_token(&p, &none, 4, key) == 4);              /* q = 0 < p, as a rounded q can be */
        CHECK(lzs_mrs_token(&r, &p, 7, key) == 7);                 /* q = p there */
        CHECK(lzs_mrs_token(&r, &p, 4, key) == (u < 0.5 ? 4 : 1)); /* only token 1 exceeds q */
        float more[] = {0.5f, 0.5000001f};
        lzs_sparse rounded = {high, more, 2};
        int32_t token = lzs_mrs_token(&p, &rounded, 7, key);
        CHECK(token == 7 || token == 4); /* nothing exceeds q: from p, where it falls at all */
        counts[lzs_mrs_token(&r, &q, 0, key)]++;
    }
    CHECK(counts[0] == 0 && counts[1] == 0 && counts[4] > 1150 && counts[4] < 1520); /* (r - q)+ is 1 : 2 on 4 and 7 */
    CHECK(counts[4] + counts[7] == 4000);
}

/* ---- vocabularies of two sizes ---- */

static void test_vocabularies(void) {
    static const int32_t sizes[] = {1, 33, N_VOCAB - 1, N_VOCAB, N_VOCAB + 1, 4 * N_VOCAB};
    static float rows[5][N_VOCAB], draft[4 * N_VOCAB];
    static int32_t plain[100];
    const float *pointers[5] = {rows[0], rows[1], rows[2], rows[3], rows[4]};
    for (int32_t mode = LZS_SPEC_GUMBEL; mode <= LZS_SPEC_MATCH; mode++) {
        for (int i = 0; i < 6; i++) {
            lzs_params p = settings(2);
            p.loop_max_pattern = p.stuck_threshold = 0;
            lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
            lzs_speculation *spec;
            for (int at = 0; at < 100; at++) {
                next_row(s, rows[0]);
                CHECK(lzs_step(s, rows[0], &plain[at], NULL) == LZS_OK);
            }
            lzs_sampler_reset(s);
            CHECK(lzs_speculation_new(s, mode, 4, sizes[i], NULL, 0, &spec) == LZS_OK);
            size_t n = 0;
            while (n < 90) {
                lzs_verified v;
                for (int j = 0; j < 5; j++) {
                    next_row(s, rows[j]);
                    for (int32_t t = 0; t < sizes[i]; t++) draft[t] = t < N_VOCAB ? rows[j][t] : 100.0f;
                    int32_t token;
                    if (j == 4) break;
                    CHECK(lzs_draft(spec, draft, 0.0f, &token) == LZS_OK);
                    CHECK(token >= 0 && token < sizes[i] && token < N_VOCAB);
                }
                CHECK(lzs_verify(spec, pointers, 5, &v) == LZS_OK);
                if (sizes[i] >= N_VOCAB && mode == LZS_SPEC_GUMBEL) CHECK(v.n_accepted == 4);
                const int32_t *tokens = lzs_tokens(s, &n);
                if (mode != LZS_SPEC_MRS) CHECK(memcmp(tokens, plain, n * sizeof *tokens) == 0);
            }
            lzs_speculation_free(spec);
            lzs_sampler_free(s);
        }
    }
}

/* ---- errors ---- */

static void test_bad_arguments(void) {
    lzs_params p = settings(1);
    lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
    lzs_speculation *spec = (lzs_speculation *)&p;
    int32_t tokens[] = {N_VOCAB, -1};
    CHECK(lzs_speculation_new(NULL, 0, 4, N_VOCAB, NULL, 0, &spec) == LZS_EINVAL && spec == NULL);
    CHECK(lzs_speculation_new(s, -1, 4, N_VOCAB, NULL, 0, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 3, 4, N_VOCAB, NULL, 0, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, -1, N_VOCAB, NULL, 0, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, LZS_MAX_DRAFT + 1, N_VOCAB, NULL, 0, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, 4, 0, NULL, 0, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, 4, LZS_MAX_VOCAB + 1, NULL, 0, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, 4, N_VOCAB, tokens, 1, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, 4, N_VOCAB, tokens + 1, 1, &spec) == LZS_EINVAL);
    CHECK(lzs_speculation_new(s, 0, 4, N_VOCAB, NULL, 1, &spec) == LZS_EINVAL && spec == NULL);
    CHECK(lzs_speculation_new(s, 0, LZS_MAX_DRAFT, N_VOCAB, NULL, 0, &spec) == LZS_OK);
    lzs_speculation_free(spec);
    lzs_speculation_free(NULL);
    lzs_sampler_free(s);
}

/* Every refusal leaves the sampler and the block as they were. */
static void test_refusals(int32_t mode) {
    lzs_params p = settings(1);
    lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
    lzs_speculation *spec = new_speculation(s, mode, 3);
    static float good[N_VOCAB], nan[N_VOCAB], nothing[N_VOCAB];
    const float *rows[] = {good, good, good, good};
    int32_t token;
    size_t n;
    lzs_verified v;
    for (int i = 0; i < 30; i++) CHECK(lzs_accept(s, i % 7) == LZS_OK);
    next_row(s, good);
    memcpy(nan, good, sizeof nan);
    nan[N_VOCAB - 1] = NAN;
    for (int32_t i = 0; i < N_VOCAB; i++) nothing[i] = -INFINITY;
    for (int drafted = 0; drafted <= 3; drafted++) {
        uint64_t before = fingerprint(s);
#define REFUSED(call, status) \
    do { \
        CHECK((call) == (status)); \
        CHECK(fingerprint(s) == before && lzs_drafted(spec, &n) && n == (size_t)drafted); \
    } while (0)
        int full = drafted == 3;
        REFUSED(lzs_draft(spec, nan, 0.0f, &token), full ? LZS_ESPACE : LZS_ENAN);
        CHECK(token == -1);
        REFUSED(lzs_draft(spec, nan, 0.5f, &token), full ? LZS_ESPACE : LZS_ENAN);
        REFUSED(lzs_draft(spec, nothing, 0.0f, &token), full ? LZS_ESPACE : LZS_EMASKED);
        REFUSED(lzs_draft(spec, NULL, 0.0f, &token), LZS_EINVAL);
        REFUSED(lzs_draft(spec, good, -0.1f, &token), LZS_EINVAL);
        REFUSED(lzs_draft(spec, good, 1.5f, &token), LZS_EINVAL);
        REFUSED(lzs_draft(spec, good, NAN, &token), LZS_EINVAL);
        REFUSED(lzs_draft_token(spec, -1), LZS_EINVAL);
        REFUSED(lzs_draft_token(spec, N_VOCAB), LZS_EINVAL);
        if (full) REFUSED(lzs_draft_token(spec, 0), LZS_ESPACE);
        if (!full) REFUSED(lzs_draft(spec, good, 1.0f, &token), LZS_OK); /* it is not so sure */
        CHECK(token == -1);
        REFUSED(lzs_verify(spec, rows, (size_t)drafted, &v), LZS_EINVAL);
        REFUSED(lzs_verify(spec, rows, (size_t)drafted + 2, &v), LZS_EINVAL);
        REFUSED(lzs_verify(spec, NULL, (size_t)drafted + 1, &v), LZS_EINVAL);
        rows[drafted] = NULL;
        REFUSED(lzs_verify(spec, rows, (size_t)drafted + 1, &v), LZS_EINVAL);
        rows[drafted] = good;
        rows[0] = nan;
        REFUSED(lzs_verify(spec, rows, (size_t)drafted + 1, &v), LZS_ENAN);
        rows[0] = nothing;
        REFUSED(lzs_verify(spec, rows, (size_t)drafted + 1, &v), LZS_EMASKED);
        CHECK(v.n_accepted == 0 && v.token == -1);
        rows[0] = good;
        if (drafted) { /* the sampler moved without the block */
            CHECK(lzs_accept(s, 1) == LZS_OK);
            CHECK(lzs_verify(spec, rows, (size_t)drafted + 1, &v) == LZS_EINVAL);
            CHECK(lzs_draft(spec, good, 0.0f, &token) == LZS_EINVAL && lzs_draft_token(spec, 1) == LZS_EINVAL);
            CHECK(lzs_rewind(s, 1) == LZS_OK);
            REFUSED(lzs_draft_token(spec, -1), LZS_EINVAL);
        }
        if (!full) CHECK(lzs_draft(spec, good, 0.0f, &token) == LZS_OK && token >= 0);
    }
#undef REFUSED
    lzs_sampler_reset(s);
    lzs_undraft(spec); /* there is nothing to take back */
    CHECK(lzs_position(s) == 0 && lzs_drafted(spec, &n) && n == 0);
    CHECK(lzs_verify(spec, rows, 1, &v) == LZS_OK && v.n_accepted == 0 && v.token >= 0 && lzs_position(s) == 1);
    lzs_speculation_free(spec);
    lzs_sampler_free(s);
}

/* A row that cannot be judged ends the block before it; its error comes with the next call, as in a loop over lzs_step. */
static void test_a_broken_row(int32_t mode) {
    for (int broken = 1; broken <= 3; broken++) {
        lzs_params p = settings(1);
        p.loop_max_pattern = p.stuck_threshold = 0;
        lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
        lzs_speculation *spec;
        static float rows[4][N_VOCAB];
        const float *pointers[4];
        lzs_verified v;
        CHECK(lzs_speculation_new(s, mode, 3, N_VOCAB, NULL, 0, &spec) == LZS_OK);
        for (int i = 0; i < 4; i++) {
            int32_t token;
            next_row(s, rows[i]);
            rows[i][5] = 60.0f; /* all agree */
            pointers[i] = rows[i];
            if (i < 3) CHECK(lzs_draft(spec, rows[i], 0.0f, &token) == LZS_OK && token == 5);
        }
        rows[broken][1] = NAN;
        CHECK(lzs_verify(spec, pointers, 4, &v) == LZS_OK);
        CHECK(v.n_accepted == broken && v.token == -1 && !v.ended && lzs_position(s) == (uint64_t)broken);
        CHECK(lzs_verify(spec, pointers + broken, 1, &v) == LZS_ENAN && lzs_position(s) == (uint64_t)broken);
        lzs_speculation_free(spec);
        lzs_sampler_free(s);
    }
}

/* Drafts that stop where the draft is not sure, at any temperature. */
static void test_p_min(int32_t mode) {
    lzs_params p = settings(3); /* temperature 0 */
    lzs_sampler *s = new_sampler(&p, lzs_kernels_best());
    lzs_speculation *spec = new_speculation(s, mode, 8);
    float row[N_VOCAB];
    int32_t token;
    for (int32_t i = 0; i < N_VOCAB; i++) row[i] = i < 20 ? 0.0f : -100.0f;
    row[7] = 1.0f; /* e / (e + 9) = .232 of the ten best */
    CHECK(lzs_draft(spec, row, 0.24f, &token) == LZS_OK && token == -1 && lzs_position(s) == 0);
    CHECK(lzs_draft(spec, row, 0.22f, &token) == LZS_OK && token == 7 && lzs_position(s) == 1);
    row[7] = 50.0f;
    CHECK(lzs_draft(spec, row, 1.0f, &token) == LZS_OK && token == 7 && lzs_position(s) == 2);
    lzs_undraft(spec);
    CHECK(lzs_position(s) == 0);
    lzs_speculation_free(spec);
    lzs_sampler_free(s);
}

int main(void) {
    test_the_draft_changes_no_text();
    test_acceptance();
    test_random_rounds();
    test_support();
    test_rejection();
    test_vocabularies();
    test_bad_arguments();
    for (int32_t mode = LZS_SPEC_GUMBEL; mode <= LZS_SPEC_MATCH; mode++) {
        test_refusals(mode);
        test_a_broken_row(mode);
        test_p_min(mode);
    }
    return 0;
}
