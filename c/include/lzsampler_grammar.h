/* lzsampler_grammar.h - grammars of the sampler: which texts are allowed, and which tokens may spell them.
 *
 * lzsampler.h includes it. A grammar makes states and masks when they are first needed, and is used from one thread at a time;
 * a vocabulary and a spelling never change, and any number of grammars and threads may share them. Every free accepts NULL.
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

#define LZS_GRAMMAR_MAX_PATTERN 4194304 /* bytes of a pattern, or of all choices together */
#define LZS_GRAMMAR_MAX_DEPTH 250       /* groups within groups */
#define LZS_GRAMMAR_MAX_COUNT 1000000   /* m and n of {m,n} */

typedef enum lzs_token_kind {
    LZS_TOKEN_TEXT = 0,    /* adds its bytes to the text */
    LZS_TOKEN_SPECIAL = 1, /* a grammar never allows it */
    LZS_TOKEN_END = 2      /* ends the text: a grammar allows it where the text matches, and nothing but such tokens behind it */
} lzs_token_kind;

/* The bytes of n_vocab tokens, one after the other: those of token i end at ends[i]. kinds[i] is its lzs_token_kind; bytes of
 * tokens that are not text are not looked at, and a token without bytes is never allowed. Everything is copied. LZS_EINVAL
 * when no token ends a text, or one has more than 65,535 bytes. */
LZS_API lzs_status lzs_vocabulary_new(int32_t n_vocab, const uint8_t *bytes, const uint64_t *ends, const uint8_t *kinds,
                                      lzs_vocabulary **vocabulary);
LZS_API void lzs_vocabulary_free(lzs_vocabulary *vocabulary);
LZS_API size_t lzs_vocabulary_memory(const lzs_vocabulary *vocabulary);

/* Why a grammar could not be made. */
typedef struct lzs_grammar_error {
    size_t offset;    /* the byte of the pattern that it is about; SIZE_MAX where it is about all of it */
    char reason[120]; /* one line of English; empty where the status says it all */
} lzs_grammar_error;

/* The texts that a regular expression matches from beginning to end, in UTF-8; docs/grammar.md has the dialect. LZS_EINVAL,
 * with `error` filled (which may be NULL), for what it cannot do: nothing of a pattern is ever ignored. The vocabulary is
 * borrowed, and must outlive the grammar.
 *
 * A grammar makes its states and masks when they are first asked for, and forgets them when they need more than about
 * max_bytes (0 is 128 MiB). Samplers may share it, one thread at a time. */
LZS_API lzs_status lzs_grammar_new_regex(const char *pattern, size_t n, const lzs_vocabulary *vocabulary, size_t max_bytes,
                                         lzs_grammar_error *error, lzs_grammar **grammar);

/* One of n > 0 texts, which lie one after the other: text i ends at ends[i]. */
LZS_API lzs_status lzs_grammar_new_choices(const uint8_t *texts, const uint64_t *ends, size_t n,
                                           const lzs_vocabulary *vocabulary, size_t max_bytes, lzs_grammar_error *error,
                                           lzs_grammar **grammar);

typedef enum lzs_part_kind {
    LZS_PART_TEXT = 0,     /* text[first .. first + n), as it is */
    LZS_PART_REGEX = 1,    /* what that regular expression matches */
    LZS_PART_PATTERN = 2,  /* the inside of a string of JSON of min to max characters, in whose value ECMAScript finds it */
    LZS_PART_SEQUENCE = 3, /* parts number children[first .. first + n), one after the other */
    LZS_PART_CHOICE = 4,   /* one of them; n > 0 */
    LZS_PART_REPEAT = 5,   /* children[first], min to max times; with children[first + 1] between them if n is 2 */
    LZS_PART_LIST = 6,     /* children[first + 1 .. first + n) in this order, with children[first] between them; those that
                            * are a REPEAT of 0 to 1 may be left out, but min of all, 0 or 1, must be there */
    LZS_PART_YAML = 7,     /* as a PATTERN, of a string of YAML: without characters that it cannot hold as they are */
    LZS_PART_SHARED = 8    /* as a SEQUENCE of n > 0 parts, whose masks lzs_grammar_share keeps */
} lzs_part_kind;

#define LZS_PART_UNBOUNDED 4294967295u /* max of a part that has no most */

typedef struct lzs_part {
    int32_t kind; /* lzs_part_kind */
    uint32_t first, n;
    uint32_t min, max; /* of a REPEAT at most LZS_GRAMMAR_MAX_COUNT */
} lzs_part;

/* The last of n_parts parts. Each is made of parts before it, and may be in several others, for each of which the automaton
 * has a copy of it. LZS_EINVAL as for a regular expression: an error's offset is into the text. */
LZS_API lzs_status lzs_grammar_new_parts(const lzs_part *parts, size_t n_parts, const uint32_t *children, size_t n_children,
                                         const uint8_t *text, size_t n_text, const lzs_vocabulary *vocabulary,
                                         size_t max_bytes, lzs_grammar_error *error, lzs_grammar **grammar);
LZS_API void lzs_grammar_free(lzs_grammar *grammar);

/* The bytes that a grammar holds, without its vocabulary, and the states that it has at the moment. */
LZS_API size_t lzs_grammar_memory(const lzs_grammar *grammar);
LZS_API size_t lzs_grammar_states(const lzs_grammar *grammar);

/* Which limit the last step reached that answered LZS_ELIMIT: one line of English, else NULL. The limits are counters, so that
 * the same text reaches the same limit on every machine. */
LZS_API const char *lzs_grammar_problem(const lzs_grammar *grammar);

typedef enum lzs_match {
    LZS_NO_MATCH = 0,  /* no text that begins so matches */
    LZS_BEGINNING = 1, /* some text that begins so matches, but this one does not */
    LZS_MATCH = 2
} lzs_match;

/* What a grammar says of n bytes of text. */
LZS_API lzs_status lzs_grammar_match(lzs_grammar *grammar, const char *text, size_t n, int32_t *match);

/* For looking at a grammar, which is an automaton over bytes: where a byte leads from a state; -1 where nothing that matches
 * goes on so. LZS_ELIMIT as in sampling. States are numbers that hold until a sampler or lzs_grammar_match uses the grammar. */
#define LZS_GRAMMAR_START 2 /* the state before the first byte */
LZS_API lzs_status lzs_grammar_step(lzs_grammar *grammar, int32_t state, uint8_t byte, int32_t *next);

/* Whether the text matches in a state, and the tokens that it allows, in one bit each as in lzs_set_mask: LZS_EINVAL for a
 * number that is not a state's, and for another number of words. */
LZS_API lzs_status lzs_grammar_state(lzs_grammar *grammar, int32_t state, int32_t *matches, uint32_t *words, size_t n_words);

/* ---- grammars of another engine ---- */

#define LZS_GRAMMAR_DEAD 0  /* the state behind a token that is not allowed */
#define LZS_GRAMMAR_ENDED 1 /* behind one that ended the text */

/* Functions of another engine, which numbers its states as it likes from LZS_GRAMMAR_START on; `user` is its own. Any status but
 * LZS_OK ends the step with that status. They are called from the thread that samples. */
typedef struct lzs_grammar_engine {
    void *user;
    /* The state behind a token, which may be any of the vocabulary. */
    int32_t (*accept)(void *user, int32_t state, int32_t token, int32_t *next);
    /* The tokens that a state allows, in n_words words, which are all zero. */
    int32_t (*mask)(void *user, int32_t state, uint32_t *words, size_t n_words);
    /* Before each step: *forgot is 1 where it has forgotten all states but LZS_GRAMMAR_START, `state` and those on the way to it.
     * The numbers of those that it forgot must not come again. */
    int32_t (*trim)(void *user, int32_t state, int32_t *forgot);
    /* Not 0 where masks take long: lzs_sample and lzs_step at temperature 0 then pick among all tokens first, and ask `accept` about
     * that one. It is the same token as with a mask, which is made only where the first one is not allowed. */
    int32_t picks_first;
} lzs_grammar_engine;

/* A grammar for samplers alone: lzs_grammar_match, _step, _state, _share and _set_tokenization answer LZS_EINVAL. */
LZS_API lzs_status lzs_grammar_new_engine(const lzs_vocabulary *vocabulary, const lzs_grammar_engine *engine,
                                          lzs_grammar **grammar);

/* ---- masks that grammars share ---- */

typedef struct lzs_part_masks lzs_part_masks;

/* Keeps the masks of LZS_PART_SHARED parts for all grammars of a vocabulary, which is borrowed: a grammar with a part that
 * another one had before finds them there. Masks are the same bits with it and without. What needs more than about max_bytes
 * (0 is 32 MiB) is forgotten. Any number of grammars and threads may use it: a grammar that finds it in use makes its masks
 * itself. */
LZS_API lzs_status lzs_part_masks_new(const lzs_vocabulary *vocabulary, size_t max_bytes, lzs_part_masks **masks);
LZS_API void lzs_part_masks_free(lzs_part_masks *masks);

typedef struct lzs_part_masks_figures {
    size_t n_parts, n_masks, bytes; /* that are kept now */
    uint64_t found, made;           /* masks that were asked for, and were there or had to be made */
} lzs_part_masks_figures;
/* LZS_ELIMIT while another thread uses them. */
LZS_API lzs_status lzs_part_masks_look(lzs_part_masks *masks, lzs_part_masks_figures *figures);

/* Uses them for a grammar of the same vocabulary, else LZS_EINVAL; NULL is none. They must outlive it. */
LZS_API lzs_status lzs_grammar_share(lzs_grammar *grammar, lzs_part_masks *masks);

/* ---- tokenization: which of the ways to write a text as tokens are allowed ---- */

typedef enum lzs_words_kind { /* how the pre-tokenizer cuts a text into the words in which tokens are joined */
    LZS_WORDS_NONE = 0,        /* all of it is one word, as in SentencePiece */
    LZS_WORDS_GPT2 = 1,        /* llama.cpp's "gpt-2" */
    LZS_WORDS_GPT2_DIGITS = 2, /* the same with each digit by itself: "smollm", "starcoder", "refact", "command-r" */
    LZS_WORDS_LLAMA3 = 3,      /* "llama-bpe": up to three digits together */
    LZS_WORDS_QWEN2 = 4        /* "qwen2": the same with each digit by itself */
} lzs_words_kind;

typedef enum lzs_token_role {
    LZS_TOKEN_USUAL = 0,
    LZS_TOKEN_BYTE = 1, /* of SentencePiece: stands for a byte of a character that is not a token */
    LZS_TOKEN_WHOLE = 2 /* is found in a text before everything else, as user-defined tokens are */
} lzs_token_role;

/* How the tokenizer of a vocabulary, which is borrowed, writes texts; any number of grammars and threads may share it. Roles are
 * lzs_token_role, NULL where all tokens are usual. Byte pair encoding: pairs[2 * n] are the parts of n merges by rank, words is a
 * lzs_words_kind, and whole_words says that a word which is a token is written so whatever the merges say (Llama 3; not with LZS_WORDS_NONE).
 * SentencePiece: scores[n_vocab]. LZS_EINVAL for what is out of range, such as a score that is NaN. */
LZS_API lzs_status lzs_spelling_new_pairs(const lzs_vocabulary *vocabulary, const uint8_t *roles, const int32_t *pairs, size_t n,
                                          int32_t words, int32_t whole_words, lzs_spelling **spelling);
LZS_API lzs_status lzs_spelling_new_scores(const lzs_vocabulary *vocabulary, const uint8_t *roles, const float *scores,
                                           lzs_spelling **spelling);
LZS_API void lzs_spelling_free(lzs_spelling *spelling);
LZS_API size_t lzs_spelling_memory(const lzs_spelling *spelling);

/* *wrong: the first of n tokens that the tokenizer would not write there, n if it would go on, SIZE_MAX if all is well. */
LZS_API lzs_status lzs_spelling_check(const lzs_spelling *spelling, const int32_t *tokens, size_t n, size_t *wrong);

typedef enum lzs_tokenization {
    LZS_TOKENIZATION_ANY = 0,    /* every way to write an allowed text */
    LZS_TOKENIZATION_FORCED = 1, /* where the next byte is forced, only the tokenizer's way to write what is forced */
    LZS_TOKENIZATION_PROPER = 2  /* only the tokenizer's way */
} lzs_tokenization;

/* Chooses it for a new grammar, once. The spelling is borrowed and of the same vocabulary (NULL for any), else LZS_EINVAL. */
LZS_API lzs_status lzs_grammar_set_tokenization(lzs_grammar *grammar, const lzs_spelling *spelling, int32_t tokenization);

/* A grammar of all texts, which forbids only tokens that the tokenizer would not write there; what is not text is allowed. */
LZS_API lzs_status lzs_grammar_new_proper(const lzs_spelling *spelling, size_t max_bytes, lzs_grammar **grammar);

/* cdef-end */

#ifdef __cplusplus
}
#endif

#endif
