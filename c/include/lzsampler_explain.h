/* lzsampler_explain.h - why a logit changed. Two functions that need no sampler measure a text as arXiv 2504.20131 (the
 * paper) does. */
#ifndef LZSAMPLER_EXPLAIN_H
#define LZSAMPLER_EXPLAIN_H

#include "lzsampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* The explanation of one token's logit: what changed it, and why. The edit of the token is composed of the parts below:
 * `repeat` is 1 + free_share * (count_repeat - 1), and `bias` is free_share * (count_bias + lz_bias + dry_bias) +
 * logit_bias. For an exempt token, count_bias, lz_bias and dry_bias are 0 and count_repeat is 1; matches and count are
 * still given. */
typedef struct lzs_explanation {
    int32_t token;
    int32_t allowed;     /* 1 if the masks allow the token, else 0 */
    int32_t exempt;      /* 1 if the token is exempt from the penalties, else 0 */
    float logit;         /* logit that the model gave */
    float edited;        /* logit after penalties and logit_bias */
    float after;         /* logit in the result of lzs_process; -inf if the token was removed */
    float repeat, bias;  /* the edit of the token (lzs_edit) */
    int32_t lz_length;   /* number of tokens of the LZ match that set the penalty, the token itself included; 0: no
                          * match */
    int32_t lz_distance; /* distance of the match, in tokens; 1 is the last token */
    int32_t lz_run;      /* number of tokens by which a run exceeds lz_run_allowance, if the run set the penalty; else
                          * 0 */
    float lz_bits;       /* number of bits that the match saves; 0 if lz_run set the penalty */
    float lz_bias;       /* -lz_penalty * lz_bits, or -lz_run_penalty * lz_run */
    int32_t count;       /* number of occurrences in penalty_window; 0 if repetition, frequency and presence are all
                          * off */
    float count_repeat;  /* the factor of repetition, frequency and presence together */
    float count_bias;    /* the addend of repetition, frequency and presence together */
    int32_t dry_length;  /* number of tokens of the repetition that the token would extend by DRY's rules; 0: no
                          * repetition */
    int32_t dry_distance;
    float dry_bias;
    float logit_bias; /* the user's addend for this token */
    float free_share; /* share of the token's bytes that the grammar leaves free, by which the penalties are multiplied;
                       * 1 without a grammar */
} lzs_explanation;

/* Explains what the next step does to n tokens (explanations[i] of tokens[i]). LZS_EINVAL for a token that is not in
 * the vocabulary; else fails as lzs_process does. The function is slow: it allocates a row of logits, and searches the
 * window for each token. */
LZS_API lzs_status lzs_explain(lzs_sampler *sampler, const float *logits, const int32_t *tokens, size_t n,
                               lzs_explanation *explanations);

/* Gives the paper's penalty, in bits at strength 1, for each distinct token of a history. Leaves out tokens whose
 * penalty is 0. Writes at most `capacity` pairs of token and bits, in any order. A capacity of min(n, window) always
 * suffices. */
LZS_API lzs_status lzs_lz_bits(const int32_t *history, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                               int32_t formula, int32_t *tokens, float *bits, size_t capacity, size_t *n_written);

/* Gives the length in bits of n tokens under the LZ compressor of the paper (Definition 8). If a phrase of at most
 * `buffer` tokens also occurs at most `window` tokens before, it costs 1 + log2 length + log2 distance. Any other token
 * costs 1 + log2 n_vocab. */
LZS_API lzs_status lzs_code_length(const int32_t *tokens, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                                   double *bits);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
