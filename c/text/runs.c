/* runs.c - finds all runs of a text: its maximal repetitions with enough copies and enough units.
 *
 * A match is a place where the text has the same unit p units later. A run of period p that is p + m units long has m
 * matches in a row. On either side of them is a mismatch or an end of the text. The run counts if m is at least
 * shortest = max((min_copies - 1) * p, min_length - p). So for each period p, from short to long, the text is compared
 * with itself p units later, at places called anchors. At each anchor a window of 8 bytes is compared. Any `shortest`
 * matches in a row contain a whole window, because the anchors are close enough together. A window that matches is
 * extended on both sides. For n units and k copies, all periods together have about n / (k - 1) * ln(n / k) windows. In
 * ordinary texts nearly all windows have a mismatch. Three rules keep the time low in a text that repeats itself:
 *
 * - Known runs are skipped. Let [start, end) be a known run whose shortest period q is less than p. If q divides p,
 *   then all of [start, end - p) matches, and these matches would give the known run again. So they are left out, and
 *   each run is found once, at its shortest period. (By the theorem of Fine and Wilf, every period with two copies or
 *   more is a multiple of the shortest period.) If q does not divide p, no q matches in a row lie inside the run. The
 *   reason is that a primitive word occurs in its powers only at multiples of its length. So no stretch of `shortest`
 *   >= q matches touches [start + q, end - p - q). A run is kept in the list while it is longer than p.
 * - Extensions jump over known runs. Suppose two places lie inside known runs of the same period, and agree over a
 *   whole period. Then the texts from these places agree until the first of the two runs ends. `cover` gives, for each
 *   block of the text, the run of a short period that contains the block.
 * - A text may have many long stretches of matches that are too short for a run. The text w^n x w^n has such stretches
 *   at every multiple of |w|. Comparing each stretch at every period would take O(n^2) in all. Once the bytes compared
 *   in such stretches exceed the size of the text, stretches of more than REACH bytes must pass a test first. The test
 *   is an upper bound of the length of the stretch, from polynomial fingerprints (Karp and Rabin 1987) modulo 2^61 - 1.
 *   Equal stretches have equal fingerprints, so the bound is never too low and no run is lost. A stretch that passes is
 *   compared byte by byte, so every reported run is a real run. Two different stretches have equal fingerprints with a
 *   probability below n / 2^60. In this case only time is lost. The base of the polynomials is derived from memory
 *   addresses of this call, so the author of a text cannot predict it.
 *
 * Time: an anchor takes one comparison or, if its window matches, at most 2 REACH bytes and 4 log2(n) fingerprints. In
 * addition each run takes twice its length: once to be compared, and once in steps over known runs. Consider the runs
 * with periods in [P, 2P). O(n / P) of them are shorter than 8P, so their lengths add up to O(n). Two of the longer
 * runs overlap by less than 4P, at most half their length, so these also add up to O(n). So the lengths of all runs
 * with two copies or more add up to O(n log n). The total is O(n log(n)^2) for every text.
 *
 * Memory per byte of text: 3/32 bytes for `cover` once a run is recorded in it, and 1 byte for fingerprints once they
 * are needed. In addition, each run that is longer than the current period takes up to 72 bytes. There are fewer such
 * runs than units (the runs theorem: Bannai et al. 2017), and in ordinary texts only a few.
 *
 * Runs with two copies or more can be found in O(n) from the Lempel-Ziv factorization (Kolpakov and Kucherov 1999) or
 * from Lyndon words (Bannai et al. 2017). These methods need a suffix array. For an ordinary text, building a suffix
 * array takes longer than this whole scan.
 *
 * In the rest of this file, lengths, positions and periods are in bytes, and are multiples of the width of a unit.
 */
#include "text.h"

#include <stdlib.h>

/* The tests redefine LZS_WORK to count operations: windows, bytes of extensions and steps of fingerprints. */
#ifndef LZS_WORK
#  define LZS_WORK(n) ((void)(n))
#endif

#define WORD 8       /* number of bytes of a window; if a run needs few matches, a window has only one unit */
/* A block of `cover` has STRETCH bytes. After STRETCH compared bytes, known runs are looked up again. */
#define STRETCH 256
#define REACH 4096   /* number of bytes that are compared before fingerprints are used; a multiple of STRETCH */
#define PRINT_STEP 8 /* number of bytes between two stored fingerprints */

/* Runs in ascending order of their start. */
typedef struct run_list {
    lzs_repetition *runs; /* (capacity) the runs, of which n are valid */
    size_t n, capacity;
} run_list;

typedef struct fingerprints {
    /* (size / PRINT_STEP + 1) entry b: the fingerprint of the first b * PRINT_STEP bytes; NULL until needed */
    uint64_t *prefix;
    uint64_t base;
    uint64_t powers[64]; /* powers[e]: base^(2^e) */
} fingerprints;

typedef struct scan {
    const unsigned char *text;
    uint64_t size;
    uint64_t width; /* number of bytes of a unit: 1 or 4 */
    uint64_t min_copies, min_length;
    run_list known;        /* known runs that are longer than the current period */
    run_list fresh;        /* runs of the current period */
    /* (size / STRETCH + 1) for each block: the run that contains the block, or a run of period 0; NULL until needed */
    lzs_repetition *cover;
    uint64_t wasted;       /* number of bytes compared in stretches of matches that were too short for a run */
    fingerprints prints;
    lzs_repetition *found; /* (min(n_found, capacity)) the results, in units */
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

/* Returns how many bytes, at most `limit`, agree from x and from y on. */
static uint64_t common_right(const unsigned char *x, const unsigned char *y, uint64_t limit) {
    uint64_t n = 0;
    while (limit - n >= WORD && load(x + n) == load(y + n)) n += WORD;
    while (n < limit && x[n] == y[n]) n++;
    LZS_WORK(n);
    return n;
}

/* Returns how many bytes, at most `limit`, agree before x and before y. */
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

/* Moves the fresh runs into the list of known runs. Both lists are sorted, and the merged list is sorted, too. */
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

/* Returns a fingerprint extended by the bytes of [from, to). */
static uint64_t print_on(const scan *s, uint64_t print, uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; at++) print = lzs_print_on(print, s->prints.base, s->text[at]);
    return print;
}

static lzs_status make_fingerprints(scan *s) {
    fingerprints *f = &s->prints;
    uint64_t n_blocks = s->size / PRINT_STEP;
    if (n_blocks >= SIZE_MAX / sizeof *f->prefix) return LZS_ENOMEM;
    f->prefix = malloc((size_t)(n_blocks + 1) * sizeof *f->prefix);
    if (!f->prefix) return LZS_ENOMEM;
    f->base = lzs_print_base(lzs_hash_key(f->prefix));
    f->powers[0] = f->base;
    for (int e = 1; e < 64; e++) f->powers[e] = lzs_print_times(f->powers[e - 1], f->powers[e - 1]);
    uint64_t print = 0;
    for (uint64_t b = 0; b < n_blocks; b++) {
        f->prefix[b] = print;
        print = print_on(s, print, b * PRINT_STEP, (b + 1) * PRINT_STEP);
    }
    f->prefix[n_blocks] = print;
    return LZS_OK;
}

/* Returns the fingerprint of the first `end` bytes. */
static uint64_t prefix_print(const scan *s, uint64_t end) {
    LZS_WORK(PRINT_STEP);
    return print_on(s, s->prints.prefix[end / PRINT_STEP], end - end % PRINT_STEP, end);
}

static uint64_t difference(const scan *s, uint64_t x, uint64_t y) {
    return lzs_print_reduced(prefix_print(s, x) + LZS_PRINT_MODULUS - prefix_print(s, y));
}

static int bits_of(uint64_t n) {
    int bits = 0;
    for (; n; n >>= 1) bits++;
    return bits;
}

/* Returns an upper bound, at most `limit`, of the number of bytes that agree: from x and y on if `right`, else before x
 * and y. For two stretches of 2^e bytes, let d be the difference between the fingerprints of the prefixes that end
 * before the stretches. If the stretches agree, d * base^(2^e) is the difference between the fingerprints of the
 * prefixes that end with the stretches. */
static uint64_t bound(const scan *s, uint64_t x, uint64_t y, bool right, uint64_t limit) {
    uint64_t n = 0, near = difference(s, x, y);
    for (int e = bits_of(limit) - 1; e >= 0; e--) {
        uint64_t step = UINT64_C(1) << e, to = n + step;
        if (to > limit) continue;
        uint64_t far = right ? difference(s, x + to, y + to) : difference(s, x - to, y - to);
        if (lzs_print_times(right ? near : far, s->prints.powers[e]) != (right ? far : near)) continue;
        n = to;
        near = far;
    }
    return n;
}

/* ---- one period ---- */

/* The search for the runs of one period. */
typedef struct search {
    uint64_t period;
    uint64_t shortest; /* number of matches that a run needs */
    uint64_t window;   /* number of bytes compared at an anchor */
    uint64_t step;     /* number of bytes between two anchors */
} search;

/* Returns the first anchor from `at` on whose window matches, or an anchor at or after `stop` if no window before
 * `stop` matches. */
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

/* Returns how many bytes, at most `limit`, agree according to known runs: from x and y on if `right`, else before x and
 * y. The caller has already found that the bytes on the other side of x and y agree. Let x and y lie in known runs of
 * the same period. If each run contains a whole period of the compared bytes, the texts from x and from y agree until
 * one of the runs ends. */
static uint64_t known_alike(const scan *s, uint64_t x, uint64_t y, bool right, uint64_t limit) {
    if (!s->cover) return 0;
    const lzs_repetition *a = &s->cover[(x - !right) / STRETCH], *b = &s->cover[(y - !right) / STRETCH];
    if (a->period == 0 || a->period != b->period) return 0;
    uint64_t left_x = x - a->start, left_y = y - b->start, right_x = a->length - left_x, right_y = b->length - left_y;
    if ((right ? least(left_x, left_y) : least(right_x, right_y)) < a->period) return 0;
    return least(right ? least(right_x, right_y) : least(left_x, left_y), limit);
}

/* Counts the matches, at most `limit`: from an anchor on if `right`, else before the anchor. Stops after REACH bytes
 * were compared. If the count stops, *more says whether there may be more matches. */
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

/* Counts the matches around an anchor. *left gets the number of matches right before the anchor, at most `room`, and
 * *right the number from the anchor on. *left and *right are 0 if the fingerprints show that the matches are too few
 * for a run. */
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

/* Records a run in `cover` for the blocks inside the run. A block has at least two periods of the run, so no other run
 * contains the block. */
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

/* Finds all runs of a period. `s` has the runs of all shorter periods. */
static lzs_status scan_period(scan *s, const search *look) {
    uint64_t period = look->period;
    uint64_t before = look->step - s->width; /* number of bytes from the earliest start of the next run to its anchor */
    uint64_t end = s->size - period - look->window + 1;
    uint64_t at = before;
    uint64_t same = 0;                  /* anchors before `same` lie in a run whose period divides this period */
    /* anchors in [other_from, other) lie inside a run whose period does not divide this period */
    uint64_t other_from = 0, other = 0;
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
            at += right + look->step; /* a mismatch follows, and the next run starts after it */
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
        if (!s->known.n) { /* in ordinary texts, this is usually all */
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
