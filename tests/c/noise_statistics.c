/* noise_statistics.c - chi-square and Kolmogorov-Smirnov tests of the noise of c/backend/noise.h.
 *
 *     noise_statistics DRAWS [NOISE [TEST...]]
 *
 * DRAWS: draws of each test, at least 100000. NOISE: "true", the default, or one that is broken on purpose (the table
 * `noises`). TEST: marginal, joint, winner, exact; all of them by default. Prints a line for each p-value. The true
 * noise passes (exit status 0) when every p-value is above 1e-4, a broken one when some p-value is below 1e-9: then
 * these tests would have found it. The seeds are fixed, so a run always says the same.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "noise.h"

#define SEED 20250420u
#define LN2 0.69314718055994531

/* ---- survival functions ---- */

/* P(chi-square with `freedom` degrees of freedom > x): the upper incomplete gamma function Q(freedom / 2, x / 2), by its
 * series below the mean and by its continued fraction (Lentz) above. */
static double chi_square_survival(double x, double freedom) {
    double a = freedom / 2.0, z = x / 2.0, factor = exp(a * log(z) - z - lgamma(a));
    if (z < a + 1.0) {
        double term = 1.0 / a, sum = term;
        for (double n = 1.0; term > sum * 1e-17; n += 1.0) {
            term *= z / (a + n);
            sum += term;
        }
        return 1.0 - factor * sum;
    }
    double b = z + 1.0 - a, c = 1e300, d = 1.0 / b, h = d, change = 0.0;
    for (double n = 1.0; fabs(change - 1.0) > 1e-16 && n < 1e6; n += 1.0) {
        double numerator = n * (a - n);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        change = d * c;
        h *= change;
    }
    return factor * h;
}

/* P(D_n > d) of the one-sample Kolmogorov-Smirnov distance, for large n (Kolmogorov's limit with the correction of
 * Stephens 1970). Each of the two series converges at once where it is used. */
static double kolmogorov_survival(double d, double n) {
    double t = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * d, sum = 0.0;
    if (t < 1.0) {
        const double pi = 3.14159265358979324;
        for (int k = 1; k <= 9; k += 2) sum += exp(-k * k * pi * pi / (8.0 * t * t));
        return 1.0 - sqrt(2.0 * pi) / t * sum;
    }
    for (int k = 1; k <= 9; k++) sum += (k % 2 ? 2.0 : -2.0) * exp(-2.0 * k * k * t * t);
    return sum;
}

/* Against chi2.sf, kstwobign.sf (reached with n so large that the correction vanishes) and kstwo.sf of scipy. */
static void test_survival_functions(void) {
    static const double chi_square[][3] = {
        {3.841458820694124, 1, 0.05},
        {0.5, 3, 0.9188914116546758},
        {15, 10, 0.1320618562877206},
        {300, 255, 0.02772752205390483},
        {400, 255, 1.6600025244123397e-08},
        {2920, 2999, 0.8462603243379624},
        {3300, 2999, 8.091634637715554e-05},
        {1500, 1023, 1.0286363881601594e-20},
    };
    static const double limit[][2] = {
        {0.2, 0.999999999999495},  {0.4, 0.9971923267772983},    {0.8, 0.5441424115741981}, {1.0, 0.26999967167735456}, {1.36, 0.049485876755377},
        {2.0, 0.0006709252557796953}, {3.0, 3.045995948942526e-08},
    };
    for (size_t i = 0; i < sizeof chi_square / sizeof *chi_square; i++) {
        double p = chi_square_survival(chi_square[i][0], chi_square[i][1]);
        CHECK(fabs(p / chi_square[i][2] - 1.0) < 1e-9);
    }
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
        CHECK(fabs(kolmogorov_survival(limit[i][0] * 1e-12, 1e24) / limit[i][1] - 1.0) < 1e-9);
    }
    CHECK(fabs(kolmogorov_survival(0.004, 100000) / 0.08130148920222469 - 1.0) < 1e-3);
    CHECK(fabs(kolmogorov_survival(0.005, 200000) / 9.049367287273853e-05 - 1.0) < 1e-2);
}

/* ---- the noise, and ways to break it ---- */

typedef struct noise {
    const char *name;
    lzs_noise_key (*key)(uint64_t seed, uint64_t position);
    void (*group_words)(lzs_noise_key key, uint32_t first, uint32_t words[4]); /* of four groups; first = 4 * n */
    uint32_t (*holder)(uint32_t word);
    uint64_t (*sequence_seed)(uint64_t seed, uint64_t sequence);
} noise;

static void group_words(lzs_noise_key key, uint32_t first, uint32_t words[4]) {
    lzs_noise_words(key, first >> 2, LZS_DOMAIN_GROUP, words);
}

static void words_of_two_groups(lzs_noise_key key, uint32_t first, uint32_t words[4]) {
    for (uint32_t i = 0; i < 4; i++) words[i] = lzs_group_word(key, (first + i) >> 1);
}

static uint32_t holder_from_the_minimum(uint32_t word) {
    return word >> 26; /* the highest bits of the 26 that make the minimum */
}

static lzs_noise_key key_of_two_positions(uint64_t seed, uint64_t position) {
    return lzs_noise_key_of(seed, position >> 1);
}

static lzs_noise_key key_without_high_position(uint64_t seed, uint64_t position) {
    return lzs_noise_key_of(seed, (uint32_t)position);
}

static uint64_t seed_of_two_sequences(uint64_t seed, uint64_t sequence) {
    return lzs_derived_seed(seed, sequence >> 1);
}

static const noise noises[] = {
    {"true", lzs_noise_key_of, group_words, lzs_group_holder, lzs_derived_seed},
    {"shared-word", lzs_noise_key_of, words_of_two_groups, lzs_group_holder, lzs_derived_seed},
    {"reused-bits", lzs_noise_key_of, group_words, holder_from_the_minimum, lzs_derived_seed},
    {"shared-position", key_of_two_positions, group_words, lzs_group_holder, lzs_derived_seed},
    {"short-position", key_without_high_position, group_words, lzs_group_holder, lzs_derived_seed},
    {"shared-sequence", lzs_noise_key_of, group_words, lzs_group_holder, seed_of_two_sequences},
};

static uint32_t group_word(const noise *noise, lzs_noise_key key, uint32_t group) {
    uint32_t words[4];
    noise->group_words(key, group & ~3u, words);
    return words[group & 3];
}

static float token_noise(const noise *noise, lzs_noise_key key, int32_t id) {
    uint32_t word = group_word(noise, key, lzs_group_of(id));
    float minimum = lzs_group_minimum(word);
    if (lzs_member_of(id) == noise->holder(word)) return minimum;
    return lzs_member_noise(minimum, lzs_token_word(key, id));
}

/* ---- results ---- */

typedef struct results {
    uint64_t draws;
    double least; /* p-value */
    int n;
} results;

static void report(results *results, const char *test, const char *name, double statistic, double p) {
    printf("%-9s %-56s %10.5g  p %.3g\n", test, name, statistic, p);
    if (!(p >= results->least)) results->least = p; /* NaN counts as the least */
    results->n++;
}

/* Cells of which fewer than 16 are expected are counted together. */
static void chi_square(results *results, const char *test, const char *name, const uint64_t *counts,
                       const double *expected, int n) {
    double sum = 0.0, rare_count = 0.0, rare_expected = 0.0;
    int cells = 0;
    for (int i = 0; i < n; i++) {
        double off = (double)counts[i] - expected[i];
        if (expected[i] < 16.0) {
            rare_count += (double)counts[i];
            rare_expected += expected[i];
        } else {
            sum += off * off / expected[i];
            cells++;
        }
    }
    if (rare_expected >= 4.0) {
        sum += (rare_count - rare_expected) * (rare_count - rare_expected) / rare_expected;
        cells++;
    }
    report(results, test, name, sum, chi_square_survival(sum, cells - 1));
}

/* ---- what is drawn: a value at draw i that ought to be uniform ---- */

enum kind { TOKEN, MINIMUM, HOLDER };

/* Draw i is at position step * i + offset of the sequence `SEED`, or at position 7 of the sequence of this number. */
typedef struct source {
    enum kind kind;
    int32_t id; /* of the token, or of the group */
    bool over_sequences;
    uint64_t step, offset;
} source;

static float drawn(const noise *noise, const source *source, uint64_t i) {
    uint64_t at = source->step * i + source->offset;
    lzs_noise_key key =
        source->over_sequences ? noise->key(noise->sequence_seed(SEED, at), 7) : noise->key(SEED, at);
    if (source->kind == TOKEN) return token_noise(noise, key, source->id);
    uint32_t word = group_word(noise, key, (uint32_t)source->id);
    return source->kind == MINIMUM ? 64.0f * lzs_group_minimum(word) : (float)noise->holder(word);
}

/* The distribution function at a value; every E has P(E > x) = 2^-x. */
static double uniform(const source *source, float value) {
    return source->kind == HOLDER ? (value + 0.5) / 64.0 : -expm1(-(double)value * LN2);
}

static int even_cell(double u, int cells) {
    int cell = (int)(u * cells);
    return cell < cells ? cell : cells - 1;
}

/* Cell c holds [2^-(c + 1), 2^-c), the last all that is smaller: small noise decides who wins. */
static int octave_cell(double u, int cells) {
    int exponent;
    frexp(u, &exponent);
    return -exponent < cells ? -exponent : cells - 1;
}

static double octave_share(int cell, int cells) {
    return ldexp(1.0, cell < cells - 1 ? -cell - 1 : -cell);
}

/* ---- marginals ---- */

/* Ascending; `spare` is as long. The bits of floats that are not negative are in the order of the floats. */
static void sort(uint32_t *bits, uint32_t *spare, size_t n) {
    for (int shift = 0; shift < 33; shift += 11) {
        size_t starts[2049] = {0};
        for (size_t i = 0; i < n; i++) starts[(bits[i] >> shift & 2047) + 1]++;
        for (int d = 0; d < 2047; d++) starts[d + 1] += starts[d];
        for (size_t i = 0; i < n; i++) spare[starts[bits[i] >> shift & 2047]++] = bits[i];
        uint32_t *swapped = bits;
        bits = spare;
        spare = swapped;
    }
    memcpy(spare, bits, n * sizeof *bits); /* three passes leave the result in the caller's spare */
}

static void marginal(const noise *noise, results *results, const char *name, const source *source) {
    enum { EVEN = 256, OCTAVES = 32 };
    size_t n = results->draws;
    uint32_t *bits = malloc(n * sizeof *bits), *spare = malloc(n * sizeof *spare);
    CHECK(bits && spare);
    uint64_t even[EVEN] = {0}, octaves[OCTAVES] = {0};
    double even_expected[EVEN], octaves_expected[OCTAVES], distance = 0.0;
    for (size_t i = 0; i < n; i++) bits[i] = lzs_float_bits(drawn(noise, source, i));
    sort(bits, spare, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(i == 0 || bits[i - 1] <= bits[i]);
        double u = uniform(source, lzs_bits_float(bits[i]));
        distance = fmax(distance, fmax((double)(i + 1) / (double)n - u, u - (double)i / (double)n));
        even[even_cell(u, EVEN)]++;
        octaves[octave_cell(u, OCTAVES)]++;
    }
    for (int c = 0; c < EVEN; c++) even_expected[c] = (double)n / EVEN;
    for (int c = 0; c < OCTAVES; c++) octaves_expected[c] = (double)n * octave_share(c, OCTAVES);
    char line[80];
    snprintf(line, sizeof line, "%s, Kolmogorov-Smirnov", name);
    report(results, "marginal", line, distance, kolmogorov_survival(distance, (double)n));
    snprintf(line, sizeof line, "%s, 256 even cells", name);
    chi_square(results, "marginal", line, even, even_expected, EVEN);
    snprintf(line, sizeof line, "%s, octaves", name);
    chi_square(results, "marginal", line, octaves, octaves_expected, OCTAVES);
    free(bits);
    free(spare);
}

static void test_marginals(const noise *noise, results *results) {
    static const struct {
        const char *name;
        source source;
    } cases[] = {
        {"token 0 over positions", {TOKEN, 0, false, 1, 0}},
        {"token 1,023 over positions", {TOKEN, 1023, false, 1, 0}},
        {"token 2,999 over positions", {TOKEN, 2999, false, 1, 0}},
        {"token 151,935 over positions", {TOKEN, 151935, false, 1, 0}},
        {"token 5 over every third position from 2^32 - 9", {TOKEN, 5, false, 3, 0xfffffff7u}},
        {"minimum of group 3 over positions", {MINIMUM, 3, false, 1, 0}},
        {"token 0 over sequences", {TOKEN, 0, true, 1, 0}},
        {"token 2,999 over sequences", {TOKEN, 2999, true, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) marginal(noise, results, cases[i].name, &cases[i].source);
}

/* ---- pairs ---- */

static void joint(const noise *noise, results *results, const char *name, const source *a, const source *b) {
    enum { MOST = 64 };
    static uint64_t even[MOST * MOST], octaves[MOST * MOST];
    static double even_expected[MOST * MOST], octaves_expected[MOST * MOST];
    int cells_a = a->kind == HOLDER ? 64 : 16, cells_b = b->kind == HOLDER ? 64 : 16, cells = cells_a * cells_b;
    bool holders = a->kind == HOLDER || b->kind == HOLDER; /* their numbers have no small end */
    memset(even, 0, sizeof even);
    memset(octaves, 0, sizeof octaves);
    for (uint64_t i = 0; i < results->draws; i++) {
        double u = uniform(a, drawn(noise, a, i)), v = uniform(b, drawn(noise, b, i));
        even[even_cell(u, cells_a) * cells_b + even_cell(v, cells_b)]++;
        octaves[octave_cell(u, cells_a) * cells_b + octave_cell(v, cells_b)]++;
    }
    for (int c = 0; c < cells; c++) {
        double share = octave_share(c / cells_b, cells_a) * octave_share(c % cells_b, cells_b);
        even_expected[c] = (double)results->draws / cells;
        octaves_expected[c] = (double)results->draws * share;
    }
    char line[80];
    snprintf(line, sizeof line, "%s, even cells", name);
    chi_square(results, "joint", line, even, even_expected, cells);
    if (holders) return;
    snprintf(line, sizeof line, "%s, octaves", name);
    chi_square(results, "joint", line, octaves, octaves_expected, cells);
}

static void test_pairs(const noise *noise, results *results) {
    const uint64_t far = (uint64_t)1 << 32;
    const struct {
        const char *name;
        source a, b;
    } cases[] = {
        /* within a group */
        {"tokens 0 and 1, of one Philox call", {TOKEN, 0, false, 1, 0}, {TOKEN, 1, false, 1, 0}},
        {"tokens 1,031 and 1,032, of two Philox calls", {TOKEN, 1031, false, 1, 0}, {TOKEN, 1032, false, 1, 0}},
        {"tokens 448 and 511, first and last of group 7", {TOKEN, 448, false, 1, 0}, {TOKEN, 511, false, 1, 0}},
        {"holder and minimum of group 0", {HOLDER, 0, false, 1, 0}, {MINIMUM, 0, false, 1, 0}},
        /* between groups; the words of groups 0 to 3 are of one Philox call */
        {"tokens 63 and 64, neighbours in groups 0 and 1", {TOKEN, 63, false, 1, 0}, {TOKEN, 64, false, 1, 0}},
        {"tokens 255 and 256, neighbours in groups 3 and 4", {TOKEN, 255, false, 1, 0}, {TOKEN, 256, false, 1, 0}},
        {"tokens 552 and 1,576, members 40 of groups 8 and 24", {TOKEN, 552, false, 1, 0}, {TOKEN, 1576, false, 1, 0}},
        {"holder of group 5 and token 406, group 6", {HOLDER, 5, false, 1, far}, {TOKEN, 406, false, 1, far}},
        {"minima of groups 2 and 3", {MINIMUM, 2, false, 1, 0}, {MINIMUM, 3, false, 1, 0}},
        {"minima of groups 0 and 16", {MINIMUM, 0, false, 1, 0}, {MINIMUM, 16, false, 1, 0}},
        {"holders of groups 6 and 7", {HOLDER, 6, false, 1, 0}, {HOLDER, 7, false, 1, 0}},
        /* between domains: a group and a token of the same number, so that only the last word of the counter differs */
        {"minimum of group 64 and token 64", {MINIMUM, 64, false, 1, 0}, {TOKEN, 64, false, 1, 0}},
        /* between positions; the pairs do not overlap */
        {"token 9 at positions 2i and 2i + 1", {TOKEN, 9, false, 2, 0}, {TOKEN, 9, false, 2, 1}},
        {"token 9 at positions i and i + 2^32", {TOKEN, 9, false, 1, 0}, {TOKEN, 9, false, 1, far}},
        {"minimum of group 9 at positions 2i and 2i + 1", {MINIMUM, 9, false, 2, 0}, {MINIMUM, 9, false, 2, 1}},
        {"holder of group 9 at positions 2i and 2i + 1", {HOLDER, 9, false, 2, 0}, {HOLDER, 9, false, 2, 1}},
        /* between sequences */
        {"token 9 in sequences 2i and 2i + 1", {TOKEN, 9, true, 2, 0}, {TOKEN, 9, true, 2, 1}},
        {"token 9 in sequences i and i + 2^32", {TOKEN, 9, true, 1, 0}, {TOKEN, 9, true, 1, far}},
        {"minimum of group 9 in sequences 2i and 2i + 1", {MINIMUM, 9, true, 2, 0}, {MINIMUM, 9, true, 2, 1}},
        {"token 9 of the seed and of sequence i", {TOKEN, 9, false, 1, 0}, {TOKEN, 9, true, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        joint(noise, results, cases[i].name, &cases[i].a, &cases[i].b);
    }
}

/* ---- winners ---- */

/* The groups of whole Philox calls, four of each; the last ones may be empty. */
enum { VOCABULARY = 3000, GROUPS = (VOCABULARY + 4 * LZS_GROUP - 1) / (4 * LZS_GROUP) * 4 };

typedef struct row {
    float y[VOCABULARY]; /* bits below the best token; +inf where masked */
    float best[GROUPS];  /* the least y of each group */
} row;

static void finish(row *row) {
    for (int g = 0; g < GROUPS; g++) row->best[g] = INFINITY;
    for (int32_t id = 0; id < VOCABULARY; id++) {
        float *best = &row->best[lzs_group_of(id)];
        if (row->y[id] < *best) *best = row->y[id];
    }
}

static row flat_row(void) {
    row row = {{0}, {0}};
    finish(&row);
    return row;
}

/* Most tokens are 3 to 12 bits below the best one, and ten are near it. */
static row uneven_row(void) {
    row row;
    uint64_t state = 11;
    for (int32_t id = 0; id < VOCABULARY; id++) row.y[id] = (float)(3.0 + 9.0 * random_unit(&state));
    for (int32_t id = 7; id < VOCABULARY; id += 300) row.y[id] = (float)(2.0 * random_unit(&state));
    row.y[1207] = 0.0f;
    finish(&row);
    return row;
}

/* The best token of the row stays allowed, and so do two of three others. */
static row masked(const row *full) {
    row row = *full;
    uint64_t state = 12;
    for (int32_t id = 0; id < VOCABULARY; id++) {
        if (row.y[id] > 0.0f && random_below(&state, 3) == 0) row.y[id] = INFINITY;
    }
    finish(&row);
    return row;
}

typedef struct leader {
    float score;
    int32_t token;
} leader;

/* Lower bounds of log2 of a group's minimum and of a member's noise, in few operations: -log2(1 - v) is at least
 * v log2 e, and the bits of a float, taken for a number, are a lower bound of its logarithm. */
static float low_log2(float v) {
    return (float)(int32_t)(lzs_float_bits(v) - 0x3f800000u) * 0x1p-23f - 1e-4f;
}

static float minimum_floor(uint32_t word) {
    return low_log2(((float)(int32_t)(word >> 6) + 0.5f) * (1.442695f * 0x1p-32f));
}

static float member_floor(float minimum, uint32_t word) {
    return low_log2(minimum + ((float)(int32_t)(word >> 1) + 0.5f) * (1.442695f * 0x1p-31f));
}

static void run(const row *row, int32_t id, float e, leader *leader) {
    float score = row->y[id] + lzs_log2(e);
    if (score < leader->score || (score == leader->score && id < leader->token)) *leader = (struct leader){score, id};
}

/* Lets the members of a group run that can still win. */
static void open_group(const noise *noise, const row *row, lzs_noise_key key, uint32_t word, uint32_t group,
                       leader *leader) {
    uint32_t words[4];
    float minimum = lzs_group_minimum(word), floor = minimum_floor(word);
    int32_t first = (int32_t)(LZS_GROUP * group), holder = first + (int32_t)noise->holder(word), known = -1;
    if (holder < VOCABULARY && row->y[holder] < INFINITY) run(row, holder, minimum, leader);
    for (int32_t id = first; id < first + LZS_GROUP && id < VOCABULARY; id++) {
        if (id == holder || row->y[id] + floor > leader->score) continue;
        if (known != id >> 2) lzs_noise_words(key, (uint32_t)id >> 2, LZS_DOMAIN_TOKEN, words);
        known = id >> 2;
        if (row->y[id] + member_floor(minimum, words[id & 3]) > leader->score) continue;
        run(row, id, lzs_member_noise(minimum, words[id & 3]), leader);
    }
}

/* Groups whose best token cannot win even with the minimum stay closed. */
static int32_t winner(const noise *noise, const row *row, lzs_noise_key key) {
    uint32_t words[GROUPS], first = 0;
    float floors[GROUPS];
    for (uint32_t g = 0; g < GROUPS; g++) {
        if (g % 4 == 0) noise->group_words(key, g, words + g);
        floors[g] = minimum_floor(words[g]);
        if (row->best[g] + floors[g] < row->best[first] + floors[first]) first = g;
    }
    leader leader = {FLT_MAX, -1};
    open_group(noise, row, key, words[first], first, &leader);
    for (uint32_t g = 0; g < GROUPS; g++) {
        if (g == first || row->best[g] + floors[g] > leader.score) continue;
        open_group(noise, row, key, words[g], g, &leader);
    }
    return leader.token;
}

static void winners(const noise *noise, results *results, const char *name, const row *row, bool over_sequences) {
    static uint64_t counts[VOCABULARY];
    static double expected[VOCABULARY];
    double sum = 0.0;
    memset(counts, 0, sizeof counts);
    for (uint64_t i = 0; i < results->draws; i++) {
        lzs_noise_key key = over_sequences ? noise->key(noise->sequence_seed(SEED, i), 3) : noise->key(SEED, i);
        int32_t token = winner(noise, row, key);
        CHECK(token >= 0 && row->y[token] < INFINITY);
        counts[token]++;
    }
    for (int32_t id = 0; id < VOCABULARY; id++) sum += exp2(-(double)row->y[id]);
    for (int32_t id = 0; id < VOCABULARY; id++) expected[id] = (double)results->draws * exp2(-(double)row->y[id]) / sum;
    chi_square(results, "winner", name, counts, expected, VOCABULARY);
}

static void test_winners(const noise *noise, results *results) {
    static row flat, uneven, allowed;
    flat = flat_row();
    uneven = uneven_row();
    allowed = masked(&uneven);
    winners(noise, results, "equal logits, over positions", &flat, false);
    winners(noise, results, "uneven logits, over positions", &uneven, false);
    winners(noise, results, "uneven logits, masked, over positions", &allowed, false);
    winners(noise, results, "uneven logits, over sequences", &uneven, true);
}

/* ---- what holds exactly ---- */

/* The tokens of a batch of sequences at some positions, in order and in an order that jumps about. */
static void test_order(const noise *noise) {
    enum { SEQUENCES = 16, POSITIONS = 8, TOKENS = 150, ALL = SEQUENCES * POSITIONS * TOKENS, STRIDE = 7919 };
    static float in_order[ALL];
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t n = 0; n < ALL; n++) {
            int32_t i = pass ? (int32_t)((int64_t)n * STRIDE % ALL) : n; /* STRIDE and ALL have no common factor */
            uint64_t sequence = (uint64_t)(i / (POSITIONS * TOKENS)), position = (uint64_t)(i / TOKENS % POSITIONS);
            lzs_noise_key key = noise->key(noise->sequence_seed(SEED, sequence), position);
            float e = token_noise(noise, key, i % TOKENS * 1013);
            if (pass) {
                CHECK(lzs_float_bits(e) == lzs_float_bits(in_order[i]));
            } else {
                in_order[i] = e;
            }
        }
    }
}

static void test_winner_of_all(const noise *noise) {
    static row full, allowed;
    full = uneven_row();
    allowed = masked(&full);
    for (uint64_t position = 0; position < 300; position++) {
        lzs_noise_key key = noise->key(SEED, position);
        leader least = {INFINITY, -1};
        for (int32_t id = 0; id < VOCABULARY; id++) {
            float score = full.y[id] + lzs_log2(token_noise(noise, key, id));
            if (score < least.score) least = (leader){score, id};
        }
        CHECK(winner(noise, &full, key) == least.token);
        /* taking losers away does not change who wins */
        if (allowed.y[least.token] < INFINITY) CHECK(winner(noise, &allowed, key) == least.token);
    }
}

static void test_groups(void) {
    for (int32_t id = 0; id < 200000; id++) {
        uint32_t group = lzs_group_of(id), member = lzs_member_of(id);
        CHECK(member < 64 && 64 * group + member == (uint32_t)id);
        CHECK(token_noise(noises, lzs_noise_key_of(SEED, 1), id) == lzs_token_noise(lzs_noise_key_of(SEED, 1), id));
    }
    for (uint32_t word = 0; word < 0xfff00000u; word += 4093) {
        float log2_minimum = lzs_log2(lzs_group_minimum(word));
        CHECK(minimum_floor(word) < log2_minimum && (word > 1u << 28 || minimum_floor(word) > log2_minimum - 0.2f));
    }
    /* the ends of the noise: neither 0 nor infinite */
    CHECK(lzs_group_minimum(0) > 0.0f && lzs_group_minimum(0xffffffffu) == 24.0f * 0x1p-6f);
    CHECK(lzs_member_noise(0.0f, 0) > 0.0f && lzs_member_noise(0.0f, 0xffffffffu) == 24.0f);
}

static void test_exactly(const noise *noise) {
    test_order(noise);
    test_winner_of_all(noise);
    if (noise == noises) test_groups();
    printf("exact     order of a batch, closed groups, masks, groups of ids: passed\n");
}

/* ---- all of it ---- */

int main(int argc, char **argv) {
    results results = {argc > 1 ? strtoull(argv[1], NULL, 10) : 0, 1.0, 0};
    const noise *noise = NULL;
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        if (strcmp(argc > 2 ? argv[2] : "true", noises[i].name) == 0) noise = &noises[i];
    }
    if (results.draws < 100000 || !noise) {
        fprintf(stderr, "usage: noise_statistics DRAWS [NOISE [marginal|joint|winner|exact]...], DRAWS at least 100000\n");
        return 2;
    }
    test_survival_functions();
    bool all = argc <= 3;
    for (int i = 3; all || i < argc; i++) {
        if (all || strcmp(argv[i], "marginal") == 0) test_marginals(noise, &results);
        if (all || strcmp(argv[i], "joint") == 0) test_pairs(noise, &results);
        if (all || strcmp(argv[i], "winner") == 0) test_winners(noise, &results);
        if (all || strcmp(argv[i], "exact") == 0) test_exactly(noise);
        if (all) break;
    }
    bool expected = noise == noises ? results.least > 1e-4 : results.least < 1e-9;
    printf("%s noise, %d p-values, %llu draws each, least p %.3g: %s\n", noise->name, results.n,
           (unsigned long long)results.draws, results.least, expected ? (noise == noises ? "passed" : "found out") : "FAILED");
    return !expected;
}
