/* stuck.c - the detector of stuck texts, in which nearly all tokens repeat earlier text, even if without a period.
 *
 * An n-gram is old if it occurred at least min_count - 1 times before within the window. A token is old if an old
 * n-gram contains the token. So if a sentence is repeated with a number that counts up, a few tokens are new and the
 * other tokens are old. The score is a CUSUM (Page 1954) in whole numbers. An old token adds 1 to the score, a new
 * token subtracts `weight`, and the score never falls below 0. When the score reaches the threshold, the text has been
 * stuck since the token at which the score last rose from 0.
 *
 * When an old n-gram ends, all undecided tokens lie in this n-gram and are old. When a new n-gram ends, no later n-gram
 * contains its first token. So if this token is still undecided, it is new. Fewer than n tokens are undecided at any
 * time (n is the length of an n-gram).
 *
 * The index puts the n-grams of a window into buckets by their hash. Each bucket is a list, the latest n-gram first. A
 * new n-gram goes to the front of its list, and taking the n-gram back restores the list. N-grams that left the window
 * are at the end of the list. A search stops at the first such n-gram, so no n-gram needs to be removed. A search
 * compares the tokens of n-grams, and ends at the (min_count - 1)th equal n-gram. There are as many buckets as n-grams,
 * so a search meets on average one n-gram that differs. The links of a window and of LZS_STUCK_UNDO more tokens are
 * kept. So after LZS_STUCK_UNDO tokens are taken back, the index still holds a whole window. To take back more tokens,
 * the text is read anew from its beginning.
 */
#include "stuck.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t *bucket(lzs_stuck_detector *d, const int32_t *end) {
    uint64_t hash = 0;
    for (const int32_t *token = end - d->ngram; token < end; token++) {
        hash = (hash ^ (uint64_t)(uint32_t)*token) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return d->heads + (hash * UINT64_C(0x9E3779B97F4A7C15) >> d->shift);
}

/* Adds the n-gram at the end of the n tokens to the index. Returns whether this n-gram is old. */
static bool file_ngram(lzs_stuck_detector *d, const int32_t *tokens, uint32_t n) {
    const int32_t *gram = tokens + n - d->ngram;
    uint32_t *head = bucket(d, tokens + n), first = n > (uint32_t)d->window ? n - (uint32_t)d->window : 1;
    int32_t count = 1;
    for (uint32_t end = *head; end >= first && count < d->min_count; end = d->links[(end - 1) % d->n_links]) {
        count += memcmp(tokens + end - d->ngram, gram, (size_t)d->ngram * sizeof *gram) == 0;
    }
    d->links[(n - 1) % d->n_links] = *head;
    *head = n;
    return count == d->min_count;
}

void lzs_stuck_accept(lzs_stuck_detector *d, const int32_t *tokens, uint64_t n) {
    if (d->found.end) return;
    d->before[d->n % LZS_STUCK_UNDO] = d->now;
    d->n = (uint32_t)n;
    if (d->n_undo < LZS_STUCK_UNDO) d->n_undo++;
    if (d->n < (uint32_t)d->ngram) return;
    lzs_stuck_score *now = &d->now;
    if (file_ngram(d, tokens, d->n)) {
        if (now->score == 0) now->start = now->decided;
        now->score += (int32_t)(d->n - now->decided);
        now->decided = d->n;
        if (now->score >= d->threshold) d->found = (lzs_stuck){.start = now->start, .end = d->n};
    } else if (now->decided <= d->n - (uint32_t)d->ngram) {
        now->decided++;
        now->score = now->score > d->weight ? now->score - d->weight : 0;
    }
}

void lzs_stuck_rewind(lzs_stuck_detector *d, const int32_t *tokens, uint64_t n) {
    if (n >= d->n) return; /* only tokens after the found stretch were taken back, and the index does not contain these
                            * tokens */
    d->found = (lzs_stuck){0};
    if (d->n - n > d->n_undo) {
        lzs_stuck_clear(d);
        for (uint64_t i = 1; i <= n; i++) lzs_stuck_accept(d, tokens, i);
        return;
    }
    d->now = d->before[n % LZS_STUCK_UNDO];
    d->n_undo -= d->n - (uint32_t)n;
    for (; d->n > n; d->n--) {
        if (d->n >= (uint32_t)d->ngram) *bucket(d, tokens + d->n) = d->links[(d->n - 1) % d->n_links];
    }
}

void lzs_stuck_clear(lzs_stuck_detector *d) {
    d->n = d->n_undo = 0;
    d->found = (lzs_stuck){0};
    d->now = (lzs_stuck_score){0};
    memset(d->heads, 0, d->n_buckets * sizeof *d->heads);
}

/* ---- creating and copying: one block of memory ---- */

size_t lzs_stuck_memory(const lzs_stuck_detector *d) {
    return sizeof *d + LZS_STUCK_UNDO * sizeof *d->before + (d->n_buckets + (size_t)d->n_links) * sizeof *d->links;
}

lzs_stuck_detector *lzs_stuck_new(const lzs_params *p) {
    lzs_stuck_detector made = {.ngram = p->stuck_ngram,
                               .min_count = p->stuck_min_count,
                               .threshold = p->stuck_threshold,
                               .weight = p->stuck_weight,
                               .window = p->stuck_window,
                               .shift = 63,
                               .n_buckets = 2,
                               .n_links = (uint32_t)p->stuck_window + LZS_STUCK_UNDO};
    for (; made.n_buckets < (uint32_t)made.window; made.n_buckets *= 2) made.shift--;
    lzs_stuck_detector *d = calloc(1, lzs_stuck_memory(&made));
    if (!d) return NULL;
    made.before = (lzs_stuck_score *)(d + 1);
    made.heads = (uint32_t *)(made.before + LZS_STUCK_UNDO);
    made.links = made.heads + made.n_buckets;
    *d = made;
    return d;
}

void lzs_stuck_copy(lzs_stuck_detector *to, const lzs_stuck_detector *from) {
    lzs_stuck_detector copy = *from;
    copy.before = to->before;
    copy.heads = to->heads;
    copy.links = to->links;
    *to = copy;
    memcpy(to + 1, from + 1, lzs_stuck_memory(from) - sizeof *from);
}
