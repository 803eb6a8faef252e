/* spelling.h - how a tokenizer writes texts as tokens. The tokenizer cuts a text into words (words.h), and joins tokens
 * inside each word by rules (merges.h).
 */
#ifndef LZS_SPELLING_H
#define LZS_SPELLING_H

#include "merges.h"
#include "words.h"

struct lzs_spelling {
    const lzs_vocabulary *vocabulary;
    lzs_merges merges;
    lzs_words words;
    uint8_t *roles; /* (n_vocab) by token: its lzs_token_role */
    bool some_whole; /* whether some token has the role LZS_TOKEN_WHOLE */
    bool by_scores; /* whether this is SentencePiece, where byte tokens spell the characters that are not tokens */
    bool whole_words; /* whether a word that is a token is written as this token, whatever the rules say */
    uint32_t *characters; /* (n_characters) if by_scores: code points of the characters that are tokens, ascending */
    size_t n_characters;
    /* (v->n_nodes) by node of the vocabulary's tree: whether only one token ends here, this token has the role
     * LZS_TOKEN_USUAL, and the tokenizer writes this token. Then the token's bytes alone determine the context after
     * the token. */
    bool *plain;
};

/* Returns how a token may follow the token `last`, or how it may begin a text if `last` is -1. */
lzs_joint lzs_spelling_joint(const lzs_spelling *spelling, int32_t last, int32_t token);

/* Finds the context after a token. *next is LZS_NO_CONTEXT if the tokenizer does not write the token in `context`. */
lzs_status lzs_spelling_step(const lzs_spelling *spelling, lzs_contexts *contexts, int32_t context, int32_t token,
                             lzs_joint joint, int32_t *next);

/* Removes from a mask (`words`) the tokens that cannot follow `last` within one word of the text. */
void lzs_spelling_forbid(const lzs_spelling *spelling, int32_t last, uint32_t *words);

#endif
