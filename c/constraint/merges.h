/* merges.h - the rules by which a tokenizer joins tokens, and the pairs of tokens that the tokenizer never writes side
 * by side.
 *
 * Byte pair encoding begins with the leaves of a text, which are its bytes or characters. Then the encoding repeatedly
 * applies the rule of the lowest rank among all rules that fit, at the leftmost position. A rule joins two tokens, its
 * left and its right part, into one token. The parts of a token are the parts of the last rule that makes the token.
 *
 * Whether the tokenizer writes two tokens side by side is decided at the edge where they meet. A rule may join a part
 * on the right edge of the first token with a part on the left edge of the second token. If this rule applies before
 * another rule uses up either part, the tokenizer writes other tokens. If the tokenizer writes every two neighbours of
 * a sequence side by side, it writes the whole sequence. The theorem is in the README of the Rust crate `bpe` by
 * GitHub, 2024.
 */
#ifndef LZS_MERGES_H
#define LZS_MERGES_H

#include <stdbool.h>

#include "vocabulary.h"

/* When a rule applies, as a number to compare. The upper 32 bits are a time. It is the largest of three numbers: the
 * rank of the rule, and the times when the rule's left part and right part are made. The lower 32 bits are the rank of
 * the rule. */
typedef uint64_t lzs_merge_key;

typedef struct lzs_merge_rule {
    int32_t left, right;
    lzs_merge_key key;
} lzs_merge_rule;

/* A tree of tokens, and an order of all tokens. In `by_left`, the parent of a token is its left part. In `by_right`,
 * the parent is its right part. In the order, a token is followed by the rest of its subtree. Children that use up
 * their parent later come later. */
typedef struct lzs_merge_tree {
    int32_t *place;    /* (n_vocab) by token: its index in `tokens` */
    int32_t *size;     /* (n_vocab) by token: number of tokens in its subtree */
    int32_t *tokens;   /* (n_vocab) all tokens in the order */
    int32_t *begins;   /* (n_vocab + 1) by token: index of its first child in `children` */
    int32_t *children; /* all children, sorted by parent and then by the key when a child uses up its parent */
} lzs_merge_tree;

typedef struct lzs_merges {
    int32_t n_vocab;
    bool *written;        /* (n_vocab) by token: whether the tokenizer writes its bytes as this one token */
    /* (n_vocab) by token: the key of the rule that makes the token. This rule uses up the token's right part. */
    lzs_merge_key *keys;
    /* (n_vocab) by token: the key when its left part is used up, for comparison with rules further left */
    lzs_merge_key *left_ends;
    int32_t *left, *right; /* (n_vocab) by token: its two parts, or -1 if the token is a leaf or is not written */
    lzs_merge_tree by_left, by_right;
    /* All rules that can apply, grouped by left part and by right part. The rules of a group are sorted by key. */
    lzs_merge_rule *of_left, *of_right;
    int32_t *left_begins, *right_begins; /* (n_vocab + 1) by part: where its group begins */
    size_t n_rules;
    struct lzs_rule_slot {
        int32_t left, right; /* left is -1 in a free slot */
        lzs_merge_key key;
    } *table;
    size_t table_size;
    uint64_t key; /* key of the table's hashes (hash.h) */
    /* (4 * table_size bits) by hash of a pair: 0 if no rule joins the pair. The bit set is small, so it stays in the
     * cache. */
    uint32_t *maybe;
} lzs_merges;

/* Makes the rules of a byte pair encoding. `pairs` has the left and right parts of n rules, sorted by rank. Returns
 * LZS_EINVAL if an id is out of range. The caller frees `merges`, also after an error. */
lzs_status lzs_merges_of_pairs(lzs_merges *merges, const lzs_vocabulary *v, const int32_t *pairs, size_t n);

/* Makes the rules of a SentencePiece vocabulary. There is a rule for any two tokens whose joined bytes are a token. The
 * higher the score of the joined token, the lower the rank of the rule. Tokens in `lone` are in no rule. Returns
 * LZS_EINVAL if a score is NaN. */
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
