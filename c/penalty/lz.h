/* lz.h - the LZ penalty: history -> a bias for each token that the window repeats. */
#ifndef LZS_LZ_H
#define LZS_LZ_H

#include "../state/history.h"
#include "price.h"

/* The best match of a token, of those that count. */
typedef struct lzs_lz_match {
    uint32_t stamp;   /* equal to that of lzs_lz where the rest belongs to the present history */
    int32_t length;   /* of the longest match (L); 0: none counts */
    int32_t distance; /* of the nearest of the longest */
    int32_t nearest;  /* the least distance of a match that is priced */
    uint32_t matches; /* lzs_counted_match of each; 0 where matches of length 1 are priced */
    int16_t near; /* those of lzs_short_length or more, up to LZS_LZ_NEAR away; INT16_MIN where those of all lengths count */
    float copies;     /* the most of lzs_copies, of a match that covers its own distance; 0 where none does */
    float value;      /* the least cost in bits (`rate`), then the bias */
} lzs_lz_match;

/* Matches belong to entries of the history's token table where matches of length 1 are priced (history.h: by_nearest), and there
 * only those longer than 1 are looked for; else to entries of the table `found` of lzs_edit_list. */
typedef struct lzs_lz {
    int32_t reach;         /* distances 1 to this are priced by_nearest; 0 when they are not */
    float *bias_at;        /* (reach + 1) the bias of a token whose best match has length 1, by its distance from 1 on */
    lzs_nearest_price nearest; /* how those were made */
    lzs_lz_match *matches; /* (capacity) by index of the entry */
    int32_t *matched;      /* (n_matched of capacity) entries that have a match */
    uint32_t n_matched;
    int8_t plain; /* whether the text is plain; -1 where nobody has asked */
    size_t capacity;
    uint32_t stamp;
} lzs_lz;

lzs_status lzs_lz_init(lzs_lz *lz, const lzs_params *params, float log2_vocab, int32_t reach);
/* After a change of strength or formula. */
void lzs_lz_set_prices(lzs_lz *lz, const lzs_params *params, float log2_vocab);
lzs_status lzs_lz_reserve(lzs_lz *lz, size_t capacity);
void lzs_lz_free(lzs_lz *lz);
size_t lzs_lz_memory(const lzs_lz *lz);

/* Finds and prices the matches longer than 1; a token in reach that has none costs bias_at[its nearest distance]. With `found`,
 * finds and prices those of lz_min_match tokens or more, and shorter ones of tokens that come often, and takes their tokens into
 * that table. */
void lzs_lz_match_all(lzs_lz *lz, const lzs_history *h, const lzs_params *params, float log2_vocab, lzs_token_table *found);

/* Why a token costs what it does: the match that sets its price, found anew by a walk through the window. */
typedef struct lzs_lz_reason {
    int32_t length, distance; /* 0, 0 where the token is not in reach */
    float times;              /* what the price is multiplied by */
    float bits, bias;
} lzs_lz_reason;

lzs_lz_reason lzs_lz_explain(const lzs_history *h, const lzs_params *params, float log2_vocab, int32_t token);

/* The bias of a token whose best match has length 1; its entry is in reach. */
static inline float lzs_lz_bias_of(const lzs_lz *lz, const lzs_history *h, const lzs_token_entry *entry) {
    return lz->bias_at[(uint32_t)((int32_t)h->n - entry->last)];
}

#endif
