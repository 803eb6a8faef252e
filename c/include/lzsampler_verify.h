/* lzsampler_verify.h - speculative decoding: a draft model proposes tokens, and the target model verifies several
 * tokens at once. */
#ifndef LZSAMPLER_VERIFY_H
#define LZSAMPLER_VERIFY_H

#include "lzsampler_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* The rule by which the target decides which drafted tokens stand, that is, are kept. In each mode the tokens have the
 * same distribution as without a draft: the penalties, masks and truncation of each token's own position apply
 * (docs/speculative.md has the proof). In LZS_SPEC_GUMBEL and LZS_SPEC_MATCH the result even has the same tokens that
 * lzs_step would give. */
typedef enum lzs_spec_mode {
    LZS_SPEC_GUMBEL = 0, /* Draft and target draw with the same noise; a token stands if both draw it. */
    LZS_SPEC_MRS = 1,    /* Modified rejection sampling (Leviathan et al. 2023): a token stands with probability min(1,
                          * p / q), where p is its probability in the target and q in the draft. */
    LZS_SPEC_MATCH = 2   /* The draft gives its best token, which stands if the target draws it. */
} lzs_spec_mode;

#define LZS_MAX_DRAFT 32 /* greatest number of tokens of a block; it equals LZS_MASK_CHANGES, because a rewind must
                          * restore the masks of a block */

typedef struct lzs_speculation lzs_speculation;

/* Makes the object that one sampler needs for speculative decoding. Free this object before the sampler. The caller
 * drafts a block of up to max_draft (0..LZS_MAX_DRAFT) tokens, and then verifies the block:
 *
 *     while (n < k && lzs_draft(spec, draft_logits(), 0.0f, &token) == LZS_OK) n++;  // appends the token to the text
 *     lzs_verify(spec, target_rows(), n + 1, &verified);                             // takes refused tokens back
 *
 * n_draft_vocab is the size of the draft's vocabulary, 1..LZS_MAX_VOCAB. Only tokens that both vocabularies have are
 * drafted. `ends` lists n_ends tokens: if such a token is drafted and stands, the block ends after the token. The list
 * is copied, and may be NULL when n_ends is 0. All memory is allocated here. Each token of a block takes 12 bytes for
 * each of lzs_edits_max edits, and a mask. In mode LZS_SPEC_MRS it also takes 8 bytes for each token that both
 * vocabularies have. Most systems use physical memory only for what is written. */
LZS_API lzs_status lzs_speculation_new(lzs_sampler *sampler, int32_t mode, int32_t max_draft, int32_t n_draft_vocab,
                                       const int32_t *ends, size_t n_ends, lzs_speculation **speculation);
LZS_API void lzs_speculation_free(lzs_speculation *speculation);

/* Returns the number of bytes that the speculation holds, the sampler not included. */
LZS_API size_t lzs_speculation_memory(const lzs_speculation *speculation);

/* Picks the next token of the block from the draft's n_draft_vocab logits, and appends the token to the text. The edits
 * and the mask of the position apply. The caller may set masks between two drafts, as between two steps. If the draft's
 * best token has a probability below p_min (0..1), *token is -1 and nothing is drafted. This probability is computed
 * over the ten best tokens at temperature 1, as for llama.cpp's --spec-draft-p-min. LZS_ESPACE if the block is full;
 * else fails as lzs_step does. After an error nothing has changed, and the caller can verify the tokens drafted
 * before. */
LZS_API lzs_status lzs_draft(lzs_speculation *speculation, const float *logits, float p_min, int32_t *token);

/* Drafts a token that the caller chose, for example by lzs_lookup_find. The choice may depend on nothing but the tokens
 * so far. */
LZS_API lzs_status lzs_draft_token(lzs_speculation *speculation, int32_t token);

/* Returns the *n tokens of the block, which are also the last n tokens of the sampler. The result may be NULL when *n
 * is 0. */
LZS_API const int32_t *lzs_drafted(const lzs_speculation *speculation, size_t *n);

/* Gives the plan of position i of the block, for callers that apply plans themselves. If the block has n tokens, the
 * plan of position n is that of lzs_sampler_plan. The plan's arrays are valid until the next draft, lzs_verify or
 * lzs_undraft. LZS_EINVAL if i is above n, or if the sampler has changed since the last draft. */
LZS_API lzs_status lzs_drafted_plan(const lzs_speculation *speculation, size_t i, lzs_plan *plan);

/* The result of verifying a block: the text goes on with the first n_accepted drafted tokens and then with `token`,
 * unless `token` is -1. */
typedef struct lzs_verified {
    int32_t n_accepted; /* number of drafted tokens that stand */
    int32_t token;      /* the token that the target picked in place of the first refused token, or after the whole
                         * block; -1: none */
    int32_t ended;      /* 1 if the last token of the result is one of `ends` */
    int32_t looping;    /* 1 if a loop is found or the text is stuck, as in lzs_step */
} lzs_verified;

/* Verifies a block of n tokens. rows[i] has the target's logits for the position of drafted token i, and rows[n] has
 * the logits for the position after the block. So n_rows is n + 1. Without a drafted token this is lzs_step. The result
 * has at least one token. Afterwards the sampler is as if lzs_step had given each token of the result, and the next
 * block can begin.
 *
 * The result ends after a token of `ends`, and after the token that completes a loop or makes the text stuck. If this
 * last token was drafted, `token` is -1. The result also ends before a row from which no token can be picked (NaN,
 * nothing allowed). If this is row 0, the call returns the row's error; if not, the next call returns it. LZS_EINVAL if
 * n_rows is not n + 1, if a row is NULL, or if the sampler has changed since the last draft. After an error nothing has
 * changed: the drafted tokens are still in the text. (After LZS_ENOMEM they may have been taken back.) */
LZS_API lzs_status lzs_verify(lzs_speculation *speculation, const float *const *rows, size_t n_rows,
                              lzs_verified *verified);

/* Takes the drafted tokens back, and begins a new block. If the sampler has changed since the last draft, the block is
 * forgotten and the text stays. */
LZS_API void lzs_undraft(lzs_speculation *speculation);

/* ---- drafts without a model: the tokens that followed an earlier occurrence of the end of the text ---- */

typedef struct lzs_lookup lzs_lookup;

/* Makes a lookup with an empty text. A lookup searches the last `window` (1..INT32_MAX) tokens of the text for the
 * text's end. A lookup takes 6 bytes for each token. */
LZS_API lzs_status lzs_lookup_new(int32_t window, lzs_lookup **lookup);
LZS_API void lzs_lookup_free(lzs_lookup *lookup);

/* Appends n tokens, which may be any numbers. The time is linear in the window. LZS_EFULL if the text would have more
 * than INT32_MAX tokens. LZS_ENOMEM if memory runs out. After an error nothing has changed. */
LZS_API lzs_status lzs_lookup_append(lzs_lookup *lookup, const int32_t *tokens, size_t n);

/* Takes back the last n tokens. LZS_EINVAL if the text has fewer than n tokens; nothing has then changed. */
LZS_API lzs_status lzs_lookup_rewind(lzs_lookup *lookup, size_t n);

/* Finds the longest end of the text, of at least `least` (1..65535) tokens, that also occurs earlier. If this end
 * occurs earlier at several places, the nearest counts. Writes the n tokens that follow the earlier occurrence. If
 * fewer than n tokens follow it, these tokens are repeated until n tokens are written. Returns the length of the match,
 * at most 65535. If there is no match, returns 0 and writes nothing. */
LZS_API int32_t lzs_lookup_find(const lzs_lookup *lookup, int32_t least, int32_t *tokens, int32_t n);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
