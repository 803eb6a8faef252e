/* lzsampler.h - a token sampler that keeps language models from looping, with the field's other penalties, masks,
 * truncation and a reproducible draw. Its LZ penalty goes back to Ginart et al. 2025 (arXiv 2504.20131).
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
 * parameters, seed and position give the same token on every CPU and in every batch; docs/determinism.md specifies it.
 *
 * More: lzsampler_grammar.h (included here), lzsampler_plan.h (edits and plans, for engines with many sequences),
 * lzsampler_explain.h (why a logit changed), lzsampler_verify.h (drafts), lzsampler_threads.h (for bindings).
 *
 * Conventions. A function returns an lzs_status, 0 or a negative error, and gives its result through a pointer. It only
 * reads logits, and never prints, exits or aborts. Every free accepts NULL. Functions that make, copy, prime, accept,
 * verify or explain may allocate memory, and so may masks; sampling without a grammar never does. Objects have no
 * locks: use a sampler, and a backend that samplers share, from one thread at a time. A call needs 4 KB of stack.
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

/* cdef-begin */ /* what lies between the marks is also the cdef of the Python binding (lzsampler/_ffi_build.py) */

#define LZS_VERSION_MAJOR 0
#define LZS_VERSION_MINOR 1
#define LZS_VERSION_PATCH 0
#define LZS_MAX_VOCAB 1073741824 /* tokens of a vocabulary */
#define LZS_MAX_WINDOW 131072    /* lz_window, dry_penalty_last_n, and the tokens a loop may need to be found */
#define LZS_MAX_BUFFER 4096      /* lz_buffer, in tokens */
#define LZS_GRAMMAR_ALLOWANCE 16 /* lz_run_allowance is multiplied by this under a grammar */

typedef enum lzs_lz_rule {
    LZS_RULE_DEFAULT = 0, /* It costs to say again what was said in at least lz_min_match tokens: docs/penalties.md */
    LZS_RULE_PAPER = 1    /* The rule of arXiv 2504.20131: every token of the window costs. */
} lzs_lz_rule;

typedef enum lzs_lz_formula {
    LZS_LZ_RATE = 0,      /* (log2(D + 1) + log2 L) / L of the cheapest match; the authors' code of March 2025 */
    LZS_LZ_DISTANCE = 1,  /* log2 D of the longest match, the nearest of equals; the authors' code of July 2025 */
    LZS_LZ_CODELENGTH = 2 /* the paper's Eq. 14 with its algebra corrected: docs/penalties.md */
} lzs_lz_formula;

typedef enum lzs_method {
    LZS_SUBTRACTIVE = 0,   /* repetition: x - p; frequency: x - p * count; presence: x - p */
    LZS_MULTIPLICATIVE = 1 /* repetition: x / p; frequency: x / p^count;   presence: x / p */
} lzs_method;

typedef enum lzs_history_scope {
    LZS_HISTORY_GENERATED = 0, /* Penalties look at accepted tokens only, */
    LZS_HISTORY_ALL = 1        /* or also at the prompt that lzs_prime was given. */
} lzs_history_scope;

typedef enum lzs_structure {
    LZS_STRUCTURE_OFF = 0,   /* Penalties ignore the grammar. */
    LZS_STRUCTURE_SCALE = 1, /* Penalties count by the share of a token's bytes that the grammar leaves free. */
    LZS_STRUCTURE_FREE = 2   /* The same, and penalties look only at tokens of which the grammar left a byte free. */
} lzs_structure;

typedef enum lzs_ties {
    LZS_TIES_CUT = 0, /* Exactly k tokens stay; equal logits are ordered by token id. */
    LZS_TIES_KEEP = 1 /* Every token equal to the last one kept stays too, as in transformers and vLLM. */
} lzs_ties;

/* An addend for the logit of one token, as OpenAI's and llama.cpp's logit_bias. */
typedef struct lzs_logit_bias {
    int32_t token;
    float bias; /* finite, or -inf to forbid the token */
} lzs_logit_bias;

/* The settings of a sampler. lzs_params_init fills them: everything is off but the draw at temperature 1. Fields marked
 * [fixed] stay as they were when the sampler was made; lzs_sampler_set_params changes the others between steps. A
 * sampler copies lists and sets; they may be NULL when their n is 0. A set has one bit for each token, in 0 or (n_vocab
 * + 31) / 32 words. New fields come at the end: a program compiled with an older header gets their defaults. */
typedef struct lzs_params {
    uint32_t size;             /* sizeof(lzs_params) of the caller's header, set by lzs_params_init */
    int32_t lz_rule;           /* [fixed] lzs_lz_rule */
    float lz_penalty;          /* strength in logits per bit (k), >= 0; 0 is off. [fixed: whether it is 0] */
    int32_t lz_window;         /* [fixed] lookback, tokens, 2..LZS_MAX_WINDOW */
    int32_t lz_min_match;      /* [fixed] shortest repetition that costs, tokens (m), 1..lz_window, at most 65535 */
    float lz_run_penalty;      /* logits per token of a run beyond the allowance (r), >= 0. [fixed: whether it is 0] */
    int32_t lz_run_allowance;  /* tokens by which a text may go on copying itself for nothing (a), 0..LZS_MAX_WINDOW */
    const uint32_t *lz_separators; /* [fixed] set of the tokens after which the count of a repetition begins anew */
    size_t n_lz_separators;
    const uint32_t *lz_commas;     /* [fixed] set of tokens that are separators, too, while fewer than lz_min_match
                                    * tokens, they included, have come since the last one */
    size_t n_lz_commas;
    int32_t lz_formula;        /* lzs_lz_formula, of the paper's rule, which ignores lz_min_match to n_lz_commas */
    int32_t lz_buffer;         /* [fixed] of the paper's rule: longest suffix, 1..LZS_MAX_BUFFER, < lz_window */
    float repetition_penalty;  /* multiplicative: >= FLT_MIN, 1 is off; subtractive: any finite number, 0 is off */
    float frequency_penalty;   /* 0 is off; else >= FLT_MIN if multiplicative, any finite number if subtractive */
    float presence_penalty;    /* as frequency_penalty. [fixed: whether all three are off] */
    int32_t repetition_method; /* lzs_method */
    int32_t frequency_method;  /* lzs_method */
    int32_t presence_method;   /* lzs_method */
    int32_t sign_aware;        /* 1: factors multiply negative logits; 0: they divide all logits */
    int32_t penalty_window;    /* [fixed] tokens that the three penalties above look at; 0 is the whole history */
    int32_t history;           /* [fixed] lzs_history_scope, for every penalty */
    int32_t loop_max_pattern;  /* [fixed] lzs_loop_found: longest pattern, tokens, >= 0; 0 is off */
    int32_t loop_min_pattern;  /* [fixed] shortest pattern, tokens, >= 1, <= loop_max_pattern */
    int32_t loop_min_count;    /* [fixed] copies that make a loop, >= 2; loop_max_pattern * this <= LZS_MAX_WINDOW */
    float temperature;         /* 0 is argmax, else LZS_MIN_TEMPERATURE (1e-6) to 1e6 */
    int32_t temperature_last;  /* 1: truncate first, then apply the temperature (llama.cpp's default order) */
    int32_t top_k;             /* >= 0; 0 is off */
    float top_p;               /* 0..1; 1 is off; 0 keeps one token */
    float min_p;               /* 0..1; 0 is off */
    int32_t ties;              /* lzs_ties */
    uint64_t seed;             /* of the sequence */
    const int32_t *exempt;     /* [fixed] tokens that no penalty touches */
    size_t n_exempt;
    const lzs_logit_bias *logit_bias; /* [fixed] several for one token add up, the smallest first */
    size_t n_logit_bias;
    float dry_multiplier;       /* DRY, with llama.cpp's names; >= 0, 0 is off. [fixed: whether it is 0] */
    float dry_base;             /* >= 1; the penalty is multiplier * base^(match - allowed_length) */
    int32_t dry_allowed_length; /* shortest match with a penalty, tokens, 0..65535; longer matches count as 65535 */
    int32_t dry_penalty_last_n; /* [fixed] lookback, tokens, 1..LZS_MAX_WINDOW; 0 is off, -1 is LZS_MAX_WINDOW */
    const int32_t *dry_breakers; /* [fixed] tokens that end every match */
    size_t n_dry_breakers;
    int32_t stuck_threshold; /* [fixed] lzs_stuck_found: score that makes a text stuck, 0..LZS_MAX_WINDOW; 0 is off */
    int32_t stuck_ngram;     /* [fixed] tokens that are compared together, 1..64 */
    int32_t stuck_min_count; /* [fixed] the occurrence from which an n-gram is old, >= 2 */
    int32_t stuck_weight;    /* [fixed] what a new token takes from the score, 0..LZS_MAX_WINDOW */
    int32_t stuck_window;    /* [fixed] lookback for earlier occurrences, tokens, 1..LZS_MAX_WINDOW */
    int32_t structure;       /* lzs_structure, for every penalty. [fixed: whether it is LZS_STRUCTURE_FREE] */
} lzs_params;

typedef struct lzs_sampler lzs_sampler;

/* "0.1.0"; the kernels in use, "scalar", "avx2", "avx512" or "neon"; one line of English for a status. None is NULL.
 * The kernels are the fastest that run here, or for tests those that the environment variable LZS_KERNELS names. */
LZS_API const char *lzs_version(void);
LZS_API const char *lzs_kernels_name(void);
LZS_API const char *lzs_strerror(int status);

/* Fills the first `size` bytes of settings with the defaults. Programs call lzs_params_init, which knows their header's
 * size. */
LZS_API void lzs_params_init_size(lzs_params *params, size_t size);

/* The name of a field that is out of range for this vocabulary, or NULL ("n_vocab" if the size itself is out of
 * range). */
LZS_API const char *lzs_params_invalid(const lzs_params *params, int32_t n_vocab);

/* The seed of sequence number `sequence` among several that share a user's seed. With one seed they would all draw
 * alike. */
LZS_API uint64_t lzs_sequence_seed(uint64_t seed, uint64_t sequence);

LZS_API lzs_status lzs_sampler_new(int32_t n_vocab, const lzs_params *params, lzs_sampler **sampler);
LZS_API void lzs_sampler_free(lzs_sampler *sampler);

/* A clone draws the tokens of its origin until either accepts another token or gets another seed. It shares borrowed
 * masks, a grammar and a shared backend with its origin. Another thread may use and free it. */
LZS_API lzs_status lzs_sampler_clone(const lzs_sampler *sampler, lzs_sampler **clone);

/* Makes `to` equal to `from`, without new memory if there is room. LZS_EINVAL if they differ in n_vocab or a [fixed]
 * parameter. After LZS_ENOMEM `to` is as after lzs_sampler_reset. */
LZS_API lzs_status lzs_sampler_copy(lzs_sampler *to, const lzs_sampler *from);

/* Forgets history, position and masks. Settings stay, and a grammar begins anew. */
LZS_API void lzs_sampler_reset(lzs_sampler *sampler);

/* The settings in force, into a struct that lzs_params_init has filled. Its arrays are the sampler's. */
LZS_API lzs_status lzs_sampler_params(const lzs_sampler *sampler, lzs_params *params);

/* Sets new settings from the next step on, the seed included. To change one of them, begin with lzs_sampler_params.
 * LZS_EINVAL, with nothing changed, if they are out of range or differ in a [fixed] number. Lists and sets stay as they
 * are. */
LZS_API lzs_status lzs_sampler_set_params(lzs_sampler *sampler, const lzs_params *params);

/* Sets the seed of the draws to come; a rewind does not take it back. Give each clone of one prefix a seed of its
 * own. */
LZS_API void lzs_sampler_set_seed(lzs_sampler *sampler, uint64_t seed);

/* ---- the sequence ---- */

/* The size of the vocabulary; the number of accepted tokens, which keys the next draw; the bytes that this sampler
 * holds, with its own backend and the lists that clones share. */
LZS_API int32_t lzs_n_vocab(const lzs_sampler *sampler);
LZS_API uint64_t lzs_position(const lzs_sampler *sampler);
LZS_API size_t lzs_memory(const lzs_sampler *sampler);

/* The *n tokens that the sampler keeps, oldest first: the prompt, if penalties look at it, and then the accepted
 * tokens. Valid until the sampler changes; may be NULL when *n is 0. */
LZS_API const int32_t *lzs_tokens(const lzs_sampler *sampler, size_t *n);

/* Appends to the prompt. LZS_EINVAL once a token is accepted. Penalties look at the prompt only with LZS_HISTORY_ALL.
 * All tokens are checked before any is taken. A sequence holds at most 2^31 - 1 tokens (LZS_EFULL). */
LZS_API lzs_status lzs_prime(lzs_sampler *sampler, const int32_t *tokens, size_t n);

/* Takes one token into the text, picked here or elsewhere. */
LZS_API lzs_status lzs_accept(lzs_sampler *sampler, int32_t token);

/* Takes back the last n accepted tokens, with all that came with them: counts, matches, loops, masks. LZS_EINVAL, with
 * nothing changed, if there are fewer. */
LZS_API lzs_status lzs_rewind(lzs_sampler *sampler, size_t n);

/* A stretch of the accepted tokens that repeats without a break and cannot be extended on its left. */
typedef struct lzs_loop {
    uint64_t start; /* its first token; 0 is the first accepted one */
    int32_t period; /* tokens of one copy, which is not itself copies of a shorter one */
    int32_t count;  /* whole copies, >= loop_min_count */
} lzs_loop;

/* Returns 1, and the loop in *loop, once the accepted tokens have ended in loop_min_count copies of a pattern; before
 * that 0. The token that completes a loop finds it, as the shortest pattern if several are complete. It stays until a
 * reset, or a rewind that takes that token back. (vLLM's `repetition_detection`.) */
LZS_API int lzs_loop_found(const lzs_sampler *sampler, lzs_loop *loop);

/* A stretch of the accepted tokens that says next to nothing new, with or without a period. */
typedef struct lzs_stuck {
    uint64_t start; /* its first token; 0 is the first accepted one */
    uint64_t end;   /* the number of accepted tokens when it was found */
} lzs_stuck;

/* Returns 1, and the stretch in *stuck, once the accepted tokens say nothing new; before that 0 (docs/loops.md). A
 * token is old if an n-gram contains it that ended at stuck_min_count - 1 or more of the stuck_window positions before.
 * A score rises by 1 for each old token, and falls by stuck_weight, at most to 0, for each new one. The text is stuck
 * once the score is known to have reached stuck_threshold; `start` is where it last left 0. It stays as a loop does. */
LZS_API int lzs_stuck_found(const lzs_sampler *sampler, lzs_stuck *stuck);

/* ---- masks and a grammar: which tokens are allowed ---- */

/* Whose mask it is. A token is allowed if all masks that are set allow it. */
typedef enum lzs_mask_owner { LZS_MASK_USER = 0, LZS_MASK_GRAMMAR = 1 } lzs_mask_owner;
#define LZS_MASK_CHANGES 32

/* Allows only the tokens whose bit is 1, in (n_vocab + 31) / 32 words, least significant bit first. NULL removes the
 * mask. lzs_set_mask copies the words. lzs_borrow_mask keeps the pointer: the words must stay as they are until the
 * owner has changed its mask at LZS_MASK_CHANGES + 1 later positions, a reset, or the free, also of every clone.
 *
 * lzs_rewind restores each owner's mask of that position, if the owner has changed it at no more than LZS_MASK_CHANGES
 * positions since. Otherwise sampling answers LZS_EMASKED until the owner sets one. */
LZS_API lzs_status lzs_set_mask(lzs_sampler *sampler, int32_t owner, const uint32_t *words, size_t n_words);
LZS_API lzs_status lzs_borrow_mask(lzs_sampler *sampler, int32_t owner, const uint32_t *words, size_t n_words);

/* Allows only what the grammar and the masks allow, from the next token on; NULL removes the grammar. LZS_EINVAL if the
 * vocabularies differ in size. The grammar is borrowed, and must outlive the samplers that use it, clones included. The
 * allowed tokens can still complete a text that matches, and an end token is allowed exactly where the text matches.
 * After a token against the grammar nothing is allowed (LZS_EMASKED).
 *
 * lzs_rewind and copies take the place in the grammar with them. A rewind to before the grammar removes it. If it had
 * replaced another, sampling then answers LZS_EMASKED until you set one. A step with a grammar, and its replacement
 * with LZS_STRUCTURE_FREE, may answer LZS_ENOMEM or LZS_ELIMIT. */
LZS_API lzs_status lzs_sampler_set_grammar(lzs_sampler *sampler, lzs_grammar *grammar);

/* The only token that grammar and masks allow next; -1 if there are several or none, or a logit_bias forbids it. */
LZS_API lzs_status lzs_forced(lzs_sampler *sampler, int32_t *token);

/* ---- a step ---- */

/* Picks a token from n_vocab logits. It does not change the sampler: the same call gives the same token again. */
LZS_API lzs_status lzs_sample(lzs_sampler *sampler, const float *logits, int32_t *token);

/* lzs_sample and lzs_accept in one call. *looping (may be NULL) is then 1 if lzs_loop_found or lzs_stuck_found has
 * found something, else 0. After an error the sampler is as it was, and *token is -1. */
LZS_API lzs_status lzs_step(lzs_sampler *sampler, const float *logits, int32_t *token, int32_t *looping);

/* The row after penalties, mask, temperature and truncation: -inf for each token that was cut. At temperature 0 the
 * best token alone stays, with its logit. `out` has n_vocab floats and may be the row; an error leaves it alone. */
LZS_API lzs_status lzs_process(lzs_sampler *sampler, const float *logits, float *out);

/* What lzs_sample draws from: token ids ascending, and probabilities that sum to 1. Writes at most `capacity` entries;
 * *n is their number. LZS_ESPACE, with *n the number needed, if they do not fit; with capacity 0 arrays may be NULL. */
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
