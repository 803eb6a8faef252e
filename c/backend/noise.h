/* noise.h - the random noise of the draw, a pure function of (seed, position, token). docs/determinism.md specifies it.
 *
 * A token's noise E is exponentially distributed, and independent of the noise of every other token. Noise is made for
 * groups of 64 tokens. One random word gives the smallest noise of the group and the member that holds this minimum.
 * The noise of every other member is this minimum plus the member's own exponential noise. If a group's best logit
 * cannot win even with the minimum, the group is never opened.
 */
#ifndef LZS_NOISE_H
#define LZS_NOISE_H

#include "arithmetic.h"

/* The last word of a Philox counter says what the random words are used for. */
enum lzs_noise_domain {
    LZS_DOMAIN_TOKEN = 0,
    LZS_DOMAIN_GROUP = 1,
    LZS_DOMAIN_ACCEPTANCE = 2, /* whether a drafted token is accepted, in modified rejection sampling */
    LZS_DOMAIN_RESIDUAL = 3,   /* the token that replaces a rejected token */
    LZS_DOMAIN_SEQUENCE = 4
};

typedef struct lzs_noise_key {
    uint32_t seed[2];
    uint32_t position[2];
} lzs_noise_key;

LZS_DEVICE static inline lzs_noise_key lzs_noise_key_of(uint64_t seed, uint64_t position) {
    lzs_noise_key key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}, {(uint32_t)position, (uint32_t)(position >> 32)}};
    return key;
}

/* The tokens of a group: group g has the ids 64 * g to 64 * g + 63, whatever the size of the vocabulary is. */
#define LZS_GROUP 64

LZS_DEVICE static inline uint32_t lzs_group_of(int32_t id) {
    return (uint32_t)id / LZS_GROUP;
}

LZS_DEVICE static inline uint32_t lzs_member_of(int32_t id) {
    return (uint32_t)id % LZS_GROUP;
}

LZS_DEVICE static inline void lzs_noise_words(lzs_noise_key key, uint32_t counter, uint32_t domain, uint32_t words[4]) {
    uint32_t c[4] = {counter, key.position[0], key.position[1], domain};
    lzs_philox(c, key.seed, words);
}

/* words[i & 3], by selection, because a GPU cannot index registers. */
LZS_DEVICE static inline uint32_t lzs_word_at(const uint32_t words[4], uint32_t i) {
    const uint32_t low = i & 1 ? words[1] : words[0], high = i & 1 ? words[3] : words[2];
    return i & 2 ? high : low;
}

LZS_DEVICE static inline uint32_t lzs_group_word(lzs_noise_key key, uint32_t group) {
    uint32_t words[4];
    lzs_noise_words(key, group >> 2, LZS_DOMAIN_GROUP, words);
    return lzs_word_at(words, group);
}

LZS_DEVICE static inline uint32_t lzs_token_word(lzs_noise_key key, int32_t id) {
    uint32_t words[4];
    lzs_noise_words(key, (uint32_t)id >> 2, LZS_DOMAIN_TOKEN, words);
    return lzs_word_at(words, (uint32_t)id);
}

/* -log2(1 - v) for v in (0, 1 - 2^-24]. The result is precise for small v, too, because small v decide the race. */
LZS_DEVICE static inline float lzs_exponential(float v) {
    if (v > 1.0f - 0x1p-24f) v = 1.0f - 0x1p-24f; /* v may be rounded to 1, which would give infinite noise */
    return -(v < 0x1.555554p-2f ? lzs_log2_1p(-v) : lzs_log2(1.0f - v));
}

/* The smallest noise of a group, from the upper bits of the group's word. The lowest six bits of the word say which
 * member holds this noise. */
LZS_DEVICE static inline float lzs_group_minimum(uint32_t word) {
    return lzs_exponential(((float)(int32_t)(word >> 6) + 0.5f) * 0x1p-26f) * 0x1p-6f;
}

LZS_DEVICE static inline uint32_t lzs_group_holder(uint32_t word) {
    return word & 63;
}

/* The noise of a group member that does not hold the minimum, from the member's own word. */
LZS_DEVICE static inline float lzs_member_noise(float minimum, uint32_t word) {
    return minimum + lzs_exponential(((float)(int32_t)(word >> 1) + 0.5f) * 0x1p-31f);
}

/* The noise of one token; `group_word` is the word of the token's group. */
LZS_DEVICE static inline float lzs_token_noise_in(uint32_t group_word, lzs_noise_key key, int32_t id) {
    float minimum = lzs_group_minimum(group_word);
    if (lzs_member_of(id) == lzs_group_holder(group_word)) return minimum;
    return lzs_member_noise(minimum, lzs_token_word(key, id));
}

/* The noise of one token. */
LZS_DEVICE static inline float lzs_token_noise(lzs_noise_key key, int32_t id) {
    return lzs_token_noise_in(lzs_group_word(key, lzs_group_of(id)), key, id);
}

/* The uniform number in [0, 1), of 53 bits, of a position. The domain must use one number for each position. */
LZS_DEVICE static inline double lzs_uniform(lzs_noise_key key, uint32_t domain) {
    uint32_t words[4];
    lzs_noise_words(key, 0, domain, words);
    return (double)(((uint64_t)words[1] << 32 | words[0]) >> 11) * 0x1p-53;
}

/* The seed of one of several sequences that share a user's seed. */
LZS_DEVICE static inline uint64_t lzs_derived_seed(uint64_t seed, uint64_t sequence) {
    uint32_t c[4] = {(uint32_t)sequence, (uint32_t)(sequence >> 32), 0, LZS_DOMAIN_SEQUENCE}, words[4];
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    lzs_philox(c, key, words);
    return (uint64_t)words[1] << 32 | words[0];
}

#endif
