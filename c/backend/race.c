/* race.c - the draw: an exponential race (Gumbel-max) among the tokens that stay.
 *
 * score(t) = y(t) + log2 E(t), and the smallest wins, which it does with probability proportional to 2^-y(t). The noise E
 * is made by groups of tokens (noise.h): a group whose best logit cannot win even with the group's smallest noise is
 * never opened, so a draw needs one word for each of V / 64 groups, and the words of a few groups more. Tokens more
 * than 37.1 bits below the best never win, since random words are finite (docs/determinism.md has the error before that).
 */
#include "backend.h"

enum {
    FEW = 48,    /* tokens that are cheaper to run one by one */
    CHUNK = 128, /* groups that are judged by the same score */
    ROUNDS = 4,
};

static const float STEP = 3.0f; /* bits of a round */

/* Runs one token, given the word of its group. */
static void run_token(lzs_race *race, float x, int32_t id, uint32_t word) {
    float noise = lzs_group_minimum(word);
    if (lzs_member_of(id) != lzs_group_holder(word)) {
        /* The group's minimum is a bound that often spares the token's own word. The polynomial of log2 may fall by its
         * last bits where its argument grows, so the bound has to give way a little. */
        if (lzs_gap_bits(race->scale, x) + (lzs_log2(noise) - 0.01f) > race->score) return;
        noise = lzs_member_noise(noise, lzs_token_word(race->key, id));
    }
    lzs_run(race, x, id, noise);
}

/* Opens the groups whose bounds are above `above` and at most `score`. */
static void open_groups(lzs_backend *b, const lzs_candidates *c, float above, float score, lzs_race *race) {
    int32_t n = lzs_stretches(c->row.n) * LZS_STRETCH_GROUPS, groups[CHUNK];
    const uint32_t *words = b->scratch.words;
    float low = lzs_key_float(c->cut.key);
    for (int32_t from = 0; from < n; from += CHUNK) {
        int32_t size = n - from < CHUNK ? n - from : CHUNK, found = 0;
        if (c->scale.max < INFINITY) {
            float most = race->score < score ? race->score : score;
            found = b->kernels->contenders(b->maxima + from, words + from, size, c->scale, low, above, most, groups);
        } else { /* gaps are 0 or infinite: bounds tell nothing */
            for (int32_t g = 0; g < size; g++) groups[found++] = g;
        }
        for (int32_t i = 0; i < found; i++) {
            int32_t group = from + groups[i];
            b->kernels->open(&c->row, group, words[group], c->cut, race);
        }
    }
}

/* Runs the unedited tokens, group by group, in a few rounds from the lowest bounds up: an early good score spares most groups
 * being opened. */
static void run_groups(lzs_backend *b, const lzs_candidates *c, lzs_race *race) {
    int32_t n = lzs_stretches(c->row.n) * LZS_STRETCH_GROUPS;
    b->kernels->group_words(race->key, n, b->scratch.words);
    if (!(c->scale.max < INFINITY)) {
        open_groups(b, c, -INFINITY, INFINITY, race);
        return;
    }
    int32_t favourite = b->kernels->favourite(b->maxima, b->scratch.words, n, c->scale);
    float above = -INFINITY, upto = lzs_group_bound(c->scale, b->maxima[favourite], b->scratch.words[favourite]) + STEP;
    for (int round = 1; above < race->score; round++, above = upto, upto += STEP) {
        if (round == ROUNDS || !(upto < INFINITY)) upto = INFINITY;
        open_groups(b, c, above, upto, race);
        if (upto == INFINITY) return;
    }
}

int32_t lzs_race_pick(lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan) {
    lzs_race race = {lzs_noise_key_of(plan->seed, plan->position), c->scale, INFINITY, -1};
    if (c->listed && b->list.n <= FEW) {
        for (int32_t i = 0; i < b->list.n; i++) {
            int32_t id = lzs_packed_id(b->list.packed[i]);
            run_token(&race, lzs_packed_x(b->list.packed[i]), id, lzs_group_word(race.key, lzs_group_of(id)));
        }
        return race.token;
    }
    run_groups(b, c, &race);
    for (int32_t i = 0; i < c->n_edits; i++) {
        int32_t id = c->edits[i].token;
        uint32_t word = b->scratch.words[lzs_group_of(id)];
        if (!lzs_inside(c->cut, lzs_key(c->values[i]), id)) continue;
        if (lzs_group_bound(c->scale, c->values[i], word) > race.score) continue; /* false where the maximum is infinite */
        run_token(&race, c->values[i], id, word);
    }
    return race.token;
}
