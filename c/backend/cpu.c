/* cpu.c - the CPU backend: turns rows of logits and plans into tokens, distributions and processed rows. */
#include <string.h>

#include "../room.h"
#include "backend.h"
#include "sort.h"

/* ---- creating and freeing ---- */

static size_t n_groups(int32_t n_vocab) {
    return (size_t)lzs_stretches(n_vocab) * LZS_STRETCH_GROUPS;
}

static size_t n_best(int32_t n_vocab) {
    return (n_groups(n_vocab) / LZS_STRETCH_GROUPS + 15) / 16 * 16;
}

/* The size of the scratch memory, in units of 8 bytes (the size of a sorted key). */
static size_t n_scratch(const lzs_backend *b) {
    size_t n = (size_t)b->list.capacity, histogram = sizeof *b->scratch.histogram / 8, words = n_groups(b->n_vocab) / 2;
    if (histogram > n) n = histogram;
    return words > n ? words : n;
}

lzs_status lzs_backend_new(int32_t n_vocab, size_t max_edits, lzs_backend **backend) {
    *backend = NULL;
    if (n_vocab < 1 || n_vocab > LZS_MAX_VOCAB) return LZS_EINVAL;
    lzs_backend *b = calloc(1, sizeof *b);
    if (!b) return LZS_ENOMEM;
    b->n_vocab = n_vocab;
    b->max_edits = max_edits < (size_t)n_vocab ? max_edits : (size_t)n_vocab;
    b->kernels = lzs_kernels_best();
    b->list.capacity = LZS_LIST;
    b->allowed = lzs_room(NULL, lzs_mask_words(n_vocab), sizeof *b->allowed);
    b->values = lzs_room(NULL, b->max_edits, sizeof *b->values);
    b->maxima = lzs_room(NULL, n_groups(n_vocab), sizeof *b->maxima);
    b->best = lzs_room(NULL, n_best(n_vocab), sizeof *b->best);
    b->list.packed = lzs_room(NULL, (size_t)b->list.capacity, sizeof *b->list.packed);
    b->scratch.room = lzs_room(NULL, n_scratch(b), sizeof *b->scratch.room);
    if (!b->allowed || !b->values || !b->maxima || !b->best || !b->list.packed || !b->scratch.room) {
        lzs_backend_free(b);
        return LZS_ENOMEM;
    }
    *backend = b;
    return LZS_OK;
}

void lzs_backend_free(lzs_backend *b) {
    if (!b) return;
    free(b->allowed);
    free(b->values);
    free(b->maxima);
    free(b->best);
    free(b->list.packed);
    free(b->scratch.room);
    free(b);
}

size_t lzs_backend_memory(const lzs_backend *b) {
    return sizeof *b + lzs_mask_words(b->n_vocab) * sizeof *b->allowed + b->max_edits * sizeof *b->values +
           n_groups(b->n_vocab) * sizeof *b->maxima + n_best(b->n_vocab) * sizeof *b->best +
           (size_t)b->list.capacity * sizeof *b->list.packed + n_scratch(b) * sizeof *b->scratch.room;
}

/* ---- a step ---- */

/* Computes the edited logits, and clears the bits of the edited tokens in b->allowed. LZS_EINVAL if an edit's token is
 * not in the vocabulary, or if two edits have the same token. */
static lzs_status edit(lzs_backend *b, const float *x, const lzs_plan *plan) {
    const uint32_t *mask = plan->mask;
    if (mask) {
        memcpy(b->allowed, mask, lzs_mask_words(plan->n_vocab) * sizeof *mask);
    } else if (!b->all_allowed) { /* set here and not in lzs_backend_new, because many clones never take a step */
        memset(b->allowed, 0xff, lzs_mask_words(b->n_vocab) * sizeof *b->allowed);
    }
    b->all_allowed = false; /* lzs_backend_end may set it again */
    for (size_t i = 0; i < plan->n_edits; i++) {
        int32_t token = plan->edits[i].token;
        bool known = (uint32_t)token < (uint32_t)plan->n_vocab;
        if (!known || (lzs_allowed(mask, token) && !lzs_allowed(b->allowed, token))) return LZS_EINVAL;
        const bool allowed = lzs_allowed(mask, token);
        b->values[i] = allowed ? lzs_apply_edit(&plan->edits[i], x[token], plan->sign_aware) : -INFINITY;
        b->allowed[token >> 5] &= ~(1u << (token & 31));
    }
    return LZS_OK;
}

/* Finds the maximum of the unedited tokens of each group. If the plan has no mask, the edits exclude only a few tokens.
 * So the whole row is read without a mask, and the groups whose maximum may come from an edited token are read again.
 * Returns whether a logit is NaN. */
static bool find_maxima(lzs_backend *b, const lzs_candidates *c) {
    const lzs_row *row = &c->row, whole = {row->x, row->n, NULL};
    bool holes = c->n_edits > 0 && !c->masked;
    bool nan = b->kernels->max(holes ? &whole : row, b->maxima, b->best);
    if (holes && nan) return b->kernels->max(row, b->maxima, b->best); /* the NaN may be an edited token's logit */
    for (int32_t i = 0; holes && i < c->n_edits; i++) {
        int32_t token = c->edits[i].token, group = token / LZS_GROUP, stretch = token / LZS_STRETCH;
        float old = b->maxima[group];
        if (row->x[token] < old) continue;
        float *groups = b->maxima + stretch * LZS_STRETCH_GROUPS;
        b->maxima[group] = b->kernels->max_of_group(row, group);
        if (old < b->best[stretch]) continue;
        b->best[stretch] = groups[0];
        for (int32_t g = 1; g < LZS_STRETCH_GROUPS; g++) {
            if (groups[g] > b->best[stretch]) b->best[stretch] = groups[g];
        }
    }
    return nan;
}

/* Returns the best token, edited or not. */
static lzs_top find_top(const lzs_backend *b, const lzs_candidates *c) {
    lzs_top top = {-INFINITY, -1, false};
    int32_t best = 0, n_stretches = lzs_stretches(c->row.n);
    for (int32_t s = 1; s < n_stretches; s++) {
        if (b->best[s] > b->best[best]) best = s;
    }
    if (b->best[best] > -INFINITY) {
        int32_t group = best * LZS_STRETCH_GROUPS;
        while (b->maxima[group] != b->best[best]) group++;
        int32_t id = group * LZS_GROUP;
        while (c->row.x[id] != b->best[best] || !lzs_allowed(c->row.mask, id)) id++;
        top = (lzs_top){c->row.x[id], id, false};
    }
    for (int32_t i = 0; i < c->n_edits; i++) {
        float x = c->values[i];
        int32_t id = c->edits[i].token;
        if (x != x) top.nan = true;
        if (x > top.max || (x == top.max && x > -INFINITY && id < top.argmax)) {
            top.max = x;
            top.argmax = id;
        }
    }
    return top;
}

lzs_status lzs_backend_begin(lzs_backend *b, const float *row, const lzs_plan *plan, lzs_candidates *c) {
    *c = (lzs_candidates){.row = {row, plan->n_vocab, plan->mask}, .masked = plan->mask != NULL};
    if (!row || plan->n_vocab > b->n_vocab || lzs_plan_invalid(plan)) return LZS_EINVAL;
    if (plan->n_edits > b->max_edits) return LZS_ESPACE;
    if (plan->n_edits) {
        if (edit(b, row, plan) != LZS_OK) return LZS_EINVAL;
        c->row.mask = b->allowed;
        c->edits = plan->edits;
        c->values = b->values;
        c->n_edits = (int32_t)plan->n_edits;
    }
    if (find_maxima(b, c)) return LZS_ENAN;
    c->top = find_top(b, c);
    if (c->top.nan) return LZS_ENAN;
    if (c->top.argmax < 0) return LZS_EMASKED;
    float t = plan->temperature > 0.0f ? plan->temperature : 1.0f;
    c->scale = (lzs_softmax_scale){c->top.max, lzs_temperature_scale(t)};
    b->list.n = 0;
    if (plan->temperature == 0.0f) {
        c->cut = (lzs_cut){lzs_key(c->top.max), c->top.argmax};
    } else {
        lzs_truncate(b, plan, c);
    }
    return LZS_OK;
}

void lzs_backend_end(lzs_backend *b, const lzs_candidates *c) {
    const bool cheap = c->row.mask == b->allowed && !c->masked && c->n_edits <= c->row.n / 64;
    if (!cheap) return;
    for (int32_t i = 0; i < c->n_edits; i++) b->allowed[c->edits[i].token >> 5] = 0xffffffffu;
    b->all_allowed = true;
}

static int32_t pick(lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan) {
    return plan->temperature == 0.0f ? c->top.argmax : lzs_race_pick(b, c, plan);
}

static lzs_status sample(lzs_backend *b, const float *row, const lzs_plan *plan, int32_t *token) {
    lzs_candidates c;
    *token = -1;
    lzs_status status = lzs_backend_begin(b, row, plan, &c);
    if (status == LZS_OK) *token = pick(b, &c, plan);
    lzs_backend_end(b, &c);
    return status;
}

lzs_status lzs_backend_sample(lzs_backend *b, const float *const *rows, const lzs_plan *plans, size_t n,
                              int32_t *tokens, lzs_status *statuses) {
    lzs_status first = LZS_OK;
    for (size_t i = 0; i < n; i++) {
        lzs_status status = sample(b, rows[i], &plans[i], &tokens[i]);
        if (statuses) statuses[i] = status;
        if (first == LZS_OK) first = status;
    }
    return first;
}

lzs_status lzs_backend_distribution(lzs_backend *b, const float *row, const lzs_plan *plan, int32_t *ids,
                                    float *probabilities, size_t capacity, size_t *n) {
    lzs_candidates c;
    *n = 0;
    lzs_status status = lzs_backend_begin(b, row, plan, &c);
    if (status == LZS_OK) {
        *n = lzs_collect(b, &c, ids, probabilities, capacity);
        if (*n > capacity) status = LZS_ESPACE;
    }
    if (status == LZS_OK) {
        double sum = 0.0; /* added in order of ids, so the sum is the same on every machine */
        for (size_t i = 0; i < *n; i++) {
            double weight = lzs_exp2_neg(lzs_gap_bits(c.scale, probabilities[i]));
            sum += weight;
            probabilities[i] = (float)weight; /* exact, since the weight fits in a float */
        }
        for (size_t i = 0; i < *n; i++) probabilities[i] = (float)(probabilities[i] / sum);
    }
    lzs_backend_end(b, &c);
    return status;
}

static float tempered(float x, float temperature) {
    return x <= FLT_MAX ? lzs_finite(x / temperature) : x; /* division must not make the logit infinite */
}

/* Processes the unedited tokens. */
static void process_row(const lzs_candidates *c, float t, float *out) {
    const float *x = c->row.x;
    float low = lzs_key_float(c->cut.key);
    for (int32_t i = 0; i < c->row.n; i++) {
        bool stays = x[i] > low || (x[i] == low && i <= c->cut.id);
        out[i] = stays ? tempered(x[i], t) : -INFINITY;
    }
    if (!c->row.mask) return;
    for (int32_t w = 0; w < (c->row.n + 31) / 32; w++) {
        for (uint32_t cut = ~c->row.mask[w]; cut; cut &= cut - 1) {
            int32_t id = 32 * w + lzs_lowest_bit(cut);
            if (id < c->row.n) out[id] = -INFINITY;
        }
    }
}

static void process(const lzs_backend *b, const lzs_candidates *c, const lzs_plan *plan, float *out) {
    float t = plan->temperature > 0.0f ? plan->temperature : 1.0f;
    if (c->listed) {
        for (int32_t i = 0; i < c->row.n; i++) out[i] = -INFINITY;
        for (int32_t i = 0; i < b->list.n; i++) {
            out[lzs_packed_id(b->list.packed[i])] = tempered(lzs_packed_x(b->list.packed[i]), t);
        }
        return;
    }
    process_row(c, t, out);
    for (int32_t i = 0; i < c->n_edits; i++) {
        int32_t id = c->edits[i].token;
        if (lzs_inside(c->cut, lzs_key(c->values[i]), id)) out[id] = tempered(c->values[i], t);
    }
}

lzs_status lzs_backend_process(lzs_backend *b, const float *row, const lzs_plan *plan, float *out) {
    lzs_candidates c;
    lzs_status status = lzs_backend_begin(b, row, plan, &c);
    if (status == LZS_OK) process(b, &c, plan, out);
    lzs_backend_end(b, &c);
    return status;
}

lzs_status lzs_backend_sample_and_process(lzs_backend *b, float *row, const lzs_plan *plan, int32_t *token) {
    lzs_candidates c;
    *token = -1;
    lzs_status status = lzs_backend_begin(b, row, plan, &c);
    if (status == LZS_OK) *token = pick(b, &c, plan);
    if (status == LZS_OK) process(b, &c, plan, row);
    lzs_backend_end(b, &c);
    return status;
}

int32_t lzs_backend_best(lzs_backend *b, const float *row, const lzs_plan *plan, int32_t k) {
    lzs_candidates c;
    lzs_plan best = *plan;
    best.temperature = 1.0f;
    best.top_k = k;
    best.top_p = 1.0f;
    best.min_p = 0.0f;
    best.ties = LZS_TIES_CUT;
    lzs_status status = lzs_backend_begin(b, row, &best, &c);
    int32_t n = status == LZS_OK && c.listed ? b->list.n : 0;
    lzs_sort_keys_with(b->list.packed, n, b->scratch.room);
    lzs_backend_end(b, &c);
    return n;
}
