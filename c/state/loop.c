/* loop.c - the detector of loops. A loop is complete when the text ends in `min_count` copies of one pattern.
 *
 * The text ends in a loop of period p if each of the last (min_count - 1) p tokens equals the token p positions
 * earlier. After a token that differs, the loop can be complete only (min_count - 1) p tokens later. So each period
 * waits in a bucket until it is due. Then tokens are compared backwards up to the last token that differs. The tokens
 * after this token are not compared again. A period costs at most one comparison for each token. In most texts it costs
 * one comparison for (min_count - 1) p tokens.
 */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

static int32_t period_of(const lzs_detector *d, int32_t i) {
    return d->min_pattern + i;
}

/* The number of last tokens that must equal the token one period earlier. */
static uint32_t needed(const lzs_detector *d, int32_t i) {
    return (uint32_t)(d->min_count - 1) * (uint32_t)period_of(d, i);
}

static void look(lzs_detector *d, int32_t i, const int32_t *tokens, uint64_t n) {
    const size_t period = (size_t)period_of(d, i);
    size_t differs = n > period ? n : period; /* number of tokens up to and including the last token that differs */
    while (differs > period && tokens[differs - 1] == tokens[differs - 1 - period]) differs--;
    d->periods[i].due = (uint32_t)differs + needed(d, i);
}

static void put_into_bucket(lzs_detector *d, int32_t i) {
    lzs_loop_period *bucket = &d->periods[d->periods[i].due % (uint32_t)d->n_periods];
    d->periods[i].next = bucket->head;
    bucket->head = i;
}

/* If the pattern consists of copies of a shorter pattern, the loop is reported with the shortest such pattern. The loop
 * begins min_count patterns before the end. If the token before this place matched, too, the loop would have been
 * complete one token earlier. */
static void keep_found(lzs_detector *d, const int32_t *tokens, uint64_t n, int32_t pattern) {
    const int32_t *copy = tokens + n - pattern;
    int32_t period = 1;
    while (pattern % period || memcmp(copy, copy + period, (size_t)(pattern - period) * sizeof *copy)) period++;
    d->found.start = n - (uint64_t)d->min_count * (uint64_t)pattern;
    d->found.period = period;
    d->found.count = d->min_count * (pattern / period);
}

void lzs_detector_accept(lzs_detector *d, const int32_t *tokens, uint64_t n) {
    if (d->found.count) return;
    lzs_loop_period *bucket = &d->periods[(uint32_t)n % (uint32_t)d->n_periods];
    int32_t shortest = d->n_periods, next = bucket->head;
    bucket->head = -1;
    while (next >= 0) {
        const int32_t i = next;
        next = d->periods[i].next;
        if (d->periods[i].due == n) {
            look(d, i, tokens, n);
            if (d->periods[i].due == n && i < shortest) shortest = i;
        }
        put_into_bucket(d, i);
    }
    if (shortest < d->n_periods) keep_found(d, tokens, n, period_of(d, shortest));
}

void lzs_detector_rewind(lzs_detector *d, const int32_t *tokens, uint64_t n) {
    if (d->found.count && n >= d->found.start + (uint64_t)d->found.period * (uint64_t)d->found.count) return;
    d->found = (lzs_loop){0};
    for (int32_t i = 0; i < d->n_periods; i++) d->periods[i].head = -1;
    for (int32_t i = 0; i < d->n_periods; i++) {
        if (d->periods[i].due > n + needed(d, i)) look(d, i, tokens, n); /* the token that differed was taken back */
        put_into_bucket(d, i);
    }
}

void lzs_detector_clear(lzs_detector *d) {
    for (int32_t i = 0; i < d->n_periods; i++) d->periods[i].due = UINT32_MAX;
    d->found = (lzs_loop){0};
    lzs_detector_rewind(d, NULL, 0);
}

/* ---- creating and copying: one block of memory ---- */

static size_t bytes(int32_t n_periods) {
    return sizeof(lzs_detector) + (size_t)n_periods * sizeof(lzs_loop_period);
}

lzs_detector *lzs_detector_new(const lzs_params *p) {
    int32_t n_periods = p->loop_max_pattern - p->loop_min_pattern + 1;
    lzs_detector *d = malloc(bytes(n_periods));
    if (!d) return NULL;
    d->min_pattern = p->loop_min_pattern;
    d->min_count = p->loop_min_count;
    d->n_periods = n_periods;
    lzs_detector_clear(d);
    return d;
}

void lzs_detector_copy(lzs_detector *to, const lzs_detector *from) {
    memcpy(to, from, bytes(from->n_periods));
}

size_t lzs_detector_memory(const lzs_detector *d) {
    return bytes(d->n_periods);
}
