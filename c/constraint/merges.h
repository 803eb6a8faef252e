/* merges.h - the rules by which a tokenizer joins tokens, and which two tokens it therefore never writes side by side.
 *
 * Byte pair encoding begins with the leaves of a text (its bytes or characters). It keeps applying the rule of the
 * lowest rank that fits somewhere, the leftmost first. The last rule that makes a token joins its left and its right
 * part. Whether the tokenizer writes two tokens side by side is decided at the edge where they meet: if some rule joins
 * a part on the right edge of the first with one on the left edge of the second before either is used up, the tokenizer
 * writes something else. (A sequence of tokens is written so if every two neighbours are: the theorem is in the README
 * of the Rust crate `bpe` by GitHub, 2024.)
 */
#ifndef LZS_MERGES_H
#define LZS_MERGES_H

#include <stdbool.h>

#include "vocabulary.h"

/* When a rule applies, as a number to compare: its rank, but not before its parts are there. */
typedef uint64_t lzs_merge_key;

typedef struct lzs_merge_rule {
    int32_t left, right;
    lzs_merge_key key;
} lzs_merge_rule;

/* Tokens in such an order that a token and everything that it is the first (or last) part of are neighbours, and of
 * these, what comes about late is at the end. */
typedef struct lzs_merge_tree {
    int32_t *place;    /* (n_vocab) of a token in the order */
    int32_t *size;     /* (n_vocab) places of a token and of all that it is the first (or last) part of */
    int32_t *tokens;   /* (n_vocab) in this order */
    int32_t *begins;   /* (n_vocab + 1) into children */
    int32_t *children; /* tokens that a token is the first (or last) part of, by key */
} lzs_merge_tree;

typedef struct lzs_merges {
    int32_t n_vocab;
    bool *written;        /* (n_vocab) the tokenizer writes the bytes of the token as this token */
    lzs_merge_key *keys;  /* (n_vocab) of a token's last rule, by which it comes about and takes up its right part */
    lzs_merge_key *left_ends; /* (n_vocab) when it takes up its left part, as seen from the left */
    int32_t *left, *right; /* (n_vocab) its parts, -1 for a leaf */
    lzs_merge_tree by_left, by_right;
    /* All rules, by key, in the order of their left and of their right parts. */
    lzs_merge_rule *of_left, *of_right;
    int32_t *left_begins, *right_begins; /* (n_vocab + 1) */
    size_t n_rules;
    struct lzs_rule_slot {
        int32_t left, right; /* left is -1 if there is none */
        lzs_merge_key key;
    } *table;
    size_t table_size;
    uint64_t key; /* of its hashes: see hash.h */
    /* (4 * table_size bits) by hash: a 0 says that there is no rule. Few are 1, so it stays in the cache */
    uint32_t *maybe;
} lzs_merges;

/* Makes the rules of a byte pair encoding: `pairs` are the left and right parts of n rules by rank. LZS_EINVAL for ids
 * out of range. The caller frees `merges` in any case. */
lzs_status lzs_merges_of_pairs(lzs_merges *merges, const lzs_vocabulary *v, const int32_t *pairs, size_t n);

/* Makes the rules of a vocabulary of SentencePiece: any two tokens that together are a token are joined, those with the
 * highest score first. Tokens of `lone` are never parts of others. LZS_EINVAL for scores that are NaN. */
lzs_status lzs_merges_of_scores(lzs_merges *merges, const lzs_vocabulary *v, const float *scores, const bool *lone);

void lzs_merges_free(lzs_merges *merges);
size_t lzs_merges_memory(const lzs_merges *merges);

/* Whether the tokenizer writes these two side by side. */
bool lzs_merges_pair(const lzs_merges *merges, int32_t first, int32_t second);

/* Takes out of a mask the tokens that it never writes after `first`. */
void lzs_merges_forbid_after(const lzs_merges *merges, int32_t first, uint32_t *words);

/* Adds to a mask the tokens that it never writes before `second`. */
void lzs_merges_mark_before(const lzs_merges *merges, int32_t second, uint32_t *words);

#endif
