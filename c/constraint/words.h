/* words.h - where the pre-tokenizer of a vocabulary cuts a text into words. The rules of merges.h join tokens only
 * within a word.
 *
 * A pre-tokenizer is a regular expression that finds one word after the other. Here it is a nondeterministic automaton
 * that reads one character at a time. The automaton guesses what only later characters decide, such as whether 'r will
 * become 're. Between two characters the automaton says whether a word begins. A context is the set of the automaton's
 * states that agree with the tokens so far. No word begins inside a token. If the rules do not let two tokens stand
 * side by side, a word begins between them. If the rules let them stand side by side, a word may begin between them.
 */
#ifndef LZS_WORDS_H
#define LZS_WORDS_H

#include <stdbool.h>

#include "../include/lzsampler.h"
#include "../table.h"

enum { LZS_WORD_STATES = 20, LZS_WORD_CLASSES = 11 };

typedef struct lzs_words {
    lzs_words_kind kind;
    /* By state and class of the next character: the set of next states. `apart` is for a character that begins a word,
     * and `joined` for a character that continues a word. */
    uint32_t apart[LZS_WORD_STATES][LZS_WORD_CLASSES], joined[LZS_WORD_STATES][LZS_WORD_CLASSES];
    uint32_t ends; /* the set of states in which the text may end */
    /* By first byte of a character: -1 means that no character begins with this byte. A value from 0 to
     * LZS_WORD_CLASSES - 1 is the character's class. For a larger value v, nodes[v - LZS_WORD_CLASSES] is the row for
     * the next byte. */
    int16_t first[256];
    int16_t (*nodes)[64];
    size_t n_nodes, nodes_room;
} lzs_words;

/* Makes the automaton of a pre-tokenizer. The caller frees `words`, also after an error. */
lzs_status lzs_words_init(lzs_words *words, lzs_words_kind kind);
void lzs_words_free(lzs_words *words);

/* How a byte follows the byte before it. */
typedef enum lzs_joint {
    LZS_INSIDE, /* the byte is inside a token */
    LZS_APART,  /* the byte begins a token that begins a word */
    LZS_EITHER  /* the byte begins a token that may begin or continue a word */
} lzs_joint;

enum { LZS_NO_CONTEXT = 0, LZS_TEXT_BEGINS = 1, LZS_ANY_CONTEXT = 2 };

typedef struct lzs_context {
    uint32_t set;  /* the set of states after the last complete character */
    /* value of `first` or `nodes` (lzs_words) after the bytes of an incomplete character; 0 if no character is
     * incomplete */
    int16_t node;
    uint8_t joint; /* lzs_joint of the incomplete character's first byte */
    int32_t *next; /* (3, 256) by lzs_joint and byte: the next context, or -1 if it is unknown; NULL until needed */
} lzs_context;

/* All contexts that were reached so far. */
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

/* Finds the context after a byte, or LZS_NO_CONTEXT if the byte cannot follow. */
static inline lzs_status lzs_contexts_step(lzs_contexts *contexts, int32_t context, uint8_t byte, lzs_joint joint,
                                           int32_t *next) {
    const int32_t *row = contexts->all[context].next;
    *next = row ? row[256 * joint + byte] : -1;
    return *next >= 0 ? LZS_OK : lzs_contexts_make(contexts, context, byte, joint, next);
}

/* Finds the context between two characters that has the states `set`. */
lzs_status lzs_contexts_of(lzs_contexts *contexts, uint32_t set, int32_t *context);

static inline bool lzs_contexts_may_end(const lzs_contexts *contexts, int32_t context) {
    return contexts->all[context].node == 0 && (contexts->all[context].set & contexts->words->ends);
}

#endif
