/* charset.c - a set of Unicode code points, as ranges. */
#include "charset.h"

#include <stdlib.h>

enum { FIRST_SURROGATE = 0xD800, LAST_SURROGATE = 0xDFFF };

void lzs_charset_free(lzs_charset *set) {
    free(set->ranges);
    *set = (lzs_charset){0};
}

bool lzs_charset_add(lzs_charset *set, uint32_t first, uint32_t last) {
    if (set->n == set->room) {
        size_t room = set->room ? 2 * set->room : 8;
        lzs_range *moved = realloc(set->ranges, room * sizeof *moved);
        if (!moved) return false;
        set->ranges = moved;
        set->room = room;
    }
    set->ranges[set->n++] = (lzs_range){first, last};
    return true;
}

static int by_first(const void *a, const void *b) {
    const lzs_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

bool lzs_charset_normalize(lzs_charset *set) {
    for (size_t i = 0, n = set->n; i < n; i++) { /* removes surrogates */
        lzs_range *range = &set->ranges[i];
        if (range->last < FIRST_SURROGATE || range->first > LAST_SURROGATE) continue;
        lzs_range whole = *range;
        *range = (lzs_range){1, 0}; /* empty */
        if (whole.first < FIRST_SURROGATE) *range = (lzs_range){whole.first, FIRST_SURROGATE - 1};
        if (whole.last > LAST_SURROGATE && !lzs_charset_add(set, LAST_SURROGATE + 1, whole.last)) return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->ranges[i].first <= set->ranges[i].last) set->ranges[n++] = set->ranges[i];
    }
    if (n > 1) qsort(set->ranges, n, sizeof *set->ranges, by_first);
    set->n = 0;
    for (size_t i = 0; i < n; i++) {
        lzs_range next = set->ranges[i], *last = set->n ? &set->ranges[set->n - 1] : NULL;
        if (last && next.first <= last->last + 1) {
            if (next.last > last->last) last->last = next.last;
        } else {
            set->ranges[set->n++] = next;
        }
    }
    return true;
}

bool lzs_charset_negate(lzs_charset *set) {
    lzs_charset others = {0};
    uint32_t next = 0;
    bool ok = true;
    for (size_t i = 0; i < set->n && ok; i++) {
        if (set->ranges[i].first > next) ok = lzs_charset_add(&others, next, set->ranges[i].first - 1);
        next = set->ranges[i].last + 1;
    }
    if (ok && next <= LZS_MAX_CODE_POINT) ok = lzs_charset_add(&others, next, LZS_MAX_CODE_POINT);
    if (ok) ok = lzs_charset_normalize(&others);
    free(set->ranges);
    *set = others;
    return ok;
}

bool lzs_charset_fold(lzs_charset *set) {
    for (size_t i = 0, n = set->n; i < n; i++) {
        lzs_range range = set->ranges[i];
        for (int upper = 0; upper < 2; upper++) {
            uint32_t a = upper ? 'A' : 'a', z = upper ? 'Z' : 'z';
            uint32_t first = range.first > a ? range.first : a, last = range.last < z ? range.last : z;
            if (first <= last && !lzs_charset_add(set, first ^ 0x20, last ^ 0x20)) return false;
        }
    }
    return true;
}
