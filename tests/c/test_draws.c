/* test_draws.c - a million draws over adversarial rows: every table of kernels picks the token that the definition picks,
 * from a row where it lies and from a copy at another alignment, and leaves both as they were. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "lzs_internal.h"

enum { DRAWS = 1000000, MAX_N = 700, KINDS = 8 };

static void fill(float *x, int32_t n, int kind, uint64_t *state) {
    for (int32_t i = 0; i < n; i++) {
        float u = (float)(random_unit(state) + random_unit(state) - 1.0);
        switch (kind) {
        case 0: x[i] = 8.0f * u; break;
        case 1: x[i] = (float)random_below(state, 3); break;                                   /* ties */
        case 2: x[i] = i / 37 % 2 ? -INFINITY : 4.0f * u; break;                               /* runs of -inf */
        case 3: x[i] = u * 1e-44f; break;                                                      /* denormals */
        case 4: x[i] = random_below(state, 2) ? 0.0f : -0.0f; break;                           /* signed zeros */
        case 5: x[i] = ldexpf(u, random_below(state, 250) - 125); break;                       /* huge spread */
        case 6: x[i] = -INFINITY; break;                                                       /* one finite, below */
        default: x[i] = 1.0f + u * 1e-6f; break;                                               /* nearly flat */
        }
    }
    x[random_below(state, n)] = kind == 5 ? FLT_MAX : kind == 3 ? 1e-45f : 1.0f;
}

static lzs_params random_params(uint64_t *state) {
    static const float temperatures[] = {0.0f, 0.1f, 0.7f, 1.0f, 1.0f, 1.5f, 30.0f};
    lzs_params p;
    lzs_params_init(&p);
    p.temperature = temperatures[random_below(state, 7)];
    if (random_below(state, 3) == 0) p.top_k = 1 + random_below(state, 60);
    if (random_below(state, 3) == 0) p.top_p = (float)random_unit(state);
    if (random_below(state, 3) == 0) p.min_p = (float)random_unit(state) * 0.3f;
    p.ties = random_below(state, 2);
    p.seed = random_bits(state);
    return p;
}

int main(void) {
    static float row[MAX_N + 16], copy[MAX_N + 16], kept[MAX_N];
    static lzs_survivors v;
    uint64_t state = 20260101;
    const lzs_kernels *tables[8];
    int n_tables = 0;
    while ((tables[n_tables] = lzs_kernels_at(n_tables))) n_tables++;
    lzs_params p = random_params(&state);
    int32_t n = MAX_N;
    for (int64_t draw = 0; draw < DRAWS; draw++) {
        if (draw % 50 == 0) { /* a row and its settings serve fifty positions */
            n = 1 + random_below(&state, random_below(&state, 8) ? 90 : MAX_N);
            p = random_params(&state);
            fill(row, n, (int)(draw / 50 % KINDS), &state);
            memcpy(kept, row, (size_t)n * sizeof *row);
        }
        int32_t first = -1;
        for (int t = 0; t < n_tables; t++) {
            float *x = row;
            if (draw % 2) { /* the copy, four bytes further for each table */
                x = copy + t + 1;
                memcpy(x, row, (size_t)n * sizeof *row);
            }
            lzs_row source = {x, n, NULL};
            CHECK(lzs_survive(tables[t], &source, &p, &v) == LZS_OK);
            int32_t token = p.temperature == 0.0f ? v.top.argmax : lzs_race_pick(tables[t], &v, &p, (uint64_t)draw);
            CHECK(token >= 0 && token < n && kept[token] > -INFINITY);
            if (t == 0) first = token;
            CHECK(token == first);
            CHECK(memcmp(x, kept, (size_t)n * sizeof *x) == 0);
        }
    }
    printf("%d draws, %d tables\n", DRAWS, n_tables);
    return 0;
}
