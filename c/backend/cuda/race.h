/* race.h - the draw: an exponential race among the tokens inside a cut, with the same result as race.c.
 *
 * If there is a list, all its tokens run. Else a group of 64 tokens is opened if its best logit could win with the
 * group's smallest noise. Groups with bounds near the least bound are opened first, because with their scores most
 * other groups need not be opened. Each thread keeps the best token that it has run. In the end the smallest score
 * wins, and the lowest id among equal scores, so the order of the threads does not matter.
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

typedef struct lzs_track {
    lzs_noise_key key;
    lzs_softmax_scale scale;
    lzs_cut cut;
} lzs_track;

LZS_DEVICE static inline void lzs_run_token(lzs_runner *best, const lzs_track *t, float x, int32_t id, float noise) {
    const uint32_t score = lzs_key(lzs_gap_bits(t->scale, x) + lzs_log2(noise));
    if (score < best->score || (score == best->score && id < best->id)) {
        best->score = score;
        best->id = id;
    }
}

/* Runs four tokens of a group. One call of Philox makes their four words. */
LZS_DEVICE static inline void lzs_run_quad(lzs_runner *best, const lzs_track *t, const lzs_pick_row *row, int32_t id,
                                           uint32_t group_word, float score) {
    float x[4];
    uint32_t words[4], bits = id < row->n ? lzs_quad(row, id, x) : 0;
    for (int j = 0; j < 4; j++) {
        if (!(bits >> j & 1)) continue;
        if (!lzs_inside(t->cut, lzs_key(x[j]), id + j) || lzs_group_bound(t->scale, x[j], group_word) > score) {
            bits &= ~(1u << j);
        }
    }
    if (!bits) return;
    const float minimum = lzs_group_minimum(group_word);
    lzs_noise_words(t->key, (uint32_t)id >> 2, LZS_DOMAIN_TOKEN, words);
    for (int j = 0; j < 4; j++) {
        if (!(bits >> j & 1)) continue;
        const bool holds = lzs_member_of(id + j) == lzs_group_holder(group_word);
        lzs_run_token(best, t, x[j], id + j, holds ? minimum : lzs_member_noise(minimum, words[j]));
    }
}

/* Runs the tokens of the groups whose bounds are above `above` and up to `limit`. */
LZS_BODY void lzs_open_groups(lzs_pick_shared *s, const lzs_pick_row *row, const lzs_track *t, bool first, uint32_t above,
                              uint32_t limit, lzs_runner *bests) {
    const int32_t n_groups = lzs_groups_of(row->n);
    for (int32_t from = 0; from < n_groups; from += (int32_t)LZS_THREADS) {
        LZS_READ(10, uint32_t, score, score);
        const uint32_t most = score < limit ? score : limit;
        LZS_BEGIN(70) {
            if (tid == 0) s->n_groups = 0;
        }
        LZS_NEXT(71) {
            const int32_t g = from + (int32_t)tid;
            if (g < n_groups) {
                const uint32_t bound = row->maxima[g];
                if ((first || bound > above) && bound <= most) s->groups[lzs_atomic_add(&s->n_groups, 1u)] = (uint32_t)g;
            }
        }
        LZS_END
        LZS_READ(11, uint32_t, n_opened, n_groups);
        if (!n_opened) continue;
        LZS_BEGIN(80) {
            lzs_runner *best = &bests[LZS_INDEX];
            for (uint32_t i = tid; i < n_opened * LZS_QUADS; i += LZS_THREADS) {
                const uint32_t group = s->groups[i / LZS_QUADS];
                const int32_t id = (int32_t)(group * LZS_GROUP + 4 * (i % LZS_QUADS));
                lzs_run_quad(best, t, row, id, row->words[group], lzs_key_float(score));
            }
            lzs_warp_hint_min(&s->score, best->score); /* only a hint: the last phase computes the minimum again */
        }
        LZS_END
    }
}

/* Replaces the maxima of the groups by bounds, and stores the groups' random words. Returns the key of the least
 * bound. */
LZS_BODY uint32_t lzs_bound_groups(lzs_pick_shared *s, const lzs_pick_row *row, const lzs_track *t) {
    const int32_t n_groups = lzs_groups_of(row->n);
    LZS_BEGIN(60) {
        if (tid == 0) s->least = 0xffffffffu;
    }
    LZS_NEXT(61) {
        uint32_t least = 0xffffffffu;
        for (int32_t g = 4 * (int32_t)tid; g < n_groups; g += 4 * (int32_t)LZS_THREADS) {
            uint32_t words[4];
            lzs_noise_words(t->key, (uint32_t)g >> 2, LZS_DOMAIN_GROUP, words);
            for (int32_t j = 0; j < 4 && g + j < n_groups; j++) {
                const uint32_t most = row->maxima[g + j];
                uint32_t bound = 0xffffffffu; /* the group has no token inside the cut */
                if (most >= t->cut.key) {
                    const float b = lzs_group_bound(t->scale, lzs_key_float(most), words[j]);
                    bound = b == b ? lzs_key(b) : 0; /* NaN if the row's maximum is infinite: open the group */
                }
                row->words[g + j] = words[j];
                row->maxima[g + j] = bound;
                if (bound < least) least = bound;
            }
        }
        lzs_warp_hint_min(&s->least, least); /* only a hint: it decides which groups are opened first */
    }
    LZS_END
    LZS_READ(9, uint32_t, least, least);
    return least;
}

/* Returns the winner among the tokens inside the cut. `top` is the row's best token, with the logit `max`. */
LZS_BODY int32_t lzs_race_row(lzs_pick_shared *s, const lzs_pick_row *row, lzs_truncation cut, float max, int32_t top) {
    const lzs_track track = {lzs_noise_key_of(row->settings.seed, row->position), {max, row->settings.scale}, cut.cut};
    const lzs_track *t = &track;
    LZS_PRIVATE(lzs_runner, best);
    LZS_BEGIN(90) {
        LZS_OWN(best).score = 0xffffffffu;
        LZS_OWN(best).id = INT32_MAX;
        if (tid == 0) {
            lzs_run_token(&LZS_OWN(best), t, max, top, lzs_token_noise(t->key, top));
            s->score = LZS_OWN(best).score;
            s->winner = 0xffffffffu;
        }
    }
    LZS_END
    if (cut.n_listed) {
        LZS_BEGIN(100) {
            for (uint32_t i = tid; i < (uint32_t)cut.n_listed; i += LZS_THREADS) {
                const int32_t id = lzs_packed_id(s->list[i]);
                if (!lzs_inside(t->cut, lzs_packed_key(s->list[i]), id)) continue;
                lzs_run_token(&LZS_OWN(best), t, lzs_packed_x(s->list[i]), id, lzs_token_noise(t->key, id));
            }
        }
        LZS_END
    } else {
        const uint32_t least = lzs_bound_groups(s, row, t);
        const uint32_t near = least == 0xffffffffu ? least : lzs_key(lzs_key_float(least) + 4.0f);
        lzs_open_groups(s, row, t, true, 0, near, LZS_ALL(best));
        lzs_open_groups(s, row, t, false, near, 0xfffffffeu, LZS_ALL(best));
        LZS_READ(12, uint32_t, score, score);
        LZS_BEGIN(110) {
            for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
                const float x = row->values[i];
                const int32_t id = row->edits[i].token;
                if (!lzs_inside(t->cut, lzs_key(x), id)) continue;
                const uint32_t word = row->words[lzs_group_of(id)];
                if (lzs_group_bound(t->scale, x, word) > lzs_key_float(score)) continue;
                lzs_run_token(&LZS_OWN(best), t, x, id, lzs_token_noise_in(word, t->key, id));
            }
        }
        LZS_END
    }
    LZS_BEGIN(120) {
        lzs_warp_min(&s->score, LZS_OWN(best).score);
    }
    LZS_NEXT(121) {
        if (LZS_OWN(best).score == s->score) lzs_atomic_min(&s->winner, (uint32_t)LZS_OWN(best).id);
    }
    LZS_END
    LZS_READ(13, uint32_t, winner, winner);
    return (int32_t)winner;
}

#endif
