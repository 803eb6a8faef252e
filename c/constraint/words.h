/* words.h - where the pre-tokenizer of a vocabulary cuts a text into words, which the rules of merges.h never join.
 *
 * A pre-tokenizer is a regular expression that finds one word after the other. Here it is an automaton that reads one
 * character at a time. It guesses what it cannot know yet, such as whether 'r will be 're. Between two characters it
 * says whether a word begins there. A context is the set of its states that agree with the tokens so far: no word
 * begins inside a token, and between two tokens one begins unless the rules let them stand side by side.
 */
#ifndef LZS_WORDS_H
#define LZS_WORDS_H

#include <stdbool.h>

#include "../include/lzsampler.h"
#include "../table.h"

enum { LZS_WORD_STATES = 20, LZS_WORD_CLASSES = 11 };

typedef struct lzs_words {
    lzs_words_kind kind;
    /* Sets of states after a character, if a word begins with it and if none does. */
    uint32_t apart[LZS_WORD_STATES][LZS_WORD_CLASSES], joined[LZS_WORD_STATES][LZS_WORD_CLASSES];
    uint32_t ends; /* states in which the text may end */
    /* What a byte makes of the beginning of a character: below LZS_WORD_CLASSES its class, above the number of a node,
     * or -1. */
    int16_t first[256];
    int16_t (*nodes)[64];
    size_t n_nodes, nodes_room;
} lzs_words;

/* The caller frees it in any case. */
lzs_status lzs_words_init(lzs_words *words, lzs_words_kind kind);
void lzs_words_free(lzs_words *words);

/* How a byte follows what comes before it. */
typedef enum lzs_joint {
    LZS_INSIDE, /* in the same token */
    LZS_APART,  /* as the first byte of a token, and of a word */
    LZS_EITHER  /* as the first byte of a token, maybe of a word */
} lzs_joint;

enum { LZS_NO_CONTEXT = 0, LZS_TEXT_BEGINS = 1, LZS_ANY_CONTEXT = 2 };

typedef struct lzs_context {
    uint32_t set;  /* states after the last whole character */
    int16_t node;  /* what the bytes after it lead to, 0 if there are none */
    uint8_t joint; /* of the first of these bytes */
    int32_t *next; /* (3, 256) by lzs_joint: -1 is not known yet; NULL before it is asked for */
} lzs_context;

/* The contexts that came up. */
typedef struct lzs_contexts {
    const lzs_words *words;
    lzs_context *all;
    int32_t n;
    size_t room;
    lzs_table table;
} lzs_contexts;

lzs_status lzs_contexts_init(lzs_contexts *contexts, const lzs_words *words);
void lzs_contexts_free(lzs_contexts *contexts);
size_t lzs_contexts_memory(const lzs_contexts *contexts);

lzs_status lzs_contexts_make(lzs_contexts *contexts, int32_t context, uint8_t byte, lzs_joint joint, int32_t *next);

/* The context after a byte; LZS_NO_CONTEXT if it cannot be. */
static inline lzs_status lzs_contexts_step(lzs_contexts *contexts, int32_t context, uint8_t byte, lzs_joint joint,
                                           int32_t *next) {
    const int32_t *row = contexts->all[context].next;
    *next = row ? row[256 * joint + byte] : -1;
    return *next >= 0 ? LZS_OK : lzs_contexts_make(contexts, context, byte, joint, next);
}

/* The context of some given states, between two characters. */
lzs_status lzs_contexts_of(lzs_contexts *contexts, uint32_t set, int32_t *context);

static inline bool lzs_contexts_may_end(const lzs_contexts *contexts, int32_t context) {
    return contexts->all[context].node == 0 && (contexts->all[context].set & contexts->words->ends);
}

#endif
