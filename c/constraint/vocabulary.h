/* vocabulary.h - the byte strings of all tokens, as a tree of their prefixes, and groups of tokens that masks take at
 * once.
 *
 * Kinds: patterns seldom distinguish the letters g to z, or the digits 1 to 9. Bytes that patterns seldom distinguish
 * are of one kind. If all bytes of some kinds lead from a state to the same next state, all tokens of these kinds can
 * be judged together.
 *
 * Inner tokens consist of plain bytes (lzs_is_plain) and of characters of several bytes. Almost all tokens are inner
 * tokens. Inside a string a grammar treats all these characters alike, so a mask takes inner tokens by their number of
 * characters.
 */
#ifndef LZS_VOCABULARY_H
#define LZS_VOCABULARY_H

#include <stdbool.h>

#include "../include/lzsampler.h"

/* At level i > 0, tokens of up to LZS_SHORT_LEVELS[i - 1] bytes are "short" (state_masks.c). */
#define LZS_SHORT_LEVELS {4, 8, 16, 32, 64}
enum { LZS_N_SHORT = 5, LZS_INNER_LEVELS = 16 };
enum { LZS_KINDS = 29 };

#define LZS_NO_ROOT UINT32_MAX

/* A prefix of tokens. Nodes are stored depth first: a node's subtree follows the node. */
typedef struct lzs_trie_node {
    uint32_t size; /* nodes of the subtree, this node included */
    int32_t token; /* the first token with exactly these bytes, or -1; `same` links further ones */
    uint32_t kinds; /* the kinds of the bytes below the node, one bit each */
    uint16_t depth;
    uint8_t byte;
    uint8_t level : 3; /* how many of LZS_SHORT_LEVELS the subtree's longest token exceeds */
    uint8_t inner : 1; /* all tokens of the subtree are inner tokens */
    uint8_t wide : 1; /* the node is in `wide`, the list of nodes with many children */
} lzs_trie_node;

struct lzs_vocabulary {
    int32_t n_vocab;
    size_t n_words; /* words of a mask */
    uint8_t *bytes;
    size_t *begins; /* (n_vocab + 1) */
    lzs_trie_node *nodes; /* the tree without its root; NULL if no token has text */
    size_t n_nodes, n_text;
    uint32_t roots[256]; /* by first byte of a token: its node, or LZS_NO_ROOT */
    int32_t *same;    /* (n_vocab) the next token with the same bytes, or -1; NULL if all differ */
    int32_t *ends;    /* tokens that end a text */
    size_t n_ends;
    bool *is_end;     /* (n_vocab) */
    uint32_t *texts;  /* a mask: tokens that are text */
    uint32_t *short_words[LZS_N_SHORT]; /* masks: tokens of at most so many bytes */
    /* (1 + LZS_INNER_LEVELS, n_words) masks: all inner tokens, then inner tokens of at most 1, 2 ... characters */
    uint32_t *inner_words;
    int32_t *inner_long;   /* (n_inner_long) inner tokens with more characters, sorted by how many */
    uint32_t *inner_counts; /* (n_inner_long) their numbers of characters */
    size_t n_inner_long;
    uint8_t kind_of[256]; /* the kind of each byte, less than LZS_KINDS */
    int32_t *grouped; /* (n_text) text tokens, sorted by the set of their bytes' kinds, then by length */
    uint16_t *grouped_bytes; /* (n_text) their lengths in bytes */
    uint32_t *group_kinds; /* (n_groups) the sets of kinds, ascending */
    uint32_t *group_begins; /* (n_groups + 1) where each group begins in `grouped` */
    size_t n_groups;
    uint32_t *wide; /* (n_wide) nodes with many children, ascending */
    uint32_t *wide_begins; /* (n_wide + 1) where children begin in wide_bytes and wide_nodes */
    uint8_t *wide_bytes;
    uint32_t *wide_nodes;
    size_t n_wide;
    bool single[256]; /* bytes that are a token by themselves */
    uint32_t longest; /* bytes of the longest token, >= 1 */
};

/* The index of a wide node in `wide`. */
size_t lzs_wide_number(const lzs_vocabulary *v, uint32_t node);

/* Special values for a number of characters: any number, and unknown. */
enum { LZS_INNER_ALL = -1, LZS_INNER_UNKNOWN = -2 };

/* Writes the mask of the inner tokens of at most so many characters. */
void lzs_inner_write(const lzs_vocabulary *v, int32_t most, uint32_t *words);

/* Whether a byte stands for itself in almost every text, JSON strings included. Most bytes of tokens are plain. */
static inline bool lzs_is_plain(uint8_t byte) {
    return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
}

static inline bool lzs_bit(const uint32_t *words, int32_t token) {
    return words[token / 32] >> (token % 32) & 1;
}

#endif
