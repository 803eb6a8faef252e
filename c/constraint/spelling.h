/* spelling.h - how a tokenizer writes texts as tokens: word by word, by rules that join tokens. */
#ifndef LZS_SPELLING_H
#define LZS_SPELLING_H

#include "merges.h"
#include "words.h"

struct lzs_spelling {
    const lzs_vocabulary *vocabulary;
    lzs_merges merges;
    lzs_words words;
    uint8_t *roles; /* (n_vocab) lzs_token_role */
    bool some_whole; /* whether some roles are LZS_TOKEN_WHOLE */
    bool by_scores; /* SentencePiece: byte tokens spell the characters that are not tokens */
    bool whole_words; /* a word that is a token is written as this token, whatever the rules say */
    uint32_t *characters; /* characters that are tokens, ascending, if by_scores */
    size_t n_characters;
    /* (nodes of the vocabulary's tree) whether exactly one token ends at the node, and this token is usual and written.
     * Then its bytes alone determine its context. */
    bool *plain;
};

/* How a token may follow the token `last`, or the beginning of a text (last = -1). */
lzs_joint lzs_spelling_joint(const lzs_spelling *spelling, int32_t last, int32_t token);

/* Finds the context after a token, or LZS_NO_CONTEXT if the tokenizer does not write the token there. */
lzs_status lzs_spelling_step(const lzs_spelling *spelling, lzs_contexts *contexts, int32_t context, int32_t token,
                             lzs_joint joint, int32_t *next);

/* Removes from a mask the tokens that cannot follow `last` within one word. */
void lzs_spelling_forbid(const lzs_spelling *spelling, int32_t last, uint32_t *words);

#endif
