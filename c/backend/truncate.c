/* truncate.c - top-k, top-p and min-p as cuts of one order (logit descending, token id ascending).
 *
 * The vocabulary is never sorted. For a top-k of up to LZS_LIST / 2, the maxima of the groups give a lower bound. The
 * few tokens above the bound go into a list. Top-p guesses its cut from a sample, and adds up the exact weight above
 * the guess in one pass over the row. This weight shows about where the cut lies. Top-p lists the tokens from the guess
 * to there, and finds the cut in this list. Top-k with a larger k adds up a histogram of the gaps in a window around a
 * guess. Then top-k divides the bin where the sum reaches the target into finer bins. Top-p does the same if many
 * tokens have nearly the same logit. Min-p is a binary search over keys. Sums of integers do not depend on the order of
 * addition, so a cut has the same bits on every machine. A wrong guess only takes more time. If even the bins are too
 * coarse, a radix descent over the row finds the cut.
 */
#include <math.h>
#include <string.h>

#include "backend.h"
#include "sort.h"

/* The arguments of a search for a cut. */
typedef struct search {
    lzs_backend *b;
    const lzs_candidates *c;
    lzs_softmax_scale scale; /* scale of the truncation, which leaves out the temperature if truncation comes first */
    bool keep_ties;
} search;

/* ceil(top_p * total), exactly: top_p is a 32-bit fraction, and total is below 2^63. The result is at least 1, so at
 * least one token stays. */
static uint64_t top_p_target(float top_p, uint64_t total) {
    uint64_t p = (uint64_t)((double)top_p * 4294967296.0 + 0.5);
    uint64_t high = total >> 32, low = total & 0xffffffffu;
    uint64_t target = p * high + ((p * low + 0xffffffffu) >> 32);
    return target ? target : 1;
}

static float min_p_limit(float min_p) {
    return -lzs_log2(min_p > FLT_MIN ? min_p : FLT_MIN);
}

/* ---- lists ---- */

/* Shortens a sorted list to its first n tokens. If ties are kept, tokens with the logit of the n-th token stay, too. */
static void shorten(lzs_list *list, int32_t n, bool keep_ties) {
    if (n >= list->n) return;
    while (keep_ties && n < list->n && lzs_packed_key(list->packed[n]) == lzs_packed_key(list->packed[n - 1])) n++;
    list->n = n;
}

/* Returns the number of tokens at the beginning of a sorted list that together reach the target weight (if `count`, the
 * target number). */
static int32_t reaching(const lzs_list *list, lzs_softmax_scale scale, bool count, uint64_t target) {
    uint64_t sum = 0;
    for (int32_t i = 0; i < list->n; i++) {
        sum += count ? 1 : lzs_weight(lzs_gap_bits(scale, lzs_packed_x(list->packed[i])));
        if (sum >= target) return i + 1;
    }
    return list->n;
}

/* Applies top-p and min-p to a list that holds all tokens inside the cut. Returns the cut after the last token that
 * stays. */
static lzs_cut truncate_list(const search *s, const lzs_plan *plan, lzs_list *list) {
    if (plan->top_p < 1.0f) {
        uint64_t total = 0;
        lzs_sort_keys_with(list->packed, list->n, s->b->scratch.room);
        for (int32_t i = 0; i < list->n; i++) {
            total += lzs_weight(lzs_gap_bits(s->scale, lzs_packed_x(list->packed[i])));
        }
        shorten(list, reaching(list, s->scale, false, top_p_target(plan->top_p, total)), s->keep_ties);
    }
    if (plan->min_p > 0.0f) {
        float limit = min_p_limit(plan->min_p);
        int32_t n = 0;
        for (int32_t i = 0; i < list->n; i++) {
            uint64_t packed = list->packed[i];
            if (lzs_gap_bits(s->scale, lzs_packed_x(packed)) <= limit) list->packed[n++] = packed;
        }
        list->n = n;
    }
    uint64_t last = list->packed[0];
    for (int32_t i = 1; i < list->n; i++) {
        if (list->packed[i] < last) last = list->packed[i];
    }
    return (lzs_cut){lzs_packed_key(last), s->keep_ties ? INT32_MAX : lzs_packed_id(last)};
}

/* Appends the edited tokens whose logits are in [low, high]. Returns false if the list has no room. */
static bool gather_edited(const lzs_candidates *c, float low, float high, lzs_list *list) {
    for (int32_t i = 0; i < c->n_edits; i++) {
        float x = c->values[i];
        if (!(x >= low && x <= high)) continue;
        if (list->n == list->capacity) return false;
        list->packed[list->n++] = lzs_pack(x, c->edits[i].token);
    }
    return true;
}

/* Fills the list with the tokens whose keys are in [low, high]. Returns false if these tokens do not fit. */
static bool gather(const search *s, uint32_t low, uint32_t high) {
    const lzs_row *row = &s->c->row;
    lzs_list *list = &s->b->list;
    float least = lzs_key_float(low), most = lzs_key_float(high);
    list->n = 0;
    if (s->b->kernels->gather(row, s->b->maxima, 0, least, most, list) < row->n) return false;
    return gather_edited(s->c, least, most, list);
}

/* ---- keys by gap: the gap falls as the key grows, so a binary search finds where the gap crosses a value ---- */

/* Returns the lowest key of (low, high] whose gap is at most the limit. The gap of `high` must be at most the limit. */
static uint32_t first_within(lzs_softmax_scale scale, uint32_t low, uint32_t high, float limit) {
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lzs_gap_bits(scale, lzs_key_float(middle)) <= limit) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}

static lzs_cut min_p_cut(lzs_cut cut, lzs_softmax_scale scale, float min_p) {
    float limit = min_p_limit(min_p);
    if (lzs_gap_bits(scale, lzs_key_float(cut.key)) <= limit) return cut;
    return (lzs_cut){first_within(scale, cut.key, lzs_key(scale.max), limit), INT32_MAX};
}

/* ---- histograms ---- */

static void set_window(lzs_histogram *h, float from, float limit, float per_bit, bool count) {
    *h = (lzs_histogram){.from = from, .limit = limit, .per_bit = per_bit, .count = count};
}

/* Returns the bin where the cumulative sum reaches the target. *target becomes the part of the target that this bin
 * must supply. If the bins do not reach the target, returns LZS_BINS, and *target is the part that larger gaps must
 * supply. */
static int32_t crossing_bin(const lzs_histogram *h, uint64_t *target) {
    int32_t bin = 0;
    while (bin < LZS_BINS && h->bins[bin] < *target) *target -= h->bins[bin++];
    return bin;
}

static float float_before(float positive) {
    return lzs_bits_float(lzs_float_bits(positive) - 1);
}

/* Adds the maxima of the groups to the histogram. */
static void weigh_maxima(const search *s, lzs_histogram *h) {
    int32_t n = lzs_stretches(s->c->row.n) * LZS_STRETCH_GROUPS;
    for (int32_t from = 0; from < n; from += LZS_STRETCH) {
        lzs_row part = {s->b->maxima + from, n - from < LZS_STRETCH ? n - from : LZS_STRETCH, NULL};
        s->b->kernels->weigh(&part, 0, part.n, s->scale, h);
    }
}

/* ---- top-k of a list ---- */

static bool histogram_cut(const search *s, const lzs_plan *plan, bool count, lzs_cut *cut);

/* Returns a logit that at least k tokens reach. It is about the k-th largest maximum of the groups or, for small k, of
 * the stretches. Groups do not overlap, and stretches do not overlap. If there are fewer than k groups, the result is
 * the k-th largest logit, or -FLT_MAX if the vocabulary is small or a histogram cannot find this logit. Edited tokens
 * are left out, since they could only raise the bound. */
static float lower_bound(const search *s, const lzs_plan *plan) {
    enum { STEPS = 20 }; /* the search finds 20 of 32 bits; the other bits change a logit by less than a thousandth */
    lzs_backend *b = s->b;
    int32_t n_stretches = lzs_stretches(s->c->row.n), n = n_stretches * LZS_STRETCH_GROUPS, k = plan->top_k;
    const float *maxima = b->maxima;
    if (n < k) {
        lzs_cut cut;
        return s->c->row.n > LZS_LIST && histogram_cut(s, plan, true, &cut) ? lzs_key_float(cut.key) : -FLT_MAX;
    }
    if (2 * k <= n_stretches) {
        maxima = b->best;
        for (n = n_stretches; n % LZS_STRETCH_GROUPS; n++) b->best[n] = -INFINITY; /* the size of `best` is a multiple
                                                                                    * of 16 */
    }
    uint32_t low = lzs_key(-FLT_MAX), high = lzs_key(s->scale.max) + 1;
    for (int step = 0; step < STEPS; step++) {
        uint32_t middle = low + (high - low) / 2;
        if (b->kernels->count(maxima, n, lzs_key_float(middle)) >= k) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return lzs_key_float(low);
}

/* Reduces a list to its k best tokens, in any order. If ties are kept, tokens with the logit of the k-th token stay,
 * too. Returns the k-th token (packed), or 0 if the list has fewer than k tokens. */
static uint64_t keep_best(lzs_list *list, int32_t k, bool keep_ties) {
    if (k > list->n) return 0;
    uint64_t last = lzs_kth_largest(list->packed, list->n, k);
    int32_t n = k;
    for (int32_t i = k; keep_ties && i < list->n; i++) {
        if (lzs_packed_key(list->packed[i]) == lzs_packed_key(last)) list->packed[n++] = list->packed[i];
    }
    list->n = n;
    return last;
}

/* Fills the list with the k best tokens, in any order. Returns false if the list has no room for the kept ties. */
static bool take_top_k(const search *s, const lzs_plan *plan) {
    const lzs_row *row = &s->c->row;
    int32_t k = plan->top_k;
    lzs_list list = s->b->list;
    float low = lower_bound(s, plan);
    list.n = 0;
    if (!s->keep_ties && k < list.capacity / 4 - 64) list.capacity = 4 * k + 256; /* if many logits are nearly equal,
                                                                                   * any list gets full, so use a short
                                                                                   * list */
    int32_t at = 0;
    while ((at = s->b->kernels->gather(row, s->b->maxima, at, low, INFINITY, &list)) < row->n) {
        uint32_t last = lzs_packed_key(keep_best(&list, k, s->keep_ties));
        if (list.capacity - list.n < LZS_GROUP) return false;
        low = lzs_key_float(s->keep_ties ? last : last + 1); /* a later equal logit loses the tie by its id */
    }
    uint64_t worst = keep_best(&list, k, s->keep_ties);
    float least = worst ? lzs_packed_x(worst) : -FLT_MAX;
    for (int32_t i = 0; i < s->c->n_edits; i++) { /* edited tokens come in any order, so equal logits are kept here */
        if (!(s->c->values[i] >= least)) continue;
        if (list.n == list.capacity) {
            keep_best(&list, k, s->keep_ties);
            if (list.n == list.capacity) return false;
        }
        list.packed[list.n++] = lzs_pack(s->c->values[i], s->c->edits[i].token);
    }
    if (list.n > k) keep_best(&list, k, s->keep_ties);
    s->b->list.n = list.n;
    return true;
}

/* ---- histograms over the row ---- */

/* Adds all tokens, edited or not, to the histogram. A stretch whose best token adds nothing is skipped. */
static void weigh(const search *s, lzs_histogram *h) {
    const lzs_kernels *kernels = s->b->kernels;
    const lzs_row *row = &s->c->row;
    for (int32_t i = 0; i < lzs_stretches(row->n); i++) {
        int32_t from = i * LZS_STRETCH, to = lzs_stretch_end(row->n, i);
        float y = lzs_gap_bits(s->scale, s->b->best[i]);
        if (y >= h->limit && (h->count || y >= 31.0f)) continue; /* from y = 31 on weights are 0 */
        kernels->weigh(row, from, to, s->scale, h);
    }
    for (int32_t from = 0; from < s->c->n_edits; from += LZS_STRETCH) {
        int32_t left = s->c->n_edits - from;
        lzs_row edited = {s->c->values + from, left < LZS_STRETCH ? left : LZS_STRETCH, NULL};
        kernels->weigh(&edited, 0, edited.n, s->scale, h);
    }
}

/* Returns the weight of all tokens, edited or not, and the weight of the tokens whose gap is below the limit. */
static lzs_sums sum_all(const search *s, float limit) {
    const lzs_backend *b = s->b;
    const lzs_row *row = &s->c->row, edited = {s->c->values, s->c->n_edits, NULL};
    lzs_sums sums = {0, 0};
    for (int32_t i = 0; i < lzs_stretches(row->n); i++) {
        b->kernels->sum(row, b->maxima, i * LZS_STRETCH, lzs_stretch_end(row->n, i), s->scale, limit, &sums);
    }
    lzs_kernels_scalar.sum(&edited, NULL, 0, edited.n, s->scale, limit, &sums);
    return sums;
}

/* Estimates, from a sample of the row, in which bin the running sum over all tokens reaches the target. A bit of the
 * gap has 64 bins. The sample has the best token of every group, and all other tokens of one group in each stretch. The
 * best tokens often hold most of the weight. The other tokens count 16 times, for the 16 groups of their stretch. */
static int32_t guess(const search *s, const lzs_plan *plan, bool count) {
    const lzs_row *row = &s->c->row;
    const lzs_kernels *kernels = s->b->kernels;
    lzs_histogram *h = s->b->scratch.histogram;
    int32_t n_stretches = lzs_stretches(row->n);
    set_window(h, 0.0f, 32.0f, 64.0f, count);
    for (int32_t i = 0; i < n_stretches; i++) {
        int32_t group = i * LZS_STRETCH_GROUPS + i * 7 % LZS_STRETCH_GROUPS, at = group * LZS_GROUP;
        if (at + LZS_GROUP > row->n) continue;
        kernels->weigh(row, at, at + LZS_GROUP, s->scale, h);
        float y = lzs_gap_bits(s->scale, s->b->maxima[group]); /* take out the group's best token, which weigh_maxima
                                                                * adds below */
        uint32_t w = count ? 1 : lzs_weight(y);
        if (y < 32.0f) h->bins[(int32_t)(y * 64.0f)] -= w;
        if (!count) h->total -= w;
    }
    for (int32_t b = 0; b < LZS_BINS; b++) h->bins[b] *= LZS_STRETCH_GROUPS;
    h->total *= LZS_STRETCH_GROUPS;
    weigh_maxima(s, h);
    uint64_t target = count ? (uint64_t)plan->top_k : top_p_target(plan->top_p, h->total);
    return crossing_bin(h, &target);
}

/* Counts the allowed tokens with this key and with ids in [from, to), in buckets of `size` ids. */
static void count_equal(const lzs_candidates *c, uint32_t key, int32_t from, int32_t to, int32_t size,
                        uint64_t *buckets) {
    float x = lzs_key_float(key);
    for (int32_t id = from; id < to; id++) {
        if (c->row.x[id] == x && lzs_allowed(c->row.mask, id)) buckets[(id - from) / size]++;
    }
    for (int32_t i = 0; i < c->n_edits; i++) {
        int32_t id = c->edits[i].token;
        if (c->values[i] == x && id >= from && id < to) buckets[(id - from) / size]++;
    }
}

/* Returns the nth (from 1) allowed token with this key, by ascending id, or -1 if there are fewer than n. Edited tokens
 * come in any order, so ranges of ids are counted in buckets and narrowed down. Overwrites the list. */
static int32_t nth_equal(const search *s, uint32_t key, uint64_t nth) {
    uint64_t *buckets = s->b->list.packed;
    int32_t from = 0, to = s->c->row.n;
    while (to - from > 1) {
        int32_t size = (to - from - 1) / LZS_LIST + 1, n = (to - from - 1) / size + 1, bucket = 0;
        memset(buckets, 0, (size_t)n * sizeof *buckets);
        count_equal(s->c, key, from, to, size, buckets);
        while (bucket < n && buckets[bucket] < nth) nth -= buckets[bucket++];
        if (bucket == n) return -1;
        from += bucket * size;
        if (to - from > size) to = from + size;
    }
    uint64_t here = 0;
    count_equal(s->c, key, from, to, 1, &here);
    return here >= nth ? from : -1;
}

/* Fills the list with the tokens whose gaps are in [from, limit). Returns false if these tokens do not fit. */
static bool gather_gaps(const search *s, float from, float limit) {
    uint32_t top = lzs_key(s->scale.max), bottom = lzs_key(-FLT_MAX) - 1;
    uint32_t low = first_within(s->scale, bottom, top, float_before(limit));
    return gather(s, low, from > 0.0f ? first_within(s->scale, bottom, top, float_before(from)) - 1 : top);
}

/* Returns the cut where the cumulative weight, or count, of the list's tokens reaches the target. All tokens of the
 * list together must reach the target. */
static lzs_cut cut_of_list(const search *s, bool count, uint64_t target) {
    lzs_list *list = &s->b->list;
    int32_t half = list->capacity / 2; /* the other half is memory for sorting, since b->scratch holds the histogram */
    if (list->n <= half) {
        lzs_sort_keys_with(list->packed, list->n, list->packed + half);
    } else {
        lzs_sort_keys(list->packed, list->n);
    }
    shorten(list, reaching(list, s->scale, count, target), s->keep_ties);
    uint64_t last = list->packed[list->n - 1];
    return (lzs_cut){lzs_packed_key(last), s->keep_ties ? INT32_MAX : lzs_packed_id(last)};
}

/* As cut_of_list, for weights. All gaps of the list must be in [from, limit), a window of at most 32 bits. Only the
 * tokens of the bin where the sum reaches the target are sorted. */
static lzs_cut cut_of_window(const search *s, float from, float limit, uint64_t target) {
    enum { FEW = 64 };
    lzs_list *list = &s->b->list;
    lzs_histogram *h = s->b->scratch.histogram;
    if (list->n > FEW) {
        float per_bit = 64.0f;
        while ((limit - from) * per_bit <= LZS_BINS / 2) per_bit *= 2.0f;
        set_window(h, from, limit, per_bit, false);
        for (int32_t i = 0; i < list->n; i++) lzs_weigh_one(h, lzs_gap_bits(s->scale, lzs_packed_x(list->packed[i])));
        int32_t bin = crossing_bin(h, &target), n = 0;
        for (int32_t i = 0; i < list->n; i++) {
            float y = lzs_gap_bits(s->scale, lzs_packed_x(list->packed[i]));
            list->packed[n] = list->packed[i];
            n += (int32_t)((y - from) * per_bit) == bin;
        }
        list->n = n;
    }
    return cut_of_list(s, false, target);
}

static uint64_t sum_of_list(const search *s) {
    const lzs_list *list = &s->b->list;
    uint64_t sum = 0;
    for (int32_t i = 0; i < list->n; i++) sum += lzs_weight(lzs_gap_bits(s->scale, lzs_packed_x(list->packed[i])));
    return sum;
}

/* What the histogram of the guess predicts for a cut that must move by a given weight to lower or higher bins. */
typedef struct forecast {
    int32_t bin;    /* the bin that the cut reaches after the given weight */
    int32_t end;    /* the bin that the cut reaches after the weight and a reserve */
    int32_t tokens; /* predicted number of tokens between the present bin of the cut and `end` */
} forecast;

static forecast forecast_of(const lzs_histogram *h, int32_t at, bool down, uint64_t weight) {
    enum { SPARE_BINS = 2 };
    forecast f = {at, at, 0};
    uint64_t sum = 0, tokens = 0;
    for (int spare = SPARE_BINS; spare > 0 && (down ? f.end < LZS_BINS : f.end > 0);) {
        int32_t bin = down ? f.end++ : --f.end;
        uint32_t each = lzs_weight((float)bin / 64.0f);
        sum += h->bins[bin];
        tokens += each ? h->bins[bin] / each : 0;
        if (sum < weight) f.bin = f.end;
        if (sum >= weight + weight / 8) spare--;
    }
    f.tokens = tokens < INT32_MAX ? (int32_t)tokens : INT32_MAX;
    return f;
}

/* Finds the cut of top-p. The exact weight above a guess gives the error of the guess. The histogram of the guess
 * predicts where the cut lies. The tokens from the guess to there go into the list. If these tokens are too many, the
 * guess is improved first. Returns false if thousands of tokens have nearly the same logit. */
static bool top_p_cut(const search *s, const lzs_plan *plan, lzs_cut *cut) {
    enum { ROUNDS = 6, MANY = 1600 };
    if (s->c->row.n <= LZS_LIST && gather_gaps(s, 0.0f, 32.0f)) { /* the list holds all tokens that have a weight */
        *cut = cut_of_window(s, 0.0f, 32.0f, top_p_target(plan->top_p, sum_of_list(s)));
        return true;
    }
    int32_t at = guess(s, plan, false);
    const lzs_histogram *h = s->b->scratch.histogram;
    lzs_sums sums = sum_all(s, (float)at / 64.0f);
    uint64_t target = top_p_target(plan->top_p, sums.total);
    for (int round = 0; round < ROUNDS; round++) {
        bool down = sums.above < target;
        forecast f = forecast_of(h, at, down, down ? target - sums.above : sums.above - target);
        float from = (float)(down ? at : f.end) / 64.0f, limit = (float)(down ? f.end : at) / 64.0f;
        if (f.tokens > MANY || !gather_gaps(s, from, limit)) {
            if (f.bin == at) return false;
            at = f.bin;
            sums = sum_all(s, (float)at / 64.0f);
            continue;
        }
        uint64_t here = sum_of_list(s), above = down ? sums.above : sums.above - here;
        if (above < target && above + here >= target) {
            *cut = cut_of_window(s, from, limit, target - above);
            return true;
        }
        sums.above = down ? above + here : above; /* the cut is not in the window, so continue at the window's end */
        at = f.end;
    }
    return false;
}

/* Finds the cut where the cumulative weight (top-p) or count (top-k) of all tokens reaches the target. Returns false if
 * bins cannot separate thousands of tokens with nearly equal logits. */
static bool histogram_cut(const search *s, const lzs_plan *plan, bool count, lzs_cut *cut) {
    uint32_t top = lzs_key(s->scale.max);
    lzs_histogram *h = s->b->scratch.histogram;
    float from = 0.0f, limit = 32.0f;
    if (s->c->row.n > LZS_STRETCH) { /* a smaller row is searched all at once */
        float at = (float)guess(s, plan, count) / 64.0f, off = 0.25f;
        from = at > off ? at - off : 0.0f;
        limit = at + off;
    }
    uint64_t target, whole = count ? (uint64_t)plan->top_k : 0;
    int32_t bin;
    for (;;) { /* mostly the guess is right; if not, the histogram shows on which side the target lies */
        set_window(h, from, limit, 64.0f, count);
        weigh(s, h);
        if (!whole) whole = top_p_target(plan->top_p, h->total);
        target = whole - h->above;
        if (whole <= h->above) {
            limit = from;
            from = from > 32.0f ? from - 32.0f : 0.0f;
            continue;
        }
        bin = crossing_bin(h, &target);
        if (bin < LZS_BINS) break;
        if (limit >= 64.0f) return false; /* only in top-k, if logits are far apart or k is above the number of
                                           * tokens */
        from = limit;
        limit += 32.0f;
    }
    for (int zoom = 0; zoom < 2; zoom++) {
        from = h->from + (float)bin / h->per_bit;
        limit = from + 1.0f / h->per_bit;
        if (gather_gaps(s, from, limit)) {
            *cut = cut_of_list(s, count, target);
            return true;
        }
        if (from == 0.0f) { /* tokens at the maximum alone may reach the target */
            uint64_t each = count ? 1 : lzs_weight(0.0f);
            int32_t last = nth_equal(s, top, (target + each - 1) / each);
            if (last >= 0) {
                *cut = (lzs_cut){top, s->keep_ties ? INT32_MAX : last};
                return true;
            }
        }
        set_window(h, from, limit, h->per_bit * LZS_BINS, count);
        weigh(s, h);
        bin = crossing_bin(h, &target);
    }
    return false;
}

/* ---- radix descent over the keys ---- */

enum { RADIX_BINS = 2048 };
static const int32_t shifts[] = {21, 10, 0}, widths[] = {11, 11, 10};

/* One level of the descent counts the tokens inside the cut whose key begins with the prefix. */
typedef struct level {
    lzs_cut cut;
    const lzs_softmax_scale *scale; /* scale of the weights that are summed; if NULL, tokens are counted */
    uint32_t prefix;
    int32_t shift, width;
} level;

static void count_key(const level *l, float x, int32_t id, uint64_t *bins) {
    uint32_t key = lzs_key(x);
    if (((uint64_t)key >> (l->shift + l->width)) != l->prefix) return; /* shift 64 bits, since the shift is 32 at the
                                                                        * first digit */
    if (!lzs_inside(l->cut, key, id)) return;
    bins[(key >> l->shift) & ((1u << l->width) - 1)] += l->scale ? lzs_weight(lzs_gap_bits(*l->scale, x)) : 1;
}

/* Returns the cut where the tokens inside `cut` reach the target. Without a scale this is top-k, by cumulative count.
 * With a scale it is top-p, by cumulative weight. */
static lzs_cut descend(const search *s, lzs_cut cut, const lzs_softmax_scale *scale, const lzs_plan *plan) {
    const lzs_candidates *c = s->c;
    uint64_t *bins = s->b->scratch.histogram->bins, target = 0;
    uint32_t prefix = 0;
    _Static_assert(LZS_BINS >= RADIX_BINS, "the digits are counted in the histogram's bins");
    for (int i = 0; i < 3; i++) {
        level l = {cut, scale, prefix, shifts[i], widths[i]};
        memset(bins, 0, RADIX_BINS * sizeof *bins);
        for (int32_t id = 0; id < c->row.n; id++) {
            if (lzs_allowed(c->row.mask, id)) count_key(&l, c->row.x[id], id, bins);
        }
        for (int32_t e = 0; e < c->n_edits; e++) {
            if (c->values[e] > -INFINITY) count_key(&l, c->values[e], c->edits[e].token, bins);
        }
        uint32_t bin = (1u << widths[i]) - 1;
        if (i == 0) {
            uint64_t total = 0;
            for (uint32_t k = 0; k <= bin; k++) total += bins[k];
            target = scale ? top_p_target(plan->top_p, total) : (uint64_t)plan->top_k;
            if (target > total) return cut; /* only in top-k, if k is above the number of tokens */
        }
        while (bins[bin] < target) target -= bins[bin--]; /* the loop ends, since all bins together reach the target */
        prefix = (prefix << widths[i]) | bin;
    }
    /* Every token with this key has the same weight, so a division gives how many of these tokens, lowest ids first,
     * reach the target. */
    uint64_t each = scale ? lzs_weight(lzs_gap_bits(*scale, lzs_key_float(prefix))) : 1;
    int32_t last = s->keep_ties ? INT32_MAX : nth_equal(s, prefix, (target + each - 1) / each);
    if (prefix == cut.key && last > cut.id) last = cut.id;
    return (lzs_cut){prefix, last};
}

/* ---- the whole truncation ---- */

void lzs_truncate(lzs_backend *b, const lzs_plan *plan, lzs_candidates *c) {
    lzs_cut everything = {lzs_key(-FLT_MAX), INT32_MAX};
    float t = plan->temperature_last ? 1.0f : plan->temperature;
    search s = {b, c, {c->top.max, lzs_temperature_scale(t)}, plan->ties == LZS_TIES_KEEP};
    bool cut_by_k = plan->top_k > 0 && plan->top_k < c->row.n;
    c->cut = everything;
    if (cut_by_k && plan->top_k <= b->list.capacity / 2 && take_top_k(&s, plan)) {
        c->cut = truncate_list(&s, plan, &b->list);
        c->listed = true;
        return;
    }
    if (cut_by_k && !histogram_cut(&s, plan, true, &c->cut)) c->cut = descend(&s, everything, NULL, plan);
    const bool cut_by_p = plan->top_p < 1.0f && !cut_by_k &&
                          (top_p_cut(&s, plan, &c->cut) || histogram_cut(&s, plan, false, &c->cut));
    if (plan->top_p < 1.0f && !cut_by_p) {
        c->cut = descend(&s, c->cut, &s.scale, plan);
    }
    if (plan->min_p > 0.0f) c->cut = min_p_cut(c->cut, s.scale, plan->min_p);
    b->list.n = 0; /* the list does not hold all tokens that stay */
}
