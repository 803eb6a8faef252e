/* kernels.h - the inner loops over rows of logits and lists of tokens, as a table of functions. Each vector instruction
 * set has a table of its own.
 *
 * kernels_scalar.c is the definition: every other table gives the same bits. Kernels work on floats, bits and counts
 * only. The gap y(t) = (max - x(t)) * log2(e) / T says how many bits token t is below the best token. The softmax p(t)
 * is proportional to 2^-y(t). Tokens are ordered by descending logit, and tokens with equal logits by ascending id.
 * Every truncation keeps the beginning of this order, so one cut says which tokens stay.
 */
#ifndef LZS_KERNELS_H
#define LZS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Microsoft's compiler. clang-cl does not count as MSVC here: it has clang's builtins, attributes and pragmas. */
#if defined(_MSC_VER) && !defined(__clang__)
#  define LZS_MSVC 1
#  include <intrin.h>
#endif

#include "../include/lzsampler_plan.h"
#include "token_entry.h"
#include "noise.h"

typedef struct lzs_row {
    const float *x;       /* (n) logits */
    int32_t n;            /* vocabulary size */
    const uint32_t *mask; /* ((n + 31) / 32) words, 1 = allowed; NULL allows all */
} lzs_row;

/* A token stays if its key is above `key`, or if its key equals `key` and its id is at most `id`. */
typedef struct lzs_cut {
    uint32_t key; /* above the key of -inf, so a token at -inf never stays */
    int32_t id;
} lzs_cut;

typedef struct lzs_top {
    float max;      /* largest allowed logit; -inf when no token is allowed */
    int32_t argmax; /* token of the largest logit, the lowest id on ties; -1 when no token is allowed */
    bool nan;       /* whether an allowed logit is NaN */
} lzs_top;

/* The first pass over a row also yields the maximum of each noise group of 64 tokens. These maxima say where large
 * logits are. Since groups do not overlap, the k-th largest maximum is a lower bound of the k-th largest logit. 16
 * groups make a stretch. */
#define LZS_STRETCH_GROUPS 16
#define LZS_STRETCH (LZS_STRETCH_GROUPS * LZS_GROUP)

static inline int32_t lzs_stretches(int32_t n_vocab) {
    return (n_vocab - 1) / LZS_STRETCH + 1;
}

/* The first token after stretch s; the last stretch may be short. */
static inline int32_t lzs_stretch_end(int32_t n_vocab, int32_t s) {
    return n_vocab - s * LZS_STRETCH < LZS_STRETCH ? n_vocab : (s + 1) * LZS_STRETCH;
}

/* The numbers by which the gap of a logit is computed, in bits. */
typedef struct lzs_softmax_scale {
    float max;
    float scale; /* log2(e) / temperature */
} lzs_softmax_scale;

/* A list of tokens of a row. Each token is packed into an integer. The better a token, the larger its integer. */
typedef struct lzs_list {
    uint64_t *packed; /* (n of capacity) key of the logit << 32 | ~id */
    int32_t n;
    int32_t capacity;
} lzs_list;

LZS_DEVICE static inline uint64_t lzs_pack(float x, int32_t id) {
    return (uint64_t)lzs_key(x) << 32 | (uint32_t)~id;
}

LZS_DEVICE static inline int32_t lzs_packed_id(uint64_t packed) {
    return (int32_t)~(uint32_t)packed;
}

LZS_DEVICE static inline uint32_t lzs_packed_key(uint64_t packed) {
    return (uint32_t)(packed >> 32);
}

LZS_DEVICE static inline float lzs_packed_x(uint64_t packed) {
    return lzs_key_float(lzs_packed_key(packed));
}

/* A histogram of tokens by gap: bin b holds the tokens with y in [from + b / per_bit, from + (b + 1) / per_bit), up to
 * the limit. `above` holds the tokens with y < from. Each token adds its weight, or 1 if `count`. If tokens add
 * weights, `total` is the weight of all tokens. `per_bit` is a power of two and `from` a multiple of a bin's width, so
 * y - from is exact. */
#define LZS_BINS 2048
typedef struct lzs_histogram {
    float from, limit, per_bit;
    bool count; /* whether each token adds 1 */
    uint64_t above, total;
    uint64_t bins[LZS_BINS];
} lzs_histogram;

/* `total` is the weight of all tokens, and `above` the weight of the tokens whose gap is below a limit. */
typedef struct lzs_sums {
    uint64_t total, above;
} lzs_sums;

/* A race (race.c), and the token with the smallest score so far. */
typedef struct lzs_race {
    lzs_noise_key key;
    lzs_softmax_scale scale;
    float score; /* smallest score so far; +inf before the first token */
    int32_t token;
} lzs_race;

/* Tokens that wait to run the race. Once LZS_WAITING tokens wait, the caller must call `run`. The arrays have further
 * room for the tokens of one more group, and for what a vector store writes beyond the last token. */
#define LZS_WAITING 32
typedef struct lzs_runners {
    const uint32_t *words; /* random words of all groups; if NULL, `run` computes the words that it needs */
    int32_t n;
    int32_t ids[LZS_WAITING + LZS_GROUP + 16];
    float x[LZS_WAITING + LZS_GROUP + 16]; /* logits of the tokens */
} lzs_runners;

/* The penalty of LZS_RULE_PAPER for a token whose best match has length 1. It depends on the distance d of the token's
 * nearest occurrence. The bias is -penalty * (log2_vocab - min(log2(d + plus), log2_vocab)). */
typedef struct lzs_nearest_price {
    const float *bias_at; /* bias_at[d]: the bias at distance d, d >= 1 */
    float penalty, log2_vocab;
    int32_t plus; /* 1 for LZS_LZ_RATE, else 0 */
} lzs_nearest_price;

typedef struct lzs_kernels {
    const char *name;
    /* Fills the maxima of the groups (16 for each stretch; -inf if no token is allowed) and the maxima of the
     * stretches. Returns whether an allowed logit is NaN. If so, the maxima are undefined. */
    bool (*max)(const lzs_row *row, float *maxima, float *best);
    /* Returns the maximum of one group of a row that has a mask. */
    float (*max_of_group)(const lzs_row *row, int32_t group);
    /* Appends to the list the allowed tokens with ids >= `from` and logits in [low, high]. `maxima` are the maxima of
     * the row's groups; `from` is a multiple of 64. Returns the first token of the first group for which the list had
     * no room, or row->n. */
    int32_t (*gather)(const lzs_row *row, const float *maxima, int32_t from, float low, float high, lzs_list *list);
    /* Returns how many of n maxima are at least `low`; n is a multiple of 16. */
    int32_t (*count)(const float *maxima, int32_t n, float low);
    /* Adds the allowed tokens of [from, to) to the histogram; `from` is a multiple of 64, and to - from is at most
     * 1,024. */
    void (*weigh)(const lzs_row *row, int32_t from, int32_t to, lzs_softmax_scale scale, lzs_histogram *histogram);
    /* Adds the weights of the allowed tokens of [from, to) to the sums. `maxima` are the maxima of the row's groups;
     * `from` is a multiple of 64, and to - from is at most 1,024. */
    void (*sum)(const lzs_row *row, const float *maxima, int32_t from, int32_t to, lzs_softmax_scale scale, float limit,
                lzs_sums *sums);
    /* Fills the words of the groups 0 to n - 1, where n is a multiple of 16. Replaces the maximum of each group by a
     * lower bound of its tokens' scores (lzs_group_bound), or by +inf if the maximum is below `low`. Returns the least
     * bound. If the row's maximum is infinite, the bounds are meaningless. */
    float (*bounds)(lzs_noise_key key, int32_t n, lzs_softmax_scale scale, float low, uint32_t *words, float *maxima);
    /* Writes the groups g < n whose bound is above `above` and at most `score`; n is a multiple of 16. Returns the
     * number of groups written. `groups` has room for 16 more groups. */
    int32_t (*contenders)(const float *bounds, int32_t n, float above, float score, int32_t *groups);
    /* Appends the tokens of a group that are allowed, are inside the cut and could win. A token could win if the
     * group's smallest noise would give the token at most the race's score. */
    void (*open)(const lzs_row *row, int32_t group, uint32_t word, lzs_cut cut, const lzs_race *race,
                 lzs_runners *runners);
    /* Runs the race with all tokens that wait, and empties `runners`. */
    void (*run)(lzs_race *race, lzs_runners *runners);
    /* len[k] = tokens[k] == newest ? min(len[k] + 1, cap) : 0, for k < n */
    void (*extend)(uint16_t *len, const int32_t *tokens, int32_t n, int32_t newest, uint16_t cap);
    /* Writes the indices k < n where len[k] >= least, and returns the number of these indices. `least` is at least
     * 1. */
    int32_t (*find_long)(const uint16_t *len, int32_t n, uint16_t least, int32_t *indices);
    /* Makes one edit for each of n entries, from the distance of the token's nearest occurrence in a history of
     * `length` tokens. All entries are in reach of LZS_RULE_PAPER. A table of 131,072 prices does not fit in a core's
     * cache beside the entries, so kernels with wide vectors compute the price instead of loading it. */
    void (*price_nearest)(const lzs_token_entry *entries, int32_t n, int32_t length, const lzs_nearest_price *price,
                          lzs_edit *edits);
} lzs_kernels;

/* Instruction sets are selected by function attributes and not by flags for each file, so one command line builds all
 * tables. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) /* clang-cl defines only __clang__ */
#  define LZS_X86 1
#  define LZS_TARGET(isa) __attribute__((target(isa)))
#elif defined(LZS_MSVC) && defined(_M_X64)
#  define LZS_X86 1
#  define LZS_TARGET(isa)
/* The NEON kernels assume little-endian order: the low word of a pair comes first. */
#elif defined(_M_ARM64) || (defined(__aarch64__) && !defined(__AARCH64EB__))
#  define LZS_NEON 1
#endif

/* Marks functions that are called with constant arguments. Each call is inlined, so the compiler specialises the
 * function's code for the constants. */
#ifdef LZS_MSVC
#  define LZS_INLINE static __forceinline
#else
#  define LZS_INLINE static inline __attribute__((always_inline))
#endif

extern const lzs_kernels lzs_kernels_scalar;
#ifdef LZS_X86
extern const lzs_kernels lzs_kernels_avx2, lzs_kernels_avx512;
#endif
#ifdef LZS_NEON
extern const lzs_kernels lzs_kernels_neon;
#endif

/* Returns the table that the environment variable LZS_KERNELS names, if this CPU can run it; else the fastest table
 * that this CPU can run. */
const lzs_kernels *lzs_kernels_best(void);

/* Returns table number i of the tables that this CPU can run, or NULL if there is no table i. The scalar table is
 * number 0. */
const lzs_kernels *lzs_kernels_at(int i);

/* Returns the index of the lowest bit that is set; `bits` must not be 0. */
static inline int lzs_lowest_bit(uint32_t bits) {
#ifdef LZS_MSVC
    unsigned long at;
    _BitScanForward(&at, bits);
    return (int)at;
#else
    return __builtin_ctz(bits);
#endif
}

static inline int lzs_lowest_bit_64(uint64_t bits) {
#ifdef LZS_MSVC /* the intrinsic for 64 bits is missing on 32-bit machines */
    return (uint32_t)bits ? lzs_lowest_bit((uint32_t)bits) : 32 + lzs_lowest_bit((uint32_t)(bits >> 32));
#else
    return __builtin_ctzll(bits);
#endif
}

static inline int lzs_bit_count(uint32_t bits) {
#ifdef LZS_MSVC /* sums bits by pairs, fours and bytes, because the intrinsic is missing on Arm */
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return (int)(((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
#else
    return __builtin_popcount(bits);
#endif
}

static inline int lzs_bit_count_64(uint64_t bits) {
    return lzs_bit_count((uint32_t)bits) + lzs_bit_count((uint32_t)(bits >> 32));
}

LZS_DEVICE static inline bool lzs_allowed(const uint32_t *mask, int32_t id) {
    return mask == NULL || ((mask[id >> 5] >> (id & 31)) & 1u);
}

LZS_DEVICE static inline bool lzs_inside(lzs_cut cut, uint32_t key, int32_t id) {
    return key > cut.key || (key == cut.key && id <= cut.id);
}

LZS_DEVICE static inline float lzs_gap_bits(lzs_softmax_scale s, float x) {
    return x == s.max ? 0.0f : (s.max - x) * s.scale; /* equality first, since inf - inf is NaN */
}

LZS_DEVICE static inline void lzs_weigh_one(lzs_histogram *h, float y) {
    uint32_t w = h->count ? 1 : lzs_weight(y);
    if (!h->count) h->total += w;
    if (y < h->from) {
        h->above += w;
    } else if (y < h->limit) {
        h->bins[(int32_t)((y - h->from) * h->per_bit)] += w;
    }
}

/* The number that lzs_log2_below subtracts to get a lower bound of log2(E). Before rounding, a word whose upper bits
 * are k gives noise E of at least (k + 1/2) 2^-bits log2(e) (noise.h). The bits of a float, read as a fixed-point
 * number, are a lower bound of the float's log2, apart from a constant. 0.01 is more than all rounding errors. */
#define LZS_BELOW_LOG2(bits) (127.0f + (float)(bits) - 0.5287f + 0.01f)
#define LZS_GROUP_BITS (26 + 6)
#define LZS_TOKEN_BITS 31

LZS_DEVICE static inline float lzs_log2_below(uint32_t k, float below) {
    return (float)(int32_t)lzs_float_bits((float)(int32_t)k) * 0x1p-23f - below;
}

/* A lower bound of the score of every token of a group whose logits are at most `x`. */
LZS_DEVICE static inline float lzs_group_bound(lzs_softmax_scale s, float x, uint32_t word) {
    return (s.max - x) * s.scale + lzs_log2_below(word >> 6, LZS_BELOW_LOG2(LZS_GROUP_BITS));
}

/* Enters one token's score in the race. Tokens may come in any order: the smallest score wins, and the lowest id among
 * equal scores. */
LZS_DEVICE static inline void lzs_finish(lzs_race *race, float score, int32_t id) {
    if (race->token < 0 || score < race->score || (score == race->score && id < race->token)) {
        race->score = score;
        race->token = id;
    }
}

LZS_DEVICE static inline void lzs_run(lzs_race *race, float x, int32_t id, float noise) {
    lzs_finish(race, lzs_gap_bits(race->scale, x) + lzs_log2(noise), id);
}

#endif
