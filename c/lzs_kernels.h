/* lzs_kernels.h - the inner loops over a row of logits, as a table, so that a faster instruction set can replace them
 * all. lzs_kernels_scalar.c is the definition: every other table gives the same bits.
 *
 * Kernels know floats, bits and counts only. All truncation is a prefix of one order (logit descending, token id
 * ascending), so one cut says what stays: keys above `key`, and those equal to it up to token `id`.
 */
#ifndef LZS_KERNELS_H
#define LZS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _MSC_VER
#  include <intrin.h>
#endif

#include "lzs_math.h"

typedef struct lzs_row {
    const float *x;       /* (n) logits */
    int32_t n;            /* vocabulary size */
    const uint32_t *mask; /* ((n + 31) / 32) words, 1 = allowed; NULL allows all */
} lzs_row;

typedef struct lzs_cut {
    uint32_t key; /* above that of -inf, so a token at -inf never stays */
    int32_t id;
} lzs_cut;

typedef struct lzs_top {
    float max;      /* -inf when no token is allowed */
    int32_t argmax; /* lowest id on ties; -1 when no token is allowed */
    bool nan;       /* an allowed logit is NaN */
} lzs_top;

/* Maxima of parts of a row, a by-product of the first pass: lane l of block b holds the maximum over the allowed tokens
 * t of the block with t % LZS_LANES = l. They say where large logits are, and the k-th largest of them is a lower bound
 * of the k-th largest logit, since the parts do not overlap. */
#define LZS_LANES 16
#define LZS_MAX_BLOCKS 256
typedef struct lzs_blocks {
    int32_t size; /* tokens a block, a multiple of 64 */
    int32_t n;
    float maxima[LZS_MAX_BLOCKS][LZS_LANES]; /* -inf where nothing is allowed */
    float best[LZS_MAX_BLOCKS];              /* maximum of the whole block */
} lzs_blocks;

/* Scale from logit to y = (max - x) * scale, in bits below the maximum. */
typedef struct lzs_scale {
    float max;
    float scale; /* log2(e) / temperature */
} lzs_scale;

/* Tokens taken out of a row, each packed so that integers have the order of truncation, the best one largest. */
typedef struct lzs_list {
    uint64_t *packed; /* (n of capacity) logit key << 32 | ~id */
    int32_t n;
    int32_t capacity;
} lzs_list;

static inline uint64_t lzs_pack(float x, int32_t id) {
    return (uint64_t)lzs_key(x) << 32 | (uint32_t)~id;
}

static inline int32_t lzs_packed_id(uint64_t packed) {
    return (int32_t)~(uint32_t)packed;
}

static inline float lzs_packed_x(uint64_t packed) {
    return lzs_key_float((uint32_t)(packed >> 32));
}

/* Sums of weights by y: bin b holds y in [from + b / per_bit, from + (b + 1) / per_bit), up to the limit; `above` those
 * with y < from, `total` all. `per_bit` is a power of two and `from` a multiple of a bin's width, so y - from is exact. */
#define LZS_BINS 2048
typedef struct lzs_weights {
    float from, limit, per_bit;
    uint64_t above, total;
    uint64_t bins[LZS_BINS];
} lzs_weights;

typedef struct lzs_race {
    uint32_t seed[2];
    uint64_t position;
    float score; /* smallest so far; +inf before the first token */
    int32_t token;
} lzs_race;

typedef struct lzs_kernels {
    const char *name;
    /* The maximum and nothing else, as fast as the row can be read: what benches call the floor. No logit is NaN. */
    float (*scan)(const float *x, int32_t n);
    /* Fills `top` and the maxima of the blocks (whose size and number are given). */
    void (*max)(const lzs_row *row, lzs_blocks *blocks, lzs_top *top);
    /* Appends the allowed tokens of [from, to) whose logit is within [low, high]. Returns the first that found no room,
     * or `to`. */
    int32_t (*gather)(const lzs_row *row, int32_t from, int32_t to, float low, float high, lzs_list *list);
    /* Adds the weights of the allowed tokens to their bins and to the sums. */
    void (*weigh)(const lzs_row *row, lzs_scale scale, lzs_weights *weights);
    /* The token of [from, to) inside the cut with the smallest score y + noise; the lowest id on ties. `from` is a
     * multiple of 64. */
    void (*race)(const lzs_row *row, int32_t from, int32_t to, lzs_cut cut, lzs_scale scale, lzs_race *race);
    /* len[k] = tokens[k] == newest ? min(len[k] + 1, cap) : 0, for k < n */
    void (*extend)(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap);
    /* Writes the indices k < n where len[k] is not 0; returns their number. */
    int32_t (*nonzero)(const uint16_t *len, int32_t n, int32_t *indices);
} lzs_kernels;

/* Tables are made by function attributes, not by per-file flags, so that one command line builds them all. */
#if defined(__GNUC__) && defined(__x86_64__)
#  define LZS_X86 1
#  define LZS_TARGET(isa) __attribute__((target(isa)))
#elif defined(_MSC_VER) && defined(_M_X64)
#  define LZS_X86 1
#  define LZS_TARGET(isa)
#elif defined(__aarch64__) || defined(_M_ARM64)
#  define LZS_NEON 1
#endif

extern const lzs_kernels lzs_kernels_scalar;
#ifdef LZS_X86
extern const lzs_kernels lzs_kernels_avx2, lzs_kernels_avx512;
#endif
#ifdef LZS_NEON
extern const lzs_kernels lzs_kernels_neon;
#endif

/* The fastest table that this CPU runs, or the one that the environment variable LZS_KERNELS names (for tests; NULL
 * when it does not run here). */
const lzs_kernels *lzs_kernels_best(void);

/* Table number i of those that this CPU runs, scalar first; NULL past the last. */
const lzs_kernels *lzs_kernels_at(int i);

/* Index of the lowest bit that is set; bits is not 0. */
static inline int lzs_lowest_bit(uint32_t bits) {
#ifdef _MSC_VER
    unsigned long at;
    _BitScanForward(&at, bits);
    return (int)at;
#else
    return __builtin_ctz(bits);
#endif
}

static inline int lzs_bit_count(uint32_t bits) {
#ifdef _MSC_VER
    return (int)__popcnt(bits);
#else
    return __builtin_popcount(bits);
#endif
}

/* The first token after block b; the last block may be short. */
static inline int32_t lzs_block_end(const lzs_row *row, const lzs_blocks *blocks, int32_t b) {
    int32_t from = b * blocks->size;
    return row->n - from < blocks->size ? row->n : from + blocks->size;
}

static inline bool lzs_allowed(const uint32_t *mask, int32_t id) {
    return mask == NULL || ((mask[id >> 5] >> (id & 31)) & 1u);
}

static inline bool lzs_inside(lzs_cut cut, uint32_t key, int32_t id) {
    return key > cut.key || (key == cut.key && id <= cut.id);
}

static inline float lzs_y(lzs_scale s, float x) {
    return x == s.max ? 0.0f : (s.max - x) * s.scale; /* equality first: inf - inf is NaN */
}

static inline void lzs_weigh_one(lzs_weights *weights, float y) {
    uint32_t w = lzs_weight(y);
    weights->total += w;
    if (y < weights->from) {
        weights->above += w;
    } else if (y < weights->limit) {
        weights->bins[(int32_t)((y - weights->from) * weights->per_bit)] += w;
    }
}

/* One runner of the race, in whatever order they come. */
static inline void lzs_run(lzs_race *race, lzs_scale scale, float x, int32_t id, uint32_t word) {
    float score = lzs_y(scale, x) + lzs_race_noise(word);
    if (race->token < 0 || score < race->score || (score == race->score && id < race->token)) {
        race->score = score;
        race->token = id;
    }
}

/* The random words of the four tokens of a block of ids. */
static inline void lzs_race_words(const lzs_race *race, int32_t id, uint32_t words[4]) {
    uint32_t counter[4] = {(uint32_t)id >> 2, (uint32_t)race->position, (uint32_t)(race->position >> 32), 0};
    lzs_philox(counter, race->seed, words);
}

#endif
