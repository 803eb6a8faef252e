/* test_truncate.c - the cuts, found without sorting, against an oracle that sorts. Same integer weights, so the same
 * tokens must stay to the last one. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "lzs_internal.h"

enum { MAX_VOCAB = 20000 }; /* more than the short list holds */

static float logits[MAX_VOCAB];
static uint32_t mask[(MAX_VOCAB + 31) / 32];
static int32_t order[MAX_VOCAB];

static int by_order(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (logits[i] != logits[j]) return logits[i] > logits[j] ? -1 : 1;
    return (i > j) - (i < j);
}

static int32_t with_ties(const lzs_params *p, int32_t kept, int32_t n) {
    while (p->ties == LZS_TIES_KEEP && kept > 0 && kept < n && logits[order[kept]] == logits[order[kept - 1]]) kept++;
    return kept;
}

/* ceil(p * total / 2^32) for total < 2^44, p <= 2^32, cut at another place than lzs_truncate.c cuts. */
static uint64_t scaled(uint64_t p, uint64_t total) {
    uint64_t high = p * (total >> 20), low = p * (total & 0xfffff);
    return (high >> 12) + (((high & 0xfff) << 20) + low + 0xffffffffu) / 4294967296u;
}

/* Sorts what is allowed and above -inf into `order` and returns how many stay. */
static int32_t oracle(int32_t n_vocab, const uint32_t *allowed, const lzs_params *p, int32_t *n_sorted) {
    int32_t n = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (logits[i] > -INFINITY && (!allowed || (allowed[i / 32] >> (i % 32) & 1))) order[n++] = i;
    }
    *n_sorted = n;
    if (n == 0) return 0;
    qsort(order, (size_t)n, sizeof *order, by_order);
    lzs_scale scale = {logits[order[0]], lzs_temperature_scale(p->temperature_last ? 1.0f : p->temperature)};
    int32_t kept = n;
    if (p->top_k > 0 && p->top_k < kept) kept = with_ties(p, p->top_k, n);
    if (p->top_p < 1.0f) {
        uint64_t total = 0, run = 0;
        for (int32_t i = 0; i < kept; i++) total += lzs_weight(lzs_y(scale, logits[order[i]]));
        uint64_t target = scaled((uint64_t)floor((double)p->top_p * 0x1p32 + 0.5), total);
        int32_t at = 0;
        do run += lzs_weight(lzs_y(scale, logits[order[at++]]));
        while (run < target);
        kept = with_ties(p, at, kept);
    }
    if (p->min_p > 0.0f) {
        float limit = -lzs_log2(fmaxf(p->min_p, FLT_MIN));
        while (!(lzs_y(scale, logits[order[kept - 1]]) <= limit)) kept--;
    }
    return kept;
}

static void check_row(int32_t n_vocab, const uint32_t *allowed, const lzs_params *p) {
    static bool stays[MAX_VOCAB];
    static lzs_survivors v;
    int32_t n, kept = oracle(n_vocab, allowed, p, &n);
    lzs_row row = {logits, n_vocab, allowed};
    const lzs_kernels *kernels;
    memset(stays, 0, sizeof stays);
    for (int32_t i = 0; i < kept; i++) stays[order[i]] = true;
    for (int table = 0; (kernels = lzs_kernels_at(table)); table++) {
        lzs_status status = lzs_survive(kernels, &row, p, &v);
        CHECK(status == (n ? LZS_OK : LZS_EMASKED));
        if (n == 0) continue;
        CHECK(v.top.argmax == order[0] && v.top.max == logits[order[0]]);
        for (int32_t i = 0; i < n_vocab; i++) {
            bool inside = lzs_inside(v.cut, lzs_key(logits[i]), i) && lzs_allowed(allowed, i);
            CHECK(inside == stays[i]);
        }
        CHECK(v.list.n == 0 || v.list.n == kept);
        for (int32_t i = 0; i < v.list.n; i++) CHECK(lzs_packed_id(v.list.packed[i]) == order[i]);
    }
}

typedef enum kind { NORMAL, TIED, FLAT, HUGE_RANGE, HOLES, PEAKED, SIGNED_ZEROS, INFINITE, N_KINDS } kind;

static void fill(kind k, int32_t n, uint64_t *state) {
    for (int32_t i = 0; i < n; i++) {
        /* the sum of four uniforms is normal enough */
        float x = (float)(4.0 * (random_unit(state) + random_unit(state) + random_unit(state) + random_unit(state) - 2.0));
        switch (k) {
        case TIED: x = (float)random_below(state, 5) * 0.5f; break;
        case FLAT: x = -3.25f; break;
        case HUGE_RANGE: x = (random_below(state, 2) ? 1.0f : -1.0f) * ldexpf(x, random_below(state, 250) - 125); break;
        case HOLES: x = random_below(state, 3) ? x : -INFINITY; break;
        case PEAKED: x = i == n / 2 ? 40.0f : x; break;
        case SIGNED_ZEROS: x = random_below(state, 2) ? 0.0f : random_below(state, 2) ? -0.0f : -1e-45f; break;
        case INFINITE: x = random_below(state, 4) ? x : INFINITY; break;
        default: break;
        }
        logits[i] = x;
    }
    if (k == HUGE_RANGE) {
        logits[random_below(state, n)] = FLT_MAX;
        logits[random_below(state, n)] = -FLT_MAX;
    }
}

static lzs_params random_params(int32_t n_vocab, uint64_t *state) {
    static const float top_p[] = {0.0f, 1e-10f, 0.1f, 0.25f, 0.5f, 0.8f, 0.9f, 0.95f, 0.999f, 0.99999994f, 1.0f};
    static const float min_p[] = {0.0f, 1e-45f, 1e-10f, 0.01f, 0.05f, 0.25f, 0.5f, 0.999f, 1.0f};
    static const float temperature[] = {1e-6f, 0.1f, 0.7f, 1.0f, 1.3f, 5.0f, 1e6f};
    lzs_params p;
    lzs_params_init(&p);
    if (random_below(state, 2)) p.top_k = random_below(state, 3) ? 1 + random_below(state, n_vocab) : 1 + n_vocab / 50;
    if (random_below(state, 40) == 0) p.top_k = INT32_MAX;
    if (random_below(state, 2)) p.top_p = top_p[random_below(state, 11)];
    if (random_below(state, 4) == 0) p.top_p = (float)random_unit(state);
    if (random_below(state, 2)) p.min_p = min_p[random_below(state, 9)];
    if (random_below(state, 4) == 0) p.min_p = (float)random_unit(state);
    p.temperature = temperature[random_below(state, 7)];
    p.temperature_last = random_below(state, 2);
    p.ties = random_below(state, 2);
    return p;
}

static void test_random(int32_t n_vocab, int n_rows, uint64_t seed) {
    uint64_t state = seed;
    for (int r = 0; r < n_rows; r++) {
        fill((kind)(r % N_KINDS), n_vocab, &state);
        bool masked = random_below(&state, 2);
        int density = random_below(&state, 3); /* 1/4, 1/2 or almost all of the bits */
        for (int32_t w = 0; masked && w < (n_vocab + 31) / 32; w++) {
            mask[w] = (uint32_t)random_bits(&state);
            if (density == 0) mask[w] &= (uint32_t)random_bits(&state);
            if (density == 2) mask[w] = ~(mask[w] & (uint32_t)random_bits(&state) & (uint32_t)random_bits(&state));
        }
        for (int i = 0; i < 4; i++) {
            lzs_params p = random_params(n_vocab, &state);
            check_row(n_vocab, masked ? mask : NULL, &p);
        }
    }
}

/* Where every weight is the same, the arithmetic is exact and the answer can be read off. */
static void test_flat(void) {
    static const struct {
        float top_p;
        int32_t kept;
    } cases[] = {{0.0f, 1}, {0.1f, 2}, {0.25f, 3}, {0.5f, 5}, {0.75f, 8}, {0.9f, 9}, {0.95f, 10}};
    for (int32_t i = 0; i < 10; i++) logits[i] = 1.5f;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lzs_params p;
        lzs_params_init(&p);
        p.top_p = cases[c].top_p;
        lzs_row row = {logits, 10, NULL};
        static lzs_survivors v;
        CHECK(lzs_survive(&lzs_kernels_scalar, &row, &p, &v) == LZS_OK);
        int32_t kept = 0;
        for (int32_t i = 0; i < 10; i++) kept += lzs_inside(v.cut, lzs_key(logits[i]), i);
        CHECK(kept == cases[c].kept && v.cut.id == kept - 1);
    }
}

int main(void) {
    for (int32_t n = 1; n <= 70; n++) test_random(n, 10 * N_KINDS, (uint64_t)n);
    test_random(500, 30 * N_KINDS, 500);
    test_random(2049, 10 * N_KINDS, 2049);
    test_random(MAX_VOCAB, 4 * N_KINDS, MAX_VOCAB);
    test_flat();
    return 0;
}
