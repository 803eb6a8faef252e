/* vocabulary.h - the byte strings of all tokens, as a tree of their prefixes, and groups of tokens that are added to a
 * mask at once. A mask is a set of tokens with one bit per token, in 32-bit words.
 *
 * A kind is a set of bytes that patterns seldom distinguish, such as the letters g to z or the digits 1 to 9. If all
 * bytes of some kinds lead from a state to the same next state, all tokens of these bytes are added together.
 *
 * Inner tokens consist of plain bytes (lzs_is_plain) and of characters of several bytes. Almost all tokens are inner
 * tokens. Inside a string, a grammar treats all these characters alike. So inner tokens are added to a mask by their
 * number of characters.
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

/* A node of the tree: a prefix of tokens. Nodes are stored depth first, so the nodes of a subtree are contiguous. */
typedef struct lzs_trie_node {
    uint32_t size; /* number of nodes of the subtree, this node included */
    int32_t token; /* the first token with exactly these bytes, or -1; `same` links further such tokens */
    uint32_t kinds; /* the kinds of the bytes below the node, one bit for each kind */
    uint16_t depth;
    uint8_t byte;
    uint8_t level : 3; /* number of LZS_SHORT_LEVELS that the longest token of the subtree exceeds */
    uint8_t inner : 1; /* whether all tokens of the subtree are inner tokens */
    uint8_t wide : 1; /* whether the node is in `wide`, the list of nodes with many children */
} lzs_trie_node;

struct lzs_vocabulary {
    int32_t n_vocab;
    size_t n_words; /* number of 32-bit words of a mask */
    uint8_t *bytes;
    size_t *begins; /* (n_vocab + 1) by token: where its bytes begin in `bytes` */
    lzs_trie_node *nodes; /* (n_nodes) the tree without its root */
    size_t n_nodes, n_text;
    uint32_t roots[256]; /* by byte: the node of depth 1 with this byte, or LZS_NO_ROOT */
    int32_t *same;    /* (n_vocab) by token: the next token with the same bytes, or -1 */
    int32_t *ends;    /* (n_ends) tokens that end a text */
    size_t n_ends;
    bool *is_end;     /* (n_vocab) by token: whether it ends a text */
    uint32_t *texts;  /* the mask of tokens that are text */
    /* masks of the tokens of at most 4, 8, 16, 32 and 64 bytes (LZS_SHORT_LEVELS) */
    uint32_t *short_words[LZS_N_SHORT];
    /* (1 + LZS_INNER_LEVELS, n_words) masks: mask 0 has all inner tokens, and mask i has the inner tokens of at most i
     * characters */
    uint32_t *inner_words;
    /* (n_inner_long) inner tokens of more than LZS_INNER_LEVELS characters, sorted by number of characters */
    int32_t *inner_long;
    uint32_t *inner_counts; /* (n_inner_long) by index in `inner_long`: number of characters of the token */
    size_t n_inner_long;
    uint8_t kind_of[256]; /* by byte: its kind, less than LZS_KINDS */
    /* (n_text) text tokens, sorted by the set of kinds of their bytes, then by length. Tokens with the same set are a
     * group. */
    int32_t *grouped;
    uint16_t *grouped_bytes; /* (n_text) by index in `grouped`: number of bytes of the token */
    uint32_t *group_kinds; /* (n_groups) by group: its set of kinds, ascending */
    uint32_t *group_begins; /* (n_groups + 1) by group: where it begins in `grouped` */
    size_t n_groups;
    uint32_t *wide; /* (n_wide) nodes with many children, ascending */
    uint32_t *wide_begins; /* (n_wide + 1) by index in `wide`: where its children begin in wide_bytes and wide_nodes */
    uint8_t *wide_bytes;
    uint32_t *wide_nodes;
    size_t n_wide;
    bool single[256]; /* by byte: whether a token consists of this byte alone */
    uint32_t longest; /* number of bytes of the longest token, at least 1 */
};

/* Returns the index of a node in `wide`. */
size_t lzs_wide_number(const lzs_vocabulary *v, uint32_t node);

/* Special values of the number of characters that may follow. LZS_INNER_ALL: any number may follow. LZS_INNER_UNKNOWN:
 * the number is unknown. */
enum { LZS_INNER_ALL = -1, LZS_INNER_UNKNOWN = -2 };

/* Writes the mask of the inner tokens of at most `most` characters. */
void lzs_inner_write(const lzs_vocabulary *v, int32_t most, uint32_t *words);

/* Whether a byte is plain. A plain byte stands for itself in almost every text, also inside a JSON string. Most bytes
 * of tokens are plain. */
static inline bool lzs_is_plain(uint8_t byte) {
    return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
}

static inline bool lzs_bit(const uint32_t *words, int32_t token) {
    return words[token / 32] >> (token % 32) & 1;
}

#endif
