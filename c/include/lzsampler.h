/* lzsampler.h - a token sampler whose LZ penalty keeps language models from looping (Ginart et al. 2025, arXiv
 * 2504.20131), together with the field's other penalties, masks, truncation and a reproducible draw.
 *
 * One lzs_sampler belongs to one sequence. A decode loop looks like this:
 *
 *     lzs_params params;
 *     lzs_params_init(&params);
 *     params.lz_penalty = 0.3f;
 *     params.lz_run_penalty = 0.5f;
 *     params.temperature = 0.0f;
 *     lzs_sampler *sampler = NULL;
 *     if (lzs_sampler_new(n_vocab, &params, &sampler) != LZS_OK) return 1;
 *     for (;;) {
 *         const float *logits = next_logits();            // n_vocab floats from the model
 *         int32_t token;
 *         if (lzs_sample(sampler, logits, &token) != LZS_OK) break;
 *         lzs_accept(sampler, token);
 *     }
 *     lzs_sampler_free(sampler);
 *
 * Inside there are three layers. The state of a sequence knows its tokens and nothing about logits. A plan is the plain
 * data of one step: which logits change and how, which tokens are allowed, the truncation, the seed and the position. A
 * backend turns rows of logits and plans into tokens. Engines with many sequences make a plan for each and give a batch
 * of them to one backend; the functions on lzs_sampler do the same for one row.
 *
 * The order of the pipeline is fixed: penalties, mask, temperature, truncation (top-k, top-p, min-p), pick. The same
 * logits, parameters, seed and position give the same token on every CPU and in every batch; docs/determinism.md
 * specifies which.
 *
 * Conventions. Functions return an lzs_status, 0 or a negative error, and give their results through pointers. Rows of
 * logits are only read. Nothing here prints, exits or aborts. Objects share the choice of kernels for this CPU, and
 * a sampler shares with its clones the lists of its settings, which never change. The functions that allocate memory are *_new, *_clone, *_copy, lzs_prime, those
 * that accept tokens (lzs_accept, lzs_step, lzs_draft, lzs_draft_token, lzs_verify), lzs_set_mask, lzs_borrow_mask, lzs_explain
 * and lzs_lz_bits; sampling never does without a grammar. Every free accepts NULL.
 * Objects have no locks: use a sampler, and a backend that several samplers share, from one thread at a time (lzs_hold is for
 * hosts that cannot promise this). A call needs 4 KB of stack.
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

/* The section between the marks is also the cdef of the Python binding (lzsampler/_ffi_build.py). */
/* cdef-begin */

#define LZS_VERSION_MAJOR 0
#define LZS_VERSION_MINOR 1
#define LZS_VERSION_PATCH 0

#define LZS_MAX_VOCAB 1073741824 /* tokens of a vocabulary */
#define LZS_MAX_WINDOW 131072    /* lz_window, dry_penalty_last_n, and the tokens a loop may need to be found */
#define LZS_MAX_BUFFER 4096      /* lz_buffer, in tokens */
#define LZS_GRAMMAR_ALLOWANCE 16 /* times lz_run_allowance under a grammar, since a schema may ask for a hundred equal values */

typedef enum lzs_lz_rule {
    LZS_RULE_DEFAULT = 0, /* saying again what was said in at least lz_min_match tokens costs: see docs/penalties.md */
    LZS_RULE_PAPER = 1    /* the rule of arXiv 2504.20131: every token of the window costs */
} lzs_lz_rule;

typedef enum lzs_lz_formula {
    LZS_LZ_RATE = 0,      /* (log2(D + 1) + log2 L) / L, the cheapest match; the authors' code of March 2025 */
    LZS_LZ_DISTANCE = 1,  /* log2 D of the longest match, the nearest of equals; the authors' code of July 2025 */
    LZS_LZ_CODELENGTH = 2 /* the paper's Eq. 14 with an algebra error corrected: see docs/penalties.md */
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
    LZS_STRUCTURE_OFF = 0,   /* Penalties know nothing of a grammar; */
    LZS_STRUCTURE_SCALE = 1, /* or that of a token is multiplied by the share of its bytes that the grammar leaves free; */
    LZS_STRUCTURE_FREE = 2   /* or it is, and penalties look only at tokens of which the grammar left a byte free. */
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

/* The settings of a sampler. Fill the struct with lzs_params_init, which switches everything off but the draw at
 * temperature 1, then change fields. Fields marked [fixed] shape what a sampler keeps of its sequence and stay as they
 * were when it was made; lzs_sampler_set_params changes the others between steps. New fields are added at the end only,
 * and `size` says how many the caller knows: a program compiled with an older header gets the defaults of the rest. */
typedef struct lzs_params {
    uint32_t size;             /* sizeof(lzs_params) of the caller's header, set by lzs_params_init */
    int32_t lz_rule;           /* [fixed] lzs_lz_rule */
    float lz_penalty;          /* strength in logits per bit (k), >= 0; 0 is off. [fixed: whether the LZ penalty is on] */
    int32_t lz_window;         /* [fixed] lookback, tokens, 2..LZS_MAX_WINDOW */
    int32_t lz_min_match;      /* [fixed] shortest repetition that costs, tokens, the new one included (m), 1..lz_window, 65535 at most;
                                * longer ones count as 65535 */
    float lz_run_penalty;      /* logits per token of a run beyond the allowance (r), >= 0; 0 is off. [fixed: as lz_penalty] */
    int32_t lz_run_allowance;  /* tokens by which a text may go on copying itself for nothing (a), 0..LZS_MAX_WINDOW; under a grammar, LZS_GRAMMAR_ALLOWANCE
                                * times as many, unless `structure` is LZS_STRUCTURE_OFF */
    const uint32_t *lz_separators; /* [fixed] a bit set of tokens after which the count of a repetition begins anew: n_lz_separators
                                    * words as those of a mask; copied; may be NULL when n_lz_separators is 0: there are none */
    size_t n_lz_separators;        /* 0 or (n_vocab + 31) / 32 */
    const uint32_t *lz_commas; /* [fixed] a bit set of tokens that are separators, too, in lists: while less than lz_min_match tokens, they
                                * included, have come since the last separator; as lz_separators */
    size_t n_lz_commas;
    int32_t lz_formula;        /* lzs_lz_formula, of the paper's rule; that has none of the six fields above */
    int32_t lz_buffer;         /* [fixed] of the paper's rule: longest suffix compared, tokens, 1..LZS_MAX_BUFFER, < lz_window */
    float repetition_penalty;  /* >= FLT_MIN if multiplicative (1 is off), any finite number if subtractive (0 is off) */
    float frequency_penalty;   /* 0 is off; else >= FLT_MIN if multiplicative, any finite number if subtractive */
    float presence_penalty;    /* as frequency_penalty. [fixed: whether all three are off] */
    int32_t repetition_method; /* lzs_method; LZS_SUBTRACTIVE is off at a repetition_penalty of 0, not of 1 */
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
    const int32_t *exempt; /* [fixed] tokens that no penalty touches; copied; may be NULL when n_exempt is 0 */
    size_t n_exempt;
    const lzs_logit_bias *logit_bias; /* [fixed] copied; several for one token add up, the smallest first; may be NULL when
                                       * n_logit_bias is 0 */
    size_t n_logit_bias;
    float dry_multiplier;       /* DRY, with llama.cpp's names; >= 0, 0 is off. [fixed: whether it is 0] */
    float dry_base;             /* >= 1; the penalty is multiplier * base^(match - allowed_length) */
    int32_t dry_allowed_length; /* shortest match with a penalty, tokens, 0..65535; longer matches count as 65535 */
    int32_t dry_penalty_last_n; /* [fixed] lookback, tokens, 1..LZS_MAX_WINDOW; 0 is off, -1 is LZS_MAX_WINDOW */
    const int32_t *dry_breakers; /* [fixed] tokens that end every match; copied; may be NULL when n_dry_breakers is 0 */
    size_t n_dry_breakers;
    int32_t stuck_threshold; /* [fixed] lzs_stuck_found: score that makes a text stuck, tokens, 0..LZS_MAX_WINDOW; 0 is off */
    int32_t stuck_ngram;     /* [fixed] tokens that are compared together, 1..64 */
    int32_t stuck_min_count; /* [fixed] the occurrence from which an n-gram is old, >= 2 */
    int32_t stuck_weight;    /* [fixed] what a new token takes from the score, 0..LZS_MAX_WINDOW */
    int32_t stuck_window;    /* [fixed] lookback for earlier occurrences, tokens, 1..LZS_MAX_WINDOW */
    int32_t structure;       /* lzs_structure, for every penalty; without a grammar all three are alike. [fixed: whether it is
                              * LZS_STRUCTURE_FREE] */
} lzs_params;

/* What all penalties together do to one token's logit: x -> (x > 0 ? x / repeat : x * repeat) + bias. A finite logit
 * stays finite, but a bias of -inf makes it -inf. */
typedef struct lzs_edit {
    int32_t token;
    float repeat;
    float bias;
} lzs_edit;

/* Everything that a backend needs to know of one step besides the row of logits. Plain data: it can be stored, sent,
 * replayed or put into a batch. The two arrays belong to whoever made the plan. A backend answers LZS_EINVAL where a number is
 * out of range, an edited token is not in the vocabulary or is edited twice; it trusts that `repeat` is positive and normal
 * and that `bias` is finite or -inf, which lzs_plan_read checks too. */
typedef struct lzs_plan {
    int32_t n_vocab;
    int32_t sign_aware;
    const lzs_edit *edits; /* (n_edits) each token at most once, in any order; some may change nothing */
    size_t n_edits;
    const uint32_t *mask; /* ((n_vocab + 31) / 32) words, least significant bit first, 1 = allowed; NULL allows all */
    float temperature;
    int32_t temperature_last;
    int32_t top_k;
    float top_p;
    float min_p;
    int32_t ties;
    uint64_t seed;
    uint64_t position; /* tokens accepted so far: together with the seed it keys the draw */
} lzs_plan;

typedef struct lzs_sampler lzs_sampler;
typedef struct lzs_backend lzs_backend;

/* "0.1.0" */
LZS_API const char *lzs_version(void);

/* The name of the kernels in use: "scalar", "avx2", "avx512" or "neon". They are the fastest that this CPU runs, or the
 * ones that the environment variable LZS_KERNELS names (meant for tests); a name that does not run here is ignored. */
LZS_API const char *lzs_kernels_name(void);

/* One line of English for a status; never NULL. */
LZS_API const char *lzs_strerror(int status);

/* Fills the first `size` bytes of settings with the defaults, and params->size with that number. Programs call
 * lzs_params_init, which knows the size of their own header. */
LZS_API void lzs_params_init_size(lzs_params *params, size_t size);

/* The name of a field that is out of range for this vocabulary, or NULL when all is well ("n_vocab" when the size of
 * the vocabulary itself is). */
LZS_API const char *lzs_params_invalid(const lzs_params *params, int32_t n_vocab);

/* The seed of sequence number `sequence` among several that share a user's seed. Sequences with one seed would draw with
 * the same noise: the same prompt would give the same text each time. */
LZS_API uint64_t lzs_sequence_seed(uint64_t seed, uint64_t sequence);

/* ---- backend: rows of logits and plans -> tokens ---- */

/* Scratch memory for rows of up to n_vocab logits and plans of up to max_edits edits. It keeps nothing between calls, so
 * all samplers of a thread can share one. */
LZS_API lzs_status lzs_backend_new(int32_t n_vocab, size_t max_edits, lzs_backend **backend);
LZS_API void lzs_backend_free(lzs_backend *backend);

/* The bytes that a backend holds. */
LZS_API size_t lzs_backend_memory(const lzs_backend *backend);

/* Picks a token for each of n rows: tokens[i] from rows[i] by plans[i], with statuses[i] (`statuses` may be NULL). A row that
 * fails has token -1 and does not disturb the others. Returns the first status that is not LZS_OK. */
LZS_API lzs_status lzs_backend_sample(lzs_backend *backend, const float *const *rows, const lzs_plan *plans, size_t n,
                                      int32_t *tokens, lzs_status *statuses);

/* What the plan draws from: token ids ascending, and probabilities that sum to 1. At most `capacity` entries are
 * written; *n is their number. LZS_ESPACE, with *n the number needed, when they do not fit: with a capacity of 0, for which
 * the arrays may be NULL, that asks for the number. (LZS_ESPACE with *n = 0 means that the backend is too small.) */
LZS_API lzs_status lzs_backend_distribution(lzs_backend *backend, const float *row, const lzs_plan *plan, int32_t *ids,
                                            float *probabilities, size_t capacity, size_t *n);

/* The row after penalties, mask, temperature and truncation: -inf where a token was cut. At temperature 0 the best token
 * alone remains, with its logit. `out` has n_vocab floats and may be the row itself; it is written only when the status is
 * LZS_OK. */
LZS_API lzs_status lzs_backend_process(lzs_backend *backend, const float *row, const lzs_plan *plan, float *out);

/* A plan as bytes, for another process of the same byte order. lzs_plan_write needs lzs_plan_size bytes (LZS_ESPACE).
 * The plan that lzs_plan_read makes points into the bytes, which must begin at a multiple of 8; it is checked whole, and
 * LZS_EINVAL means that the bytes are not a plan. */
LZS_API size_t lzs_plan_size(const lzs_plan *plan);
LZS_API lzs_status lzs_plan_write(const lzs_plan *plan, void *bytes, size_t capacity);
LZS_API lzs_status lzs_plan_read(const void *bytes, size_t n, lzs_plan *plan);

/* ---- sampler: the state of one sequence, with its settings ---- */

/* Makes a sampler with a backend of its own, or one that uses a backend which others share and which must outlive it.
 * LZS_ESPACE when the shared backend has less room than the sampler may need: n_vocab logits and lzs_edits_max edits. */
LZS_API lzs_status lzs_sampler_new(int32_t n_vocab, const lzs_params *params, lzs_sampler **sampler);
LZS_API lzs_status lzs_sampler_new_shared(int32_t n_vocab, const lzs_params *params, lzs_backend *backend,
                                          lzs_sampler **sampler);

/* The most edits that a step with these parameters can have. */
LZS_API size_t lzs_edits_max(const lzs_params *params, int32_t n_vocab);

/* A clone has the same history, position, masks and settings as its origin, the seed included, so both draw the same
 * tokens until they are given different ones or lzs_sampler_set_seed. It has a backend of its own if its origin has, and
 * shares borrowed masks. It shares the lists of the settings, too, and can be used and freed on another thread than its origin. */
LZS_API lzs_status lzs_sampler_clone(const lzs_sampler *sampler, lzs_sampler **clone);

/* Makes `to` equal to `from` in history, position, masks and settings, without new memory where there is room. Both must
 * agree in n_vocab and in all [fixed] parameters (LZS_EINVAL). After LZS_ENOMEM `to` is as after lzs_sampler_reset. */
LZS_API lzs_status lzs_sampler_copy(lzs_sampler *to, const lzs_sampler *from);

/* Forgets history, position and masks; settings stay, and a grammar begins anew. */
LZS_API void lzs_sampler_reset(lzs_sampler *sampler);
LZS_API void lzs_sampler_free(lzs_sampler *sampler);

/* The settings in force, into a struct that lzs_params_init has filled. Its arrays are the sampler's. */
LZS_API lzs_status lzs_sampler_params(const lzs_sampler *sampler, lzs_params *params);

/* New settings from the next step on, the seed included: to change one of them, begin with lzs_sampler_params. LZS_EINVAL,
 * with nothing changed, when they are out of range or differ in a [fixed] number; the lists
 * and sets of tokens (exempt, logit_bias, dry_breakers, lz_separators, lz_commas) are not looked at and stay as they are. */
LZS_API lzs_status lzs_sampler_set_params(lzs_sampler *sampler, const lzs_params *params);

/* A new seed for the draws to come, which a rewind does not take back. Samplers that were cloned from one prefix need one
 * each to draw different texts. */
LZS_API void lzs_sampler_set_seed(lzs_sampler *sampler, uint64_t seed);

LZS_API int32_t lzs_n_vocab(const lzs_sampler *sampler);

/* The number of accepted tokens: the `position` that keys the next draw. Prompt tokens do not count. */
LZS_API uint64_t lzs_position(const lzs_sampler *sampler);

/* The *n tokens that the sampler keeps, oldest first: the prompt, if penalties look at it (LZS_HISTORY_ALL), and then the
 * lzs_position accepted tokens. Valid until the sampler changes; may be NULL when *n is 0. */
LZS_API const int32_t *lzs_tokens(const lzs_sampler *sampler, size_t *n);

/* The bytes that this sampler holds: with its own backend and the lists that clones share, and without a shared backend. */
LZS_API size_t lzs_memory(const lzs_sampler *sampler);

/* Gives the prompt, while no token is accepted (LZS_EINVAL otherwise). It may be called several times, to append.
 * Penalties look at the prompt only with LZS_HISTORY_ALL. All tokens are checked before any is taken. A sequence holds
 * at most 2^31 - 1 tokens (LZS_EFULL). */
LZS_API lzs_status lzs_prime(lzs_sampler *sampler, const int32_t *tokens, size_t n);

/* Takes one token into the text, picked here or elsewhere. */
LZS_API lzs_status lzs_accept(lzs_sampler *sampler, int32_t token);

/* Takes back the last n accepted tokens, with everything that came with them: counts, matches, loops, masks. LZS_EINVAL,
 * with nothing changed, when fewer were accepted. */
LZS_API lzs_status lzs_rewind(lzs_sampler *sampler, size_t n);

/* A stretch of the accepted tokens that repeats without a break and cannot be extended on its left. */
typedef struct lzs_loop {
    uint64_t start; /* its first token, counted from 0 at the first accepted one */
    int32_t period; /* tokens of one copy, which is not itself copies of a shorter one */
    int32_t count;  /* whole copies, >= loop_min_count */
} lzs_loop;

/* Returns 1, with the loop in *loop (not NULL), once the accepted tokens have ended in loop_min_count copies of one pattern of
 * loop_min_pattern to loop_max_pattern tokens (vLLM's `repetition_detection`), and 0, with *loop untouched, before. A
 * loop is found at the very token that completes it, as the shortest pattern if several are complete, and stays as it is
 * until a reset, or a rewind that takes that token back. The prompt does not count. */
LZS_API int lzs_loop_found(const lzs_sampler *sampler, lzs_loop *loop);

/* A stretch of the accepted tokens that says next to nothing new, with or without a period. */
typedef struct lzs_stuck {
    uint64_t start; /* its first token, counted from 0 at the first accepted one */
    uint64_t end;   /* the number of accepted tokens when it was found */
} lzs_stuck;

/* Returns 1, with the stretch in *stuck (not NULL), once the accepted tokens are stuck, and 0, with *stuck untouched, before.
 * An n-gram of stuck_ngram tokens is old when it ended at stuck_min_count - 1 or more of the stuck_window positions before;
 * a token is old when an old n-gram contains it. Token by token, a score rises by 1 for each old one and falls by
 * stuck_weight, to 0 at least, for each new one. The text is stuck at the first token with which the score is known to have
 * reached stuck_threshold; `start` is the token at which it last left 0. What was found stays as it is until a reset, or a
 * rewind that takes that token back. The prompt does not count. (CUSUM: Page 1954; docs/loops.md has the reasons.) */
LZS_API int lzs_stuck_found(const lzs_sampler *sampler, lzs_stuck *stuck);

/* Whose mask it is. All masks that are set apply at once: a token is allowed when each of them allows it. */
typedef enum lzs_mask_owner { LZS_MASK_USER = 0, LZS_MASK_GRAMMAR = 1 } lzs_mask_owner;

/* Allows only the tokens whose bit is 1: uint32 words, least significant bit first; n_words must be
 * (n_vocab + 31) / 32. lzs_set_mask copies the words. lzs_borrow_mask keeps the pointer, and the words must stay as they are
 * while this sampler or a clone may use them: until the owner changed its mask at LZS_MASK_CHANGES + 1 later positions, a
 * reset, or lzs_sampler_free. A mask is in force until its owner sets another; NULL removes it.
 *
 * Masks rewind: lzs_rewind restores the mask that each owner had last set at or before that position, as long as the owner
 * changed it at no more than LZS_MASK_CHANGES positions since. Where the mask is no longer known, sampling answers LZS_EMASKED
 * until the owner sets one. */
LZS_API lzs_status lzs_set_mask(lzs_sampler *sampler, int32_t owner, const uint32_t *words, size_t n_words);
LZS_API lzs_status lzs_borrow_mask(lzs_sampler *sampler, int32_t owner, const uint32_t *words, size_t n_words);
#define LZS_MASK_CHANGES 32

/* ---- a grammar (lzsampler_grammar.h) ---- */

/* Allows only what the grammar allows, from the next token on: the text that it is about begins here. It applies together with
 * the masks, and NULL removes it. LZS_EINVAL when the vocabularies differ in size. The grammar is borrowed, and must outlive
 * the samplers that use it, clones included.
 *
 * In each state that sampling reaches, a text that matches can still be completed with the tokens of the vocabulary, and an
 * end token is allowed exactly where the text matches. A token that was accepted against the grammar leaves nothing allowed
 * (LZS_EMASKED).
 *
 * lzs_rewind and copies take the place in the grammar with them. A rewind to before the grammar was set removes it, unless it
 * replaced another: then sampling answers LZS_EMASKED until one is set. After lzs_sampler_reset the grammar begins anew.
 * A step with a grammar may allocate memory, and answers LZS_ENOMEM, or LZS_ELIMIT, where that fails; so does this function with
 * LZS_STRUCTURE_FREE, when it replaces a grammar. */
LZS_API lzs_status lzs_sampler_set_grammar(lzs_sampler *sampler, lzs_grammar *grammar);

/* The token that is the only one which grammar and masks allow next, so that it is picked whatever the logits are; -1 where there
 * are several, or none, or its edit forbids it. Fails as lzs_sampler_plan does. */
LZS_API lzs_status lzs_forced(lzs_sampler *sampler, int32_t *token);

/* The edits of the current history, each token at most once, in no particular order; some may change nothing (repeat 1,
 * bias 0). Valid until the sampler changes; may be NULL when *n is 0. With a grammar they may fail, and are then none:
 * lzs_sampler_plan gives the same ones, and a status. */
LZS_API const lzs_edit *lzs_edits(lzs_sampler *sampler, size_t *n);

/* The plan of the next step. Its arrays are the sampler's: they are valid until the sampler changes. LZS_EMASKED when a
 * mask is in force that is no longer known (see lzs_set_mask). */
LZS_API lzs_status lzs_sampler_plan(lzs_sampler *sampler, lzs_plan *plan);

/* Picks a token from n_vocab logits, which are only read. It does not change the sampler: the same call twice gives the
 * same token twice. */
LZS_API lzs_status lzs_sample(lzs_sampler *sampler, const float *logits, int32_t *token);

/* lzs_sample and lzs_accept in one call, which is what a decode loop does: picks a token and takes it into the text. *looping
 * (which may be NULL) is then 1 if lzs_loop_found or lzs_stuck_found has found something, and else 0. When the status is not
 * LZS_OK the sampler is as it was, and *token is -1. */
LZS_API lzs_status lzs_step(lzs_sampler *sampler, const float *logits, int32_t *token, int32_t *looping);

/* For a host that cannot promise to use a sampler from one thread at a time, as a binding of another language: it holds the
 * sampler for every call but lzs_try_*, and these hold it themselves. lzs_hold answers LZS_EBUSY while the sampler is held, also
 * by the same thread, and never waits; any thread may release it. lzs_try_sample returns the token, and lzs_try_step twice the
 * token, plus *looping; what is below 0 is an lzs_status. Both answer LZS_EBUSY for a sampler with a grammar, too, since other
 * samplers may be using the grammar. */
LZS_API lzs_status lzs_hold(lzs_sampler *sampler);
LZS_API void lzs_release(lzs_sampler *sampler);
LZS_API int32_t lzs_try_sample(lzs_sampler *sampler, const float *logits);
LZS_API int64_t lzs_try_step(lzs_sampler *sampler, const float *logits);
LZS_API lzs_status lzs_try_accept(lzs_sampler *sampler, int32_t token);

/* lzs_backend_process and lzs_backend_distribution with the sampler's own plan. */
LZS_API lzs_status lzs_process(lzs_sampler *sampler, const float *logits, float *out);
LZS_API lzs_status lzs_distribution(lzs_sampler *sampler, const float *logits, int32_t *ids, float *probabilities,
                                    size_t capacity, size_t *n);

/* ---- speculation: a draft proposes tokens, the target judges several of them at once ---- */

/* Which drafted tokens stand. In each mode a token has the distribution that it has without a draft, with the penalties, masks
 * and truncation of its own position; docs/speculative.md says why. In the first and the last mode the tokens are even
 * those that lzs_step would give: the draft changes the speed and nothing else. */
typedef enum lzs_spec_mode {
    LZS_SPEC_GUMBEL = 0, /* Draft and target draw with the same noise; a draft stands where both draw the same token. */
    LZS_SPEC_MRS = 1,    /* Modified rejection sampling (Leviathan et al. 2023): stands with probability min(1, p / q). */
    LZS_SPEC_MATCH = 2   /* The draft gives its best token, which stands where the target draws it. */
} lzs_spec_mode;

#define LZS_MAX_DRAFT 32 /* tokens of a block: masks are known so many positions back (LZS_MASK_CHANGES) */

typedef struct lzs_speculation lzs_speculation;

/* Makes what one sampler needs to speculate; it must not outlive the sampler. A block of up to max_draft (0..LZS_MAX_DRAFT)
 * tokens is drafted and then verified:
 *
 *     while (n < k && lzs_draft(spec, draft_logits(), 0.0f, &token) == LZS_OK) n++;      // the sampler advances with each
 *     lzs_verify(spec, target_rows(), n + 1, &verified);                                 // and is put right here
 *
 * n_draft_vocab is the size of the draft's vocabulary, 1..LZS_MAX_VOCAB. Tokens that only one of the two vocabularies has are
 * never drafted. A drafted token of `ends` (n_ends; copied; may be NULL when n_ends is 0) that stands ends its block. All memory is
 * allocated here: for each token of a block its edits (12 bytes each, lzs_edits_max of them), a mask and, in mode
 * LZS_SPEC_MRS, 8 bytes for each token that both vocabularies have; what is never written is not backed by memory on most systems. */
LZS_API lzs_status lzs_speculation_new(lzs_sampler *sampler, int32_t mode, int32_t max_draft, int32_t n_draft_vocab,
                                       const int32_t *ends, size_t n_ends, lzs_speculation **speculation);
LZS_API void lzs_speculation_free(lzs_speculation *speculation);

/* The bytes that it holds, the sampler not included. */
LZS_API size_t lzs_speculation_memory(const lzs_speculation *speculation);

/* Drafts the next token of the block from n_draft_vocab logits, with the edits and the mask that the target will use at this
 * position, and takes it into the text. Masks may be set between two drafts, as between two steps. *token is -1, and nothing is
 * drafted, where the draft gives its best token a probability below p_min (0..1; of the ten best at temperature 1, as
 * llama.cpp's --spec-draft-p-min). LZS_ESPACE when the block is full; else fails as lzs_step does. After an error nothing
 * has changed, and the tokens that were drafted before can be verified. */
LZS_API lzs_status lzs_draft(lzs_speculation *speculation, const float *logits, float p_min, int32_t *token);

/* Drafts a token that was found elsewhere, such as in the prompt, by whatever depends on the tokens so far alone. */
LZS_API lzs_status lzs_draft_token(lzs_speculation *speculation, int32_t token);

/* The *n tokens of the block, which are the last ones of the sampler's; may be NULL when *n is 0. */
LZS_API const int32_t *lzs_drafted(const lzs_speculation *speculation, size_t *n);

/* The plan by which position i of the block is judged, for whoever applies it to a row elsewhere; position n, behind the block's n
 * tokens, is that of lzs_sampler_plan. Its arrays are valid until the next draft, lzs_verify or lzs_undraft. LZS_EINVAL for i above
 * n, and where the sampler is not where the last draft left it. */
LZS_API lzs_status lzs_drafted_plan(const lzs_speculation *speculation, size_t i, lzs_plan *plan);

/* What became of a block: n_accepted tokens, and `token` if it is not -1, are the text's next ones. */
typedef struct lzs_verified {
    int32_t n_accepted; /* drafted tokens that stand */
    int32_t token;      /* the target's own token after them: instead of the first that fell, or after the last */
    int32_t ended;      /* 1 if the last of these tokens is one of `ends` */
    int32_t looping;    /* as lzs_step has it */
} lzs_verified;

/* Verifies the block, given the target's logits at each of its n tokens and after them: rows[0] is what the target says of
 * drafted token 0, and n_rows is n + 1. Without a drafted token this is lzs_step. The sampler is then as after lzs_step for
 * each token of the result, of which there is at least one, and the next block can begin.
 *
 * The block ends behind a token of `ends`, and behind the token with which a loop is found or the text is stuck, as a loop
 * over lzs_step would; `token` is then -1 if that token was drafted. It also ends, with the tokens that stand, before a row that
 * cannot be judged (NaN, nothing allowed): the error is that of the next call, unless it is row 0 that cannot. LZS_EINVAL when
 * n_rows is another number, a row is NULL, or the sampler is not where the last draft left it. After an error nothing has changed:
 * the drafted tokens are there. (After LZS_ENOMEM they may be taken back.) */
LZS_API lzs_status lzs_verify(lzs_speculation *speculation, const float *const *rows, size_t n_rows, lzs_verified *verified);

/* Takes the drafted tokens back, and begins a new block. Where the sampler was changed since, they are only forgotten. */
LZS_API void lzs_undraft(lzs_speculation *speculation);

/* ---- drafts without a model: what followed where the text ended before as it ends now ---- */

typedef struct lzs_lookup lzs_lookup;

/* Makes an empty text, whose ends are looked for among its last `window` (1..INT32_MAX) tokens. What it keeps, 6 bytes a token, grows
 * with the text. */
LZS_API lzs_status lzs_lookup_new(int32_t window, lzs_lookup **lookup);
LZS_API void lzs_lookup_free(lzs_lookup *lookup);

/* Appends n tokens of any value, in time that is linear in the window. LZS_EFULL above INT32_MAX tokens; LZS_ENOMEM. After an
 * error nothing has changed. */
LZS_API lzs_status lzs_lookup_append(lzs_lookup *lookup, const int32_t *tokens, size_t n);

/* Takes back the last n tokens; LZS_EINVAL, with nothing changed, where there are fewer. */
LZS_API lzs_status lzs_lookup_rewind(lzs_lookup *lookup, size_t n);

/* Finds the longest end of the text, of at least `least` (1..65535) tokens, that also stands further back, the nearest place where
 * several are as long, and writes the n tokens that follow there; where the text ends first, they go on with themselves, so that
 * what repeats is repeated. Returns the length of the match, at most 65535; 0, with nothing written, where there is none. */
LZS_API int32_t lzs_lookup_find(const lzs_lookup *lookup, int32_t least, int32_t *tokens, int32_t n);

/* What happened to one token's logit, and why. The edit of the token is made of the parts: `repeat` is 1 + free_share *
 * (count_repeat - 1), and `bias` is free_share * (count_bias + lz_bias + dry_bias) + logit_bias. For an exempt token the three
 * penalties are 0 (and count_repeat is 1), while its matches and its count are still told. */
typedef struct lzs_explanation {
    int32_t token;
    int32_t allowed;     /* 1 where the masks allow the token, else 0 */
    int32_t exempt;      /* 1 where it is exempt from the penalties, else 0 */
    float logit;         /* as the model gave it */
    float edited;        /* after penalties and logit_bias */
    float after;         /* as lzs_process leaves it: after temperature and truncation too; -inf where it was removed */
    float repeat, bias;  /* the edit: see lzs_edit */
    int32_t lz_length;   /* tokens of the LZ match that set the price, the token itself included; 0: there is none */
    int32_t lz_distance; /* how many tokens ago it was; 1 is the last token */
    int32_t lz_run;      /* tokens by which the text has copied itself beyond lz_run_allowance, where that set the price; else 0 */
    float lz_bits;       /* what the match saves, in bits; 0 where lz_run set the price */
    float lz_bias;       /* -lz_penalty * lz_bits, or -lz_run_penalty * lz_run */
    int32_t count;       /* occurrences in penalty_window; 0 where repetition, frequency and presence are all off */
    float count_repeat;  /* the factor of these three */
    float count_bias;    /* their addend */
    int32_t dry_length;  /* tokens of the repetition that the token would extend, by DRY's rules; 0: there is none */
    int32_t dry_distance;
    float dry_bias;
    float logit_bias; /* the user's addend for this token */
    float free_share; /* of the token's bytes, by which the penalties are multiplied; 1 without a grammar */
} lzs_explanation;

/* Explains what the next step does to n tokens (explanations[i] of tokens[i]). LZS_EINVAL for a token that is not in the
 * vocabulary; else fails as lzs_process does. Meant for people who want to know, not for every step: it allocates a row,
 * and walks through the window for each token. */
LZS_API lzs_status lzs_explain(lzs_sampler *sampler, const float *logits, const int32_t *tokens, size_t n,
                               lzs_explanation *explanations);

/* The paper's penalty of a history without a sampler: bits per distinct token, at strength 1, those that are not 0. Writes at
 * most `capacity` pairs, in no particular order; min(n, window) always suffices. */
LZS_API lzs_status lzs_lz_bits(const int32_t *history, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                               int32_t formula, int32_t *tokens, float *bits, size_t capacity, size_t *n_written);

/* The length in bits of n tokens under the LZ compressor of the paper (Definition 8): phrases of at most `buffer` tokens that
 * begin at most `window` tokens before, too, cost 1 + log2 length + log2 distance, other tokens 1 + log2 n_vocab each. */
LZS_API lzs_status lzs_code_length(const int32_t *tokens, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                                   double *bits);

/* cdef-end */

#define LZS_MIN_TEMPERATURE 1e-6f
#define LZS_MAX_TEMPERATURE 1e6f

/* The defaults: everything is off but the draw at temperature 1. */
static inline void lzs_params_init(lzs_params *params) {
    lzs_params_init_size(params, sizeof *params);
}

#ifdef __cplusplus
}
#endif
#endif
