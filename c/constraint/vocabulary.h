/* vocabulary.h - the byte strings of all tokens, as a tree of their beginnings, and what masks take from it at once.
 *
 * Kinds: patterns seldom tell the small letters from g to z apart, or the digits from 1 to 9. Bytes that they rarely
 * tell apart are of one kind. If all bytes of some kinds lead from a state to one and the same, all tokens of these
 * kinds are allowed together.
 *
 * Inner tokens consist of plain bytes (lzs_is_plain) and of characters of several bytes. Almost all tokens do. Inside a
 * string a grammar does not tell one such character from another, so a mask takes these tokens by their number of
 * characters.
 */
#ifndef LZS_VOCABULARY_H
#define LZS_VOCABULARY_H

#include <stdbool.h>

#include "../include/lzsampler.h"

/* Tokens of up to so many bytes are "short" by each of several measures: see state_masks.c. */
#define LZS_SHORT_LEVELS {4, 8, 16, 32, 64}
enum { LZS_N_SHORT = 5, LZS_INNER_LEVELS = 16 };
enum { LZS_KINDS = 29 };

#define LZS_NO_ROOT UINT32_MAX

/* A beginning of tokens. The nodes lie depth first: a node's subtree follows it. */
typedef struct lzs_trie_node {
    uint32_t size; /* nodes of the subtree, this one included */
    int32_t token; /* the first token that ends here, or -1; others have the same bytes: see `same` */
    uint32_t kinds; /* of the bytes below it, a bit each: see above */
    uint16_t depth;
    uint8_t byte;
    uint8_t level : 3; /* of the longest token in the subtree: how many of LZS_SHORT_LEVELS it exceeds */
    uint8_t inner : 1; /* all tokens from here on are inner ones: see above */
    uint8_t wide : 1; /* it is in the list of the nodes with many children */
} lzs_trie_node;

struct lzs_vocabulary {
    int32_t n_vocab;
    size_t n_words; /* of a mask */
    uint8_t *bytes;
    size_t *begins; /* (n_vocab + 1) */
    lzs_trie_node *nodes; /* without the root; NULL if no token has text */
    size_t n_nodes, n_text;
    uint32_t roots[256]; /* the node of each byte that tokens begin with, or LZS_NO_ROOT */
    int32_t *same;    /* (n_vocab) the next token with the same bytes, or -1; NULL if all differ */
    int32_t *ends;    /* tokens that end a text */
    size_t n_ends;
    bool *is_end;     /* (n_vocab) */
    uint32_t *texts;  /* a mask: tokens that are text */
    uint32_t *short_words[LZS_N_SHORT]; /* masks: tokens of at most so many bytes */
    /* (1 + LZS_INNER_LEVELS, n_words) masks: all inner tokens, then those of at most 1, 2 ... characters */
    uint32_t *inner_words;
    int32_t *inner_long;   /* (n_inner_long) those of more characters, by their number */
    uint32_t *inner_counts; /* (n_inner_long) this number */
    size_t n_inner_long;
    uint8_t kind_of[256]; /* the kind of each byte, less than LZS_KINDS */
    int32_t *grouped; /* (n_text) tokens by the set of the kinds of their bytes, then by how many bytes they have */
    uint16_t *grouped_bytes; /* how many */
    uint32_t *group_kinds; /* (n_groups) the sets, ascending */
    uint32_t *group_begins; /* (n_groups + 1) in `grouped` */
    size_t n_groups;
    uint32_t *wide; /* (n_wide) nodes with many children, ascending */
    uint32_t *wide_begins; /* (n_wide + 1) in the two lists of children */
    uint8_t *wide_bytes;
    uint32_t *wide_nodes;
    size_t n_wide;
    bool single[256]; /* bytes that are a token by themselves */
    uint32_t longest; /* bytes of a token, >= 1 */
};

/* The number of a wide node among all of them. */
size_t lzs_wide_number(const lzs_vocabulary *v, uint32_t node);

/* In the place of a number of characters: any number, and not known. */
enum { LZS_INNER_ALL = -1, LZS_INNER_UNKNOWN = -2 };

/* Writes the mask of the inner tokens of at most so many characters. */
void lzs_inner_write(const lzs_vocabulary *v, int32_t most, uint32_t *words);

/* Bytes that stand for themselves in almost every text, strings of JSON among them: tokens have few others. */
static inline bool lzs_is_plain(uint8_t byte) {
    return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
}

static inline bool lzs_bit(const uint32_t *words, int32_t token) {
    return words[token / 32] >> (token % 32) & 1;
}

#endif
