/* loop.c - the detector of loops: does the text now end in `min_count` copies of one pattern?
 *
 * Let c = min_count and len(p) = the number of last tokens that equal the token p before them. The text ends in c copies
 * of a pattern of p tokens exactly when len(p) >= need(p) = (c - 1) p. Each token makes len(p) one longer or 0, but updating
 * every p would mean a pass over all periods for each token. Instead, the periods are put in classes [m, 2m), for m =
 * min_pattern, 2 min_pattern, ..., and the lengths of a class are compared only every `step` = (c - 1) m / 2 tokens. Between
 * two such checkpoints the only loops that can be completed are those that lack at most `step` tokens; they have already
 * matched `step` tokens, which is rare. Each is queued for the only position at which it can be complete, and the tokens since
 * the checkpoint are compared there. At all other tokens there is nothing to do.
 *
 * Cost. Most comparisons end at their first token: about 2 / (c - 1) comparisons per class and token, in
 * log2(max_pattern / min_pattern) + 1 classes. The worst text: let q be the shortest period of the last l tokens. They occur
 * at most m / q + 1 times among the distances of a class, and q > l / c, since c copies of q would have been found (if
 * q >= min_pattern). So the lengths of a class add up to at most c m (ln(2 c m) + 2), which is 4 ln(2 c m) + 8 comparisons
 * per class and token when spread over its step. While shorter patterns than min_pattern repeat (which counts as a loop of a
 * multiple of theirs) it is up to 8 min_pattern per class and token. A rewind repeats the checkpoints that it goes behind, of
 * all periods at most. Memory is 8 bytes per period, allocated at the start.
 */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

#include "../backend/sort.h"

/* What is due of a class is a list of (tokens after the checkpoint) << 32 | period, descending: the next one is the last
 * of those `left`, the shortest period first among equals. Those done stay in the list, for a rewind. */
static uint64_t *due_list(lzs_detector *d, const lzs_loop_class *c) {
    return d->due + (c->first - d->classes[0].first); /* a period has at most one entry: room for each of them */
}

static uint64_t due_at(const lzs_loop_class *c, uint64_t entry) {
    return c->checkpoint + (entry >> 32);
}

/* Number of last tokens, at most `limit`, that equal the token one period before. */
static uint64_t match_length(const int32_t *end, int32_t period, uint64_t limit) {
    const int32_t *token = end, *first = end - limit;
    while (token > first && token[-1] == token[-1 - period]) token--;
    return (uint64_t)(end - token);
}

/* Files the loops of a class that `step` more tokens can complete. None is complete, so each lacks a token at least. */
static void checkpoint(lzs_detector *d, lzs_loop_class *c, const int32_t *tokens, uint64_t n) {
    uint64_t *due = due_list(d, c);
    int32_t last = n < (uint64_t)c->last ? (int32_t)n : c->last; /* longer ones lack more: step <= need */
    c->checkpoint = n;
    c->n = 0;
    for (int32_t period = c->first; period <= last; period++) {
        uint64_t need = (uint64_t)(d->min_count - 1) * (uint64_t)period;
        uint64_t lacks = need - match_length(tokens + n, period, n - (uint64_t)period);
        if (lacks <= (uint64_t)c->step) due[c->n++] = lacks << 32 | (uint64_t)period;
    }
    lzs_sort_keys(due, c->n);
    c->left = c->n;
}

static void set_next(lzs_detector *d) {
    d->next = d->classes[0].checkpoint + (uint64_t)d->classes[0].step; /* other steps are multiples of this one */
    for (lzs_loop_class *c = d->classes; c < d->classes + d->n_classes; c++) {
        if (!c->left) continue;
        uint64_t due = due_at(c, due_list(d, c)[c->left - 1]);
        if (due < d->next) d->next = due;
    }
}

/* The pattern may itself be copies of a shorter one; the loop is that of the shortest. It begins where min_count
 * patterns do: had the token before it matched too, the loop would have been complete a token earlier. */
static void keep_found(lzs_detector *d, const int32_t *tokens, uint64_t n, int32_t pattern) {
    const int32_t *copy = tokens + n - pattern;
    int32_t period = 1;
    while (pattern % period || memcmp(copy, copy + period, (size_t)(pattern - period) * sizeof *copy)) period++;
    d->found.start = n - (uint64_t)d->min_count * (uint64_t)pattern;
    d->found.period = period;
    d->found.count = d->min_count * (pattern / period);
    d->next = UINT64_MAX;
}

void lzs_detector_accept(lzs_detector *d, const int32_t *tokens, uint64_t n) {
    if (n != d->next) return;
    for (lzs_loop_class *c = d->classes; c < d->classes + d->n_classes; c++) {
        const uint64_t *due = due_list(d, c);
        const int32_t *since = tokens + c->checkpoint;
        for (; c->left && due_at(c, due[c->left - 1]) == n; c->left--) {
            int32_t period = (int32_t)(due[c->left - 1] & UINT32_MAX);
            if (memcmp(since, since - period, (size_t)(n - c->checkpoint) * sizeof *since) == 0) {
                keep_found(d, tokens, n, period);
                return;
            }
        }
    }
    for (lzs_loop_class *c = d->classes; c < d->classes + d->n_classes; c++) {
        if (n - c->checkpoint < (uint64_t)c->step) break;
        checkpoint(d, c, tokens, n);
    }
    set_next(d);
}

void lzs_detector_rewind(lzs_detector *d, const int32_t *tokens, uint64_t n) {
    if (d->found.count) {
        if (n >= d->found.start + (uint64_t)d->found.period * (uint64_t)d->found.count) return;
        d->found = (lzs_loop){0};
    }
    for (lzs_loop_class *c = d->classes; c < d->classes + d->n_classes; c++) {
        if (c->checkpoint > n) checkpoint(d, c, tokens, n - n % (uint64_t)c->step);
        const uint64_t *due = due_list(d, c);
        for (c->left = c->n; c->left && due_at(c, due[c->left - 1]) <= n; c->left--) {
        }
    }
    set_next(d);
}

void lzs_detector_clear(lzs_detector *d) {
    d->found = (lzs_loop){0};
    for (lzs_loop_class *c = d->classes; c < d->classes + d->n_classes; c++) {
        c->checkpoint = 0;
        c->n = c->left = 0;
    }
    set_next(d);
}

/* ---- its life: one block ---- */

static size_t bytes(int32_t n_periods) {
    return sizeof(lzs_detector) + (size_t)n_periods * sizeof(uint64_t);
}

lzs_detector *lzs_detector_new(const lzs_params *p) {
    int32_t n_periods = p->loop_max_pattern - p->loop_min_pattern + 1;
    lzs_detector *d = calloc(1, bytes(n_periods));
    if (!d) return NULL;
    d->min_count = p->loop_min_count;
    d->n_periods = n_periods;
    int32_t step = (p->loop_min_count - 1) * p->loop_min_pattern / 2;
    if (step < 1) step = 1;
    for (int32_t first = p->loop_min_pattern; first <= p->loop_max_pattern; first *= 2, step *= 2) {
        int32_t last = 2 * first - 1 < p->loop_max_pattern ? 2 * first - 1 : p->loop_max_pattern;
        d->classes[d->n_classes++] = (lzs_loop_class){.first = first, .last = last, .step = step};
    }
    lzs_detector_clear(d);
    return d;
}

void lzs_detector_copy(lzs_detector *to, const lzs_detector *from) {
    memcpy(to, from, bytes(from->n_periods));
}

size_t lzs_detector_memory(const lzs_detector *d) {
    return bytes(d->n_periods);
}
