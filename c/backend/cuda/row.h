/* row.h - one row of a batch: where its logits are, what is done to them, and what its blocks share.
 *
 * Each block of threads has a share of the row, some groups of 64 tokens in a row, and keeps their logits in shared
 * memory, so the row is read once. Mask and edits are applied there: a token that is not allowed gets -inf. All later
 * work of a row is a sequence of steps (pick.h). Between two steps the blocks wait for each other, and in a step they
 * meet only in the row's state, by operations whose order does not matter.
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
    LZS_CUDA_BINS = 512,
    LZS_CUDA_SEGMENT = 32,    /* bins of a segment */
    LZS_CUDA_LIST = 256,      /* the most tokens of a bin that are put in order */
    LZS_CUDA_KEPT = 2048,     /* the most fours that are kept in a list */
    LZS_CUDA_SHARES = 64,     /* the most shares of a row, if more are not needed to hold it */
    LZS_CUDA_UNIT = 256,      /* a share is a multiple of so many tokens, for which one thread makes the groups' words */
    LZS_CUDA_SHARE = 1 << 15, /* the most tokens of a share */
    LZS_QUADS = LZS_GROUP / 4
};

/* A plan's truncation and draw, with everything computed that depends on no logit (made by lzs_pick_settings_of). */
typedef struct lzs_pick_settings {
    int32_t status; /* LZS_EINVAL if a setting is out of range */
    int32_t sign_aware, keep_ties;
    int32_t greedy;         /* temperature 0 */
    float scale, cut_scale; /* log2(e) / T of the draw, and of the truncation */
    int32_t top_k;          /* 0: off */
    float min_p_limit;      /* gaps above this are cut; +inf: off */
    uint64_t top_p;         /* in units of 2^-32; 2^32: off */
    uint64_t seed;
} lzs_pick_settings;

/* A histogram of the row's tokens, and the tokens of one of its bins. */
typedef struct lzs_histogram_of_row {
    uint64_t bins[LZS_CUDA_BINS]; /* the best tokens are in bin 0 */
    uint64_t list[LZS_CUDA_LIST]; /* packed tokens, in any order */
    uint32_t n_listed;            /* may be more than the list holds */
} lzs_histogram_of_row;

/* What the blocks of a row find together. */
typedef struct lzs_row_state {
    uint64_t winner;        /* the race's smallest score, as a key, and the lowest of its ids */
    uint32_t top;           /* key of the largest logit */
    uint32_t least_top;     /* key of the least of the largest logits of the row's warps */
    uint32_t bad_edit, nan; /* 1 if an edit is invalid, or a logit is NaN */
    uint32_t arrived;       /* blocks that have arrived at a barrier, at all barriers together */
    lzs_histogram_of_row histograms[2]; /* one is cleared while the other is used */
} lzs_row_state;

typedef struct lzs_pick_row {
    const lzs_pick_settings *settings;
    int32_t status;     /* if not LZS_OK, the row is not read and gets this status */
    const void *logits; /* (n) */
    int32_t dtype;      /* lzs_dtype */
    int32_t n;
    const uint32_t *mask; /* as in lzs_plan, or NULL */
    const lzs_edit *edits; /* (n_edits) */
    int32_t n_edits;
    uint64_t position;
    int32_t n_shares, share_size; /* share_size: tokens, a multiple of LZS_CUDA_UNIT; the last share may be short */
    lzs_row_state *state;         /* cleared by lzs_clear_row before the first step */
} lzs_pick_row;

/* Four logits in a row, which are read at once. */
typedef struct LZS_ALIGNED(16) lzs_four {
    float x[4];
} lzs_four;

typedef struct LZS_ALIGNED(8) lzs_halves {
    uint16_t bits[4];
} lzs_halves;

typedef struct lzs_pick_shared {
    uint32_t bad_edit, nan, top, least_top;
    uint32_t bin, found, n_found, n_kept; /* of the search for a cut */
    uint32_t least, score, winner;   /* of the race: two keys, and a token */
    uint32_t cut_key;
    int32_t cut_id;
    uint64_t left;                   /* the part of the target that the bin must supply */
    float table[16];                 /* of weights */
    union {
        struct {
            uint32_t low[LZS_CUDA_BINS], high[LZS_CUDA_BINS]; /* sums of the weights' lower 16 bits, and of the upper ones */
        };
        uint64_t bins[LZS_CUDA_BINS]; /* of the row */
    };
    uint64_t segments[LZS_CUDA_BINS / LZS_CUDA_SEGMENT];
    uint64_t list[LZS_CUDA_LIST];
    uint32_t weights[LZS_CUDA_LIST];
    uint32_t words[LZS_CUDA_SHARE / LZS_GROUP]; /* random words of the share's groups */
    float floors[LZS_CUDA_SHARE / LZS_GROUP];   /* lower bounds of log2 of the groups' noise */
    uint32_t edited[LZS_CUDA_SHARE / 32];       /* 0: the token has an edit */
    uint16_t kept[LZS_CUDA_KEPT];               /* numbers of the fours that may have tokens inside the cut */
    lzs_four fours[];                           /* (share_size / 4) the share's logits */
} lzs_pick_shared;

#define LZS_KEY_NEVER 0x007fffffu /* the key of -inf, which is never picked */
#define LZS_KEY_LEAST 0x00800000u /* the key of -FLT_MAX */
#define LZS_KEY_MOST 0xff800000u  /* the key of +inf */

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

LZS_DEVICE static inline float lzs_from_16(uint16_t h, int32_t dtype) {
    return dtype == LZS_BF16 ? lzs_from_bfloat(h) : lzs_from_half(h);
}

/* The logits of the tokens id to id + 3, where id is a multiple of 4; -inf beyond the vocabulary. */
LZS_DEVICE static inline lzs_four lzs_read_four(const lzs_pick_row *row, int32_t dtype, bool aligned, int32_t id) {
    lzs_four f;
    if (aligned && id + 4 <= row->n) {
        if (dtype == LZS_F32) return *(const lzs_four *)(const void *)((const float *)row->logits + id);
        const lzs_halves h = *(const lzs_halves *)(const void *)((const uint16_t *)row->logits + id);
        LZS_UNROLL for (int j = 0; j < 4; j++) f.x[j] = lzs_from_16(h.bits[j], dtype);
        return f;
    }
    LZS_UNROLL for (int j = 0; j < 4; j++) {
        f.x[j] = -INFINITY;
        if (id + j >= row->n) continue;
        f.x[j] = dtype == LZS_F32 ? ((const float *)row->logits)[id + j]
                                  : lzs_from_16(((const uint16_t *)row->logits)[id + j], dtype);
    }
    return f;
}

LZS_DEVICE static inline float lzs_most_of(lzs_four f) {
    const float a = f.x[0] > f.x[1] ? f.x[0] : f.x[1], b = f.x[2] > f.x[3] ? f.x[2] : f.x[3];
    return a > b ? a : b;
}

/* A share of a row. */
typedef struct lzs_share {
    int32_t first, n_fours; /* its first token, and a fourth of its tokens, rounded up to whole groups */
} lzs_share;

LZS_DEVICE static inline lzs_share lzs_share_of(const lzs_pick_row *row, int32_t share) {
    const int32_t first = share * row->share_size, left = row->n - first;
    const int32_t n = left < row->share_size ? left : row->share_size;
    return (lzs_share){first, n > 0 ? ((n - 1) / LZS_GROUP + 1) * LZS_QUADS : 0};
}

/* One thread's part of the share. */
LZS_BODY void lzs_load(lzs_pick_shared *s, const lzs_pick_row *row, lzs_share share, int32_t dtype, bool aligned, uint32_t tid) {
    for (int32_t q = (int32_t)tid; q < share.n_fours; q += (int32_t)LZS_THREADS) {
        const int32_t id = share.first + 4 * q;
        const uint32_t allowed = row->mask && id < row->n ? row->mask[id >> 5] >> (id & 31) : 15u;
        lzs_four four = lzs_read_four(row, dtype, aligned, id);
        LZS_UNROLL for (int j = 0; j < 4; j++) four.x[j] = allowed >> j & 1 ? four.x[j] : -INFINITY;
        s->fours[q] = four;
    }
}

/* Reads a share, before the row's edits are known. */
LZS_BODY void lzs_read_share(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share) {
    const lzs_share own = lzs_share_of(row, share);
    LZS_BEGIN(10) {
        const bool aligned = ((uintptr_t)row->logits & (row->dtype == LZS_F32 ? 15u : 7u)) == 0;
        if (tid == 0) {
            s->bad_edit = s->nan = 0;
            s->top = LZS_KEY_NEVER;
            s->least_top = LZS_KEY_MOST;
        }
        for (int32_t w = (int32_t)tid; w < own.n_fours / 8; w += (int32_t)LZS_THREADS) s->edited[w] = 0xffffffffu;
        if (row->dtype == LZS_F32) {
            lzs_load(s, row, own, LZS_F32, aligned, tid);
        } else if (row->dtype == LZS_BF16) {
            lzs_load(s, row, own, LZS_BF16, aligned, tid);
        } else {
            lzs_load(s, row, own, LZS_F16, aligned, tid);
        }
    }
    LZS_END
}

/* Applies the edits, and adds the share's maximum and errors to the state. */
LZS_BODY void lzs_edit_share(lzs_pick_shared *s, const lzs_pick_row *row, int32_t share) {
    const lzs_share own = lzs_share_of(row, share);
    LZS_BEGIN(12) {
        for (int32_t i = (int32_t)tid; i < row->n_edits; i += (int32_t)LZS_THREADS) {
            const lzs_edit edit = row->edits[i];
            const int32_t at = edit.token - own.first;
            if ((uint32_t)edit.token >= (uint32_t)row->n) {
                lzs_set(&s->bad_edit);
            } else if (at >= 0 && at < 4 * own.n_fours && lzs_allowed(row->mask, edit.token)) {
                const uint32_t bit = 1u << (at & 31), before = lzs_atomic_and(&s->edited[at >> 5], ~bit);
                float *x = &s->fours[at / 4].x[at % 4];
                if (before & bit) {
                    *x = lzs_apply_edit(&edit, *x, row->settings->sign_aware);
                } else {
                    lzs_set(&s->bad_edit); /* the token has two edits */
                }
            }
        }
    }
    LZS_NEXT(13) {
        float most = -INFINITY;
        bool nan = false;
        for (int32_t q = (int32_t)tid; q < own.n_fours; q += (int32_t)LZS_THREADS) {
            const lzs_four f = s->fours[q];
            LZS_UNROLL for (int j = 0; j < 4; j++) nan |= f.x[j] != f.x[j];
            most = lzs_most_of(f) > most ? lzs_most_of(f) : most;
        }
        if (nan) lzs_set(&s->nan);
        lzs_warp_bounds(&s->top, &s->least_top, lzs_key(most));
    }
    LZS_NEXT(14) {
        if (tid == 0) {
            lzs_atomic_max(&row->state->top, s->top);
            lzs_atomic_min(&row->state->least_top, s->least_top);
            if (s->nan) lzs_set(&row->state->nan);
            if (s->bad_edit) lzs_set(&row->state->bad_edit);
        }
    }
    LZS_END
}

LZS_DEVICE static inline int32_t lzs_status_of(const lzs_row_state *found) {
    return found->bad_edit ? LZS_EINVAL : found->nan ? LZS_ENAN : found->top == LZS_KEY_NEVER ? LZS_EMASKED : LZS_OK;
}

/* One thread's part of the work that makes a state ready for a row. */
LZS_BODY void lzs_clear_histogram(lzs_histogram_of_row *h, uint32_t tid) {
    for (uint32_t b = tid; b < LZS_CUDA_BINS; b += LZS_THREADS) h->bins[b] = 0;
    if (tid == 0) h->n_listed = 0;
}

LZS_BODY void lzs_clear_row(lzs_row_state *state, uint32_t tid) {
    lzs_clear_histogram(&state->histograms[0], tid);
    lzs_clear_histogram(&state->histograms[1], tid);
    if (tid == 0) {
        state->winner = UINT64_MAX;
        state->top = LZS_KEY_NEVER;
        state->least_top = LZS_KEY_MOST;
        state->bad_edit = state->nan = state->arrived = 0;
    }
}

#endif
