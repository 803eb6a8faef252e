/* lzsampler_grammar.h - grammars of the sampler: which texts are allowed, and with which tokens they may be written.
 *
 * lzsampler.h includes it. A grammar makes states and masks when they are first needed, so only one thread at a time
 * may use it. Vocabularies and spellings never change, so any number of grammars and threads may share a vocabulary or
 * a spelling. Every free function accepts NULL.
 */
#ifndef LZSAMPLER_GRAMMAR_H
#define LZSAMPLER_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "lzsampler_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

typedef struct lzs_vocabulary lzs_vocabulary;
typedef struct lzs_grammar lzs_grammar;
typedef struct lzs_spelling lzs_spelling;

/* ---- grammars: which texts are allowed, for one vocabulary ---- */

#define LZS_GRAMMAR_MAX_PATTERN 4194304 /* greatest number of bytes of a pattern, or of all choices together */
#define LZS_GRAMMAR_MAX_DEPTH 250       /* greatest depth of nested groups */
#define LZS_GRAMMAR_MAX_COUNT 1000000   /* greatest m and n of {m,n} */

typedef enum lzs_token_kind {
    LZS_TOKEN_TEXT = 0,    /* the token adds its bytes to the text */
    LZS_TOKEN_SPECIAL = 1, /* a grammar never allows the token */
    LZS_TOKEN_END = 2      /* the token ends the text: a grammar allows it where the text matches, and then allows only
                            * LZS_TOKEN_END tokens */
} lzs_token_kind;

/* Makes a vocabulary of n_vocab tokens. `bytes` holds the bytes of all tokens, one token after the other: the bytes of
 * token i end at offset ends[i]. kinds[i] is the lzs_token_kind of token i. Only the bytes of text tokens count. A
 * grammar never allows a text token without bytes. Everything is copied. LZS_EINVAL if no token ends a text, or a token
 * has more than 65,535 bytes. */
LZS_API lzs_status lzs_vocabulary_new(int32_t n_vocab, const uint8_t *bytes, const uint64_t *ends, const uint8_t *kinds,
                                      lzs_vocabulary **vocabulary);
LZS_API void lzs_vocabulary_free(lzs_vocabulary *vocabulary);
LZS_API size_t lzs_vocabulary_memory(const lzs_vocabulary *vocabulary);

/* The reason why a grammar could not be made. */
typedef struct lzs_grammar_error {
    size_t offset;    /* offset of the error in the pattern, in bytes; SIZE_MAX if the error is about the whole
                       * pattern */
    char reason[120]; /* one line of English; empty if the status says enough */
} lzs_grammar_error;

/* Makes a grammar of the texts that a regular expression matches from beginning to end. Pattern and texts are UTF-8;
 * docs/grammar.md describes the dialect. If the dialect lacks a part of the pattern, fails with LZS_EINVAL and fills
 * `error` (unless it is NULL): no part is ignored. The vocabulary is borrowed, and must outlive the grammar.
 *
 * A grammar makes states and masks when they are first needed. When states and masks take more than about max_bytes (0
 * is 128 MiB), the grammar forgets them. Several samplers may share a grammar if they use it one after another. */
LZS_API lzs_status lzs_grammar_new_regex(const char *pattern, size_t n, const lzs_vocabulary *vocabulary,
                                         size_t max_bytes, lzs_grammar_error *error, lzs_grammar **grammar);

/* Makes a grammar that allows exactly n texts (n > 0). The texts lie one after the other in `texts`: text i ends at
 * offset ends[i]. */
LZS_API lzs_status lzs_grammar_new_choices(const uint8_t *texts, const uint64_t *ends, size_t n,
                                           const lzs_vocabulary *vocabulary, size_t max_bytes, lzs_grammar_error *error,
                                           lzs_grammar **grammar);

typedef enum lzs_part_kind {
    LZS_PART_TEXT = 0,     /* text[first .. first + n), as it is */
    LZS_PART_REGEX = 1,    /* what the regular expression text[first .. first + n) matches */
    /* the inside (without quotes) of a JSON string. The value of the string has min to max characters. ECMAScript's
     * search finds in it a match of the regular expression text[first .. first + n) */
    LZS_PART_PATTERN = 2,
    LZS_PART_SEQUENCE = 3, /* parts number children[first .. first + n), one after the other */
    LZS_PART_CHOICE = 4,   /* one of the parts children[first .. first + n); n > 0 */
    LZS_PART_REPEAT = 5,   /* children[first], repeated min to max times; if n is 2, with children[first + 1] between
                            * two repetitions */
    LZS_PART_LIST = 6,     /* parts children[first + 1 .. first + n) in this order, with children[first] between two
                            * parts. A text may omit each part that is a REPEAT of 0 to 1, but has at least min (0 or 1)
                            * parts */
    LZS_PART_YAML = 7,     /* as PATTERN, for a YAML string: only with characters that a YAML string can hold
                            * unescaped */
    LZS_PART_SHARED = 8    /* as SEQUENCE with n > 0; grammars with equal SHARED parts can share the masks of these
                            * parts (lzs_grammar_share) */
} lzs_part_kind;

#define LZS_PART_UNBOUNDED 4294967295u /* `max` of a part without an upper limit */

typedef struct lzs_part {
    int32_t kind; /* lzs_part_kind */
    uint32_t first, n;
    uint32_t min, max; /* in a REPEAT at most LZS_GRAMMAR_MAX_COUNT */
} lzs_part;

/* Makes a grammar of the texts that the last of n_parts parts allows. The children of a part come before the part. A
 * part may be a child of several parts: the automaton then has a copy for each parent. LZS_EINVAL as for a regular
 * expression; the error's offset is an offset into `text`. */
LZS_API lzs_status lzs_grammar_new_parts(const lzs_part *parts, size_t n_parts, const uint32_t *children,
                                         size_t n_children,
                                         const uint8_t *text, size_t n_text, const lzs_vocabulary *vocabulary,
                                         size_t max_bytes, lzs_grammar_error *error, lzs_grammar **grammar);
LZS_API void lzs_grammar_free(lzs_grammar *grammar);

/* lzs_grammar_memory returns the bytes that a grammar holds, its vocabulary not included. lzs_grammar_states returns
 * the number of states that the grammar holds now. */
LZS_API size_t lzs_grammar_memory(const lzs_grammar *grammar);
LZS_API size_t lzs_grammar_states(const lzs_grammar *grammar);

/* Returns one line of English that says which limit the last step with LZS_ELIMIT reached, or NULL if there was no such
 * step. Limits are counts, not times: the same text reaches the same limit on every machine. */
LZS_API const char *lzs_grammar_problem(const lzs_grammar *grammar);

typedef enum lzs_match {
    LZS_NO_MATCH = 0,  /* no text that begins with this text matches */
    LZS_BEGINNING = 1, /* a longer text that begins with this text matches, but this text does not */
    LZS_MATCH = 2
} lzs_match;

/* Gives the lzs_match of n bytes of text. */
LZS_API lzs_status lzs_grammar_match(lzs_grammar *grammar, const char *text, size_t n, int32_t *match);

/* For inspecting a grammar, which is an automaton over bytes. Gives the state after a byte, or -1 if no text that
 * matches continues with this byte. LZS_ELIMIT as in sampling. The number of a state is valid until a sampler or
 * lzs_grammar_match uses the grammar. */
#define LZS_GRAMMAR_START 2 /* the state before the first byte */
LZS_API lzs_status lzs_grammar_step(lzs_grammar *grammar, int32_t state, uint8_t byte, int32_t *next);

/* Gives whether the text matches in a state, and the mask of the tokens that the state allows (as in lzs_set_mask).
 * LZS_EINVAL if `state` is not a state, or n_words is not the size of a mask. */
LZS_API lzs_status lzs_grammar_state(lzs_grammar *grammar, int32_t state, int32_t *matches, uint32_t *words,
                                     size_t n_words);

/* ---- grammars of another engine ---- */

#define LZS_GRAMMAR_DEAD 0  /* the state after a token that is not allowed */
#define LZS_GRAMMAR_ENDED 1 /* the state after an end token that was allowed */

/* Functions of another grammar engine. The engine may give its states any numbers, but LZS_GRAMMAR_START is the first
 * state. The library passes `user` to each function and never reads it. If a function returns another status than
 * LZS_OK, the step fails with that status. The functions are called from the thread that samples. */
typedef struct lzs_grammar_engine {
    void *user;
    /* Gives the state after a token, which may be any token of the vocabulary. */
    int32_t (*accept)(void *user, int32_t state, int32_t token, int32_t *next);
    /* Sets the bits of the tokens that a state allows. All n_words words are 0 before the call. */
    int32_t (*mask)(void *user, int32_t state, uint32_t *words, size_t n_words);
    /* Called before each step: the engine may forget states here. It must keep LZS_GRAMMAR_START, `state` and the
     * states on the way to `state`. If the engine has forgotten other states, it sets *forgot to 1. It must never use
     * the numbers of forgotten states again. */
    int32_t (*trim)(void *user, int32_t state, int32_t *forgot);
    /* Not 0 if making a mask is slow. At temperature 0, lzs_sample and lzs_step then pick the best of all tokens first,
     * and ask `accept` about this token. A mask is made only if the token is not allowed. The result is the same as
     * with a mask. */
    int32_t picks_first;
} lzs_grammar_engine;

/* Makes a grammar from another engine. Only samplers can use it: lzs_grammar_match, _step, _state, _share and
 * _set_tokenization return LZS_EINVAL for it. */
LZS_API lzs_status lzs_grammar_new_engine(const lzs_vocabulary *vocabulary, const lzs_grammar_engine *engine,
                                          lzs_grammar **grammar);

/* ---- masks that grammars share ---- */

typedef struct lzs_part_masks lzs_part_masks;

/* Makes a store of the masks of LZS_PART_SHARED parts, for all grammars of one vocabulary. The vocabulary is borrowed.
 * If two grammars contain the same part, the second finds the masks of the first in the store. The store changes no
 * mask. When the store holds more than about max_bytes (0 is 32 MiB), it forgets masks. Any number of grammars and
 * threads may use a store. While another thread uses the store, a grammar makes its own masks. */
LZS_API lzs_status lzs_part_masks_new(const lzs_vocabulary *vocabulary, size_t max_bytes, lzs_part_masks **masks);
LZS_API void lzs_part_masks_free(lzs_part_masks *masks);

typedef struct lzs_part_masks_figures {
    size_t n_parts, n_masks, bytes; /* numbers of parts, masks and bytes in the store */
    uint64_t found, made;           /* number of masks that grammars found in the store, and number of masks that they
                                     * made */
} lzs_part_masks_figures;
/* Gives the figures of a store. LZS_ELIMIT while another thread uses the store. */
LZS_API lzs_status lzs_part_masks_look(lzs_part_masks *masks, lzs_part_masks_figures *figures);

/* Lets a grammar use a store of masks (NULL: none), which must outlive the grammar. LZS_EINVAL if their vocabularies
 * differ. */
LZS_API lzs_status lzs_grammar_share(lzs_grammar *grammar, lzs_part_masks *masks);

/* ---- tokenization: which sequences of tokens may write a text ---- */

typedef enum lzs_words_kind { /* how the pre-tokenizer cuts a text into words; merges never cross the end of a word */
    LZS_WORDS_NONE = 0,        /* the whole text is one word, as in SentencePiece */
    LZS_WORDS_GPT2 = 1,        /* llama.cpp's "gpt-2" */
    LZS_WORDS_GPT2_DIGITS = 2, /* as GPT2, but each digit is a word: "smollm", "starcoder", "refact", "command-r" */
    LZS_WORDS_LLAMA3 = 3,      /* "llama-bpe": up to three digits are a word */
    LZS_WORDS_QWEN2 = 4        /* "qwen2": as LLAMA3, but each digit is a word */
} lzs_words_kind;

typedef enum lzs_token_role {
    LZS_TOKEN_USUAL = 0,
    LZS_TOKEN_BYTE = 1, /* SentencePiece: writes one byte of a character that has no token of its own */
    LZS_TOKEN_WHOLE = 2 /* a token that the tokenizer looks for in a text before all other tokens, such as a
                         * user-defined token */
} lzs_token_role;

/* Makes a spelling, which knows how a tokenizer writes texts as tokens. The vocabulary is borrowed. Any number of
 * grammars and threads may share a spelling. `roles` has an lzs_token_role for each token; NULL if all are usual.
 *
 * lzs_spelling_new_pairs is for byte pair encoding. `pairs` holds the two tokens of each of n merges, in order of rank.
 * `words` is an lzs_words_kind. If whole_words is not 0, a word that is itself a token is written as this token,
 * whatever the merges say (Llama 3; not with LZS_WORDS_NONE). lzs_spelling_new_scores is for SentencePiece: `scores`
 * has a score for each token. LZS_EINVAL if an argument is out of range, such as a score that is NaN. */
LZS_API lzs_status lzs_spelling_new_pairs(const lzs_vocabulary *vocabulary, const uint8_t *roles, const int32_t *pairs,
                                          size_t n, int32_t words, int32_t whole_words, lzs_spelling **spelling);
LZS_API lzs_status lzs_spelling_new_scores(const lzs_vocabulary *vocabulary, const uint8_t *roles, const float *scores,
                                           lzs_spelling **spelling);
LZS_API void lzs_spelling_free(lzs_spelling *spelling);
LZS_API size_t lzs_spelling_memory(const lzs_spelling *spelling);

/* Compares n tokens with the tokens that the tokenizer writes for the same text. *wrong is the index of the first token
 * that the tokenizer would write differently. *wrong is n if the tokenizer writes these tokens only at the beginning of
 * a longer text. *wrong is SIZE_MAX if the tokenizer writes exactly these tokens. */
LZS_API lzs_status lzs_spelling_check(const lzs_spelling *spelling, const int32_t *tokens, size_t n, size_t *wrong);

typedef enum lzs_tokenization {
    LZS_TOKENIZATION_ANY = 0,    /* every sequence of tokens that writes an allowed text */
    LZS_TOKENIZATION_FORCED = 1, /* if the next byte is forced, only the tokens that the tokenizer writes for the forced
                                  * bytes */
    LZS_TOKENIZATION_PROPER = 2  /* only the tokens that the tokenizer writes for an allowed text */
} lzs_tokenization;

/* Sets the lzs_tokenization of a new grammar. The tokenization can be set only once. The spelling is borrowed, and must
 * be of the grammar's vocabulary (else LZS_EINVAL). With LZS_TOKENIZATION_ANY the spelling may be NULL. */
LZS_API lzs_status lzs_grammar_set_tokenization(lzs_grammar *grammar, const lzs_spelling *spelling,
                                                int32_t tokenization);

/* Makes a grammar that allows every text, but only with the tokens that the tokenizer would write. Tokens that are not
 * text are allowed. */
LZS_API lzs_status lzs_grammar_new_proper(const lzs_spelling *spelling, size_t max_bytes, lzs_grammar **grammar);

/* cdef-end */

#ifdef __cplusplus
}
#endif

#endif
