/* lzsampler.h - a token sampler that keeps language models from looping. The sampler has an LZ penalty (after Ginart et
 * al. 2025, arXiv 2504.20131), the other common penalties, masks, truncation and a reproducible draw.
 *
 * One lzs_sampler belongs to one sequence. A decode loop looks like this:
 *
 *     lzs_params params;
 *     lzs_params_init(&params);
 *     params.lz_penalty = 0.3f;
 *     params.lz_run_penalty = 0.5f;
 *     params.temperature = 0.0f;
 *     lzs_sampler *sampler;
 *     if (lzs_sampler_new(n_vocab, &params, &sampler) != LZS_OK) return 1;
 *     for (;;) {
 *         int32_t token;
 *         const float *logits = next_logits();            // n_vocab floats from the model
 *         if (lzs_step(sampler, logits, &token, NULL) != LZS_OK) break;
 *     }
 *     lzs_sampler_free(sampler);
 *
 * The order of a step is fixed: penalties, mask, temperature, truncation (top-k, top-p, min-p), draw. The same logits,
 * parameters, seed and position give the same token on every CPU and in every batch; docs/determinism.md has the
 * specification.
 *
 * Other headers: lzsampler_grammar.h (grammars; included here), lzsampler_plan.h (edits and plans, for engines with
 * many sequences), lzsampler_explain.h (why a logit changed), lzsampler_verify.h (speculative decoding),
 * lzsampler_threads.h (for bindings of other languages).
 *
 * Conventions. A function that can fail returns an lzs_status, which is 0 or a negative error, and gives its result
 * through a pointer. No function prints, exits or aborts. Logits are only read. Every free function accepts NULL.
 * Functions that make, copy, prime, accept, verify or explain may allocate memory, and so may functions that set masks.
 * Sampling without a grammar allocates no memory. Objects have no locks: use a sampler, and a backend that samplers
 * share, from one thread at a time. A call needs 4 KB of stack.
 */
#ifndef LZSAMPLER_H
#define LZSAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "lzsampler_grammar.h"
#include "lzsampler_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */ /* The text from cdef-begin to cdef-end is also the cdef of the Python binding (_ffi_build.py). */

#define LZS_VERSION_MAJOR 0
#define LZS_VERSION_MINOR 1
#define LZS_VERSION_PATCH 0
#define LZS_MAX_VOCAB 1073741824 /* greatest number of tokens of a vocabulary */
#define LZS_MAX_WINDOW 131072    /* limit of lz_window, dry_penalty_last_n, stuck_window and other settings in tokens */
#define LZS_MAX_BUFFER 4096      /* limit of lz_buffer, tokens */
#define LZS_GRAMMAR_ALLOWANCE 16 /* factor of lz_run_allowance under a grammar */

typedef enum lzs_lz_rule {
    LZS_RULE_DEFAULT = 0, /* A token is penalised if it ends a repetition of lz_min_match or more tokens
                           * (docs/penalties.md). */
    LZS_RULE_PAPER = 1    /* The rule of arXiv 2504.20131: every token that occurs in the window is penalised. */
} lzs_lz_rule;

typedef enum lzs_lz_formula {
    /* A match has the distance D and the length L. LZS_LZ_RATE takes the least value of (log2(D + 1) + log2 L) / L over
     * all matches, as in the authors' code of March 2025. */
    LZS_LZ_RATE = 0,
    LZS_LZ_DISTANCE = 1,  /* log2 D of the longest match (the nearest if there are several), as in the authors' code of
                           * July 2025 */
    LZS_LZ_CODELENGTH = 2 /* the paper's Eq. 14 with its algebra corrected (docs/penalties.md) */
} lzs_lz_formula;

typedef enum lzs_method {
    LZS_SUBTRACTIVE = 0,   /* x: logit, p: penalty. repetition: x - p; frequency: x - p * count; presence: x - p */
    LZS_MULTIPLICATIVE = 1 /* repetition: x / p; frequency: x / p^count;   presence: x / p */
} lzs_method;

typedef enum lzs_history_scope {
    LZS_HISTORY_GENERATED = 0, /* Penalties look at accepted tokens only. */
    LZS_HISTORY_ALL = 1        /* Penalties also look at the prompt, which the caller gives to lzs_prime. */
} lzs_history_scope;

typedef enum lzs_structure {
    LZS_STRUCTURE_OFF = 0,   /* Penalties ignore the grammar. */
    LZS_STRUCTURE_SCALE = 1, /* A token's penalties are multiplied by the share of its bytes that the grammar leaves
                              * free. */
    LZS_STRUCTURE_FREE = 2   /* As LZS_STRUCTURE_SCALE. Penalties also ignore each accepted token of which the grammar
                              * left no byte free. */
} lzs_structure;

typedef enum lzs_ties {
    LZS_TIES_CUT = 0, /* Exactly k tokens stay; equal logits are ordered by token id. */
    LZS_TIES_KEEP = 1 /* Tokens whose logit equals that of the last kept token stay too, as in transformers and vLLM. */
} lzs_ties;

/* An addend for the logit of one token, as OpenAI's and llama.cpp's logit_bias. */
typedef struct lzs_logit_bias {
    int32_t token;
    float bias; /* finite, or -inf to forbid the token */
} lzs_logit_bias;

/* The settings of a sampler. lzs_params_init fills in the defaults, which switch everything off except the draw at
 * temperature 1. Fields marked [fixed] stay as they were when the sampler was made. lzs_sampler_set_params changes the
 * other fields between steps. A sampler copies lists and sets. A list or set whose length (n_...) is 0 may be NULL. A
 * set has one bit for each token of the vocabulary. Its length is 0 or (n_vocab + 31) / 32 words. New fields are added
 * at the end of the struct. A program compiled with an older header gets the defaults of the new fields. */
typedef struct lzs_params {
    uint32_t size;             /* sizeof(lzs_params) of the caller's header, set by lzs_params_init */
    int32_t lz_rule;           /* [fixed] lzs_lz_rule */
    float lz_penalty;          /* strength in logits per bit (k), >= 0; 0 is off. [fixed: whether it is 0] */
    int32_t lz_window;         /* [fixed] lookback in tokens, 2..LZS_MAX_WINDOW */
    int32_t lz_min_match;      /* [fixed] number of tokens of the shortest repetition that is penalised (m),
                                * 1..lz_window, at most 65535 */
    float lz_run_penalty;      /* strength (r) in logits, >= 0, for each token of a run beyond its first
                                * lz_run_allowance tokens. [fixed: whether it is 0] */
    /* A run begins when a text has repeated a pattern once and goes on repeating the pattern. lz_run_allowance (a),
     * 0..LZS_MAX_WINDOW, is the number of tokens at the beginning of a run that are not penalised. */
    int32_t lz_run_allowance;
    const uint32_t *lz_separators; /* [fixed] set of separators; only tokens after the last separator of the text count
                                    * in the length of a repetition */
    size_t n_lz_separators;
    const uint32_t *lz_commas;     /* [fixed] set of commas; a comma is a separator only if fewer than lz_min_match
                                    * tokens, the comma included, follow the last separator */
    size_t n_lz_commas;
    int32_t lz_formula;        /* lzs_lz_formula, only for LZS_RULE_PAPER. LZS_RULE_PAPER ignores lz_min_match and
                                * lz_run_allowance. With it, lz_run_penalty, lz_separators and lz_commas must be off */
    int32_t lz_buffer;         /* [fixed] for LZS_RULE_PAPER: number of tokens of the longest suffix that is compared,
                                * 1..LZS_MAX_BUFFER, < lz_window */
    float repetition_penalty;  /* multiplicative: >= FLT_MIN, 1 is off; subtractive: any finite number, 0 is off */
    float frequency_penalty;   /* 0 is off; else >= FLT_MIN if multiplicative, any finite number if subtractive */
    float presence_penalty;    /* range as of frequency_penalty. [fixed: whether these three penalties are all off] */
    int32_t repetition_method; /* lzs_method */
    int32_t frequency_method;  /* lzs_method */
    int32_t presence_method;   /* lzs_method */
    int32_t sign_aware;        /* 1: multiplicative penalties divide positive logits and multiply other logits; 0: they
                                * divide all logits */
    int32_t penalty_window;    /* [fixed] lookback of the three penalties above, in tokens; 0 is the whole history */
    int32_t history;           /* [fixed] lzs_history_scope, for every penalty */
    int32_t loop_max_pattern;  /* [fixed] number of tokens of the longest pattern of a loop (lzs_loop_found), >= 0; 0 is
                                * off */
    int32_t loop_min_pattern;  /* [fixed] number of tokens of the shortest pattern of a loop, 1..loop_max_pattern */
    int32_t loop_min_count;    /* [fixed] least number of copies in a loop, >= 2; loop_min_count * loop_max_pattern <=
                                * LZS_MAX_WINDOW */
    float temperature;         /* 0 is argmax, else LZS_MIN_TEMPERATURE (1e-6) to 1e6 */
    int32_t temperature_last;  /* 1: truncate first, then apply the temperature (llama.cpp's default order) */
    int32_t top_k;             /* >= 0; 0 is off */
    float top_p;               /* 0..1; 1 is off; 0 keeps one token */
    float min_p;               /* 0..1; 0 is off */
    int32_t ties;              /* lzs_ties */
    uint64_t seed;             /* seed of the draws; give each sequence its own seed (lzs_sequence_seed) */
    const int32_t *exempt;     /* [fixed] tokens that no penalty changes */
    size_t n_exempt;
    const lzs_logit_bias *logit_bias; /* [fixed] several biases of one token are added up, from the smallest to the
                                       * largest */
    size_t n_logit_bias;
    float dry_multiplier;       /* strength of DRY (all its fields have llama.cpp's names), >= 0; 0 is off. [fixed:
                                 * whether it is 0] */
    float dry_base;             /* >= 1; the penalty is multiplier * base^(length of the match - allowed_length) */
    int32_t dry_allowed_length; /* number of tokens of the shortest match with a penalty, 0..65535; a match of more than
                                 * 65535 tokens counts as 65535 */
    int32_t dry_penalty_last_n; /* [fixed] lookback in tokens, 1..LZS_MAX_WINDOW; 0 is off, -1 is LZS_MAX_WINDOW */
    const int32_t *dry_breakers; /* [fixed] tokens that end every match */
    size_t n_dry_breakers;
    int32_t stuck_threshold; /* [fixed] score at which a text is stuck (lzs_stuck_found), 0..LZS_MAX_WINDOW; 0 is off */
    int32_t stuck_ngram;     /* [fixed] number of tokens of an n-gram, 1..64 */
    int32_t stuck_min_count; /* [fixed] an n-gram is old from this occurrence on (1 is its first occurrence), >= 2 */
    int32_t stuck_weight;    /* [fixed] number that a new token subtracts from the score, 0..LZS_MAX_WINDOW */
    int32_t stuck_window;    /* [fixed] lookback for earlier occurrences, in tokens, 1..LZS_MAX_WINDOW */
    int32_t structure;       /* lzs_structure, for every penalty. [fixed: whether it is LZS_STRUCTURE_FREE] */
} lzs_params;

typedef struct lzs_sampler lzs_sampler;

/* lzs_version returns "0.1.0". lzs_kernels_name returns the kernels in use: "scalar", "avx2", "avx512" or "neon".
 * lzs_strerror returns one line of English for a status. No result is NULL. The library uses the fastest kernels that
 * this machine can run. For tests, the environment variable LZS_KERNELS names other kernels. */
LZS_API const char *lzs_version(void);
LZS_API const char *lzs_kernels_name(void);
LZS_API const char *lzs_strerror(int status);

/* Fills the first `size` bytes of settings with the defaults. Programs call lzs_params_init, which passes the size of
 * lzs_params in their header. */
LZS_API void lzs_params_init_size(lzs_params *params, size_t size);

/* Returns the name of a field that is out of range for this vocabulary, or NULL if there is none. The name is "n_vocab"
 * if n_vocab itself is out of range. */
LZS_API const char *lzs_params_invalid(const lzs_params *params, int32_t n_vocab);

/* Derives the seed of sequence number `sequence` from the user's seed. Sequences with the same seed would all draw with
 * the same noise. */
LZS_API uint64_t lzs_sequence_seed(uint64_t seed, uint64_t sequence);

LZS_API lzs_status lzs_sampler_new(int32_t n_vocab, const lzs_params *params, lzs_sampler **sampler);
LZS_API void lzs_sampler_free(lzs_sampler *sampler);

/* Makes a clone. The clone draws the same tokens as its origin until one of the two accepts another token or gets
 * another seed. Origin and clone use the same borrowed masks, grammar and shared backend. Another thread may use and
 * free the clone. Only one thread at a time may use a grammar or backend that origin and clone share. */
LZS_API lzs_status lzs_sampler_clone(const lzs_sampler *sampler, lzs_sampler **clone);

/* Makes `to` equal to `from`. Allocates memory only if `to` has too little. LZS_EINVAL if the samplers differ in
 * n_vocab or a [fixed] parameter. After LZS_ENOMEM `to` is as after lzs_sampler_reset. */
LZS_API lzs_status lzs_sampler_copy(lzs_sampler *to, const lzs_sampler *from);

/* Forgets history, position and masks. Settings stay, and a grammar returns to its start state. */
LZS_API void lzs_sampler_reset(lzs_sampler *sampler);

/* Gives the settings in force. The caller first fills `params` with lzs_params_init. The arrays in the result belong to
 * the sampler. */
LZS_API lzs_status lzs_sampler_params(const lzs_sampler *sampler, lzs_params *params);

/* Sets all settings, the seed included, from the next step on. To change one setting, first get the settings in force
 * from lzs_sampler_params. LZS_EINVAL if a setting is out of range or a [fixed] number differs; nothing has then
 * changed. Lists and sets stay as they are. */
LZS_API lzs_status lzs_sampler_set_params(lzs_sampler *sampler, const lzs_params *params);

/* Sets the seed of all later draws. A rewind does not restore the old seed. If several clones continue one prefix, give
 * each clone its own seed. */
LZS_API void lzs_sampler_set_seed(lzs_sampler *sampler, uint64_t seed);

/* ---- the sequence ---- */

/* lzs_n_vocab returns the size of the vocabulary. lzs_position returns the number of accepted tokens, which together
 * with the seed fixes the noise of the next draw. lzs_memory returns the bytes that this sampler holds, including its
 * own backend and the lists that it shares with its clones. */
LZS_API int32_t lzs_n_vocab(const lzs_sampler *sampler);
LZS_API uint64_t lzs_position(const lzs_sampler *sampler);
LZS_API size_t lzs_memory(const lzs_sampler *sampler);

/* Returns the *n tokens that the sampler keeps, oldest first: the prompt, if penalties look at the prompt, and then the
 * accepted tokens. The array is valid until the sampler changes, and may be NULL when *n is 0. */
LZS_API const int32_t *lzs_tokens(const lzs_sampler *sampler, size_t *n);

/* Appends to the prompt. LZS_EINVAL if a token has been accepted already. Penalties look at the prompt only with
 * LZS_HISTORY_ALL. All tokens are checked before any token is appended. A sequence holds at most 2^31 - 1 tokens
 * (LZS_EFULL). */
LZS_API lzs_status lzs_prime(lzs_sampler *sampler, const int32_t *tokens, size_t n);

/* Appends one token to the text, whoever picked it. */
LZS_API lzs_status lzs_accept(lzs_sampler *sampler, int32_t token);

/* Takes back the last n accepted tokens and restores counts, matches, loops and masks as they were before these tokens.
 * LZS_EINVAL if fewer than n tokens are accepted; nothing has then changed. */
LZS_API lzs_status lzs_rewind(lzs_sampler *sampler, size_t n);

/* A loop: adjacent copies of one pattern in the accepted tokens. The token before the first copy does not continue the
 * loop to the left. */
typedef struct lzs_loop {
    uint64_t start; /* index of its first token; 0 is the first accepted token */
    int32_t period; /* number of tokens of a copy; a copy does not consist of copies of a shorter pattern */
    int32_t count;  /* number of whole copies, >= loop_min_count */
} lzs_loop;

/* Returns 1, and the loop in *loop, once the accepted tokens have ended in loop_min_count copies of a pattern. Before
 * that, returns 0. If one token completes several loops, the loop with the shortest pattern is found. A found loop
 * stays found until a reset, or a rewind that takes back the token that completed the loop. (vLLM calls this
 * `repetition_detection`.) */
LZS_API int lzs_loop_found(const lzs_sampler *sampler, lzs_loop *loop);

/* A stretch of the accepted tokens in which nearly all tokens repeat earlier text, with or without a period. */
typedef struct lzs_stuck {
    uint64_t start; /* index of its first token; 0 is the first accepted token */
    uint64_t end;   /* number of accepted tokens when the stretch was found */
} lzs_stuck;

/* Returns 1, and the stretch in *stuck, once the text is stuck (docs/loops.md). Before that, returns 0. An n-gram is
 * old if the same n-gram also ended at stuck_min_count - 1 or more of the stuck_window positions before. A token is old
 * if an old n-gram contains the token; else it is new. Each old token raises a score by 1. Each new token lowers the
 * score by stuck_weight, at most to 0. The text is stuck once the score reaches stuck_threshold. `start` is the token
 * at which the score last rose from 0. The result stays until a reset, or a rewind that takes back the token at which
 * the text became stuck. */
LZS_API int lzs_stuck_found(const lzs_sampler *sampler, lzs_stuck *stuck);

/* ---- masks and a grammar: which tokens are allowed ---- */

/* The owner of a mask. Each owner can set one mask. A token is allowed if all masks in force allow the token. */
typedef enum lzs_mask_owner { LZS_MASK_USER = 0, LZS_MASK_GRAMMAR = 1 } lzs_mask_owner;
#define LZS_MASK_CHANGES 32

/* Allows only the tokens whose bit in the mask is 1. A mask has (n_vocab + 31) / 32 words, least significant bit first.
 * NULL removes the mask. lzs_set_mask copies the words. lzs_borrow_mask keeps the pointer. Do not change the words
 * before the owner has changed its mask at LZS_MASK_CHANGES + 1 later positions, or the sampler is reset or freed. The
 * same must have happened in each clone of the sampler.
 *
 * lzs_rewind restores the mask that each owner had at the earlier position. If an owner has changed its mask at more
 * than LZS_MASK_CHANGES positions since, its old mask is lost. Sampling then returns LZS_EMASKED until that owner sets
 * a mask. */
LZS_API lzs_status lzs_set_mask(lzs_sampler *sampler, int32_t owner, const uint32_t *words, size_t n_words);
LZS_API lzs_status lzs_borrow_mask(lzs_sampler *sampler, int32_t owner, const uint32_t *words, size_t n_words);

/* Allows only what the grammar and the masks allow, from the next token on; NULL removes the grammar. LZS_EINVAL if the
 * vocabularies differ in size. The grammar is borrowed, and must outlive the samplers that use it, clones included. A
 * token is allowed if a text that begins with the text so far and this token matches the grammar. An end token is
 * allowed exactly where the text matches. If a token is accepted that the grammar forbids, no token is allowed
 * afterwards (LZS_EMASKED).
 *
 * lzs_rewind restores the state that the grammar had at the earlier position. Clones and copies copy the state. A
 * rewind to a position before this call removes the grammar. If this grammar had replaced another grammar, sampling
 * then returns LZS_EMASKED until the caller sets a grammar. With a grammar, a step may return LZS_ENOMEM or LZS_ELIMIT.
 * With LZS_STRUCTURE_FREE, the call that replaces the grammar may also return these errors. */
LZS_API lzs_status lzs_sampler_set_grammar(lzs_sampler *sampler, lzs_grammar *grammar);

/* Gives the only token that grammar and masks allow next. Gives -1 if they do not allow exactly one token, or if a
 * logit_bias forbids the token. */
LZS_API lzs_status lzs_forced(lzs_sampler *sampler, int32_t *token);

/* ---- a step ---- */

/* Picks a token from n_vocab logits. It does not change the sampler: the same call gives the same token again. */
LZS_API lzs_status lzs_sample(lzs_sampler *sampler, const float *logits, int32_t *token);

/* lzs_sample and lzs_accept in one call. *looping (may be NULL) becomes 1 if lzs_loop_found or lzs_stuck_found now
 * returns 1, else 0. After an error the sampler is as it was, and *token is -1. */
LZS_API lzs_status lzs_step(lzs_sampler *sampler, const float *logits, int32_t *token, int32_t *looping);

/* Gives the logits after penalties, mask, temperature and truncation: -inf for each token that was removed. At
 * temperature 0 only the best token stays, with its logit. `out` has room for n_vocab floats and may be `logits`
 * itself. An error leaves `out` unchanged. */
LZS_API lzs_status lzs_process(lzs_sampler *sampler, const float *logits, float *out);

/* Gives the distribution that lzs_sample draws from: token ids in ascending order, and probabilities that sum to 1.
 * Writes *n entries, at most `capacity`. If there are more entries than `capacity`, returns LZS_ESPACE, and *n is the
 * capacity needed. With capacity 0 the arrays may be NULL. */
LZS_API lzs_status lzs_distribution(lzs_sampler *sampler, const float *logits, int32_t *ids, float *probabilities,
                                    size_t capacity, size_t *n);

/* cdef-end */

#define LZS_MIN_TEMPERATURE 1e-6f
#define LZS_MAX_TEMPERATURE 1e6f

static inline void lzs_params_init(lzs_params *params) {
    lzs_params_init_size(params, sizeof *params);
}

#ifdef __cplusplus
}
#endif
#endif
