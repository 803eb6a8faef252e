/* fold.h - history -> edits, by one block of threads: what the state of a sequence and c/penalty make of it on the CPU.
 *
 * Nothing is kept from step to step: each thread compares the end of the history with what stands before a token of the window,
 * so that a sequence may change its row, take tokens back or be preempted at no cost. What the penalties find of a token meets in
 * a hash table, by operations whose order does not matter: sums of integers, and maxima. The table is empty between two
 * launches. The short matches of LZ, which most tokens have without paying for them, are counted in shared memory before.
 */
#ifndef LZS_CUDA_FOLD_H
#define LZS_CUDA_FOLD_H

#include <math.h>

#include "../../penalty/counted.h"
#include "../../penalty/price.h"
#include "../../state/sorted_tokens.h"
#include "phases.h"

#undef LZS_FILE
#define LZS_FILE 3

/* The settings of a row whose penalties look at a history (lzs_fold_settings_of). */
typedef struct lzs_fold_settings {
    lzs_params params; /* its lists lie where the kernel can read them, sorted, and no token has two biases */
    int32_t n_vocab;
    float log2_vocab;
    int32_t lz_window;    /* 0 when LZ is off */
    int32_t dry_window;   /* 0 when DRY is off */
    int32_t count_window; /* 0 when nothing is counted; INT32_MAX for all */
} lzs_fold_settings;

/* What is known of a token; all zero where it is free. */
typedef struct lzs_fold_slot {
    uint32_t token;  /* the token + 1 */
    uint32_t count;  /* in the window of the counting penalties */
    uint32_t matches; /* of LZ, where lz_min_match is above 1 (lzs_counted_match) */
    uint32_t best;   /* its longest match, the nearest of equals (lzs_best) */
    uint32_t cost;   /* rate: ~key of the least cost; codelength: LZS_FAR - distance of the nearest match */
    uint32_t copies; /* the bits of lzs_lz_match.copies */
    uint32_t dry;    /* tokens of the longest repetition that it would extend */
    uint32_t bias;   /* its place in logit_bias + 1 */
} lzs_fold_slot;

enum {
    LZS_FAR = 1 << 18, /* above every distance */
    LZS_MAX_DRY = UINT16_MAX
};

typedef struct lzs_fold_row {
    const lzs_fold_settings *settings;
    const int32_t *history; /* (n) oldest first */
    int32_t n;
    lzs_edit *edits; /* (capacity) */
    uint32_t *used;  /* (capacity) slots that are not free */
    uint32_t capacity;
    lzs_fold_slot *slots; /* (n_slots, a power of two and at least twice the capacity) free before and after */
    uint32_t n_slots;
} lzs_fold_row;

/* A token that comes often, at distances up to LZS_LZ_NEAR; all zero where it is free. */
typedef struct lzs_fold_near {
    uint32_t token; /* the token + 1 */
    uint32_t count; /* its matches of lzs_short_length or more */
    uint32_t dense; /* 1 where those of all lengths count */
} lzs_fold_near;

typedef struct lzs_fold_shared {
    lzs_fold_near near[LZS_LZ_NEAR]; /* a hash table: it has a place for each of so many distances */
    uint32_t words[LZS_LZ_WORDS];    /* the last tokens that are no breakers: how many come after each of them */
    uint32_t breakers;               /* of the last LZS_LZ_CLOSE tokens */
    uint32_t often;                  /* 1 where shorter matches of a token count */
    uint32_t bad_token; /* 1 where there is one outside the vocabulary */
    uint32_t n_used;
    uint32_t lz_unbroken, dry_unbroken; /* tokens since the last breaker */
    uint32_t longest;                   /* of all matches (lzs_best) */
    uint32_t whole;                     /* DRY need not look further */
} lzs_fold_shared;

typedef struct lzs_folded {
    int32_t n_edits, status; /* there are no edits unless the status is LZS_OK */
} lzs_folded;

LZS_DEVICE static inline uint32_t lzs_best(int32_t length, int32_t distance) {
    return (uint32_t)length << 18 | (uint32_t)(LZS_FAR - 1 - distance);
}

LZS_DEVICE static inline int32_t lzs_best_length(uint32_t best) {
    return (int32_t)(best >> 18);
}

LZS_DEVICE static inline int32_t lzs_best_distance(uint32_t best) {
    return LZS_FAR - 1 - (int32_t)(best & (LZS_FAR - 1));
}

/* The tokens, up to `most`, that the end of a history of n tokens has in common with what ends `distance` tokens before. */
LZS_DEVICE static inline int32_t lzs_common_suffix(const int32_t *history, int32_t n, int32_t distance, int32_t most) {
    const int32_t *end = history + n;
    int32_t length = 0;
    if (most > n - distance) most = n - distance;
    while (length < most && end[-1 - length] == end[-1 - length - distance]) length++;
    return length;
}

/* Whether a token is in the vocabulary; the row fails where one is not. */
LZS_BODY bool lzs_known(lzs_fold_shared *s, const lzs_fold_row *row, int32_t token) {
    if ((uint32_t)token < (uint32_t)row->settings->n_vocab) return true;
    lzs_set(&s->bad_token);
    return false;
}

/* The slot of a token, or NULL where there is none left, which s->n_used tells, or the token is not in the vocabulary. When more
 * slots are used than there may be edits, the row has failed, whichever thread sees it first, and the table must not become full: each
 * token would be looked for in all of it. */
LZS_BODY lzs_fold_slot *lzs_slot_of(lzs_fold_shared *s, const lzs_fold_row *row, int32_t token) {
    if (!lzs_known(s, row, token) || *(volatile const uint32_t *)&s->n_used > row->capacity) return NULL;
    uint32_t at = ((uint32_t)token * 2654435761u) >> 7;
    for (uint32_t i = 0; i < row->n_slots; i++, at++) {
        lzs_fold_slot *slot = &row->slots[at & (row->n_slots - 1)];
        const uint32_t there = lzs_atomic_cas(&slot->token, 0u, (uint32_t)token + 1);
        if (there == (uint32_t)token + 1) return slot;
        if (there) continue;
        const uint32_t n = lzs_atomic_add(&s->n_used, 1u);
        if (n < row->capacity) row->used[n] = at & (row->n_slots - 1);
        return slot;
    }
    return NULL;
}

/* ---- LZ: lz.c says what the numbers mean ---- */

/* Whether the token that i others follow is no breaker and comes before word k - 1. */
LZS_BODY bool lzs_is_further_word(const lzs_fold_shared *s, const lzs_fold_row *row, int32_t k, uint32_t i) {
    const lzs_params *p = &row->settings->params;
    return i > s->words[k - 1] && !lzs_listed(p->lz_breakers, p->n_lz_breakers, row->history[row->n - 1 - (int32_t)i]);
}

/* The length of the match at a distance. */
LZS_BODY int32_t lzs_length_at(const lzs_fold_shared *s, const lzs_fold_row *row, int32_t distance) {
    const int32_t suffix = lzs_common_suffix(row->history, row->n, distance, row->settings->params.lz_buffer);
    return (suffix < distance && (uint32_t)suffix > s->lz_unbroken ? (int32_t)s->lz_unbroken : suffix) + 1;
}

/* Whether the text is plain, as lz.c has it. */
LZS_BODY bool lzs_ends_plainly(const lzs_fold_shared *s) {
    return s->breakers < LZS_LZ_PLAIN;
}

/* Where a token is counted, which is in the vocabulary. There are no more tokens than places. */
LZS_BODY lzs_fold_near *lzs_near_of(lzs_fold_shared *s, int32_t token) {
    for (uint32_t at = (uint32_t)token;; at++) {
        lzs_fold_near *near = &s->near[at % LZS_LZ_NEAR];
        const uint32_t there = lzs_atomic_cas(&near->token, 0u, (uint32_t)token + 1);
        if (!there || there == (uint32_t)token + 1) return near;
    }
}

/* Notes where the token that i others follow makes up so much of the last `close` that all its matches count. */
LZS_BODY void lzs_find_dense(lzs_fold_shared *s, const lzs_fold_row *row, int32_t i, int32_t close) {
    const lzs_params *p = &row->settings->params;
    const int32_t *end = row->history + row->n, token = end[-1 - i];
    int32_t count = 0;
    for (int32_t k = 0; k < close; k++) count += end[-1 - k] == token;
    if (count < LZS_LZ_DENSE || lzs_listed(p->lz_marks, p->n_lz_marks, token) || !lzs_known(s, row, token)) return;
    lzs_set(&lzs_near_of(s, token)->dense);
    lzs_set(&s->often);
}

/* Counts a nearby match. The thread that counts the last match of a token sees them all, so s->often is right when every thread has
 * been here. */
LZS_BODY void lzs_count_near(lzs_fold_shared *s, const lzs_fold_row *row, int32_t token) {
    if (!lzs_known(s, row, token)) return;
    const uint32_t before = lzs_atomic_add(&lzs_near_of(s, token)->count, 1u);
    if (before + 1 == LZS_LZ_MANY && lzs_ends_plainly(s)) lzs_set(&s->often);
}

/* The length from which the matches of a token count; `least`: lzs_short_length. */
LZS_BODY int32_t lzs_least_of(const lzs_fold_shared *s, const lzs_fold_row *row, int32_t token, int32_t least) {
    for (uint32_t i = 0, at = (uint32_t)token; i < LZS_LZ_NEAR; i++, at++) {
        const lzs_fold_near *near = &s->near[at % LZS_LZ_NEAR];
        if (near->token == (uint32_t)token + 1 && near->dense) return 1;
        if (near->token == (uint32_t)token + 1 && near->count >= LZS_LZ_MANY && lzs_ends_plainly(s)) return least;
        if (!near->token || near->token == (uint32_t)token + 1) break;
    }
    return row->settings->params.lz_min_match;
}

/* Adds a match that counts to those of its token. */
LZS_BODY void lzs_add_match(lzs_fold_shared *s, const lzs_fold_row *row, int32_t token, int32_t length, int32_t distance) {
    const lzs_params *p = &row->settings->params;
    lzs_fold_slot *slot = lzs_slot_of(s, row, token);
    if (!slot) return;
    lzs_atomic_max(&slot->best, lzs_best(length, distance));
    if (p->lz_formula == LZS_LZ_RATE) {
        lzs_atomic_max(&slot->cost, ~lzs_key(lzs_rate_cost(length, distance)));
    } else if (p->lz_formula == LZS_LZ_CODELENGTH) {
        lzs_atomic_max(&slot->cost, (uint32_t)(LZS_FAR - distance));
        lzs_atomic_max(&s->longest, lzs_best(length, distance));
    }
    if (p->lz_min_match == 1) return;
    lzs_atomic_add(&slot->matches, lzs_counted_match(distance));
    if (length <= distance) return;
    const bool words = lzs_ends_plainly(s) && (uint32_t)distance > s->words[LZS_LZ_WORDS - 1];
    lzs_atomic_max(&slot->copies, lzs_float_bits(lzs_copies(length, distance, words)));
}

/* Adds the match at a distance where it has lz_min_match tokens, and counts it from the length `least` on. */
LZS_BODY void lzs_match_at(lzs_fold_shared *s, const lzs_fold_row *row, int32_t distance, int32_t least) {
    const int32_t length = lzs_length_at(s, row, distance), token = row->history[row->n - distance];
    const int32_t full = row->settings->params.lz_min_match;
    if (least < full && length >= least && distance <= LZS_LZ_NEAR) lzs_count_near(s, row, token);
    if (length >= full) lzs_add_match(s, row, token, length, distance);
}

/* Adds it where it has fewer, and its token comes often. */
LZS_BODY void lzs_shorter_match_at(lzs_fold_shared *s, const lzs_fold_row *row, int32_t distance, int32_t least) {
    const int32_t token = row->history[row->n - distance];
    const int32_t length = lzs_length_at(s, row, distance), full = row->settings->params.lz_min_match;
    if (length < full && length >= lzs_least_of(s, row, token, least)) lzs_add_match(s, row, token, length, distance);
}

LZS_DEVICE static inline float lzs_lz_bias(const lzs_fold_settings *f, const lzs_fold_slot *slot, uint32_t longest, bool plain) {
    const lzs_params *p = &f->params;
    const int32_t length = lzs_best_length(slot->best), distance = lzs_best_distance(slot->best);
    float cost;
    if (p->lz_formula == LZS_LZ_RATE) {
        cost = lzs_key_float(~slot->cost);
    } else if (p->lz_formula == LZS_LZ_DISTANCE) {
        cost = lzs_log2((float)distance);
    } else if (length > 1 && length == lzs_best_length(longest)) {
        cost = lzs_joint_cost(length, distance, length - 1, lzs_best_distance(longest));
    } else {
        cost = lzs_log2((float)(LZS_FAR - (int32_t)slot->cost));
    }
    const float times = lzs_times(p, (int32_t)slot->token - 1, slot->matches, lzs_bits_float(slot->copies), plain);
    return lzs_finite(lzs_bias_of_cost(p, cost, f->log2_vocab) * times);
}

/* ---- DRY: dry.c ---- */

LZS_BODY void lzs_dry_at(lzs_fold_shared *s, const lzs_fold_row *row, int32_t distance, int32_t least) {
    const lzs_params *p = &row->settings->params;
    const int32_t token = row->history[row->n - distance], inside = row->settings->dry_window - distance;
    int32_t length = lzs_common_suffix(row->history, row->n, distance, inside < LZS_MAX_DRY ? inside : (int32_t)LZS_MAX_DRY);
    if (length >= inside) lzs_set(&s->whole); /* the whole window has this period */
    if ((uint32_t)length > s->dry_unbroken) length = (int32_t)s->dry_unbroken;
    if (length < least || lzs_listed(p->dry_breakers, p->n_dry_breakers, token)) return;
    lzs_fold_slot *slot = lzs_slot_of(s, row, token);
    if (slot) lzs_atomic_max(&slot->dry, (uint32_t)length);
}

LZS_DEVICE static inline float lzs_dry_bias(const lzs_params *p, int32_t length) {
    const float power = lzs_finite(lzs_power(p->dry_base, length - p->dry_allowed_length));
    return -lzs_finite(p->dry_multiplier * power);
}

/* ---- all together, as fold.c does it ---- */

LZS_DEVICE static inline lzs_edit lzs_slot_edit(const lzs_fold_settings *f, const lzs_fold_slot *slot, uint32_t longest, bool plain) {
    const lzs_params *p = &f->params;
    const int32_t token = (int32_t)slot->token - 1;
    lzs_edit edit = {token, 1.0f, 0.0f};
    if (!lzs_listed(p->exempt, p->n_exempt, token)) {
        edit = lzs_counted_edit(p, token, (int32_t)slot->count);
        if (slot->best) edit.bias = lzs_finite(edit.bias + lzs_lz_bias(f, slot, longest, plain));
        if (slot->dry) edit.bias = lzs_finite(edit.bias + lzs_dry_bias(p, (int32_t)slot->dry));
    }
    if (slot->bias) {
        const float bias = p->logit_bias[slot->bias - 1].bias;
        edit.bias = bias == -INFINITY ? bias : lzs_finite(edit.bias + bias);
    }
    return edit;
}

LZS_BODY lzs_folded lzs_fold_row_edits(lzs_fold_shared *s, const lzs_fold_row *row) {
    const lzs_fold_settings *f = row->settings;
    const lzs_params *p = &f->params;
    const int32_t n = row->n, left_out = p->lz_min_match > 1 ? 0 : p->lz_buffer;
    const int32_t lz_most = f->lz_window - left_out, lz_reach = !f->lz_window ? 0 : n - left_out < lz_most ? n - left_out : lz_most;
    const int32_t lz_least = lzs_short_length(p), lz_most_close = lz_reach < LZS_LZ_CLOSE ? lz_reach : (int32_t)LZS_LZ_CLOSE;
    const int32_t lz_close = p->lz_min_match > 1 && p->n_lz_marks ? lz_most_close : 0; /* tokens that may be dense */
    const bool lz_often = lz_least < p->lz_min_match || lz_close;
    /* No common suffix is longer than lz_buffer tokens, and no match covers a longer distance. */
    const int32_t lz_scanned = lz_reach > 0 && p->n_lz_breakers ? n < p->lz_buffer ? n : p->lz_buffer : 0;
    const int32_t dry_reach = !f->dry_window ? 0 : n - 1 < f->dry_window - 1 ? n - 1 : f->dry_window - 1;
    const int32_t dry_least = p->dry_allowed_length > 1 ? p->dry_allowed_length : 1;
    lzs_folded folded = {0, LZS_OK};
    LZS_BEGIN(200) {
        if (tid == 0) {
            s->bad_token = s->n_used = s->longest = s->whole = s->often = s->breakers = 0;
            s->lz_unbroken = s->dry_unbroken = INT32_MAX;
        }
        if (tid < LZS_LZ_WORDS) s->words[tid] = lz_scanned ? UINT32_MAX : tid;
        for (uint32_t i = tid; lz_often && i < LZS_LZ_NEAR; i += LZS_THREADS) s->near[i].token = s->near[i].count = s->near[i].dense = 0;
    }
    LZS_NEXT(201) {
        for (int32_t i = (int32_t)tid; i < lz_close; i += (int32_t)LZS_THREADS) lzs_find_dense(s, row, i, lz_close);
        for (int32_t i = (int32_t)tid; i < n && i < LZS_LZ_CLOSE && lz_scanned; i += (int32_t)LZS_THREADS) {
            const bool breaks = lzs_listed(p->lz_breakers, p->n_lz_breakers, row->history[n - 1 - i]);
            if (breaks) lzs_atomic_add(&s->breakers, 1u);
        }
        for (int32_t i = (int32_t)tid; i < n && i < f->count_window; i += (int32_t)LZS_THREADS) {
            lzs_fold_slot *slot = lzs_slot_of(s, row, row->history[n - 1 - i]);
            if (slot) lzs_atomic_add(&slot->count, 1u);
        }
        for (uint32_t i = tid; i < p->n_logit_bias; i += LZS_THREADS) {
            lzs_fold_slot *slot = lzs_slot_of(s, row, p->logit_bias[i].token);
            if (slot) slot->bias = i + 1; /* no other thread has this token here */
        }
        uint32_t unbroken = UINT32_MAX, word = UINT32_MAX;
        for (uint32_t i = tid; i < (uint32_t)lz_scanned; i += LZS_THREADS) {
            const bool breaks = lzs_listed(p->lz_breakers, p->n_lz_breakers, row->history[n - 1 - (int32_t)i]);
            if (breaks && unbroken == UINT32_MAX) unbroken = i;
            if (!breaks && word == UINT32_MAX) word = i;
        }
        lzs_warp_min(&s->lz_unbroken, unbroken);
        lzs_warp_min(&s->words[0], word);
        const int32_t dry_scanned = p->n_dry_breakers ? dry_reach : 0;
        for (int32_t i = (int32_t)tid; i < n && i < dry_scanned; i += (int32_t)LZS_THREADS) {
            const bool breaks = lzs_listed(p->dry_breakers, p->n_dry_breakers, row->history[n - 1 - i]);
            if (breaks) lzs_atomic_min(&s->dry_unbroken, (uint32_t)i);
        }
    }
    LZS_END
    for (int32_t k = 1; k < LZS_LZ_WORDS && lz_scanned; k++) {
        LZS_BEGIN(203) {
            uint32_t i = tid;
            while (i < (uint32_t)lz_scanned && !lzs_is_further_word(s, row, k, i)) i += LZS_THREADS;
            lzs_warp_min(&s->words[k], i < (uint32_t)lz_scanned ? i : UINT32_MAX);
        }
        LZS_END
    }
    LZS_BEGIN(205) {
        for (int32_t d = 1 + (int32_t)tid; d <= lz_reach; d += (int32_t)LZS_THREADS) lzs_match_at(s, row, d, lz_least);
    }
    LZS_END
    LZS_READ(53, uint32_t, often, often);
    if (often) {
        LZS_BEGIN(207) {
            for (int32_t d = 1 + (int32_t)tid; d <= lz_reach; d += (int32_t)LZS_THREADS) lzs_shorter_match_at(s, row, d, lz_least);
        }
        LZS_END
    }
    for (int32_t from = 1; from <= dry_reach; from += (int32_t)LZS_THREADS) {
        LZS_BEGIN(210) {
            const int32_t d = from + (int32_t)tid;
            if (d <= dry_reach) lzs_dry_at(s, row, d, dry_least);
        }
        LZS_END
        LZS_READ(50, uint32_t, whole, whole);
        if (whole) break;
    }
    LZS_READ(51, uint32_t, bad_token, bad_token);
    LZS_READ(52, uint32_t, n_used, n_used);
    if (bad_token) {
        folded.status = LZS_EINVAL;
    } else if (n_used > row->capacity) {
        folded.status = LZS_ESPACE;
    } else {
        folded.n_edits = (int32_t)n_used;
    }
    const lzs_fold_slot none = {0, 0, 0, 0, 0, 0, 0, 0};
    LZS_BEGIN(220) {
        if (folded.status == LZS_OK) {
            for (uint32_t i = tid; i < n_used; i += LZS_THREADS) {
                lzs_fold_slot *slot = &row->slots[row->used[i]];
                row->edits[i] = lzs_slot_edit(f, slot, s->longest, lzs_ends_plainly(s));
                *slot = none;
            }
        } else { /* slots may be missing in the list */
            for (uint32_t i = tid; i < row->n_slots; i += LZS_THREADS) row->slots[i] = none;
        }
    }
    LZS_END
    return folded;
}

#endif
