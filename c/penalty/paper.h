/* paper.h - the penalty of the paper (arXiv 2504.20131): history -> a bias for each token that the window repeats. */
#ifndef LZS_PAPER_H
#define LZS_PAPER_H

#include "../state/history.h"
#include "paper_price.h"

/* The best match of a token that has one longer than 1. */
typedef struct lzs_paper_match {
    uint32_t stamp;   /* equal to that of lzs_paper if the rest belongs to the present history */
    int32_t length;   /* of the longest match (L) */
    int32_t distance; /* of the nearest of the longest */
    int32_t nearest;  /* the least distance of a match */
    float value;      /* the least cost in bits (`rate`), then the bias */
} lzs_paper_match;

/* Matches belong to entries of the history's token table. */
typedef struct lzs_paper {
    int32_t reach;  /* distances 1 to this are priced; 0 when it is off */
    float *bias_at; /* (reach + 1) the bias of a token whose best match has length 1, by its distance from 1 on */
    lzs_nearest_price nearest; /* how those were made */
    lzs_paper_match *matches;  /* (capacity) by index of the entry */
    int32_t *matched;          /* (n_matched of capacity) entries that have a match */
    uint32_t n_matched;
    size_t capacity;
    uint32_t stamp;
} lzs_paper;

/* Whether it is on. */
static inline bool lzs_paper_is_on(const lzs_params *p) {
    return p->lz_rule == LZS_RULE_PAPER && p->lz_penalty > 0.0f;
}

lzs_status lzs_paper_init(lzs_paper *paper, const lzs_params *params, float log2_vocab, int32_t reach);
/* After a change of strength or formula. */
void lzs_paper_set_prices(lzs_paper *paper, const lzs_params *params, float log2_vocab);
lzs_status lzs_paper_reserve(lzs_paper *paper, size_t capacity);
void lzs_paper_free(lzs_paper *paper);
size_t lzs_paper_memory(const lzs_paper *paper);

/* Finds and prices the matches longer than 1; a token in reach that has none costs bias_at[its nearest distance]. */
void lzs_paper_match_all(lzs_paper *paper, const lzs_history *h, const lzs_params *params, float log2_vocab);

/* The bias of a token whose best match has length 1; its entry is in reach. */
static inline float lzs_paper_bias_of(const lzs_paper *paper, const lzs_history *h, const lzs_token_entry *entry) {
    return paper->bias_at[(uint32_t)((int32_t)h->n - entry->last)];
}

#endif
