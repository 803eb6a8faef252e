/* test_masks.c - masks of the user and of a grammar: both apply, they are copied or borrowed, they rewind with the text, and
 * a mask that is no longer known allows nothing. */
#include <string.h>

#include "check.h"
#include "lzsampler_plan.h"
#include "state/mask.h"

enum { N_VOCAB = 70, N_WORDS = (N_VOCAB + 31) / 32, MAX_TOKENS = 400 };

typedef struct words {
    uint32_t w[N_WORDS];
} words;

static lzs_sampler *new_sampler(void) {
    lzs_params p;
    lzs_sampler *s;
    lzs_params_init(&p);
    CHECK(lzs_sampler_new(N_VOCAB, &p, &s) == LZS_OK);
    return s;
}

static words only(int32_t token) {
    words m = {{0}};
    m.w[token / 32] = 1u << (token % 32);
    return m;
}

/* What the plan allows. */
static words allowed_by(lzs_sampler *s) {
    lzs_plan plan;
    words m;
    CHECK(lzs_sampler_plan(s, &plan) == LZS_OK);
    memset(&m, 0xff, sizeof m);
    if (plan.mask) memcpy(&m, plan.mask, sizeof m);
    return m;
}

static lzs_status try_sample(lzs_sampler *s) {
    static const float row[N_VOCAB];
    float out[N_VOCAB], probabilities[N_VOCAB];
    int32_t token, ids[N_VOCAB];
    size_t n;
    lzs_status status = lzs_sample(s, row, &token);
    CHECK((status == LZS_OK) == (token >= 0));
    CHECK(lzs_process(s, row, out) == status && lzs_distribution(s, row, ids, probabilities, N_VOCAB, &n) == status);
    return status;
}

/* The model: what each owner set after each number of accepted tokens, and for how long that is remembered. */
typedef struct model {
    struct {
        words words;
        bool is_set, removed; /* a change was made here; it removed the mask */
    } changes[LZS_MASK_OWNERS][MAX_TOKENS + 1];
    int32_t n;
} model;

/* The change in force: its position, -1 for none, or -2 when changes were forgotten and it might be one of them. */
static int32_t in_force(const model *m, int owner, int32_t oldest) {
    int32_t at = m->n;
    while (at >= 0 && !m->changes[owner][at].is_set) at--;
    return at < oldest && oldest > 0 ? -2 : at;
}

/* Returns how often a mask in force was not known. */
static int test_random(uint64_t seed) {
    static model m;
    static words pool[50];
    uint64_t state = seed;
    lzs_sampler *s = new_sampler();
    int32_t oldest[LZS_MASK_OWNERS] = {0, 0}; /* changes before this position are forgotten */
    int n_unknown = 0;
    memset(&m, 0, sizeof m);
    for (int i = 0; i < 50; i++) {
        for (int w = 0; w < N_WORDS; w++) pool[i].w[w] = (uint32_t)(random_bits(&state) | random_bits(&state));
    }
    for (int step = 0; step < 1500; step++) {
        int action = random_below(&state, 100), owner = random_below(&state, 4) == 0;
        if (action < 45 && m.n < MAX_TOKENS) {
            CHECK(lzs_accept(s, random_below(&state, N_VOCAB)) == LZS_OK);
            m.n++;
            for (int o = 0; o < LZS_MASK_OWNERS; o++) m.changes[o][m.n].is_set = false;
        } else if (action < 90) {
            words given = pool[random_below(&state, 50)];
            const words *lasting = &pool[random_below(&state, 50)];
            bool remove = action < 48, borrow = action % 2, known = oldest[owner] > 0;
            for (int32_t i = 0; i <= m.n; i++) known |= m.changes[owner][i].is_set;
            if (remove) {
                CHECK(lzs_set_mask(s, owner, NULL, 0) == LZS_OK);
            } else if (borrow) {
                given = *lasting;
                CHECK(lzs_borrow_mask(s, owner, lasting->w, N_WORDS) == LZS_OK);
            } else {
                CHECK(lzs_set_mask(s, owner, given.w, N_WORDS) == LZS_OK);
                memset(&given, 0x5a, sizeof given); /* a mask that was set is the sampler's own */
                given = *lasting;
                CHECK(lzs_set_mask(s, owner, given.w, N_WORDS) == LZS_OK); /* a second one at a position replaces it */
            }
            if (!remove || known) {
                m.changes[owner][m.n].is_set = true;
                m.changes[owner][m.n].removed = remove;
                m.changes[owner][m.n].words = given;
                int kept = 0;
                int32_t last_kept = 0; /* the last LZS_MASK_CHANGES + 1 changes are remembered */
                for (int32_t at = m.n; at >= 0 && at >= oldest[owner]; at--) {
                    if (!m.changes[owner][at].is_set) continue;
                    if (++kept == LZS_MASK_CHANGES + 1) last_kept = at;
                    if (kept > LZS_MASK_CHANGES + 1) oldest[owner] = last_kept;
                }
                if (m.n < oldest[owner]) oldest[owner] = m.n; /* after a rewind behind all that is remembered */
            }
        } else if (action < 95) {
            int32_t n = random_below(&state, action < 94 ? 3 : 90);
            if (n > m.n) n = m.n;
            CHECK(lzs_rewind(s, (size_t)n) == LZS_OK);
            m.n -= n;
        } else if (action < 98) {
            lzs_sampler *other;
            if (action == 95) {
                CHECK(lzs_sampler_clone(s, &other) == LZS_OK);
            } else {
                other = new_sampler();
                CHECK(lzs_set_mask(other, owner, pool[0].w, N_WORDS) == LZS_OK);
                CHECK(lzs_sampler_copy(other, s) == LZS_OK);
            }
            words nothing = {{0}}; /* which the other must not see */
            CHECK(lzs_set_mask(s, owner, nothing.w, N_WORDS) == LZS_OK);
            lzs_sampler_free(s);
            s = other;
        } else if (random_below(&state, 10) == 0) {
            lzs_sampler_reset(s);
            memset(&m, 0, sizeof m);
            oldest[0] = oldest[1] = 0;
        }
        words expected;
        bool unknown = false;
        memset(&expected, 0xff, sizeof expected);
        for (int o = 0; o < LZS_MASK_OWNERS; o++) {
            int32_t at = in_force(&m, o, oldest[o]);
            unknown |= at == -2;
            for (int w = 0; at >= 0 && !m.changes[o][at].removed && w < N_WORDS; w++) {
                expected.w[w] &= m.changes[o][at].words.w[w];
            }
        }
        if (unknown) {
            CHECK(try_sample(s) == LZS_EMASKED);
            n_unknown++;
        } else {
            words allowed = allowed_by(s);
            CHECK(memcmp(&allowed, &expected, sizeof allowed) == 0);
        }
    }
    lzs_sampler_free(s);
    return n_unknown;
}

/* A rewind behind what is remembered allows nothing until each owner who changed its mask that often sets it again. */
static void test_forgotten(void) {
    for (int then = 0; then < 3; then++) {
        lzs_sampler *s = new_sampler();
        for (int32_t i = 0; i < LZS_MASK_CHANGES + 10; i++) {
            words m = only(i);
            CHECK(lzs_set_mask(s, LZS_MASK_GRAMMAR, m.w, N_WORDS) == LZS_OK && lzs_accept(s, i) == LZS_OK);
        }
        words m = only(LZS_MASK_CHANGES + 10);
        CHECK(lzs_set_mask(s, LZS_MASK_GRAMMAR, m.w, N_WORDS) == LZS_OK);
        CHECK(lzs_rewind(s, LZS_MASK_CHANGES) == LZS_OK); /* as many changes as are promised */
        words allowed = allowed_by(s), expected = only(10);
        CHECK(memcmp(&allowed, &expected, sizeof allowed) == 0);
        CHECK(lzs_rewind(s, 1) == LZS_OK && try_sample(s) == LZS_EMASKED);
        if (then == 0) { /* another owner's mask does not help, its own does */
            CHECK(lzs_set_mask(s, LZS_MASK_USER, m.w, N_WORDS) == LZS_OK && try_sample(s) == LZS_EMASKED);
            CHECK(lzs_set_mask(s, LZS_MASK_GRAMMAR, m.w, N_WORDS) == LZS_OK && try_sample(s) == LZS_OK);
        } else if (then == 1) { /* removing it does, too */
            CHECK(lzs_set_mask(s, LZS_MASK_GRAMMAR, NULL, 0) == LZS_OK && try_sample(s) == LZS_OK);
        } else { /* a clone and a copy do not know more than their origin; after a reset there are no masks */
            lzs_sampler *clone;
            CHECK(lzs_sampler_clone(s, &clone) == LZS_OK && try_sample(clone) == LZS_EMASKED);
            lzs_sampler_reset(s);
            CHECK(try_sample(s) == LZS_OK && lzs_sampler_copy(s, clone) == LZS_OK && try_sample(s) == LZS_EMASKED);
            lzs_sampler_free(clone);
        }
        lzs_sampler_free(s);
    }
}

static void test_arguments(void) {
    lzs_sampler *s = new_sampler();
    words m = only(3);
    size_t before = lzs_memory(s);
    CHECK(lzs_set_mask(s, 2, m.w, N_WORDS) == LZS_EINVAL && lzs_set_mask(s, -1, m.w, N_WORDS) == LZS_EINVAL);
    CHECK(lzs_borrow_mask(s, 2, m.w, N_WORDS) == LZS_EINVAL);
    CHECK(lzs_borrow_mask(s, LZS_MASK_USER, m.w, N_WORDS + 1) == LZS_EINVAL);
    CHECK(lzs_set_mask(s, LZS_MASK_USER, NULL, 0) == LZS_OK); /* nothing to remove */
    CHECK(try_sample(s) == LZS_OK && lzs_memory(s) == before);

    /* A borrowed mask costs the log alone, a copied one its words, and rewinding gives them back. */
    CHECK(lzs_borrow_mask(s, LZS_MASK_USER, m.w, N_WORDS) == LZS_OK);
    size_t with_log = lzs_memory(s);
    CHECK(with_log - before < 2000);
    for (int32_t i = 0; i < 10; i++) {
        CHECK(lzs_accept(s, 1) == LZS_OK && lzs_set_mask(s, LZS_MASK_USER, m.w, N_WORDS) == LZS_OK);
    }
    size_t with_tokens = lzs_memory(s);
    CHECK(lzs_rewind(s, 10) == LZS_OK && with_tokens - lzs_memory(s) == 10 * sizeof m);
    for (int32_t i = 0; i < 1000; i++) { /* and no more than LZS_MASK_CHANGES + 1 are kept */
        CHECK(lzs_accept(s, 1) == LZS_OK && lzs_set_mask(s, LZS_MASK_USER, m.w, N_WORDS) == LZS_OK);
    }
    CHECK(lzs_memory(s) - with_log < 1100 * 2 * sizeof(int32_t) + (LZS_MASK_CHANGES + 1) * sizeof m);
    lzs_sampler_free(s);
}

/* A mask that is wrong about ids past the vocabulary allows none of them. */
static void test_bits_past_the_vocabulary(void) {
    static const float row[N_VOCAB];
    lzs_sampler *s = new_sampler();
    words m = {{0, 0, 0xffffffc0u}}; /* tokens 70 to 95 */
    int32_t token;
    CHECK(lzs_set_mask(s, LZS_MASK_USER, m.w, N_WORDS) == LZS_OK && lzs_sample(s, row, &token) == LZS_EMASKED);
    m.w[2] |= 1;
    CHECK(lzs_set_mask(s, LZS_MASK_USER, m.w, N_WORDS) == LZS_OK && lzs_sample(s, row, &token) == LZS_OK && token == 64);
    lzs_sampler_free(s);
}

int main(void) {
    int n_unknown = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) n_unknown += test_random(seed);
    CHECK(n_unknown > 100);
    test_forgotten();
    test_arguments();
    test_bits_past_the_vocabulary();
    return 0;
}
