/* cut.h - top-k, top-p and min-p as cuts of one order (logit descending, token id ascending), equal to the cuts of
 * truncate.c.
 *
 * One routine does both top-k and top-p: a radix descent finds where the number of tokens, or the sum of their integer
 * weights, reaches a target. It searches the keys of the logits first. If several tokens have the key that it finds, it
 * then searches their ids. Mostly the descent runs over a list in shared memory. The list holds the tokens above a
 * bound, which the maxima of the groups give. If the list is too short, as for a flat row or a large top-k, the descent
 * runs over the whole row. This reads the row six times and gives the same cut. Sums of integers do not depend on the
 * order of addition.
 */
#ifndef LZS_CUDA_CUT_H
#define LZS_CUDA_CUT_H

#include "row.h"

#undef LZS_FILE
#define LZS_FILE 1

#define LZS_TOP_P_OFF ((uint64_t)1 << 32)

enum {
    LZS_LEVELS = 6, /* levels of the descent: three digits of the key, then three of the id */
    LZS_BOUND_GROUPS = 1024 /* for top-p without top-k: the list goes down to the maximum of this rank */
};

typedef enum lzs_source { LZS_SOURCE_ROW, LZS_SOURCE_LIST, LZS_SOURCE_MAXIMA } lzs_source;

/* The descents of a truncation, in this order; most rows need one or two of them. */
typedef enum lzs_stage {
    LZS_STAGE_BOUND, /* the lower bound of the list */
    LZS_STAGE_TOP_K,
    LZS_STAGE_TOP_P,
    LZS_STAGE_TOP_P_ROW, /* over the row, if the list was too short */
    LZS_STAGES
} lzs_stage;

/* One level of the descent. It adds up the tokens inside the cut whose leading digits equal the prefix. */
typedef struct lzs_level {
    lzs_cut cut;
    lzs_softmax_scale scale;
    bool weigh; /* tokens add their weight; else they add 1 */
    uint64_t prefix;
    int level, shift, width;
} lzs_level;

typedef struct lzs_truncation {
    lzs_cut cut;
    int32_t n_listed; /* length of the list, which has all tokens inside the cut, and more; 0: no list */
} lzs_truncation;

LZS_DEVICE static inline bool lzs_by_k(const lzs_pick_row *row) {
    return row->settings.top_k > 0 && row->settings.top_k < row->n;
}

/* Computes the same as top_p_target of truncate.c. */
LZS_DEVICE static inline uint64_t lzs_target(uint64_t p, uint64_t total) {
    const uint64_t high = total >> 32, low = total & 0xffffffffu;
    const uint64_t target = p * high + ((p * low + 0xffffffffu) >> 32);
    return target ? target : 1;
}

LZS_BODY void lzs_level_add(lzs_pick_shared *s, const lzs_level *l, uint32_t key, int32_t id) {
    const uint64_t packed = (uint64_t)key << 32 | (uint32_t)~id;
    if (l->level && packed >> (l->shift + l->width) != l->prefix) return;
    if (!lzs_inside(l->cut, key, id)) return;
    const uint32_t w = l->weigh ? lzs_weight(lzs_gap_bits(l->scale, lzs_key_float(key))) : 1;
    if (w) lzs_sum_add(&s->bins[packed >> l->shift & ((1u << l->width) - 1)], w);
}

/* Adds one thread's part of the tokens to the bins. Groups whose maximum is below the prefix are skipped. */
LZS_BODY void lzs_level_add_all(lzs_pick_shared *s, const lzs_pick_row *row, const lzs_level *l, lzs_source source,
                                int32_t n_listed, uint32_t tid) {
    const int32_t n_groups = lzs_groups_of(row->n);
    if (source == LZS_SOURCE_LIST) {
        for (int32_t i = (int32_t)tid; i < n_listed; i += (int32_t)LZS_THREADS) {
            lzs_level_add(s, l, lzs_packed_key(s->list[i]), lzs_packed_id(s->list[i]));
        }
        return;
    }
    if (source == LZS_SOURCE_MAXIMA) {
        for (int32_t g = (int32_t)tid; g < n_groups; g += (int32_t)LZS_THREADS) lzs_level_add(s, l, row->maxima[g], 0);
        return;
    }
    for (int32_t q = (int32_t)tid; 4 * q < row->n; q += (int32_t)LZS_THREADS) {
        const uint64_t most = (uint64_t)row->maxima[q / LZS_QUADS] << 32 | 0xffffffffu;
        float x[4];
        if (l->level && most >> (l->shift + l->width) < l->prefix) continue;
        const uint32_t bits = lzs_quad(row, 4 * q, x);
        for (int j = 0; j < 4; j++) {
            if (bits >> j & 1) lzs_level_add(s, l, lzs_key(x[j]), 4 * q + j);
        }
    }
    for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
        lzs_level_add(s, l, lzs_key(row->values[i]), row->edits[i].token);
    }
}

/* Moves the cut to where the tokens of the source inside the cut reach the target. If `fraction` is set, the target is
 * a share of these tokens' sum, in units of 2^-32. If the tokens do not reach the target, returns false and leaves the
 * cut unchanged. */
LZS_BODY bool lzs_descend(lzs_pick_shared *s, const lzs_pick_row *row, lzs_source source, int32_t n_listed, bool weigh,
                          lzs_softmax_scale scale, bool fraction, uint64_t target, int levels, lzs_cut *cut) {
    lzs_level l = {*cut, scale, weigh, 0, 0, 0, 0};
    for (l.level = 0; l.level < levels; l.level++) {
        const int digit = l.level % 3;
        l.width = digit == 2 ? 10 : 11;
        l.shift = (l.level < 3 ? 32 : 0) + (digit == 0 ? 21 : digit == 1 ? 10 : 0);
        if (l.level == 3 && weigh) { /* all tokens that are left have one key, and so one weight */
            const uint32_t each = lzs_weight(lzs_gap_bits(scale, lzs_key_float((uint32_t)l.prefix)));
            target = (target + each - 1) / each;
        }
        l.weigh = weigh && l.level < 3;
        LZS_BEGIN(30) {
            for (uint32_t b = tid; b < LZS_CUDA_BINS; b += LZS_THREADS) s->bins[b].low = s->bins[b].high = 0;
            if (tid == 0) s->found = 0;
        }
        LZS_NEXT(31) {
            lzs_level_add_all(s, row, &l, source, n_listed, tid);
        }
        LZS_NEXT(32) {
            for (uint32_t g = tid; g < LZS_CUDA_SEGMENTS; g += LZS_THREADS) { /* segment 0 has the highest bins */
                uint64_t sum = 0;
                for (uint32_t i = 0; i < 32; i++) { /* each thread starts in a different memory bank */
                    const lzs_sum bin = s->bins[LZS_CUDA_BINS - 1 - (32 * g + ((i + g) & 31))];
                    sum += lzs_sum_of(bin);
                }
                s->segments[g] = sum;
            }
        }
        LZS_NEXT(33) {
            for (uint32_t g = tid; g < LZS_CUDA_SEGMENTS; g += LZS_THREADS) {
                uint64_t above = 0, total = 0, aim = target;
                for (uint32_t i = 0; i < LZS_CUDA_SEGMENTS; i++) {
                    total += s->segments[i];
                    if (i < g) above += s->segments[i];
                }
                if (l.level == 0 && fraction) aim = lzs_target(target, total);
                if (above >= aim || above + s->segments[g] < aim) continue; /* only one segment reaches the target */
                uint32_t bin = LZS_CUDA_BINS - 1 - 32 * g;
                aim -= above;
                while (lzs_sum_of(s->bins[bin]) < aim) {
                    aim -= lzs_sum_of(s->bins[bin]);
                    bin--;
                }
                s->bin = bin;
                s->left = aim;
                s->found = 1;
            }
        }
        LZS_END
        LZS_READ(2, uint32_t, found, found);
        LZS_READ(3, uint32_t, bin, bin);
        LZS_READ(4, uint64_t, left, left);
        if (!found) return false;
        l.prefix = l.prefix << l.width | bin;
        target = left;
    }
    if (levels == LZS_LEVELS) {
        cut->key = lzs_packed_key(l.prefix);
        cut->id = lzs_packed_id(l.prefix);
    } else { /* all tokens with this key stay, if they were inside the cut before */
        if ((uint32_t)l.prefix != cut->key) cut->id = INT32_MAX;
        cut->key = (uint32_t)l.prefix;
    }
    return true;
}

/* Lists the tokens whose keys are `low` or above. Returns their number, which may be more than the list holds. */
LZS_BODY int32_t lzs_list_above(lzs_pick_shared *s, const lzs_pick_row *row, uint32_t low) {
    LZS_BEGIN(40) {
        if (tid == 0) s->n_listed = 0;
    }
    LZS_NEXT(41) {
        for (int32_t q = (int32_t)tid; 4 * q < row->n; q += (int32_t)LZS_THREADS) {
            float x[4];
            if (row->maxima[q / LZS_QUADS] < low) continue;
            const uint32_t bits = lzs_quad(row, 4 * q, x);
            for (int j = 0; j < 4; j++) {
                if (!(bits >> j & 1) || lzs_key(x[j]) < low) continue;
                const uint32_t at = lzs_atomic_add(&s->n_listed, 1u);
                if (at < LZS_CUDA_LIST) s->list[at] = lzs_pack(x[j], 4 * q + j);
            }
        }
        for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
            if (lzs_key(row->values[i]) < low) continue;
            const uint32_t at = lzs_atomic_add(&s->n_listed, 1u);
            if (at < LZS_CUDA_LIST) s->list[at] = lzs_pack(row->values[i], row->edits[i].token);
        }
    }
    LZS_END
    LZS_READ(5, uint32_t, n_listed, n_listed);
    return (int32_t)n_listed;
}

/* Whether the truncation needs the weight of all tokens: for top-p without top-k, if the list cannot hold the row. */
LZS_DEVICE static inline bool lzs_weighs(const lzs_pick_row *row) {
    const lzs_pick_settings *p = &row->settings;
    return p->status == LZS_OK && !p->greedy && p->top_p < LZS_TOP_P_OFF && !lzs_by_k(row) && row->n > LZS_CUDA_LIST;
}

/* The weight of all tokens of some groups. */
LZS_BODY uint64_t lzs_weigh_groups(lzs_read_shared *s, const lzs_pick_row *row, lzs_softmax_scale scale, lzs_groups groups) {
    LZS_BEGIN(50) {
        if (tid == 0) s->total.low = s->total.high = 0;
    }
    LZS_NEXT(51) {
        uint64_t sum = 0;
        for (int32_t q = groups.first * LZS_QUADS + (int32_t)tid; q < groups.last * LZS_QUADS && 4 * q < row->n;
             q += (int32_t)LZS_THREADS) {
            float x[4];
            const uint32_t bits = lzs_quad(row, 4 * q, x);
            for (int j = 0; j < 4; j++) sum += bits >> j & 1 ? lzs_weight(lzs_gap_bits(scale, x[j])) : 0;
        }
        for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
            if (lzs_in_groups(groups, row->edits[i].token)) sum += lzs_weight(lzs_gap_bits(scale, row->values[i]));
        }
        lzs_sum_add(&s->total, sum);
    }
    LZS_END
    LZS_READ(6, lzs_sum, total, total);
    return lzs_sum_of(total);
}

/* The work of one of several blocks after all blocks have read the row: adds the weights of the block's share. */
LZS_BODY void lzs_weigh_share(lzs_read_shared *s, const lzs_pick_row *row, int32_t share) {
    if (!lzs_weighs(row)) return;
    const lzs_share whole = lzs_sum_of_shares(row);
    if (lzs_status_of(whole) != LZS_OK) return;
    const lzs_softmax_scale scale = {lzs_key_float(whole.top), row->settings.cut_scale};
    const uint64_t weight = lzs_weigh_groups(s, row, scale, lzs_groups_of_share(row, share));
    LZS_BEGIN(53) {
        if (tid == 0) row->shares[share].weight = weight;
    }
    LZS_END
}

/* The weight of all tokens, for the block that picks the token. */
LZS_BODY uint64_t lzs_weight_of_row(lzs_pick_shared *s, const lzs_pick_row *row, lzs_softmax_scale scale) {
    const lzs_groups all = {0, lzs_groups_of(row->n)};
    uint64_t weight = 0;
    if (!row->n_shares) return lzs_weigh_groups(&s->read, row, scale, all);
    for (int32_t i = 0; i < row->n_shares; i++) weight += row->shares[i].weight;
    return weight;
}

/* Computes the same as min_p_cut of truncate.c. Every thread computes it for itself, since it reads no memory. */
LZS_DEVICE static inline lzs_cut lzs_min_p_cut(lzs_cut cut, lzs_softmax_scale scale, float limit) {
    uint32_t low = cut.key, high = lzs_key(scale.max);
    if (lzs_gap_bits(scale, lzs_key_float(low)) <= limit) return cut;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (lzs_gap_bits(scale, lzs_key_float(middle)) <= limit) {
            high = middle;
        } else {
            low = middle;
        }
    }
    cut.key = high;
    cut.id = INT32_MAX;
    return cut;
}

LZS_BODY lzs_truncation lzs_truncate_row(lzs_pick_shared *s, const lzs_pick_row *row, float max) {
    const lzs_pick_settings *p = &row->settings;
    const lzs_softmax_scale scale = {max, p->cut_scale};
    const bool by_k = lzs_by_k(row), by_p = p->top_p < LZS_TOP_P_OFF;
    const bool small = row->n <= LZS_CUDA_LIST; /* the list can hold the whole row */
    const int32_t n_groups = lzs_groups_of(row->n), many = n_groups - n_groups / 8 * 3;
    const int32_t reached = by_k ? p->top_k : many < LZS_BOUND_GROUPS ? many : LZS_BOUND_GROUPS;
    const bool lists = (by_k || by_p) && (small || (reached <= n_groups && reached <= LZS_CUDA_LIST / 2));
    const int levels = p->keep_ties ? 3 : LZS_LEVELS;
    const lzs_cut everything = {LZS_KEY_LEAST, INT32_MAX};
    lzs_truncation t = {everything, 0};
    bool cut_by_p = false;
    for (int stage = by_k || by_p ? LZS_STAGE_BOUND : LZS_STAGES; stage < LZS_STAGES; stage++) {
        lzs_source source = t.n_listed ? LZS_SOURCE_LIST : LZS_SOURCE_ROW;
        bool weigh = false, fraction = false, descends = true;
        uint64_t target = (uint32_t)p->top_k;
        lzs_cut cut = t.cut;
        if (stage == LZS_STAGE_BOUND) {
            source = LZS_SOURCE_MAXIMA;
            target = (uint32_t)reached;
            descends = lists && !small;
        } else if (stage == LZS_STAGE_TOP_K) {
            descends = by_k;
        } else {
            weigh = true;
            descends = by_p && !cut_by_p;
            fraction = by_k || small || !t.n_listed; /* the source has all tokens whose sum the fraction refers to */
            target = descends && !fraction ? lzs_target(p->top_p, lzs_weight_of_row(s, row, scale)) : p->top_p;
        }
        bool reaches = false;
        if (descends) {
            const int n_levels = stage == LZS_STAGE_BOUND ? 3 : levels;
            reaches = lzs_descend(s, row, source, t.n_listed, weigh, scale, fraction, target, n_levels, &cut);
        }
        if (stage == LZS_STAGE_BOUND) {
            if (lists) t.n_listed = lzs_list_above(s, row, reaches ? cut.key : everything.key);
            if (t.n_listed > LZS_CUDA_LIST) t.n_listed = 0;
        } else if (reaches) {
            t.cut = cut;
            cut_by_p = stage != LZS_STAGE_TOP_K;
        } else if (descends && stage == LZS_STAGE_TOP_P) {
            t.n_listed = 0;
        }
    }
    if (p->min_p_limit < INFINITY) t.cut = lzs_min_p_cut(t.cut, scale, p->min_p_limit);
    return t;
}

#endif
