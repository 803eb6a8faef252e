/* race.c - the draw: an exponential race (Gumbel-max) among the tokens that stay.
 *
 * score(t) = y(t) + log2 E(t). The token with the smallest score wins. So token t wins with probability proportional to
 * 2^-y(t). A token runs when its score is computed and compared with the smallest score so far. The noise E is made for
 * groups of tokens (noise.h). The tokens of a group are scored (the group is opened) only if the group's best logit
 * could win with the group's smallest noise. So for a vocabulary of V tokens a draw needs V / 64 random words for the
 * groups. It needs one more word for each of the few tokens that could win with their group's smallest noise. These
 * tokens wait until there are many, because a vector operation scores many tokens in little more time than one token.
 * Tokens more than 37.1 bits below the best token never win, since random words have finitely many bits
 * (docs/determinism.md states the error for other tokens).
 */
#include "backend.h"

enum {
    FEW = 256,   /* scoring up to this many tokens one by one is faster than opening groups */
    CHUNK = 256, /* number of groups that are compared with the same score */
    ROUNDS = 3,
};

/* Adds a token to the waiting tokens. If LZS_WAITING tokens then wait, runs these tokens. */
static void add(const lzs_backend *b, lzs_race *race, lzs_runners *waiting, float x, int32_t id) {
    waiting->ids[waiting->n] = id;
    waiting->x[waiting->n++] = x;
    if (waiting->n == LZS_WAITING) b->kernels->run(race, waiting);
}

/* Opens the groups whose bounds are above `above` and at most `score`. */
static void open_groups(lzs_backend *b, const lzs_candidates *c, float above, float score, lzs_race *race,
                        lzs_runners *waiting) {
    int32_t n = lzs_stretches(c->row.n) * LZS_STRETCH_GROUPS, groups[CHUNK + 16];
    for (int32_t from = 0; from < n; from += CHUNK) {
        int32_t size = n - from < CHUNK ? n - from : CHUNK, found = 0;
        if (c->scale.max < INFINITY) {
            float most = race->score < score ? race->score : score;
            found = b->kernels->contenders(b->maxima + from, size, above, most, groups);
        } else { /* the maximum is infinite, so gaps are 0 or infinite and bounds are meaningless */
            for (int32_t g = 0; g < size; g++) groups[found++] = g;
        }
        for (int32_t i = 0; i < found; i++) {
            int32_t group = from + groups[i];
            if (b->maxima[group] > race->score) continue; /* tokens that ran meanwhile may have lowered the score */
            b->kernels->open(&c->row, group, b->scratch.words[group], c->cut, race, waiting);
            if (waiting->n >= LZS_WAITING) b->kernels->run(race, waiting);
        }
    }
    b->kernels->run(race, waiting);
}

/* Runs the unedited tokens, group by group. Groups with the lowest bounds come first, because after an early low score
 * most other groups need not be opened. */
static void run_groups(lzs_backend *b, const lzs_candidates *c, lzs_race *race, lzs_runners *waiting) {
    int32_t n = lzs_stretches(c->row.n) * LZS_STRETCH_GROUPS;
    float low = lzs_key_float(c->cut.key);
    float least = b->kernels->bounds(race->key, n, c->scale, low, b->scratch.words, b->maxima), above = -INFINITY;
    const float rounds[ROUNDS] = {least + 4.0f, least + 6.0f, INFINITY}; /* the highest bound that each round opens */
    add(b, race, waiting, c->top.max, c->top.argmax);
    b->kernels->run(race, waiting);
    for (int i = 0; i < ROUNDS && above < race->score; above = rounds[i++]) {
        open_groups(b, c, above, rounds[i], race, waiting);
    }
}

int32_t lzs_race_pick(lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan) {
    lzs_race race = {lzs_noise_key_of(plan->seed, plan->position), c->scale, INFINITY, -1};
    lzs_runners waiting;
    waiting.words = NULL;
    waiting.n = 0;
    if (c->listed && b->list.n <= FEW) {
        for (int32_t i = 0; i < b->list.n; i++) {
            uint64_t packed = b->list.packed[i];
            add(b, &race, &waiting, lzs_packed_x(packed), lzs_packed_id(packed));
        }
    } else {
        waiting.words = b->scratch.words;
        run_groups(b, c, &race, &waiting);
        for (int32_t i = 0; i < c->n_edits; i++) {
            int32_t id = c->edits[i].token;
            if (!lzs_inside(c->cut, lzs_key(c->values[i]), id)) continue;
            if (lzs_group_bound(c->scale, c->values[i], b->scratch.words[lzs_group_of(id)]) > race.score) continue;
            add(b, &race, &waiting, c->values[i], id);
        }
    }
    b->kernels->run(&race, &waiting);
    return race.token;
}
