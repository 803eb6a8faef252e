/* fold.h - makes the edits of a row from its history, by one block of threads. On the CPU the state of a sequence and
 * c/penalty do this.
 *
 * Nothing is kept from step to step. For each token of the window, a thread compares the end of the history with the
 * tokens before that token. So at no cost a sequence may move to another row, take tokens back or be preempted. A hash
 * table collects what the penalties find about each token, by operations whose order does not matter: sums of integers,
 * and maxima. The table is empty between two launches.
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

/* The settings of a row whose penalties read the history (made by lzs_fold_settings_of). */
typedef struct lzs_fold_settings {
    lzs_params params; /* lists are in memory that the kernel can read, sorted, with one bias per token */
    int32_t n_vocab;
    float log2_vocab;
    int32_t lz_window;    /* 0 when LZ is off */
    int32_t dry_window;   /* 0 when DRY is off */
    int32_t count_window; /* 0 when nothing is counted; INT32_MAX for all */
} lzs_fold_settings;

/* What the penalties found about one token. A free slot is all zero. */
typedef struct lzs_fold_slot {
    uint32_t token;  /* the token + 1 */
    uint32_t count;  /* occurrences in the window of the counting penalties */
    uint32_t lz;     /* float bits of the token's highest price (lzs_price) */
    uint32_t best;   /* the paper's rule: the token's longest match, the nearest of equally long ones (lzs_best) */
    uint32_t cost;   /* rate: ~key of the least cost; codelength: LZS_FAR - distance to the nearest match */
    uint32_t dry;    /* length of the longest repetition that the token would extend */
    uint32_t bias;   /* the token's index in logit_bias + 1 */
} lzs_fold_slot;

enum {
    LZS_FOLD_SLOTS = 2048, /* of the table in shared memory */
    LZS_FAR = 1 << 18, /* above every distance */
    LZS_MAX_DRY = UINT16_MAX
};

typedef struct lzs_fold_row {
    const lzs_fold_settings *settings;
    const int32_t *history; /* (n) oldest first */
    int32_t n;
    lzs_edit *edits; /* (capacity) */
    uint32_t *used;  /* (capacity) numbers of the slots in use */
    uint32_t capacity;
    lzs_fold_slot *slots; /* (n_slots, a power of two, >= 2 * capacity) all free before and after a launch */
    uint32_t n_slots;
} lzs_fold_row;

typedef struct lzs_fold_shared {
    uint32_t bad_token; /* 1 if a token is outside the vocabulary */
    uint32_t n_used;
    uint32_t separator, comma;      /* tokens after the last of lz_separators, and of lz_commas */
    uint32_t long_item;             /* tokens from the first stretch without a comma that ends a list; 0: none */
    uint32_t dry_unbroken;          /* tokens after the last breaker */
    uint32_t longest;               /* the paper's rule: the longest of all matches (lzs_best) */
    uint32_t whole;                 /* 1 if DRY need not look at larger distances */
    lzs_fold_slot slots[LZS_FOLD_SLOTS]; /* for a row with few tokens */
} lzs_fold_shared;

typedef struct lzs_folded {
    int32_t n_edits, status; /* n_edits is 0 unless the status is LZS_OK */
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

/* How many tokens, at most `most`, the end of the history shares with the history that ends `distance` tokens
 * earlier. */
LZS_DEVICE static inline int32_t lzs_common_suffix(const int32_t *history, int32_t n, int32_t distance, int32_t most) {
    const int32_t *end = history + n;
    int32_t length = 0;
    if (most > n - distance) most = n - distance;
    while (length < most && end[-1 - length] == end[-1 - length - distance]) length++;
    return length;
}

/* Whether a token is in the vocabulary. If not, the row fails. */
LZS_BODY bool lzs_known(lzs_fold_shared *s, const lzs_fold_row *row, int32_t token) {
    if ((uint32_t)token < (uint32_t)row->settings->n_vocab) return true;
    lzs_set(&s->bad_token);
    return false;
}

/* Returns the slot of a token. NULL if the token is not in the vocabulary, or if no slot is left (see s->n_used). If
 * more slots are in use than a row may have edits, the row has failed, and no thread takes a further slot. The table
 * must not become full, because then a search for a token would visit every slot. */
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

/* ---- LZ: lz.c and watch.c ---- */

/* Whether the token with i tokens after it in the history is in a bit set. */
LZS_BODY bool lzs_there_in(const lzs_fold_row *row, const uint32_t *set, uint32_t i) {
    const int32_t token = row->history[row->n - 1 - (int32_t)i];
    return (uint32_t)token < (uint32_t)row->settings->n_vocab && lzs_in_set(set, token);
}

/* After the last separator each comma counts as a separator, too, until lz_min_match - 1 tokens in a row are not
 * commas. Looks at the token with i tokens after it: notes whether it is a comma, or the first of lz_min_match - 1
 * tokens without a comma. */
LZS_BODY void lzs_item_at(lzs_fold_shared *s, const lzs_fold_row *row, uint32_t i) {
    const lzs_params *p = &row->settings->params;
    const uint32_t most = (uint32_t)p->lz_min_match - 1;
    uint32_t k = 0;
    while (k < most && k <= i && !lzs_there_in(row, p->lz_commas, i - k)) k++;
    if (k == most) lzs_atomic_max(&s->long_item, i + 1);
    if (k == 0 && most) lzs_atomic_min(&s->comma, i);
}

/* The number of tokens after the last separator, or after the last comma that counts as one. */
LZS_BODY int32_t lzs_lz_unbroken(const lzs_fold_shared *s) {
    const uint32_t in_list = s->comma < s->separator ? s->comma : s->separator;
    return (int32_t)(s->long_item ? s->long_item : in_list);
}

/* If the match at a distance has a price above 0, enters the price for the token after the match. */
LZS_BODY void lzs_match_at(lzs_fold_shared *s, const lzs_fold_row *row, int32_t distance, int32_t unbroken) {
    const lzs_fold_settings *f = row->settings;
    const int32_t suffix = lzs_common_suffix(row->history, row->n, distance, lzs_most_suffix(&f->params));
    const float price = lzs_price(&f->params, f->log2_vocab, (lzs_lz_match){suffix, unbroken, distance});
    if (price <= 0.0f) return;
    lzs_fold_slot *slot = lzs_slot_of(s, row, row->history[row->n - distance]);
    if (slot) lzs_atomic_max(&slot->lz, lzs_float_bits(price));
}

/* ---- the paper's rule: paper.c ---- */

LZS_BODY void lzs_paper_match_at(lzs_fold_shared *s, const lzs_fold_row *row, int32_t distance) {
    const lzs_params *p = &row->settings->params;
    const int32_t length = lzs_common_suffix(row->history, row->n, distance, p->lz_buffer) + 1;
    lzs_fold_slot *slot = lzs_slot_of(s, row, row->history[row->n - distance]);
    if (!slot) return;
    lzs_atomic_max(&slot->best, lzs_best(length, distance));
    if (p->lz_formula == LZS_LZ_RATE) {
        lzs_atomic_max(&slot->cost, ~lzs_key(lzs_rate_cost(length, distance)));
    } else if (p->lz_formula == LZS_LZ_CODELENGTH) {
        lzs_atomic_max(&slot->cost, (uint32_t)(LZS_FAR - distance));
        lzs_atomic_max(&s->longest, lzs_best(length, distance));
    }
}

LZS_DEVICE static inline float lzs_paper_bias_of_slot(const lzs_fold_settings *f, const lzs_fold_slot *slot, uint32_t longest) {
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
    return lzs_paper_bias(p, cost, f->log2_vocab);
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

LZS_DEVICE static inline lzs_edit lzs_slot_edit(const lzs_fold_settings *f, const lzs_fold_slot *slot, uint32_t longest) {
    const lzs_params *p = &f->params;
    const int32_t token = (int32_t)slot->token - 1;
    lzs_edit edit = {token, 1.0f, 0.0f};
    if (!lzs_listed(p->exempt, p->n_exempt, token)) {
        edit = lzs_counted_edit(p, token, (int32_t)slot->count);
        if (slot->best) edit.bias = lzs_finite(edit.bias + lzs_paper_bias_of_slot(f, slot, longest));
        if (slot->lz) edit.bias = lzs_finite(edit.bias - lzs_bits_float(slot->lz));
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
    const bool paper = p->lz_rule == LZS_RULE_PAPER;
    const int32_t n = row->n, left_out = paper ? p->lz_buffer : 0, lz_most = f->lz_window - left_out;
    const int32_t lz_reach = !f->lz_window ? 0 : n - left_out < lz_most ? n - left_out : lz_most;
    const uint32_t *separators = p->n_lz_separators ? p->lz_separators : NULL, *commas = p->n_lz_commas ? p->lz_commas : NULL;
    const int32_t dry_reach = !f->dry_window ? 0 : n - 1 < f->dry_window - 1 ? n - 1 : f->dry_window - 1;
    const int32_t dry_least = p->dry_allowed_length > 1 ? p->dry_allowed_length : 1;
    lzs_folded folded = {0, LZS_OK};
    LZS_BEGIN(200) {
        if (tid == 0) {
            s->bad_token = s->n_used = s->longest = s->whole = s->long_item = 0;
            s->separator = (uint32_t)n;
            s->comma = s->dry_unbroken = INT32_MAX;
        }
    }
    LZS_NEXT(201) {
        for (int32_t i = (int32_t)tid; i < n && i < f->count_window; i += (int32_t)LZS_THREADS) {
            lzs_fold_slot *slot = lzs_slot_of(s, row, row->history[n - 1 - i]);
            if (slot) lzs_atomic_add(&slot->count, 1u);
        }
        for (uint32_t i = tid; i < p->n_logit_bias; i += LZS_THREADS) {
            lzs_fold_slot *slot = lzs_slot_of(s, row, p->logit_bias[i].token);
            if (slot) slot->bias = i + 1; /* no other thread has this token, since logit_bias names it once */
        }
        uint32_t i = tid;
        while (separators && lz_reach > 0 && i < (uint32_t)n && !lzs_there_in(row, separators, i)) i += LZS_THREADS;
        if (separators && lz_reach > 0) lzs_warp_min(&s->separator, i < (uint32_t)n ? i : UINT32_MAX);
        const int32_t dry_scanned = p->n_dry_breakers ? dry_reach : 0;
        for (int32_t i = (int32_t)tid; i < n && i < dry_scanned; i += (int32_t)LZS_THREADS) {
            const bool breaks = lzs_listed(p->dry_breakers, p->n_dry_breakers, row->history[n - 1 - i]);
            if (breaks) lzs_atomic_min(&s->dry_unbroken, (uint32_t)i);
        }
    }
    LZS_END
    if (commas && lz_reach > 0) {
        LZS_READ(53, uint32_t, separator, separator);
        LZS_BEGIN(203) {
            for (uint32_t i = tid; i < separator; i += LZS_THREADS) lzs_item_at(s, row, i);
        }
        LZS_END
    }
    LZS_BEGIN(205) {
        for (int32_t d = 1 + (int32_t)tid; d <= lz_reach; d += (int32_t)LZS_THREADS) {
            if (paper) {
                lzs_paper_match_at(s, row, d);
            } else {
                lzs_match_at(s, row, d, lzs_lz_unbroken(s));
            }
        }
    }
    LZS_END
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
    const lzs_fold_slot none = {0, 0, 0, 0, 0, 0, 0};
    LZS_BEGIN(220) {
        if (folded.status == LZS_OK) {
            for (uint32_t i = tid; i < n_used; i += LZS_THREADS) {
                lzs_fold_slot *slot = &row->slots[row->used[i]];
                row->edits[i] = lzs_slot_edit(f, slot, s->longest);
                *slot = none;
            }
        } else { /* row->used may lack some of the slots in use */
            for (uint32_t i = tid; i < row->n_slots; i += LZS_THREADS) row->slots[i] = none;
        }
    }
    LZS_END
    return folded;
}

#endif
