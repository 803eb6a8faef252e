/* stuck.c - finds the stuck stretches of a text: those in which nearly all units repeat earlier text, even if without a
 * period. A unit is a word or a token.
 *
 * c/state/stuck.c defines old units, new units and the score, and detects such stretches while a text is generated.
 * Here the whole text is known, so a stretch also has an end. Equal n-grams are represented by the first of them. The
 * first n-gram is in a list that its hash chooses, and has a count of the equal n-grams in the window. So the time for
 * a unit does not depend on how often its n-gram occurs.
 */
#include "text.h"

#include <stdlib.h>

/* flag of a link: the link is to the first equal n-gram, not to the next n-gram of a list */
#define LATER UINT32_C(0x80000000)

/* The n-grams of a text. N-gram number e is the n-gram whose last unit is ids[e - 1]. */
typedef struct ngrams {
    const int32_t *ids;
    const lzs_stuck_rules *rules;
    uint32_t *heads;  /* (n_heads) for each list: its first n-gram, or 0 if the list is empty */
    /* (n) for the n-gram whose last unit has this index: the next n-gram of its list, or LATER and the first equal
     * n-gram */
    uint32_t *links;
    /* (n) for a first n-gram whose last unit has this index: number of n-grams of the window that equal it */
    uint32_t *counts;
    uint64_t key;
    size_t n_heads; /* number of lists, a power of two */
} ngrams;

/* Returns the first n-gram of the text that equals n-gram `end`. If no earlier n-gram equals it, returns `end`. */
static uint32_t first_of(ngrams *g, uint32_t end) {
    const size_t n = (size_t)g->rules->ngram, n_bytes = n * sizeof *g->ids;
    const int32_t *gram = g->ids + end - n;
    uint32_t *head = &g->heads[lzs_hash_bytes((const uint8_t *)gram, n_bytes, g->key) & (g->n_heads - 1)], at = *head;
    while (at && memcmp(g->ids + at - n, gram, n_bytes)) at = g->links[at - 1];
    g->links[end - 1] = at ? at | LATER : *head;
    if (!at) *head = end;
    return at ? at : end;
}

/* Counts n-gram `end`, and returns whether it is old: the window has at least min_count n-grams equal to it. */
static bool count_ngram(ngrams *g, uint32_t end) {
    const lzs_stuck_rules *rules = g->rules;
    if (end > rules->window && end - rules->window > rules->ngram) { /* an n-gram leaves the window */
        uint32_t last = end - (uint32_t)rules->window - 1, link = g->links[last - 1];
        g->counts[(link & LATER ? link & ~LATER : last) - 1]--;
    }
    return ++g->counts[first_of(g, end) - 1] >= rules->min_count;
}

/* The score of a text that is read unit by unit, and the stretch to which the score belongs. */
typedef struct scorer {
    const lzs_stuck_rules *rules;
    lzs_stuck_stretch now; /* the current stretch, as it was when its score was highest */
    uint64_t score;
    uint64_t old; /* number of old units from now.start on */
    lzs_stuck_stretch *found;
    size_t capacity, n_found;
} scorer;

static void end_stretch(scorer *s) {
    if (s->now.score >= s->rules->threshold) {
        if (s->n_found < s->capacity) s->found[s->n_found] = s->now;
        s->n_found++;
    }
    s->score = 0;
    s->now.score = 0;
}

static void count_unit(scorer *s, uint64_t at, bool old) {
    if (old) {
        if (s->score == 0) {
            end_stretch(s);
            s->now.start = at;
            s->old = 0;
        }
        s->score++;
        s->old++;
        if (s->score >= s->now.score) s->now = (lzs_stuck_stretch){s->now.start, at + 1, s->old, s->score};
    } else {
        s->score = s->score > s->rules->weight ? s->score - s->rules->weight : 0;
        /* the score fell by the threshold, which ends the stretch */
        if (s->now.score - s->score >= s->rules->threshold) end_stretch(s);
    }
}

lzs_status lzs_stuck_stretches(const int32_t *ids, size_t n, const lzs_stuck_rules *rules, lzs_stuck_stretch *found,
                               size_t capacity, size_t *n_found) {
    if (!n_found) return LZS_EINVAL;
    *n_found = 0;
    if ((!ids && n) || !rules || (!found && capacity) || n > UINT32_MAX / 2) return LZS_EINVAL;
    if (!rules->threshold || !rules->ngram || rules->min_count < 2 || !rules->window) return LZS_EINVAL;
    if (n < rules->ngram) return LZS_OK;
    ngrams g = {.ids = ids, .rules = rules, .n_heads = 64};
    while (g.n_heads < n) g.n_heads *= 2;
    g.heads = calloc(g.n_heads, sizeof *g.heads);
    g.links = malloc(n * sizeof *g.links);
    g.counts = calloc(n, sizeof *g.counts);
    g.key = lzs_hash_key(g.heads);
    lzs_status status = g.heads && g.links && g.counts ? LZS_OK : LZS_ENOMEM;
    if (status == LZS_OK) {
        scorer s = {.rules = rules, .found = found, .capacity = capacity};
        size_t decided = 0, gram = (size_t)rules->ngram;
        for (size_t end = gram; end <= n; end++) {
            bool old = count_ngram(&g, (uint32_t)end);
            while (decided < (old ? end : end - gram + 1)) count_unit(&s, decided++, old);
        }
        while (decided < n) count_unit(&s, decided++, false);
        end_stretch(&s);
        *n_found = s.n_found;
        if (s.n_found > capacity) status = LZS_ESPACE;
    }
    free(g.heads);
    free(g.links);
    free(g.counts);
    return status;
}
