/* spelling.h - how a tokenizer writes texts as tokens: it joins them by rules, word by word. */
#ifndef LZS_SPELLING_H
#define LZS_SPELLING_H

#include "merges.h"
#include "words.h"

struct lzs_spelling {
    const lzs_vocabulary *vocabulary;
    lzs_merges merges;
    lzs_words words;
    uint8_t *roles; /* (n_vocab) lzs_token_role */
    bool some_whole; /* some are LZS_TOKEN_WHOLE */
    bool by_scores; /* SentencePiece: bytes stand for characters that are not tokens */
    bool whole_words; /* a word that is a token is written as this token, whatever the rules say */
    uint32_t *characters; /* characters that are tokens, ascending, if bytes stand for the others */
    size_t n_characters;
    /* (nodes of the vocabulary) one token ends there, and its bytes alone say its context: it is usual and written. */
    bool *plain;
};

/* How a token may follow another one, or what comes before a text (-1). */
lzs_joint lzs_spelling_joint(const lzs_spelling *spelling, int32_t last, int32_t token);

/* The context after a token; LZS_NO_CONTEXT if the tokenizer does not write it there. */
lzs_status lzs_spelling_step(const lzs_spelling *spelling, lzs_contexts *contexts, int32_t context, int32_t token,
                             lzs_joint joint, int32_t *next);

/* Takes out of a mask the tokens that cannot follow `last` in the same word. */
void lzs_spelling_forbid(const lzs_spelling *spelling, int32_t last, uint32_t *words);

#endif
