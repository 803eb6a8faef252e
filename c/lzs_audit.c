/* lzs_audit.c - all runs of a text: maximal repetitions with at least `min_copies` copies and `min_length` units.
 *
 * A run of period p that is p + m units long has m matches in a row, places where the text equals itself p units later,
 * with a mismatch on either side. It counts when m >= shortest = max((min_copies - 1) * p, min_length - p). So for each
 * period, from short to long, the text is compared with itself p units later at anchors so near to each other that the
 * window of 8 bytes at one of them lies inside any `shortest` matches, and a window that matches is extended on both
 * sides. Over all periods these are about n / (k - 1) * ln(n / k) windows for n units and k copies. In ordinary texts
 * nearly all of them differ at once. Three things keep a text that repeats itself from costing more:
 *
 * - Known runs are skipped. Let [start, end) be one with the primitive period q < p. If q divides p, the matches inside
 *   are all of [start, end - p), and any run there is this one again: left out, so each run is found once, at its
 *   primitive period (by Fine and Wilf's theorem the shortest period of two copies or more divides the others). If
 *   not, no q matches in a row lie inside (a primitive word occurs in its powers at multiples of its length only), so
 *   no `shortest` >= q matches touch [start + q, end - p - q). A run is kept while it is longer than p.
 * - Known runs are jumped over. Two places inside known runs of one period that agreed over that period agree until the
 *   first of the runs ends. `cover` knows the run of each block of the text that lies in one of a short period.
 * - Long matches that fall short of a run cost their length at every period, O(n^2) in all. (The text w^n x w^n has
 *   some at every multiple of |w|.) Once the text's size has been spent on such, those that go on after REACH bytes
 *   must pass a bound by polynomial fingerprints (Karp and Rabin 1987) modulo 2^61 - 1. Equal stretches have equal
 *   fingerprints, so the bound is never too low and no run is lost; what passes is compared all the same, so none is
 *   made up. Stretches that differ have equal ones with a probability below n / 2^60, and then cost their length. The
 *   base comes from the addresses of this call, which a text cannot foresee.
 *
 * Time: an anchor costs one comparison or, where its window matches, at most 2 REACH bytes and 4 log2 n fingerprints.
 * Besides, each run costs its length, once to be compared and once in steps over known runs; the lengths of all runs
 * with two copies or more add up to O(n log n) (those with periods of [P, 2P) overlap by less than 4P, and of those
 * shorter than 8P there are O(n / P)). O(n log^2 n) in all, whatever the text.
 *
 * Memory, per byte of text: 3/32 bytes for `cover` once there is a run for it, 1 byte for fingerprints once they are
 * needed. And up to 72 bytes for each run that is longer than the period at hand, of which there are fewer than units
 * (the runs theorem: Bannai et al. 2017) and in ordinary texts a handful.
 *
 * Runs with two copies or more can be found in O(n), by Lempel-Ziv factors (Kolpakov and Kucherov 1999) or Lyndon words
 * (Bannai et al. 2017), but with a suffix array, which takes longer to make than this scan of an ordinary text.
 *
 * Lengths, positions and periods are in bytes from here on, multiples of a unit's width.
 */
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

/* Tests count operations here: windows, bytes of extensions, steps of fingerprints. */
#ifndef LZS_WORK
#  define LZS_WORK(n) ((void)(n))
#endif

#define WORD 8      /* bytes of a window, where that many matches are needed anyway */
#define STRETCH 256 /* bytes compared before known runs are asked; a block of `cover` */
#define REACH 4096  /* bytes compared before fingerprints are asked; a multiple of STRETCH */
#define BLOCK 8     /* bytes from one fingerprint that is kept to the next */
#define MODULUS ((UINT64_C(1) << 61) - 1)

/* Runs in order of their start. */
typedef struct run_list {
    lzs_repetition *runs; /* (n of capacity) */
    size_t n, capacity;
} run_list;

typedef struct fingerprints {
    uint64_t *prefix; /* (size / BLOCK + 1) of the first b * BLOCK bytes; NULL until they are needed */
    uint64_t base;
    uint64_t powers[64]; /* base^(2^e) */
} fingerprints;

typedef struct scan {
    const unsigned char *text;
    uint64_t size;
    uint64_t width; /* of a unit: 1 or 4 */
    uint64_t min_copies, min_length;
    run_list known;        /* those longer than the period at hand */
    run_list fresh;        /* those of the period at hand */
    lzs_repetition *cover; /* (size / STRETCH + 1) the run that a block lies in, period 0: none; NULL: none at all */
    uint64_t wasted;       /* bytes of matches that were no run */
    fingerprints prints;
    lzs_repetition *found; /* (min(n_found, capacity)) in units */
    size_t n_found, capacity;
} scan;

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t load(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Bytes, at most `limit`, by which what starts at x and y is alike. */
static uint64_t common_right(const unsigned char *x, const unsigned char *y, uint64_t limit) {
    uint64_t n = 0;
    while (limit - n >= WORD && load(x + n) == load(y + n)) n += WORD;
    while (n < limit && x[n] == y[n]) n++;
    LZS_WORK(n);
    return n;
}

/* The same for what ends before x and y. */
static uint64_t common_left(const unsigned char *x, const unsigned char *y, uint64_t limit) {
    uint64_t n = 0;
    while (limit - n >= WORD && load(x - n - WORD) == load(y - n - WORD)) n += WORD;
    while (n < limit && *(x - n - 1) == *(y - n - 1)) n++;
    LZS_WORK(n);
    return n;
}

/* ---- lists of runs ---- */

static lzs_status push(run_list *list, lzs_repetition run) {
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        if (capacity > SIZE_MAX / sizeof run) return LZS_ENOMEM;
        lzs_repetition *runs = realloc(list->runs, capacity * sizeof run);
        if (!runs) return LZS_ENOMEM;
        list->runs = runs;
        list->capacity = capacity;
    }
    list->runs[list->n++] = run;
    return LZS_OK;
}

/* Moves the fresh runs to the known ones; both are in order, and stay so. */
static lzs_status merge(run_list *known, run_list *fresh) {
    size_t i = known->n, j = fresh->n;
    for (size_t added = 0; added < fresh->n; added++) {
        lzs_status status = push(known, fresh->runs[added]);
        if (status != LZS_OK) return status;
    }
    for (size_t to = known->n; j > 0; to--) {
        bool take = i > 0 && known->runs[i - 1].start > fresh->runs[j - 1].start;
        known->runs[to - 1] = take ? known->runs[--i] : fresh->runs[--j];
    }
    fresh->n = 0;
    return LZS_OK;
}

/* ---- fingerprints ---- */

static uint64_t reduce(uint64_t x) {
    x = (x & MODULUS) + (x >> 61);
    return x >= MODULUS ? x - MODULUS : x;
}

/* a * b modulo 2^61 - 1 by 64-bit products of halves: 2^62 = 2, 2^61 = 1. */
static uint64_t multiply(uint64_t a, uint64_t b) {
    const uint64_t mask31 = (UINT64_C(1) << 31) - 1, mask30 = (UINT64_C(1) << 30) - 1;
    uint64_t high_a = a >> 31, low_a = a & mask31, high_b = b >> 31, low_b = b & mask31;
    uint64_t middle = low_a * high_b + high_a * low_b;
    return reduce(2 * high_a * high_b + (middle >> 30) + ((middle & mask30) << 31) + low_a * low_b);
}

/* The fingerprint of what `print` is one of, followed by the bytes of [from, to). */
static uint64_t print_on(const scan *s, uint64_t print, uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; at++) print = reduce(multiply(print, s->prints.base) + s->text[at]);
    return print;
}

static lzs_status make_fingerprints(scan *s) {
    fingerprints *f = &s->prints;
    uint64_t n_blocks = s->size / BLOCK;
    if (n_blocks >= SIZE_MAX / sizeof *f->prefix) return LZS_ENOMEM;
    f->prefix = malloc((size_t)(n_blocks + 1) * sizeof *f->prefix);
    if (!f->prefix) return LZS_ENOMEM;
    uint64_t heap = (uint64_t)(uintptr_t)f->prefix, stack = (uint64_t)(uintptr_t)&n_blocks;
    uint64_t mixed = (heap ^ stack << 29 ^ s->size << 7) * UINT64_C(0x9E3779B97F4A7C15);
    f->base = 256 + reduce(mixed ^ mixed >> 32) % (MODULUS - 256);
    f->powers[0] = f->base;
    for (int e = 1; e < 64; e++) f->powers[e] = multiply(f->powers[e - 1], f->powers[e - 1]);
    uint64_t print = 0;
    for (uint64_t b = 0; b < n_blocks; b++) {
        f->prefix[b] = print;
        print = print_on(s, print, b * BLOCK, (b + 1) * BLOCK);
    }
    f->prefix[n_blocks] = print;
    return LZS_OK;
}

/* The fingerprint of the first `end` bytes. */
static uint64_t prefix_print(const scan *s, uint64_t end) {
    LZS_WORK(BLOCK);
    return print_on(s, s->prints.prefix[end / BLOCK], end - end % BLOCK, end);
}

static uint64_t difference(const scan *s, uint64_t x, uint64_t y) {
    return reduce(prefix_print(s, x) + MODULUS - prefix_print(s, y));
}

static int bits_of(uint64_t n) {
    int bits = 0;
    for (; n; n >>= 1) bits++;
    return bits;
}

/* A bound from above of the bytes, at most `limit`, by which what starts at (else: ends before) x and y is alike. The
 * stretches of 2^e bytes after x and y are alike when the difference of the prefixes that end before them, times
 * base^(2^e), is that of the prefixes that end after them. */
static uint64_t bound(const scan *s, uint64_t x, uint64_t y, bool right, uint64_t limit) {
    uint64_t n = 0, near = difference(s, x, y);
    for (int e = bits_of(limit) - 1; e >= 0; e--) {
        uint64_t step = UINT64_C(1) << e, to = n + step;
        if (to > limit) continue;
        uint64_t far = right ? difference(s, x + to, y + to) : difference(s, x - to, y - to);
        if (multiply(right ? near : far, s->prints.powers[e]) != (right ? far : near)) continue;
        n = to;
        near = far;
    }
    return n;
}

/* ---- one period ---- */

/* What is looked for at one period. */
typedef struct search {
    uint64_t period;
    uint64_t shortest; /* matches that make a run */
    uint64_t window;   /* compared at an anchor */
    uint64_t step;     /* from an anchor to the next one */
} search;

/* The first anchor from `at` on whose window matches, or one at `stop` or after it. */
static uint64_t next_match(const scan *s, const search *look, uint64_t at, uint64_t stop) {
    const unsigned char *here = s->text, *there = here + look->period;
    uint64_t step = look->step, from = at;
    if (look->window == WORD) {
        while (at < stop && load(here + at) != load(there + at)) at += step;
    } else if (s->width == 1) {
        while (at < stop && here[at] != there[at]) at += step;
    } else {
        while (at < stop && memcmp(here + at, there + at, sizeof(int32_t)) != 0) at += step;
    }
    LZS_WORK((at - from) / step + 1);
    return at;
}

/* Bytes from x and y on (else: before them) that are alike since both lie in known runs of one period and what is on
 * the other side of x and y is alike, more than that period of it. */
static uint64_t known_alike(const scan *s, uint64_t x, uint64_t y, bool right, uint64_t limit) {
    if (!s->cover) return 0;
    const lzs_repetition *a = &s->cover[(x - !right) / STRETCH], *b = &s->cover[(y - !right) / STRETCH];
    if (a->period == 0 || a->period != b->period) return 0;
    uint64_t left_x = x - a->start, left_y = y - b->start, right_x = a->length - left_x, right_y = b->length - left_y;
    if ((right ? least(left_x, left_y) : least(right_x, right_y)) < a->period) return 0;
    return least(right ? least(right_x, right_y) : least(left_x, left_y), limit);
}

/* Matches from an anchor on (else: before it), at most `limit`: all of them, or *more after what REACH bytes show. */
static uint64_t matches(const scan *s, uint64_t at, uint64_t period, bool right, uint64_t limit, bool *more) {
    uint64_t n = 0;
    for (uint64_t compared = 0; compared < REACH; compared += STRETCH) {
        uint64_t most = least(limit - n, STRETCH), x = right ? at + n : at - n;
        const unsigned char *here = s->text + x, *there = here + period;
        uint64_t alike = right ? common_right(here, there, most) : common_left(here, there, most);
        n += alike;
        if (alike < most || n == limit) return n;
        x = right ? at + n : at - n;
        n += known_alike(s, x, x + period, right, limit - n);
    }
    *more = n < limit;
    return n;
}

/* The matches around an anchor: *left before it, at most `room`, and *right from it on. Both are 0 when fingerprints
 * show that together they are too few. */
static lzs_status extend(scan *s, const search *look, uint64_t at, uint64_t room, uint64_t *left, uint64_t *right) {
    uint64_t period = look->period, rest = s->size - period - at;
    bool more_left = false, more_right = false;
    *left = matches(s, at, period, false, room, &more_left);
    *right = matches(s, at, period, true, rest, &more_right);
    if ((more_left || more_right) && *left + *right < look->shortest && s->wasted > s->size) {
        lzs_status status = s->prints.prefix ? LZS_OK : make_fingerprints(s);
        if (status != LZS_OK) return status;
        uint64_t most = more_left ? bound(s, at, at + period, false, room) : *left; /* room < shortest */
        most += more_right ? bound(s, at, at + period, true, least(look->shortest - most, rest)) : *right;
        if (most < look->shortest) {
            *left = *right = 0;
            return LZS_OK;
        }
    }
    const unsigned char *here = s->text + at, *there = here + period;
    if (more_left) *left += common_left(here - *left, there - *left, room - *left);
    if (more_right) *right += common_right(here + *right, there + *right, rest - *right);
    *left -= *left % s->width;
    *right -= *right % s->width;
    if (*left + *right < look->shortest) s->wasted += *left + *right;
    return LZS_OK;
}

/* Notes the run in the blocks that lie in it. Two periods of a block make sure that no other run covers it. */
static lzs_status note_cover(scan *s, const lzs_repetition *run) {
    if (run->period > STRETCH / 2 || run->length < 2 * STRETCH) return LZS_OK;
    if (!s->cover) s->cover = calloc((size_t)(s->size / STRETCH + 1), sizeof *s->cover);
    if (!s->cover) return LZS_ENOMEM;
    uint64_t first = (run->start + STRETCH - 1) / STRETCH, end = (run->start + run->length) / STRETCH;
    for (uint64_t block = first; block < end; block++) s->cover[block] = *run;
    return LZS_OK;
}

static lzs_status record(scan *s, uint64_t start, uint64_t length, uint64_t period) {
    lzs_repetition run = {start, length, period};
    if (s->n_found < s->capacity) {
        s->found[s->n_found] = (lzs_repetition){start / s->width, length / s->width, period / s->width};
    }
    s->n_found++;
    lzs_status status = note_cover(s, &run);
    return status == LZS_OK ? push(&s->fresh, run) : status;
}

/* All runs of a period, given those of shorter ones. */
static lzs_status scan_period(scan *s, const search *look) {
    uint64_t period = look->period;
    uint64_t before = look->step - s->width; /* bytes from where the next run may start to its anchor */
    uint64_t end = s->size - period - look->window + 1;
    uint64_t at = before;
    uint64_t same = 0;                  /* an anchor before this lies in a run whose period divides this one */
    uint64_t other_from = 0, other = 0; /* one between these lies inside a run whose period does not */
    run_list *known = &s->known;
    size_t i = 0, kept = 0;
    while (at < end) {
        if (i < known->n && known->runs[i].start <= at) {
            lzs_repetition run = known->runs[i++];
            if (run.length <= period) continue;
            known->runs[kept++] = run;
            uint64_t matches_end = run.start + run.length - period;
            if (matches_end <= at) continue;
            if (period % run.period == 0) {
                if (matches_end > same) same = matches_end;
            } else if (matches_end - run.start > 2 * run.period && matches_end - run.period > other) {
                other_from = run.start + run.period;
                other = matches_end - run.period;
            }
        } else if (at < same) {
            at = same + before;
        } else if (at < other && at >= other_from) {
            at = other + before;
        } else {
            uint64_t stop = i < known->n && known->runs[i].start < end ? known->runs[i].start : end;
            if (at < other_from && other_from < stop) stop = other_from;
            at = next_match(s, look, at, stop);
            if (at >= stop) continue;
            uint64_t left, right;
            lzs_status status = extend(s, look, at, before, &left, &right);
            if (status != LZS_OK) return status;
            if (left + right >= look->shortest) {
                status = record(s, at - left, left + right + period, period);
                if (status != LZS_OK) return status;
            }
            at += right + look->step; /* a mismatch follows, and the next run is behind it */
        }
    }
    if (kept < i) memmove(known->runs + kept, known->runs + i, (known->n - i) * sizeof *known->runs);
    known->n -= i - kept;
    return s->fresh.n ? merge(known, &s->fresh) : LZS_OK;
}

static lzs_status scan_all(scan *s, uint64_t max_period) {
    uint64_t longest = s->size / s->min_copies;
    if (max_period && max_period < longest) longest = max_period;
    for (uint64_t period = s->width; period <= longest; period += s->width) {
        search look = {.period = period, .shortest = (s->min_copies - 1) * period};
        if (s->min_length > period && s->min_length - period > look.shortest) look.shortest = s->min_length - period;
        look.window = look.shortest >= 2 * WORD ? WORD : s->width;
        look.step = look.shortest - look.window + s->width;
        if (!s->known.n) { /* in ordinary texts this is nearly all there is to do */
            uint64_t end = s->size - period - look.window + 1;
            if (next_match(s, &look, look.step - s->width, end) >= end) continue;
        }
        lzs_status status = scan_period(s, &look);
        if (status != LZS_OK) return status;
    }
    return LZS_OK;
}

static lzs_status find(const void *text, size_t n, size_t width, uint64_t min_copies, uint64_t min_length,
                       uint64_t max_period, lzs_repetition *runs, size_t capacity, size_t *n_runs) {
    if (!n_runs) return LZS_EINVAL;
    *n_runs = 0;
    if ((!text && n) || (!runs && capacity) || min_copies < 2 || n > SIZE_MAX / width) return LZS_EINVAL;
    if (min_length > n) return LZS_OK;
    scan s = {.text = text, .size = n * width, .width = width, .min_copies = min_copies,
              .min_length = min_length * width, .found = runs, .capacity = capacity};
    lzs_status status = scan_all(&s, max_period < n ? max_period * width : 0);
    free(s.known.runs);
    free(s.fresh.runs);
    free(s.cover);
    free(s.prints.prefix);
    if (status != LZS_OK) return status;
    *n_runs = s.n_found;
    return s.n_found > capacity ? LZS_ESPACE : LZS_OK;
}

lzs_status lzs_byte_runs(const uint8_t *text, size_t n, uint64_t min_copies, uint64_t min_length, uint64_t max_period,
                         lzs_repetition *runs, size_t capacity, size_t *n_runs) {
    return find(text, n, sizeof *text, min_copies, min_length, max_period, runs, capacity, n_runs);
}

lzs_status lzs_token_runs(const int32_t *tokens, size_t n, uint64_t min_copies, uint64_t min_length,
                          uint64_t max_period, lzs_repetition *runs, size_t capacity, size_t *n_runs) {
    return find(tokens, n, sizeof *tokens, min_copies, min_length, max_period, runs, capacity, n_runs);
}
