/* merges.h - the rules by which a tokenizer joins tokens, and the pairs of tokens that it therefore never writes side
 * by side.
 *
 * Byte pair encoding begins with the leaves of a text (its bytes or characters). It keeps applying the rule of the
 * lowest rank that fits somewhere, the leftmost first. The last rule that makes a token joins its left and its right
 * part. Whether the tokenizer writes two tokens side by side is decided at the edge where they meet: Suppose that a
 * rule joins a part on the right edge of the first token with a part on the left edge of the second token, before
 * another rule uses up either part. Then the tokenizer writes something else. (If the tokenizer writes every two
 * neighbours of a sequence side by side, it writes the whole sequence. The theorem is in the README of the Rust crate
 * `bpe` by GitHub, 2024.)
 */
#ifndef LZS_MERGES_H
#define LZS_MERGES_H

#include <stdbool.h>

#include "vocabulary.h"

/* When a rule applies, as a number to compare: its rank, but not before both of its parts are made. */
typedef uint64_t lzs_merge_key;

typedef struct lzs_merge_rule {
    int32_t left, right;
    lzs_merge_key key;
} lzs_merge_rule;

/* An order of all tokens. A token is followed by its subtree: all tokens that it is the first (or last) part of,
 * directly or not. Within a subtree, children that are made late come last. */
typedef struct lzs_merge_tree {
    int32_t *place;    /* (n_vocab) by token: its place in the order */
    int32_t *size;     /* (n_vocab) by token: how many tokens its subtree has, itself included */
    int32_t *tokens;   /* (n_vocab) the tokens in this order */
    int32_t *begins;   /* (n_vocab + 1) by token: where its children begin in `children` */
    int32_t *children; /* by parent, then by key: the tokens that the parent is the first (or last) part of */
} lzs_merge_tree;

typedef struct lzs_merges {
    int32_t n_vocab;
    bool *written;        /* (n_vocab) whether the tokenizer writes the token's bytes as this token */
    lzs_merge_key *keys;  /* (n_vocab) the key when a token is made and its right part used up */
    lzs_merge_key *left_ends; /* (n_vocab) the key when its left part is used up, as seen from the left */
    int32_t *left, *right; /* (n_vocab) a token's two parts, -1 for a leaf */
    lzs_merge_tree by_left, by_right;
    /* All rules, grouped by left part and by right part; within a group by key. */
    lzs_merge_rule *of_left, *of_right;
    int32_t *left_begins, *right_begins; /* (n_vocab + 1) */
    size_t n_rules;
    struct lzs_rule_slot {
        int32_t left, right; /* left is -1 in a free slot */
        lzs_merge_key key;
    } *table;
    size_t table_size;
    uint64_t key; /* key of the table's hashes (hash.h) */
    /* (4 * table_size bits) by hash of a pair: a 0 says that the pair has no rule. The bit set is small, so it stays in
     * the cache */
    uint32_t *maybe;
} lzs_merges;

/* Makes the rules of a byte pair encoding: `pairs` are the left and right parts of n rules by rank. LZS_EINVAL for ids
 * out of range. The caller frees `merges` in any case. */
lzs_status lzs_merges_of_pairs(lzs_merges *merges, const lzs_vocabulary *v, const int32_t *pairs, size_t n);

/* Makes the rules of a SentencePiece vocabulary. Any two tokens whose bytes together are a token are joined, the
 * highest score of the joined token first. Tokens in `lone` are never parts of other tokens. LZS_EINVAL if a score is
 * NaN. */
lzs_status lzs_merges_of_scores(lzs_merges *merges, const lzs_vocabulary *v, const float *scores, const bool *lone);

void lzs_merges_free(lzs_merges *merges);
size_t lzs_merges_memory(const lzs_merges *merges);

/* Whether the tokenizer writes the two tokens side by side. */
bool lzs_merges_pair(const lzs_merges *merges, int32_t first, int32_t second);

/* Removes from a mask the tokens that the tokenizer never writes after `first`. */
void lzs_merges_forbid_after(const lzs_merges *merges, int32_t first, uint32_t *words);

/* Adds to a mask the tokens that the tokenizer never writes before `second`. */
void lzs_merges_mark_before(const lzs_merges *merges, int32_t second, uint32_t *words);

#endif
