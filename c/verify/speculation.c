/* speculation.c - a block of drafted tokens of one sequence: drafting the tokens, and verifying them with the target's
 * logits.
 *
 * The sampler accepts a drafted token like any other token. So penalties, masks and detectors of later positions take
 * the drafted token into account. The plan of a position is made once, when its token is drafted, and kept. So the
 * target verifies the token with the same edits and the same mask. The sampler is rewound at most once a block, to the
 * first refused token.
 */
#include <string.h>

#include "../plan/ranges.h"
#include "../room.h"
#include "../sampler.h"
#include "../state/sorted_tokens.h"
#include "rejection.h"
#include "speculation.h"

enum { P_MIN_TOKENS = 10 }; /* llama.cpp's draft compares p_min with a softmax over so many tokens */

/* One position of the block. */
typedef struct proposal {
    lzs_plan plan;         /* the plan for the target's row; its arrays belong to lzs_speculation */
    size_t edits_at;       /* offset of the plan's edits in lzs_speculation's `edits` */
    size_t n_shared_edits; /* number of edits of tokens that the draft's vocabulary has; these edits come first */
    size_t q_at, n_q;      /* in mode LZS_SPEC_MRS, offset and length of the distribution from which the token was
                            * drawn */
} proposal;

struct lzs_speculation {
    lzs_sampler *sampler;
    int32_t mode, max_draft;
    int32_t n_shared; /* both vocabularies have the tokens 0 to n_shared - 1 */
    int32_t *ends;    /* (n_ends) tokens that end a block, ascending */
    size_t n_ends;
    uint64_t start;      /* the position of the block's first token */
    bool was_looping;    /* whether a loop was found, or the text was stuck, before the block */
    int32_t n;           /* number of drafted tokens */
    int32_t *tokens;     /* (n of max_draft) drafted tokens */
    proposal *proposals; /* (n of max_draft) positions of the block */
    lzs_edit *edits;     /* (max_draft * max_edits) edits of all positions */
    size_t max_edits;    /* greatest number of edits of one position */
    uint32_t *masks;     /* (max_draft * mask words) masks of all positions */
    /* Distributions of the draft (q) and the target (p), only in mode LZS_SPEC_MRS: */
    int32_t *q_ids;         /* (max_draft * n_shared) tokens of q, for all positions */
    float *q_probabilities; /* (max_draft * n_shared) probabilities of q, for all positions */
    int32_t *p_ids;         /* (n_vocab) tokens of p, for one position */
    float *p_probabilities; /* (n_vocab) probabilities of p, for one position */
};

/* ---- creating and freeing ---- */

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Allocates `rows` times `n` items of `size` bytes. If the allocation fails, sets *ok to false. */
static void *room(size_t rows, size_t n, size_t size, bool *ok) {
    void *made = rows && n > SIZE_MAX / size / rows ? NULL : lzs_room(NULL, rows * n, size);
    *ok &= made != NULL;
    return made;
}

lzs_status lzs_speculation_new(lzs_sampler *sampler, int32_t mode, int32_t max_draft, int32_t n_draft_vocab,
                               const int32_t *ends, size_t n_ends, lzs_speculation **speculation) {
    *speculation = NULL;
    bool valid = sampler && lzs_choice(mode, LZS_SPEC_MATCH) && lzs_choice(max_draft, LZS_MAX_DRAFT);
    valid = valid && n_draft_vocab >= 1 && n_draft_vocab <= LZS_MAX_VOCAB;
    if (!valid || !lzs_tokens_valid(ends, n_ends, sampler->n_vocab)) return LZS_EINVAL;
    lzs_speculation *s = calloc(1, sizeof *s);
    if (!s) return LZS_ENOMEM;
    size_t most = (size_t)max_draft, n_vocab = (size_t)sampler->n_vocab;
    bool ok = true;
    s->sampler = sampler;
    s->mode = mode;
    s->max_draft = max_draft;
    s->n_shared = n_draft_vocab < sampler->n_vocab ? n_draft_vocab : sampler->n_vocab;
    s->max_edits = lzs_edits_max(&sampler->params, sampler->n_vocab);
    s->n_ends = n_ends;
    s->ends = room(1, n_ends, sizeof *s->ends, &ok);
    s->tokens = room(most, 1, sizeof *s->tokens, &ok);
    s->proposals = room(most, 1, sizeof *s->proposals, &ok);
    s->edits = room(most, s->max_edits, sizeof *s->edits, &ok);
    s->masks = room(most, lzs_mask_words(sampler->n_vocab), sizeof *s->masks, &ok);
    if (mode == LZS_SPEC_MRS) {
        s->q_ids = room(most, (size_t)s->n_shared, sizeof *s->q_ids, &ok);
        s->q_probabilities = room(most, (size_t)s->n_shared, sizeof *s->q_probabilities, &ok);
        s->p_ids = room(1, n_vocab, sizeof *s->p_ids, &ok);
        s->p_probabilities = room(1, n_vocab, sizeof *s->p_probabilities, &ok);
    }
    if (!ok) {
        lzs_speculation_free(s);
        return LZS_ENOMEM;
    }
    if (n_ends) memcpy(s->ends, ends, n_ends * sizeof *ends);
    qsort(s->ends, n_ends, sizeof *s->ends, ascending);
    *speculation = s;
    return LZS_OK;
}

void lzs_speculation_free(lzs_speculation *s) {
    if (!s) return;
    free(s->ends);
    free(s->tokens);
    free(s->proposals);
    free(s->edits);
    free(s->masks);
    free(s->q_ids);
    free(s->q_probabilities);
    free(s->p_ids);
    free(s->p_probabilities);
    free(s);
}

size_t lzs_speculation_memory(const lzs_speculation *s) {
    size_t most = (size_t)s->max_draft, n_vocab = (size_t)s->sampler->n_vocab;
    size_t a_token = sizeof *s->tokens + sizeof *s->proposals + s->max_edits * sizeof *s->edits;
    a_token += lzs_mask_words(s->sampler->n_vocab) * sizeof *s->masks;
    size_t bytes = sizeof *s + s->n_ends * sizeof *s->ends + most * a_token;
    if (s->mode != LZS_SPEC_MRS) return bytes;
    return bytes + (most * (size_t)s->n_shared + n_vocab) * (sizeof *s->q_ids + sizeof *s->q_probabilities);
}

/* ---- drafting ---- */

/* The number of accepted tokens at which a loop was first found or the text was first stuck; UINT64_MAX if there is
 * neither a loop nor a stuck text. */
static uint64_t found_at(const lzs_sampler *sampler) {
    lzs_loop loop;
    lzs_stuck stuck;
    uint64_t at = UINT64_MAX;
    if (lzs_loop_found(sampler, &loop)) at = loop.start + (uint64_t)loop.period * (uint64_t)loop.count;
    if (lzs_stuck_found(sampler, &stuck) && stuck.end < at) at = stuck.end;
    return at;
}

/* Whether the sampler's text is still the text after the last draft. */
static bool in_place(const lzs_speculation *s) {
    if (s->n == 0) return true;
    size_t n;
    const int32_t *tokens = lzs_tokens(s->sampler, &n);
    if (lzs_position(s->sampler) != s->start + (uint64_t)s->n) return false;
    return memcmp(tokens + n - s->n, s->tokens, (size_t)s->n * sizeof *tokens) == 0;
}

/* Copies first the edits of tokens that both vocabularies have, then the other edits. A backend accepts edits in any
 * order. */
static void copy_edits(lzs_speculation *s, proposal *p) {
    const lzs_edit *from = p->plan.edits;
    lzs_edit *to = s->edits + p->edits_at;
    size_t n = 0;
    for (size_t i = 0; i < p->plan.n_edits; i++) {
        if (from[i].token < s->n_shared) to[n++] = from[i];
    }
    p->n_shared_edits = n;
    for (size_t i = 0; n < p->plan.n_edits; i++) {
        if (from[i].token >= s->n_shared) to[n++] = from[i];
    }
    p->plan.edits = to;
}

/* Makes the plan of the next position, and stores it in s->proposals. */
static lzs_status begin(lzs_speculation *s) {
    if (!in_place(s)) return LZS_EINVAL;
    if (s->n == s->max_draft) return LZS_ESPACE;
    proposal *p = &s->proposals[s->n];
    *p = (proposal){0};
    lzs_status status = lzs_sampler_plan(s->sampler, &p->plan);
    if (status != LZS_OK) return status;
    if (p->plan.n_edits > s->max_edits) return LZS_ESPACE;
    if (s->n) {
        p->edits_at = p[-1].edits_at + p[-1].plan.n_edits;
        p->q_at = p[-1].q_at + p[-1].n_q;
    } else {
        s->start = p->plan.position;
        s->was_looping = found_at(s->sampler) < UINT64_MAX;
    }
    copy_edits(s, p);
    if (p->plan.mask) {
        size_t n_words = lzs_mask_words(p->plan.n_vocab);
        uint32_t *mask = s->masks + (size_t)s->n * n_words;
        memcpy(mask, p->plan.mask, n_words * sizeof *mask);
        p->plan.mask = mask;
    }
    return LZS_OK;
}

/* Appends the drafted token to the text and to the block. begin() has prepared the token's position. */
static lzs_status finish(lzs_speculation *s, int32_t token) {
    lzs_status status = lzs_accept(s->sampler, token);
    if (status == LZS_OK) s->tokens[s->n++] = token;
    return status;
}

/* Whether the draft gives its best token a probability of at least p_min. */
static lzs_status sure(lzs_speculation *s, const float *logits, const lzs_plan *plan, float p_min, bool *is) {
    int32_t ids[P_MIN_TOKENS];
    float probabilities[P_MIN_TOKENS], best = 0.0f;
    size_t n;
    lzs_plan few = *plan;
    few.temperature = 1.0f;
    few.top_k = P_MIN_TOKENS;
    few.top_p = 1.0f;
    few.min_p = 0.0f;
    few.ties = LZS_TIES_CUT;
    lzs_status status = lzs_backend_distribution(s->sampler->backend, logits, &few, ids, probabilities, P_MIN_TOKENS,
                                                 &n);
    for (size_t i = 0; status == LZS_OK && i < n; i++) best = probabilities[i] > best ? probabilities[i] : best;
    *is = best >= p_min;
    return status;
}

lzs_status lzs_draft(lzs_speculation *s, const float *logits, float p_min, int32_t *token) {
    *token = -1;
    if (!logits || !lzs_within(p_min, 0.0f, 1.0f)) return LZS_EINVAL;
    lzs_status status = begin(s);
    if (status != LZS_OK) return status;
    lzs_backend *backend = s->sampler->backend;
    proposal *p = &s->proposals[s->n];
    lzs_plan plan = p->plan;
    plan.n_vocab = s->n_shared;
    plan.n_edits = p->n_shared_edits;
    if (s->mode == LZS_SPEC_MATCH) plan.temperature = 0.0f;
    bool goes_on = true;
    if (p_min > 0.0f) status = sure(s, logits, &plan, p_min, &goes_on);
    if (status != LZS_OK || !goes_on) return status;
    if (s->mode == LZS_SPEC_MRS) {
        size_t capacity = (size_t)s->n_shared;
        status = lzs_backend_distribution(backend, logits, &plan, s->q_ids + p->q_at, s->q_probabilities + p->q_at,
                                          capacity, &p->n_q);
    }
    int32_t drawn;
    if (status == LZS_OK) status = lzs_backend_sample(backend, &logits, &plan, 1, &drawn, NULL);
    if (status == LZS_OK) status = finish(s, drawn);
    if (status == LZS_OK) *token = drawn;
    return status;
}

lzs_status lzs_draft_token(lzs_speculation *s, int32_t token) {
    if (token < 0 || token >= s->sampler->n_vocab) return LZS_EINVAL;
    lzs_status status = begin(s);
    if (status != LZS_OK) return status;
    if (s->mode == LZS_SPEC_MRS) {
        proposal *p = &s->proposals[s->n];
        s->q_ids[p->q_at] = token;
        s->q_probabilities[p->q_at] = 1.0f;
        p->n_q = 1;
    }
    return finish(s, token);
}

const int32_t *lzs_drafted(const lzs_speculation *s, size_t *n) {
    *n = (size_t)s->n;
    return s->tokens;
}

void lzs_undraft(lzs_speculation *s) {
    if (in_place(s)) lzs_rewind(s->sampler, (size_t)s->n);
    s->n = 0;
}

lzs_status lzs_drafted_plan(const lzs_speculation *s, size_t i, lzs_plan *plan) {
    if (i > (size_t)s->n || !in_place(s)) return LZS_EINVAL;
    if (i == (size_t)s->n) return lzs_sampler_plan(s->sampler, plan);
    *plan = s->proposals[i].plan;
    return LZS_OK;
}

/* ---- verifying ---- */

/* Gives the token that the target picks at position i. */
static lzs_status pick(lzs_speculation *s, const lzs_target *target, const lzs_plan *plan, int32_t i, int32_t *token) {
    if (target->tokens) {
        *token = target->tokens[i];
        return target->statuses[i];
    }
    lzs_plan left = lzs_plan_left(plan, target->is_edited, target->is_masked);
    return lzs_backend_sample(s->sampler->backend, &target->rows[i], &left, 1, token, NULL);
}

/* Gives the token at position i of the block according to the target. If this is the drafted token, the drafted token
 * stands. */
static lzs_status judge(lzs_speculation *s, const lzs_target *target, int32_t i, int32_t *token) {
    const proposal *drafted = &s->proposals[i];
    if (s->mode != LZS_SPEC_MRS || target->tokens) return pick(s, target, &drafted->plan, i, token);
    lzs_sparse p = {s->p_ids, s->p_probabilities, 0};
    lzs_sparse q = {s->q_ids + drafted->q_at, s->q_probabilities + drafted->q_at, drafted->n_q};
    size_t capacity = (size_t)s->sampler->n_vocab;
    lzs_plan left = lzs_plan_left(&drafted->plan, target->is_edited, target->is_masked);
    lzs_status status = lzs_backend_distribution(s->sampler->backend, target->rows[i], &left, s->p_ids,
                                                 s->p_probabilities, capacity, &p.n);
    lzs_noise_key key = lzs_noise_key_of(drafted->plan.seed, drafted->plan.position);
    if (status == LZS_OK) *token = lzs_mrs_token(&p, &q, s->tokens[i], key);
    return status;
}

static bool is_end(const lzs_speculation *s, int32_t token) {
    return lzs_find_token(s->ends, s->n_ends, sizeof *s->ends, token) < s->n_ends;
}

/* Whether the block ends after its first n tokens, which stand. `found` is the result of found_at() after all drafted
 * tokens were accepted. */
static bool over(const lzs_speculation *s, int32_t n, uint64_t found) {
    if (n == 0) return false;
    return is_end(s, s->tokens[n - 1]) || (found == s->start + (uint64_t)n && !s->was_looping);
}

lzs_status lzs_verify(lzs_speculation *s, const float *const *rows, size_t n_rows, lzs_verified *verified) {
    return lzs_verify_target(s, &(lzs_target){.rows = rows}, n_rows, verified);
}

/* Gives the token that the target picks after the block. */
static lzs_status pick_last(lzs_speculation *s, const lzs_target *target, int32_t *token) {
    lzs_plan plan;
    lzs_status status = lzs_sampler_plan(s->sampler, &plan);
    return status == LZS_OK ? pick(s, target, &plan, s->n, token) : status;
}

lzs_status lzs_verify_target(lzs_speculation *s, const lzs_target *target, size_t n_rows, lzs_verified *verified) {
    *verified = (lzs_verified){.token = -1};
    if ((!target->rows && !target->tokens) || n_rows != (size_t)s->n + 1 || !in_place(s)) return LZS_EINVAL;
    for (size_t i = 0; i < n_rows && !target->tokens; i++) {
        if (!target->rows[i]) return LZS_EINVAL;
    }
    uint64_t found = found_at(s->sampler);
    lzs_status status = LZS_OK;
    int32_t stand = 0, token = -1;
    while (stand < s->n && !over(s, stand, found)) {
        status = judge(s, target, stand, &token);
        if (status != LZS_OK || token != s->tokens[stand]) break;
        stand++;
        token = -1;
    }
    bool ends = over(s, stand, found);
    if (status == LZS_OK && stand == s->n && !ends) status = pick_last(s, target, &token);
    if (status != LZS_OK && stand == 0) return status;
    int32_t last = stand ? s->tokens[stand - 1] : -1;
    lzs_rewind(s->sampler, (size_t)(s->n - stand));
    s->n = 0;
    if (token >= 0) {
        status = lzs_accept(s->sampler, token);
        if (status != LZS_OK && stand == 0) return status;
        if (status == LZS_OK) last = token;
        else token = -1;
    }
    verified->n_accepted = stand;
    verified->token = token;
    verified->ended = is_end(s, last);
    verified->looping = found_at(s->sampler) < UINT64_MAX;
    return LZS_OK;
}
