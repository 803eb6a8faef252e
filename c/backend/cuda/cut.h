/* cut.h - top-k and top-p as cuts of one order (logit descending, token id ascending), equal to the cuts of truncate.c.
 *
 * One search does both: it finds where the number of tokens, or the sum of their integer weights, reaches a target. The
 * blocks of a row add their tokens to a histogram by gap. The tokens of the bin in which the target is reached go into
 * a list, whose order gives the cut. If they are too many, as in a flat row, the bin is divided into finer bins, which
 * are parts of the order itself. Sums of integers do not depend on the order of addition.
 */
#ifndef LZS_CUDA_CUT_H
#define LZS_CUDA_CUT_H

#include "row.h"

#undef LZS_FILE
#define LZS_FILE 1

#define LZS_TOP_P_OFF ((uint64_t)1 << 32)
#define LZS_LOG2_E 0x1.715476p+0f
#define LZS_WEIGHTLESS 31.0f /* from this gap on, a weight is 0 */
#define LZS_FIRST_BIN 0x4080u /* the upper half of 4.0f: bins are 1/32 bit wide for gaps below 4, 1/16 below 12, 1/8 below 28 */

/* Where a step of a row begins. All blocks of a row take the same steps. */
typedef enum lzs_stage {
    LZS_STAGE_READ, /* read the row */
    LZS_STAGE_EDIT, /* the share is read; no block has to wait for another one */
    LZS_STAGE_TOP,  /* the best logit is known */
    LZS_STAGE_LIST, /* the histogram is complete */
    LZS_STAGE_CUT,  /* the list is complete */
    LZS_STAGE_RACE, /* the race is over */
    LZS_STAGE_DONE
} lzs_stage;

/* A row's search for its cut, the same in all threads, and, except n_kept, in all blocks. */
typedef struct lzs_search {
    lzs_stage stage;
    float max;     /* the best logit */
    lzs_cut cut;   /* found so far */
    bool weigh;    /* top-p: tokens add their weight; else they add 1 */
    int32_t turn;  /* histograms so far, of all cuts: selects one of the row's two */
    int32_t shift; /* -1: bins of gaps; else bin 0 begins at `highest` and has 2^shift packed tokens, as any other bin */
    uint64_t highest;
    uint32_t bin;    /* where the target is reached; LZS_CUDA_BINS: nowhere */
    uint64_t target; /* what the bins from bin 0 on must reach; later, what the bin must supply */
    int32_t n_kept;  /* length of the block's list of fours; -1: it has none, and all fours count */
} lzs_search;

LZS_DEVICE static inline bool lzs_by_k(const lzs_pick_row *row) {
    return row->settings->top_k > 0 && row->settings->top_k < row->n;
}

/* Computes the same as top_p_target of truncate.c. */
LZS_DEVICE static inline uint64_t lzs_target(uint64_t p, uint64_t total) {
    const uint64_t high = total >> 32, low = total & 0xffffffffu;
    const uint64_t target = p * high + ((p * low + 0xffffffffu) >> 32);
    return target ? target : 1;
}

/* As lzs_inside, for a logit that is not NaN. */
LZS_DEVICE static inline bool lzs_in_cut(lzs_cut cut, float x, int32_t id) {
    const float least = lzs_key_float(cut.key);
    return x > least || (x == least && id <= cut.id);
}

/* How many fours a block looks at, and the number of one of them. */
LZS_DEVICE static inline int32_t lzs_n_fours(const lzs_search *f, lzs_share own) {
    return f->n_kept < 0 ? own.n_fours : f->n_kept;
}

LZS_DEVICE static inline int32_t lzs_four_at(const lzs_pick_shared *s, const lzs_search *f, int32_t i) {
    return f->n_kept < 0 ? i : s->kept[i];
}

/* Gaps that choose bins: for top-k they do not depend on the temperature. */
LZS_DEVICE static inline lzs_softmax_scale lzs_scale_of(const lzs_search *f, const lzs_pick_row *row) {
    return (lzs_softmax_scale){f->max, f->weigh ? row->settings->cut_scale : LZS_LOG2_E};
}

/* Where the last bin of gaps begins. Weights beyond it are many and light. */
LZS_DEVICE static inline float lzs_last_gap(bool weigh) {
    return weigh ? 16.0f : 59.75f;
}

LZS_DEVICE static inline uint32_t lzs_bin_of_gap(float y, bool weigh) {
    const float last = lzs_last_gap(weigh);
    return (lzs_float_bits((y < last ? y : last) + 4.0f) >> 16) - LZS_FIRST_BIN;
}

/* LZS_CUDA_BINS or more if the token is in no bin. */
LZS_DEVICE static inline uint64_t lzs_bin_of(const lzs_search *f, lzs_softmax_scale scale, float x, int32_t id) {
    if (f->shift < 0) return lzs_bin_of_gap(lzs_gap_bits(scale, x), f->weigh);
    const uint64_t packed = lzs_pack(x, id);
    return packed > f->highest ? LZS_CUDA_BINS : (f->highest - packed) >> f->shift;
}

LZS_BODY void lzs_add_to_bin(lzs_pick_shared *s, uint32_t bin, uint32_t w, bool weigh) {
    lzs_atomic_add(&s->low[bin], w & 0xffffu); /* two sums do not overflow, and need no carry */
    if (weigh) lzs_atomic_add(&s->high[bin], w >> 16);
}

/* Adds one thread's tokens to the block's bins of gaps, if all tokens are inside the cut. */
LZS_BODY void lzs_add_all(lzs_pick_shared *s, lzs_softmax_scale scale, lzs_share own, uint32_t tid) {
    uint32_t last = 0;
    for (int32_t q = (int32_t)tid; q < own.n_fours; q += (int32_t)LZS_THREADS) {
        const lzs_four four = s->fours[q];
        if (lzs_gap_bits(scale, lzs_most_of(four)) >= LZS_WEIGHTLESS) continue;
        LZS_UNROLL for (int j = 0; j < 4; j++) {
            const float y = lzs_gap_bits(scale, four.x[j]);
            const uint32_t w = lzs_weight_by(s->table, y);
            if (y < lzs_last_gap(true)) {
                lzs_add_to_bin(s, lzs_bin_of_gap(y, true), w, true);
            } else {
                last += w;
            }
        }
    }
    lzs_warp_add(&s->low[lzs_bin_of_gap(INFINITY, true)], last);
}

/* Adds one thread's tokens inside the cut to the block's bins. */
LZS_BODY void lzs_add_inside(lzs_pick_shared *s, lzs_softmax_scale scale, lzs_share own, const lzs_search *f, uint32_t tid) {
    for (int32_t i = (int32_t)tid; i < lzs_n_fours(f, own); i += (int32_t)LZS_THREADS) {
        const int32_t q = lzs_four_at(s, f, i);
        const lzs_four four = s->fours[q];
        if (lzs_most_of(four) < lzs_key_float(f->cut.key)) continue;
        LZS_UNROLL for (int j = 0; j < 4; j++) {
            const int32_t id = own.first + 4 * q + j;
            if (!lzs_in_cut(f->cut, four.x[j], id)) continue;
            const uint64_t bin = lzs_bin_of(f, scale, four.x[j], id);
            if (bin >= LZS_CUDA_BINS) continue;
            lzs_add_to_bin(s, (uint32_t)bin, f->weigh ? lzs_weight_by(s->table, lzs_gap_bits(scale, four.x[j])) : 1, f->weigh);
        }
    }
}

/* Adds the share's tokens inside the cut to the row's histogram. */
LZS_BODY void lzs_add_to_bins(lzs_pick_shared *s, const lzs_pick_row *row, lzs_share own, const lzs_search *f) {
    const lzs_softmax_scale scale = lzs_scale_of(f, row);
    LZS_BEGIN(20) {
        for (uint32_t b = tid; b < LZS_CUDA_BINS; b += LZS_THREADS) s->low[b] = s->high[b] = 0;
        for (uint32_t i = tid; i < 16; i += LZS_THREADS) s->table[i] = lzs_weight_table[i];
    }
    LZS_NEXT(21) {
        if (f->weigh && f->shift < 0 && f->cut.key == LZS_KEY_LEAST) {
            lzs_add_all(s, scale, own, tid);
        } else {
            lzs_add_inside(s, scale, own, f, tid);
        }
    }
    LZS_NEXT(22) {
        for (uint32_t b = tid; b < LZS_CUDA_BINS; b += LZS_THREADS) {
            const uint64_t sum = ((uint64_t)s->high[b] << 16) + s->low[b];
            if (sum) lzs_atomic_add_64(&row->state->histograms[f->turn & 1].bins[b], sum);
        }
    }
    LZS_END
}

/* Finds the bin where the target is reached, and lists the bin's tokens. For top-p, the target begins as a fraction of
 * the sum of all bins. */
LZS_BODY lzs_search lzs_list_bin(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share, lzs_search f) {
    const lzs_share own = lzs_share_of(row, share);
    const lzs_softmax_scale scale = lzs_scale_of(&f, row);
    lzs_histogram_of_row *here = &row->state->histograms[f.turn & 1];
    LZS_BEGIN(30) {
        for (uint32_t b = tid; b < LZS_CUDA_BINS; b += LZS_THREADS) s->bins[b] = here->bins[b];
        if (share == 0) lzs_clear_histogram(&row->state->histograms[(f.turn + 1) & 1], tid);
        if (tid == 0) s->bin = LZS_CUDA_BINS;
        if (tid == 0) s->n_found = s->n_kept = 0;
    }
    LZS_NEXT(31) {
        for (uint32_t g = tid; g < LZS_CUDA_BINS / LZS_CUDA_SEGMENT; g += LZS_THREADS) {
            uint64_t sum = 0;
            LZS_UNROLL_4 for (uint32_t i = 0; i < LZS_CUDA_SEGMENT; i++) { /* each thread starts in a different memory bank */
                sum += s->bins[LZS_CUDA_SEGMENT * g + ((i + g) & (LZS_CUDA_SEGMENT - 1))];
            }
            s->segments[g] = sum;
        }
    }
    LZS_NEXT(32) {
        for (uint32_t g = tid; g < LZS_CUDA_BINS / LZS_CUDA_SEGMENT; g += LZS_THREADS) {
            uint64_t above = 0, total = 0, aim = f.target;
            LZS_UNROLL_4 for (uint32_t i = 0; i < LZS_CUDA_BINS / LZS_CUDA_SEGMENT; i++) {
                total += s->segments[i];
                if (i < g) above += s->segments[i];
            }
            if (f.shift < 0 && f.weigh) aim = lzs_target(f.target, total);
            if (above >= aim || above + s->segments[g] < aim) continue; /* only one segment reaches the target */
            uint32_t bin = LZS_CUDA_SEGMENT * g;
            aim -= above;
            while (s->bins[bin] < aim) aim -= s->bins[bin++];
            s->bin = bin;
            s->left = aim;
        }
    }
    LZS_END
    LZS_READ(1, uint32_t, bin, bin);
    LZS_READ(2, uint64_t, left, left);
    f.bin = bin;
    f.stage = LZS_STAGE_CUT;
    if (bin == LZS_CUDA_BINS) return f;
    f.target = left;
    LZS_BEGIN(40) {
        for (int32_t q = (int32_t)tid; f.n_kept < 0 && q < own.n_fours; q += (int32_t)LZS_THREADS) {
            const float most = lzs_most_of(s->fours[q]);
            if (most < lzs_key_float(f.cut.key)) continue;
            if (f.shift < 0 && lzs_bin_of_gap(lzs_gap_bits(scale, most), f.weigh) > bin) continue;
            const uint32_t at = lzs_atomic_add(&s->n_kept, 1u);
            if (at < LZS_CUDA_KEPT) s->kept[at] = (uint16_t)q;
        }
    }
    LZS_END
    LZS_READ(7, uint32_t, n_kept, n_kept);
    if (f.n_kept < 0 && n_kept <= LZS_CUDA_KEPT) f.n_kept = (int32_t)n_kept;
    LZS_BEGIN(45) {
        for (int32_t i = (int32_t)tid; i < lzs_n_fours(&f, own); i += (int32_t)LZS_THREADS) {
            const int32_t q = lzs_four_at(s, &f, i);
            const lzs_four four = s->fours[q];
            LZS_UNROLL for (int j = 0; j < 4; j++) {
                const int32_t id = own.first + 4 * q + j;
                if (!lzs_in_cut(f.cut, four.x[j], id) || lzs_bin_of(&f, scale, four.x[j], id) != bin) continue;
                const uint32_t at = lzs_atomic_add(&s->n_found, 1u);
                if (at < LZS_CUDA_LIST) s->list[at] = lzs_pack(four.x[j], id);
            }
        }
    }
    LZS_NEXT(46) {
        if (tid == 0 && s->n_found) s->found = lzs_atomic_add(&here->n_listed, s->n_found);
    }
    LZS_NEXT(47) {
        for (uint32_t i = tid; i < s->n_found && i < LZS_CUDA_LIST; i += LZS_THREADS) {
            if (s->found + i < LZS_CUDA_LIST) here->list[s->found + i] = s->list[i];
        }
    }
    LZS_END
    return f;
}

/* The least key whose gap is in this bin or a better one. */
LZS_DEVICE static inline uint32_t lzs_least_key(lzs_softmax_scale scale, bool weigh, uint32_t bin) {
    uint32_t low = LZS_KEY_NEVER, high = lzs_key(scale.max);
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (lzs_bin_of_gap(lzs_gap_bits(scale, lzs_key_float(middle)), weigh) <= bin) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}

/* Divides the bin into finer bins. */
LZS_DEVICE static inline lzs_search lzs_finer(const lzs_pick_row *row, lzs_search f) {
    if (f.shift < 0) {
        const lzs_softmax_scale scale = lzs_scale_of(&f, row);
        const uint32_t above = f.bin ? lzs_least_key(scale, f.weigh, f.bin - 1) - 1 : lzs_key(f.max);
        const uint64_t span = (uint64_t)(above - lzs_least_key(scale, f.weigh, f.bin) + 1) << 32;
        f.highest = (uint64_t)above << 32 | 0xffffffffu;
        f.shift = 0;
        while (span >> f.shift > LZS_CUDA_BINS) f.shift++;
    } else {
        f.highest -= (uint64_t)f.bin << f.shift;
        f.shift = f.shift > 9 ? f.shift - 9 : 0; /* 2^9 bins */
    }
    f.turn++;
    return f;
}

/* Puts the list in order and moves the cut to the token that reaches the target. */
LZS_BODY lzs_cut lzs_cut_of_list(lzs_pick_shared *s, const lzs_pick_row *row, const lzs_search *f, uint32_t n) {
    const lzs_softmax_scale scale = lzs_scale_of(f, row);
    const lzs_histogram_of_row *here = &row->state->histograms[f->turn & 1];
    LZS_BEGIN(50) {
        for (uint32_t i = tid; i < n; i += LZS_THREADS) {
            s->list[i] = here->list[i];
            s->weights[i] = f->weigh ? lzs_weight_by(s->table, lzs_gap_bits(scale, lzs_packed_x(here->list[i]))) : 1;
        }
    }
    LZS_NEXT(51) {
        for (uint32_t i = tid; i < n; i += LZS_THREADS) {
            const uint64_t packed = s->list[i];
            uint64_t sum = 0; /* of the tokens from the first one to this one */
            LZS_UNROLL_4 for (uint32_t k = 0; k < n; k++) sum += s->list[k] >= packed ? s->weights[k] : 0;
            if (sum < f->target || sum - s->weights[i] >= f->target) continue;
            s->cut_key = lzs_packed_key(packed);
            s->cut_id = lzs_packed_id(packed);
        }
    }
    LZS_END
    LZS_READ(3, uint32_t, key, cut_key);
    LZS_READ(4, int32_t, id, cut_id);
    lzs_cut cut = {key, id};
    if (row->settings->keep_ties) cut.id = key == f->cut.key ? f->cut.id : INT32_MAX; /* those that were inside before */
    return cut;
}

/* Returns the search for the next cut; its stage is LZS_STAGE_RACE if all cuts are made. */
LZS_DEVICE static inline lzs_search lzs_next_cut(const lzs_pick_row *row, lzs_search f) {
    const bool by_k = f.stage == LZS_STAGE_TOP && lzs_by_k(row), by_p = !f.weigh && row->settings->top_p < LZS_TOP_P_OFF;
    /* Each warp has a token at least as good as the least of their best ones, so the first k tokens are, too. */
    const uint32_t least = row->state->least_top;
    if (by_k && (uint32_t)row->settings->top_k <= (uint32_t)row->n_shares * LZS_WARPS && least > f.cut.key) f.cut.key = least;
    f.turn += f.stage != LZS_STAGE_TOP;
    f.shift = -1;
    f.weigh = !by_k;
    f.target = by_k ? (uint64_t)row->settings->top_k : row->settings->top_p;
    f.stage = by_k || by_p ? LZS_STAGE_LIST : LZS_STAGE_RACE;
    return f;
}

#endif
