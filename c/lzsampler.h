/* lzsampler.h - the public interface of liblzsampler: a token sampler whose LZ penalty stops language models
 * from looping (Ginart et al. 2025, arXiv 2504.20131), with the other penalties, mask and truncation of the field.
 *
 * One lzs_sampler belongs to one sequence. A decode loop is
 *
 *     lzs_params params;
 *     lzs_params_init(&params);
 *     params.lz_penalty = 0.15f;
 *     params.temperature = 0.0f;
 *     lzs_sampler *sampler = NULL;
 *     if (lzs_sampler_new(n_vocab, &params, &sampler) != LZS_OK) return 1;
 *     for (;;) {
 *         float *logits = next_logits();                  // n_vocab floats from the model
 *         int32_t token;
 *         if (lzs_sample(sampler, logits, &token) != LZS_OK) break;
 *         lzs_accept(sampler, token);
 *     }
 *     lzs_sampler_free(sampler);
 *
 * The pipeline has a fixed order: penalties, mask, temperature, truncation (top-k, top-p, min-p), pick.
 * The same logits, parameters, seed and position give the same token on every CPU and in every batch.
 *
 * Conventions: functions return an lzs_status (0 or a negative error) and give results through pointers. Nothing
 * here prints, exits, aborts or keeps state but the choice of kernels for this CPU. Only *_new, *_clone, lzs_prime,
 * lzs_accept, lzs_set_mask and lzs_lz_bits allocate: never lzs_sample, lzs_process, lzs_distribution or lzs_edits.
 * Every free accepts NULL. Samplers take no locks: use one from one thread at a time. A call needs 80 KB of stack.
 */
#ifndef LZSAMPLER_H
#define LZSAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "lzsampler_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The section between the marks is also the cdef of the Python binding (lzsampler/_ffi_build.py). */
/* cdef-begin */

#define LZS_VERSION_MAJOR 0
#define LZS_VERSION_MINOR 1
#define LZS_VERSION_PATCH 0

#define LZS_MAX_WINDOW 131072 /* lz_window, and what a loop may need to be found, in tokens */
#define LZS_MAX_BUFFER 4096   /* lz_buffer, in tokens */

typedef enum lzs_lz_formula {
    LZS_LZ_RATE = 0,      /* (log2(D + 1) + log2 L) / L, the cheapest match; the authors' code of March 2025 */
    LZS_LZ_DISTANCE = 1,  /* log2 D of the longest match, the nearest of equals; the authors' code of July 2025 */
    LZS_LZ_CODELENGTH = 2 /* the paper's Eq. 14 with its algebra mended: see docs/penalties.md */
} lzs_lz_formula;

typedef enum lzs_method {
    LZS_SUBTRACTIVE = 0,   /* repetition: x - p; frequency: x - p * count; presence: x - p */
    LZS_MULTIPLICATIVE = 1 /* repetition: x / p; frequency: x / p^count;   presence: x / p */
} lzs_method;

typedef enum lzs_history_scope {
    LZS_HISTORY_GENERATED = 0, /* penalties see accepted tokens only */
    LZS_HISTORY_ALL = 1        /* and the prompt given to lzs_prime */
} lzs_history_scope;

typedef enum lzs_ties {
    LZS_TIES_CUT = 0, /* exactly k tokens stay; equal logits are ordered by token id */
    LZS_TIES_KEEP = 1 /* every token equal to the last one kept stays, as in transformers and vLLM */
} lzs_ties;

typedef enum lzs_pick {
    LZS_PICK_RACE = 0,      /* exponential race (Gumbel-max) on Philox4x32-10 */
    LZS_PICK_LLAMA_DIST = 1 /* bit for bit what llama.cpp's `dist` draws: mt19937, two words a draw, double sums */
} lzs_pick;

/* What to do with a row of logits. Fill with lzs_params_init, then change fields: its values switch everything
 * off but the pick at temperature 1. */
typedef struct lzs_params {
    uint32_t size;             /* sizeof(lzs_params), set by lzs_params_init */
    float lz_penalty;          /* strength, logits per bit, >= 0; 0 = off */
    int32_t lz_window;         /* lookback, tokens, 2..LZS_MAX_WINDOW */
    int32_t lz_buffer;         /* longest suffix compared, tokens, 1..LZS_MAX_BUFFER, < lz_window */
    int32_t lz_formula;        /* lzs_lz_formula */
    float repetition_penalty;  /* >= FLT_MIN if multiplicative (1 = off), any finite number if subtractive (0 = off) */
    float frequency_penalty;   /* 0 = off; else >= FLT_MIN if multiplicative, any finite number if subtractive */
    float presence_penalty;    /* as frequency_penalty */
    int32_t repetition_method; /* lzs_method */
    int32_t frequency_method;  /* lzs_method */
    int32_t presence_method;   /* lzs_method */
    int32_t sign_aware;        /* 1: factors multiply negative logits; 0: they divide whatever the sign */
    int32_t penalty_window;    /* tokens that the three penalties above look at; 0 = whole history */
    int32_t history;           /* lzs_history_scope, for every penalty */
    int32_t loop_max_pattern;  /* lzs_loop_found: longest pattern, tokens, >= 0; 0 = off */
    int32_t loop_min_pattern;  /* shortest pattern, tokens, >= 1, <= loop_max_pattern */
    int32_t loop_min_count;    /* copies that make a loop, >= 2; loop_max_pattern * this <= LZS_MAX_WINDOW */
    float temperature;         /* 0 = argmax, else LZS_MIN_TEMPERATURE (1e-6) to 1e6 */
    int32_t temperature_last;  /* 1: truncate first, then apply the temperature (llama.cpp's default order) */
    int32_t top_k;             /* >= 0; 0 = off */
    float top_p;               /* 0..1; 1 = off; 0 keeps one token */
    float min_p;               /* 0..1; 0 = off */
    int32_t ties;              /* lzs_ties */
    int32_t pick;              /* lzs_pick */
    uint64_t seed;             /* LZS_PICK_LLAMA_DIST takes its low 32 bits, as llama.cpp's seeds are */
    const int32_t *exempt; /* tokens that no penalty touches; copied; may be NULL when n_exempt is 0 */
    size_t n_exempt;
} lzs_params;

/* What all penalties together do to one token's logit: x -> (x > 0 ? x / repeat : x * repeat) + bias. */
typedef struct lzs_edit {
    int32_t token;
    float repeat;
    float bias;
} lzs_edit;

typedef struct lzs_sampler lzs_sampler;

/* "0.1.0" */
LZS_API const char *lzs_version(void);

/* Name of the kernels in use: "scalar", "avx2", "avx512" or "neon". The fastest that this CPU runs, or the one that the
 * environment variable LZS_KERNELS names (meant for tests); "none" when that does not run here. */
LZS_API const char *lzs_kernels_name(void);

/* The maximum of a row by a bare loop of those kernels: the floor that benches compare with. */
LZS_API float lzs_kernels_scan(const float *x, int32_t n);

/* One line of English for a status; never NULL. */
LZS_API const char *lzs_strerror(int status);

LZS_API void lzs_params_init(lzs_params *params);

/* Name of the first field that is out of range for this vocabulary, or NULL when all is well. */
LZS_API const char *lzs_params_invalid(const lzs_params *params, int32_t n_vocab);

/* Lifecycle. A clone has the same history, position and mask, and goes its own way. Reset forgets history,
 * position and mask. */
LZS_API lzs_status lzs_sampler_new(int32_t n_vocab, const lzs_params *params, lzs_sampler **sampler);
LZS_API lzs_status lzs_sampler_clone(const lzs_sampler *sampler, lzs_sampler **clone);
LZS_API void lzs_sampler_reset(lzs_sampler *sampler);
LZS_API void lzs_sampler_free(lzs_sampler *sampler);

LZS_API int32_t lzs_n_vocab(const lzs_sampler *sampler);

/* Number of tokens accepted: the `position` that keys the next draw. Prompt tokens do not count. */
LZS_API uint64_t lzs_position(const lzs_sampler *sampler);

/* Bytes this sampler holds, all of it. */
LZS_API size_t lzs_memory(const lzs_sampler *sampler);

/* The prompt, before the first lzs_accept (LZS_EINVAL after it). May be called several times, to append. Penalties
 * see it only with LZS_HISTORY_ALL. All tokens are checked before any is taken. */
LZS_API lzs_status lzs_prime(lzs_sampler *sampler, const int32_t *tokens, size_t n);

/* One token of the text, picked here or elsewhere. */
LZS_API lzs_status lzs_accept(lzs_sampler *sampler, int32_t token);

/* Takes back the last n accepted tokens; LZS_EINVAL, with nothing changed, when there are fewer. */
LZS_API lzs_status lzs_rewind(lzs_sampler *sampler, size_t n);

/* A stretch of the accepted tokens that repeats without a break and cannot be extended on its left. */
typedef struct lzs_loop {
    uint64_t start; /* its first token, counted from 0 at the first accepted one */
    int32_t period; /* tokens of one copy, which is not itself copies of a shorter one */
    int32_t count;  /* whole copies, >= loop_min_count */
} lzs_loop;

/* 1, with the loop in *loop, when the accepted tokens came to end in loop_min_count copies of one pattern of
 * loop_min_pattern to loop_max_pattern tokens (vLLM's `repetition_detection`); 0, with *loop untouched, when not. It is
 * found at the very token that completes it, the shortest pattern if several are, and stays as it is then until
 * a reset, or a rewind that takes this token back. The prompt does not count. */
LZS_API int lzs_loop_found(const lzs_sampler *sampler, lzs_loop *loop);

/* Allowed tokens, one bit each: uint32 words, least significant bit first, 1 = allowed. n_words must be
 * (n_vocab + 31) / 32. Copied; stays until changed; NULL allows everything. */
LZS_API lzs_status lzs_set_mask(lzs_sampler *sampler, const uint32_t *words, size_t n_words);

/* The edits of the current history, at most one a token, in no particular order; some may change nothing (repeat 1,
 * bias 0). Valid until the sampler changes. */
LZS_API const lzs_edit *lzs_edits(lzs_sampler *sampler, size_t *n);

/* Picks a token. `logits` (n_vocab floats) are patched during the call and left as they were, also on error. Does
 * not change the sampler: twice the same call gives twice the same token. */
LZS_API lzs_status lzs_sample(lzs_sampler *sampler, float *logits, int32_t *token);

/* The pipeline without its pick, in place: penalties, mask, temperature, truncation; -inf where cut. */
LZS_API lzs_status lzs_process(lzs_sampler *sampler, float *logits);

/* What lzs_sample draws from: ids ascending, probabilities that sum to 1. At most `capacity` entries are written; *n
 * is their number. LZS_ESPACE, with *n the number needed, when they do not fit. `logits` as in lzs_sample. */
LZS_API lzs_status lzs_distribution(lzs_sampler *sampler, float *logits, int32_t *ids, float *probabilities,
                                    size_t capacity, size_t *n);

/* LZ penalty of a history without a sampler: bits per distinct token, at strength 1, those that are not 0. Writes at
 * most `capacity` pairs, in no particular order; min(n, window) always suffices. */
LZS_API lzs_status lzs_lz_bits(const int32_t *history, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                               int32_t formula, int32_t *tokens, float *bits, size_t capacity, size_t *n_written);

/* A link for llama.cpp's sampler chain: a `llama_sampler *` that holds a clone of `sampler`. `llama_sampler_init` is
 * the address of that function in the libllama that will own the link (it frees what its own `new` made). */
typedef enum lzs_link {
    LZS_LINK_PENALTIES = 0, /* edits only, anywhere in a chain */
    LZS_LINK_SAMPLER = 1    /* the whole pipeline; selects a token, so it ends a chain */
} lzs_link;
LZS_API lzs_status lzs_llama_link_new(const lzs_sampler *sampler, int32_t kind, void *llama_sampler_init,
                                      void **link);

/* The sampler inside a link (borrowed: it lives as long as the link) and the first error since the last call. */
LZS_API lzs_sampler *lzs_llama_link_sampler(void *link);
LZS_API lzs_status lzs_llama_link_status(void *link);

/* A token of llama.cpp's chain under a grammar, in the order of llama.cpp's common_sampler: the chain picks, the grammar is
 * asked about that token, and only when it refuses the grammar masks and the chain picks again. Both accept the token.
 * Addresses are of the functions `llama_...` of one libllama. Chain and grammar are borrowed; the grammar is no link of
 * the chain. The first `n_head` links of the chain only change logits; `link` is our penalties among them if the others
 * do nothing, else NULL; the next link keeps the `n_best` best (top-k: k, greedy: 1), or n_best is 0. */
typedef struct lzs_llama_functions {
    void *get_logits_ith;
    void *sampler_apply;
    void *sampler_accept;
    void *chain_get; /* llama_sampler_chain_get */
    void *chain_n;   /* llama_sampler_chain_n */
} lzs_llama_functions;
typedef struct lzs_llama_grammar lzs_llama_grammar;
LZS_API lzs_status lzs_llama_grammar_new(int32_t n_vocab, const lzs_llama_functions *functions, void *chain, void *grammar,
                                         void *link, int32_t n_head, int32_t n_best, lzs_llama_grammar **out);
LZS_API void lzs_llama_grammar_free(lzs_llama_grammar *grammar);
/* LZS_EINVAL where llama.cpp has no logits at this index; LZS_EMASKED when the grammar allows no token. */
LZS_API lzs_status lzs_llama_grammar_sample(lzs_llama_grammar *grammar, void *context, int32_t index, int32_t *token);
/* How many picks were refused. */
LZS_API uint64_t lzs_llama_grammar_refused(const lzs_llama_grammar *grammar);

/* cdef-end */

#define LZS_MIN_TEMPERATURE 1e-6f
#define LZS_MAX_TEMPERATURE 1e6f

#ifdef __cplusplus
}
#endif
#endif
