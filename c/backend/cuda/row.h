/* row.h - one row of a batch: where its logits are, what is done to them, and the first read of the whole row. One
 * block of threads reads the row, or several blocks do. Each of several blocks has a share of the row's noise groups.
 *
 * As on the CPU (cpu.c) the row is only read: edited tokens are taken out of the row by a mask, and their edited logits
 * are kept in an array beside the row. The first read leaves the maximum of each noise group of 64 tokens. These maxima
 * tell later passes where to look.
 */
#ifndef LZS_CUDA_ROW_H
#define LZS_CUDA_ROW_H

#include "../../plan/plan.h"
#include "../../include/lzsampler_cuda.h"
#include "../kernels.h"
#include "phases.h"

#undef LZS_FILE
#define LZS_FILE 0

enum {
    LZS_CUDA_LIST = 2048, /* the most tokens that the list in shared memory holds */
    LZS_CUDA_BINS = 2048,
    LZS_CUDA_SEGMENTS = 64, /* segments of the bins */
    LZS_CUDA_SHARES = 64,   /* the most shares of a row */
    LZS_CUDA_SPLIT_ROWS = 65535, /* the most rows of a step whose rows have shares, by CUDA's limit */
    LZS_QUADS = LZS_GROUP / 4
};

/* A plan's truncation and draw, with everything computed that depends on no logit (made by lzs_pick_settings_of). */
typedef struct lzs_pick_settings {
    int32_t status; /* if not LZS_OK, the row is not read and gets this status */
    int32_t sign_aware, keep_ties;
    int32_t greedy;         /* temperature 0 */
    float scale, cut_scale; /* log2(e) / T of the draw, and of the truncation */
    int32_t top_k;          /* 0: off */
    float min_p_limit;      /* gaps above this are cut; +inf: off */
    uint64_t top_p;         /* in units of 2^-32; 2^32: off */
    uint64_t seed;
} lzs_pick_settings;

/* What a block finds out about its share of a row. */
typedef struct lzs_share {
    uint32_t top;           /* key of the largest logit */
    uint32_t bad_edit, nan; /* 1 if the share has an invalid edit, or a NaN */
    uint64_t weight;        /* weight of the share's tokens, if lzs_weighs */
} lzs_share;

typedef struct lzs_pick_row {
    lzs_pick_settings settings;
    const void *logits; /* (n) */
    int32_t dtype;      /* lzs_dtype */
    int32_t n;
    const uint32_t *mask; /* as in lzs_plan, or NULL */
    const lzs_edit *edits; /* (n_edits) */
    int32_t n_edits;
    uint64_t position;
    /* Scratch memory */
    uint32_t *allowed; /* (words of n) the mask without the edited tokens; unused if there is no mask and no edit */
    float *values;     /* (n_edits) edited logits, -inf if the mask forbids the token */
    uint32_t *maxima;  /* (groups of n) keys of the maxima; later, keys of the race's bounds */
    uint32_t *words;   /* (groups of n) random words */
    int32_t n_shares;  /* blocks that read the row first; 0: the block that picks reads it */
    lzs_share *shares; /* (n_shares) */
} lzs_pick_row;

typedef struct lzs_read_shared {
    uint32_t bad_edit, nan, top; /* the share's results so far */
    lzs_sum total;
} lzs_read_shared;

typedef struct lzs_pick_shared {
    lzs_read_shared read;
    uint32_t top_group, argmax;
    uint32_t n_listed, n_groups, n_bin;
    uint32_t found, bin; /* for the descent */
    uint32_t least, score, winner; /* for the race: two keys, and a token */
    uint64_t left;                 /* the part of the descent's target that the bin must supply */
    uint64_t list[LZS_CUDA_LIST]; /* packed tokens, in any order */
    uint32_t groups[1024];        /* groups to open */
    lzs_sum bins[LZS_CUDA_BINS];
    uint64_t segments[LZS_CUDA_SEGMENTS];
} lzs_pick_shared;

/* The best token of a row, or the row's error. */
typedef struct lzs_row_top {
    int32_t status;
    uint32_t key;
    int32_t token;
} lzs_row_top;

#define LZS_KEY_NEVER 0x007fffffu /* the key of -inf, which is never picked */
#define LZS_KEY_LEAST 0x00800000u /* the key of -FLT_MAX */

LZS_DEVICE static inline int32_t lzs_groups_of(int32_t n) {
    return (n - 1) / LZS_GROUP + 1;
}

LZS_DEVICE static inline float lzs_from_bfloat(uint16_t h) {
    return lzs_bits_float((uint32_t)h << 16);
}

LZS_DEVICE static inline float lzs_from_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, mantissa = h & 0x3ffu;
    uint32_t bits = (exponent + 112u) << 23 | mantissa << 13;
    if (exponent == 31) bits = 0x7f800000u | mantissa << 13;
    if (exponent == 0) bits = lzs_float_bits((float)(int32_t)mantissa * 0x1p-24f);
    return lzs_bits_float(sign | bits);
}

LZS_DEVICE static inline float lzs_logit(const lzs_pick_row *row, int32_t id) {
    if (row->dtype == LZS_F32) return ((const float *)row->logits)[id];
    const uint16_t half = ((const uint16_t *)row->logits)[id];
    return row->dtype == LZS_BF16 ? lzs_from_bfloat(half) : lzs_from_half(half);
}

/* Whether four logits can be read at once if the first id is a multiple of 4. */
LZS_DEVICE static inline bool lzs_aligned(const lzs_pick_row *row) {
    return ((uintptr_t)row->logits & (row->dtype == LZS_F32 ? 15u : 7u)) == 0;
}

/* The logits of the tokens id to id + 3, where id is a multiple of 4, and a bit for each token that is in the
 * vocabulary and allowed. The other logits are undefined. */
LZS_DEVICE static inline uint32_t lzs_quad(const lzs_pick_row *row, int32_t id, float x[4]) {
    uint32_t bits = row->n - id < 4 ? (1u << (row->n - id)) - 1u : 15u;
    if (row->mask || row->n_edits) bits &= row->allowed[id >> 5] >> (id & 31);
    if (row->n - id < 4 || !lzs_aligned(row)) {
        for (int j = 0; j < 4; j++) x[j] = id + j < row->n ? lzs_logit(row, id + j) : 0.0f;
        return bits;
    }
    if (row->dtype == LZS_F32) {
#ifdef __CUDACC__
        const float4 v = *(const float4 *)((const float *)row->logits + id);
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
#else
        memcpy(x, (const float *)row->logits + id, 4 * sizeof *x);
#endif
        return bits;
    }
    uint16_t half[4];
#ifdef __CUDACC__
    const ushort4 v = *(const ushort4 *)((const uint16_t *)row->logits + id);
    half[0] = v.x, half[1] = v.y, half[2] = v.z, half[3] = v.w;
#else
    memcpy(half, (const uint16_t *)row->logits + id, sizeof half);
#endif
    for (int j = 0; j < 4; j++) x[j] = row->dtype == LZS_BF16 ? lzs_from_bfloat(half[j]) : lzs_from_half(half[j]);
    return bits;
}

/* The groups first to last - 1. */
typedef struct lzs_groups {
    int32_t first, last;
} lzs_groups;

LZS_DEVICE static inline lzs_groups lzs_groups_of_share(const lzs_pick_row *row, int32_t share) {
    const int32_t n_groups = lzs_groups_of(row->n), each = (n_groups - 1) / row->n_shares + 1;
    const int32_t first = share * each < n_groups ? share * each : n_groups;
    return (lzs_groups){first, first + each < n_groups ? first + each : n_groups};
}

LZS_DEVICE static inline bool lzs_in_groups(lzs_groups groups, int32_t id) {
    return (int32_t)lzs_group_of(id) >= groups.first && (int32_t)lzs_group_of(id) < groups.last;
}

/* Applies the edits of some groups, and finds the groups' maxima. The block that has group 0 also reports edits outside
 * the vocabulary. */
LZS_BODY lzs_share lzs_read_groups(lzs_read_shared *s, const lzs_pick_row *row, lzs_groups groups) {
    const int32_t n_words = (row->n - 1) / 32 + 1, last_word = groups.last * (LZS_GROUP / 32);
    const bool holes = row->mask || row->n_edits;
    LZS_BEGIN(10) {
        if (tid == 0) {
            s->bad_edit = s->nan = 0;
            s->top = LZS_KEY_NEVER;
        }
        for (int32_t g = groups.first + (int32_t)tid; g < groups.last; g += (int32_t)LZS_THREADS) row->maxima[g] = LZS_KEY_NEVER;
        for (int32_t w = groups.first * (LZS_GROUP / 32) + (int32_t)tid; holes && w < n_words && w < last_word;
             w += (int32_t)LZS_THREADS) {
            row->allowed[w] = row->mask ? row->mask[w] : 0xffffffffu;
        }
    }
    LZS_NEXT(11) {
        uint32_t most = LZS_KEY_NEVER;
        for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
            const lzs_edit edit = row->edits[i];
            const int32_t id = edit.token;
            const bool bad = (uint32_t)id >= (uint32_t)row->n;
            if (!lzs_in_groups(groups, bad ? 0 : id)) continue;
            row->values[i] = -INFINITY;
            if (bad) {
                lzs_set(&s->bad_edit);
                continue;
            }
            const uint32_t bit = 1u << (id & 31), before = lzs_atomic_and(&row->allowed[id >> 5], ~bit);
            if (!lzs_allowed(row->mask, id)) continue;
            if (!(before & bit)) lzs_set(&s->bad_edit); /* the token has two edits */
            const float x = lzs_apply_edit(&edit, lzs_logit(row, id), row->settings.sign_aware);
            row->values[i] = x;
            if (x != x) {
                lzs_set(&s->nan);
            } else if (lzs_key(x) > most) {
                most = lzs_key(x);
            }
        }
        lzs_warp_max(&s->top, most);
    }
    LZS_NEXT(12) {
        uint32_t most = LZS_KEY_NEVER;
        bool nan = false;
        for (int32_t q = groups.first * LZS_QUADS + (int32_t)tid; q < groups.last * LZS_QUADS; q += (int32_t)LZS_THREADS) {
            float x[4];
            uint32_t key = LZS_KEY_NEVER;
            if (4 * q < row->n) {
                const uint32_t bits = lzs_quad(row, 4 * q, x);
                for (int j = 0; j < 4; j++) {
                    if (!(bits >> j & 1)) continue;
                    nan |= x[j] != x[j];
                    const uint32_t one = x[j] == x[j] ? lzs_key(x[j]) : LZS_KEY_NEVER;
                    if (one > key) key = one;
                }
            }
            lzs_half_warp_max(&row->maxima[q / LZS_QUADS], key);
            if (key > most) most = key;
        }
        if (nan) lzs_set(&s->nan);
        lzs_warp_max(&s->top, most);
    }
    LZS_END
    LZS_READ(1, uint32_t, top, top);
    LZS_READ(14, uint32_t, bad_edit, bad_edit);
    LZS_READ(15, uint32_t, has_nan, nan);
    return (lzs_share){top, bad_edit, has_nan, 0};
}

/* Joins what the blocks found, except the weights, which the blocks may not have written yet. */
LZS_DEVICE static inline lzs_share lzs_sum_of_shares(const lzs_pick_row *row) {
    lzs_share sum = {LZS_KEY_NEVER, 0, 0, 0};
    for (int32_t i = 0; i < row->n_shares; i++) {
        const lzs_share *share = &row->shares[i];
        if (share->top > sum.top) sum.top = share->top;
        sum.bad_edit |= share->bad_edit;
        sum.nan |= share->nan;
    }
    return sum;
}

LZS_DEVICE static inline int32_t lzs_status_of(lzs_share found) {
    return found.bad_edit ? LZS_EINVAL : found.nan ? LZS_ENAN : found.top == LZS_KEY_NEVER ? LZS_EMASKED : LZS_OK;
}

/* Finds the best token of a row, given the maxima of its groups. */
LZS_BODY lzs_row_top lzs_top_of_row(lzs_pick_shared *s, const lzs_pick_row *row, lzs_share whole) {
    const int32_t n_groups = lzs_groups_of(row->n);
    const uint32_t top = whole.top;
    lzs_row_top found = {lzs_status_of(whole), top, -1};
    if (found.status != LZS_OK) return found;
    LZS_BEGIN(19) {
        if (tid == 0) s->top_group = s->argmax = 0xffffffffu;
    }
    LZS_NEXT(20) {
        for (int32_t g = (int32_t)tid; g < n_groups; g += (int32_t)LZS_THREADS) {
            if (row->maxima[g] == top) lzs_atomic_min(&s->top_group, (uint32_t)g);
        }
        for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
            const float x = row->values[i];
            if (x == x && lzs_key(x) == top) lzs_atomic_min(&s->argmax, (uint32_t)row->edits[i].token);
        }
    }
    LZS_NEXT(21) {
        if (s->top_group != 0xffffffffu) {
            for (uint32_t q = tid; q < LZS_QUADS; q += LZS_THREADS) {
                const int32_t id = (int32_t)(s->top_group * LZS_GROUP + 4 * q);
                float x[4];
                if (id >= row->n) continue;
                const uint32_t bits = lzs_quad(row, id, x);
                for (int j = 0; j < 4; j++) {
                    if ((bits >> j & 1) && lzs_key(x[j]) == top) lzs_atomic_min(&s->argmax, (uint32_t)(id + j));
                }
            }
        }
    }
    LZS_END
    LZS_READ(16, uint32_t, argmax, argmax);
    found.token = (int32_t)argmax;
    return found;
}

/* The first work of one of several blocks: reads the block's share of the row. */
LZS_BODY void lzs_read_share(lzs_read_shared *s, const lzs_pick_row *row, int32_t share) {
    if (row->settings.status != LZS_OK) return;
    const lzs_share found = lzs_read_groups(s, row, lzs_groups_of_share(row, share));
    LZS_BEGIN(15) {
        if (tid == 0) row->shares[share] = found;
    }
    LZS_END
}

#endif
