/* lzsampler_verify.h - speculation: a draft proposes tokens, and the target judges several of them at once. */
#ifndef LZSAMPLER_VERIFY_H
#define LZSAMPLER_VERIFY_H

#include "lzsampler_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cdef-begin */

/* Which drafted tokens stand. In each mode a token has the distribution that it has without a draft, with the
 * penalties, masks and truncation of its own position; docs/speculative.md says why. In the first and the last mode the
 * tokens are even those that lzs_step would give: the draft changes the speed and nothing else. */
typedef enum lzs_spec_mode {
    LZS_SPEC_GUMBEL = 0, /* Draft and target draw with the same noise; a token stands if both draw it. */
    LZS_SPEC_MRS = 1,    /* Modified rejection sampling (Leviathan et al. 2023): it stands with min(1, p / q). */
    LZS_SPEC_MATCH = 2   /* The draft gives its best token, which stands if the target draws it. */
} lzs_spec_mode;

#define LZS_MAX_DRAFT 32 /* tokens of a block: masks are known so many positions back (LZS_MASK_CHANGES) */

typedef struct lzs_speculation lzs_speculation;

/* Makes what one sampler needs to speculate; it must not outlive the sampler. You draft a block of up to max_draft
 * (0..LZS_MAX_DRAFT) tokens, and then verify it:
 *
 *     while (n < k && lzs_draft(spec, draft_logits(), 0.0f, &token) == LZS_OK) n++;  // the sampler advances with each
 *     lzs_verify(spec, target_rows(), n + 1, &verified);                             // and is put right here
 *
 * n_draft_vocab is the size of the draft's vocabulary, 1..LZS_MAX_VOCAB. A token that only one vocabulary has is never
 * drafted. A drafted token of `ends` (n_ends; copied; may be NULL when n_ends is 0) that stands ends its block. All
 * memory is allocated here. A token of a block takes 12 bytes for each of lzs_edits_max edits, a mask and, in mode
 * LZS_SPEC_MRS, 8 bytes for each token that both vocabularies have. Most systems back only what is written. */
LZS_API lzs_status lzs_speculation_new(lzs_sampler *sampler, int32_t mode, int32_t max_draft, int32_t n_draft_vocab,
                                       const int32_t *ends, size_t n_ends, lzs_speculation **speculation);
LZS_API void lzs_speculation_free(lzs_speculation *speculation);

/* The bytes that it holds, the sampler not included. */
LZS_API size_t lzs_speculation_memory(const lzs_speculation *speculation);

/* Drafts the next token of the block from n_draft_vocab logits, with the edits and the mask of this position, and takes
 * it into the text. You may set masks between two drafts, as between two steps. *token is -1, and nothing is drafted,
 * if the draft gives its best token a probability below p_min (0..1; of the ten best at temperature 1, as llama.cpp's
 * --spec-draft-p-min). LZS_ESPACE if the block is full; else fails as lzs_step does. After an error nothing has
 * changed, and you can verify what was drafted before. */
LZS_API lzs_status lzs_draft(lzs_speculation *speculation, const float *logits, float p_min, int32_t *token);

/* Drafts a token from elsewhere, such as the prompt; what chooses it must depend on the tokens so far alone. */
LZS_API lzs_status lzs_draft_token(lzs_speculation *speculation, int32_t token);

/* The *n tokens of the block, which are the last ones of the sampler's; may be NULL when *n is 0. */
LZS_API const int32_t *lzs_drafted(const lzs_speculation *speculation, size_t *n);

/* The plan of position i of the block, for whoever applies it to a row elsewhere; position n, after the block's n
 * tokens, has the plan of lzs_sampler_plan. Its arrays are valid until the next draft, lzs_verify or lzs_undraft.
 * LZS_EINVAL for i above n, and if the sampler has changed since the last draft. */
LZS_API lzs_status lzs_drafted_plan(const lzs_speculation *speculation, size_t i, lzs_plan *plan);

/* What became of a block: n_accepted tokens, and `token` if it is not -1, are the text's next ones. */
typedef struct lzs_verified {
    int32_t n_accepted; /* drafted tokens that stand */
    int32_t token;      /* the target's own token after them: instead of the first that fell, or after the last */
    int32_t ended;      /* 1 if the last of these tokens is one of `ends` */
    int32_t looping;    /* as lzs_step has it */
} lzs_verified;

/* Verifies the block by the target's logits at each of its n tokens and after them. rows[0] is what the target says of
 * drafted token 0, and n_rows is n + 1. Without a drafted token this is lzs_step. The sampler is then as after lzs_step
 * for each token of the result, of which there is at least one, and the next block can begin.
 *
 * The block ends after a token of `ends`, and after the token that completes a loop or makes the text stuck, as a loop
 * over lzs_step would; `token` is then -1 if that token was drafted. It also ends before a row that cannot be judged
 * (NaN, nothing allowed). The error is then that of the next call, unless the row is row 0. LZS_EINVAL for another
 * n_rows, a NULL row, and if the sampler has changed since the last draft. After an error nothing has changed: the
 * drafted tokens are there. (After LZS_ENOMEM they may be taken back.) */
LZS_API lzs_status lzs_verify(lzs_speculation *speculation, const float *const *rows, size_t n_rows,
                              lzs_verified *verified);

/* Takes the drafted tokens back, and begins a new block. If the sampler has changed since, it only forgets them. */
LZS_API void lzs_undraft(lzs_speculation *speculation);

/* ---- drafts without a model: what followed when the text ended before as it ends now ---- */

typedef struct lzs_lookup lzs_lookup;

/* Makes an empty text, which looks for its own end among its last `window` (1..INT32_MAX) tokens. It keeps 6 bytes a
 * token. */
LZS_API lzs_status lzs_lookup_new(int32_t window, lzs_lookup **lookup);
LZS_API void lzs_lookup_free(lzs_lookup *lookup);

/* Appends n tokens of any value, in time that is linear in the window. LZS_EFULL above INT32_MAX tokens; LZS_ENOMEM.
 * After an error nothing has changed. */
LZS_API lzs_status lzs_lookup_append(lzs_lookup *lookup, const int32_t *tokens, size_t n);

/* Takes back the last n tokens; LZS_EINVAL, with nothing changed, if there are fewer. */
LZS_API lzs_status lzs_lookup_rewind(lzs_lookup *lookup, size_t n);

/* Finds the longest end of the text, of at least `least` (1..65535) tokens, that also stands further back, at the
 * nearest place if several are as long. Writes the n tokens that follow there; if the text ends first, they go on with
 * themselves, which repeats what repeats. Returns the length of the match, at most 65535; 0, with nothing written, if
 * there is none. */
LZS_API int32_t lzs_lookup_find(const lzs_lookup *lookup, int32_t least, int32_t *tokens, int32_t n);

/* cdef-end */

#ifdef __cplusplus
}
#endif
#endif
