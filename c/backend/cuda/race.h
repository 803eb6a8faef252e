/* race.h - the draw: an exponential race among the tokens inside the cut, with the same result as race.c.
 *
 * Each block races the tokens of its share, and the blocks' winners meet in the row's state. A token runs only if it
 * could win with the smallest noise of its group. Tokens with bounds near the least bound run first, because with
 * their scores most others need not run. Each thread keeps the best token that it has run. In the end the smallest
 * score wins, and the lowest id among equal scores, so the order of the threads does not matter.
 */
#ifndef LZS_CUDA_RACE_H
#define LZS_CUDA_RACE_H

#include "cut.h"

#undef LZS_FILE
#define LZS_FILE 2

typedef struct lzs_runner {
    uint32_t score; /* the score's key */
    int32_t id;
} lzs_runner;

/* Runs those of one thread's tokens whose bounds are above `above` and at most `limit`. */
LZS_BODY void lzs_run_tokens(const lzs_pick_shared *s, const lzs_pick_row *row, lzs_share own, const lzs_search *f,
                             lzs_noise_key noise, bool first, float above, float limit, lzs_runner *best, uint32_t tid) {
    const lzs_pick_settings *p = row->settings;
    const lzs_softmax_scale scale = {f->max, p->scale}, cut_scale = {f->max, p->cut_scale};
    for (int32_t i = (int32_t)tid; i < lzs_n_fours(f, own); i += (int32_t)LZS_THREADS) {
        const int32_t q = lzs_four_at(s, f, i);
        const lzs_four four = s->fours[q];
        const float most = lzs_most_of(four);
        if (most < lzs_key_float(f->cut.key)) continue;
        const float floor = s->floors[q / LZS_QUADS];
        const int32_t first_id = own.first + 4 * q;
        uint32_t runs = 0, words[4];
        if (lzs_gap_bits(scale, most) + floor > limit) continue;
        LZS_UNROLL for (int j = 0; j < 4; j++) {
            if (!lzs_in_cut(f->cut, four.x[j], first_id + j)) continue;
            const float bound = lzs_gap_bits(scale, four.x[j]) + floor;
            if ((!first && bound <= above) || bound > limit) continue;
            if (lzs_gap_bits(cut_scale, four.x[j]) <= p->min_p_limit) runs |= 1u << j;
        }
        if (!runs) continue;
        const uint32_t word = s->words[q / LZS_QUADS];
        const float minimum = lzs_group_minimum(word);
        lzs_noise_words(noise, (uint32_t)first_id >> 2, LZS_DOMAIN_TOKEN, words);
        LZS_UNROLL for (int j = 0; j < 4; j++) {
            const int32_t id = first_id + j;
            if (!(runs >> j & 1)) continue;
            const float e = lzs_member_of(id) == lzs_group_holder(word) ? minimum : lzs_member_noise(minimum, words[j]);
            const uint32_t score = p->greedy ? 0 : lzs_key(lzs_gap_bits(scale, four.x[j]) + lzs_log2(e));
            if (score < best->score || (score == best->score && id < best->id)) *best = (lzs_runner){score, id};
        }
    }
}

/* The key of about the least bound of one thread's tokens. */
LZS_BODY uint32_t lzs_least_bound(const lzs_pick_shared *s, const lzs_pick_row *row, lzs_share own, const lzs_search *f,
                                  uint32_t tid) {
    const lzs_pick_settings *p = row->settings;
    const lzs_softmax_scale scale = {f->max, p->scale}, cut_scale = {f->max, p->cut_scale};
    const float limit = p->min_p_limit;
    float least = INFINITY;
    for (int32_t i = (int32_t)tid; i < lzs_n_fours(f, own); i += (int32_t)LZS_THREADS) {
        const int32_t q = lzs_four_at(s, f, i);
        const float most = lzs_most_of(s->fours[q]), bound = lzs_gap_bits(scale, most) + s->floors[q / LZS_QUADS];
        if (most < lzs_key_float(f->cut.key) || bound >= least) continue;
        if (lzs_gap_bits(cut_scale, most) <= limit) least = bound;
    }
    return lzs_key(least);
}

/* Races the share's tokens inside the cut, and adds their winner to the state. */
LZS_BODY void lzs_race_share(lzs_pick_shared *s, const lzs_pick_row *row, lzs_share own, const lzs_search *f) {
    const lzs_noise_key noise = lzs_noise_key_of(row->settings->seed, row->position);
    LZS_PRIVATE(lzs_runner, best);
    LZS_BEGIN(60) {
        LZS_OWN(best) = (lzs_runner){0xffffffffu, INT32_MAX};
        if (tid == 0) {
            s->least = s->score = LZS_KEY_MOST;
            s->winner = 0xffffffffu;
        }
        for (int32_t g = 4 * (int32_t)tid; g < own.n_fours / LZS_QUADS; g += 4 * (int32_t)LZS_THREADS) {
            uint32_t words[4];
            lzs_noise_words(noise, (lzs_group_of(own.first) + (uint32_t)g) >> 2, LZS_DOMAIN_GROUP, words);
            LZS_UNROLL for (int j = 0; j < 4; j++) {
                const float least = lzs_log2_below(words[j] >> 6, LZS_BELOW_LOG2(LZS_GROUP_BITS));
                s->words[g + j] = words[j];
                s->floors[g + j] = row->settings->greedy ? 0.0f : least;
            }
        }
    }
    LZS_NEXT(61) {
        /* Only a hint: it says which run first. */
        if (!row->settings->greedy) lzs_warp_hint_min(&s->least, lzs_least_bound(s, row, own, f, tid));
    }
    LZS_END
    LZS_READ(5, uint32_t, least, least);
    const float near = lzs_key_float(least) + 4.0f;
    for (int round = 0; round < (row->settings->greedy ? 1 : 2); round++) {
        LZS_READ(6, uint32_t, score, score);
        const float limit = round == 0 ? near : lzs_key_float(score);
        LZS_BEGIN(70) {
            lzs_run_tokens(s, row, own, f, noise, round == 0, near, limit, &LZS_OWN(best), tid);
            lzs_warp_min(&s->score, LZS_OWN(best).score);
        }
        LZS_END
    }
    LZS_BEGIN(80) {
        if (LZS_OWN(best).score == s->score) lzs_atomic_min(&s->winner, (uint32_t)LZS_OWN(best).id);
    }
    LZS_NEXT(81) {
        if (tid == 0 && s->winner != 0xffffffffu) {
            lzs_atomic_min_64(&row->state->winner, (uint64_t)s->score << 32 | s->winner);
        }
    }
    LZS_END
}

#endif
