/* paper.h - the penalty of the paper (arXiv 2504.20131): computes a bias for each token that occurs in the window of
 * the history. */
#ifndef LZS_PAPER_H
#define LZS_PAPER_H

#include "../state/history.h"
#include "paper_price.h"

/* The best match of a token that has a match longer than 1. */
typedef struct lzs_paper_match {
    uint32_t stamp;   /* if it equals the stamp in lzs_paper, the other fields belong to the present history */
    int32_t length;   /* length of the longest match (L) */
    int32_t distance; /* distance of the longest match, or of the nearest if there are several (D) */
    int32_t nearest;  /* the least distance of any match of the token */
    float value;      /* least cost in bits (only for LZS_LZ_RATE), which lzs_paper_match_all replaces by the bias */
} lzs_paper_match;

/* The data of the paper's penalty. Each lzs_paper_match belongs to an entry of the history's token table. */
typedef struct lzs_paper {
    int32_t reach;  /* greatest distance of a match; 0 when the penalty is off */
    float *bias_at; /* (reach + 1) bias_at[d]: the bias of a token whose best match has length 1 and distance d >= 1 */
    lzs_nearest_price nearest; /* the settings from which bias_at was made */
    lzs_paper_match *matches;  /* (capacity) match of each entry of the token table */
    int32_t *matched;          /* (n_matched of capacity) indices of the entries that have a match longer than 1 */
    uint32_t n_matched;
    size_t capacity;
    uint32_t stamp;
} lzs_paper;

static inline bool lzs_paper_is_on(const lzs_params *p) {
    return p->lz_rule == LZS_RULE_PAPER && p->lz_penalty > 0.0f;
}

lzs_status lzs_paper_init(lzs_paper *paper, const lzs_params *params, float log2_vocab, int32_t reach);
/* Computes bias_at anew, after a change of lz_penalty or lz_formula. */
void lzs_paper_set_prices(lzs_paper *paper, const lzs_params *params, float log2_vocab);
lzs_status lzs_paper_reserve(lzs_paper *paper, size_t capacity);
void lzs_paper_free(lzs_paper *paper);
size_t lzs_paper_memory(const lzs_paper *paper);

/* Finds the matches longer than 1, and computes their biases. A token in reach without such a match has the bias
 * bias_at[d], d being its least distance. */
void lzs_paper_match_all(lzs_paper *paper, const lzs_history *h, const lzs_params *params, float log2_vocab);

/* The bias of a token whose best match has length 1. The token must be in reach. */
static inline float lzs_paper_bias_of(const lzs_paper *paper, const lzs_history *h, const lzs_token_entry *entry) {
    return paper->bias_at[(uint32_t)((int32_t)h->n - entry->last)];
}

#endif
