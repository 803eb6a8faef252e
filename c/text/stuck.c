/* stuck.c - finds the stretches of a text that say next to nothing new, with or without a period.
 *
 * c/state/stuck.c defines old and new units and the score. It finds such stretches in a text that is being generated.
 * Here the whole text is known, so a stretch also has an end. The first of several equal n-grams stands for all. It
 * lies in a list that its hash chooses, and it counts how many n-grams of the window equal it. So a unit costs the same
 * however often its n-gram occurs.
 */
#include "text.h"

#include <stdlib.h>

#define LATER UINT32_C(0x80000000) /* flag of a link: it names the first equal n-gram, not the next of a list */

/* An n-gram is identified by its end: the number of units of the text up to and including its last unit. */
typedef struct ngrams {
    const int32_t *ids;
    const lzs_stuck_rules *rules;
    uint32_t *heads;  /* the first n-gram of each list, 0: none */
    uint32_t *links;  /* (n) by last unit of an n-gram: the next n-gram of its list, or LATER and the first equal one */
    uint32_t *counts; /* (n) by last unit of a first n-gram: how many n-grams of the window equal it */
    uint64_t key;
    size_t n_heads; /* a power of two */
} ngrams;

/* The first n-gram of the text that equals the n-gram ending at `end`. If there is no earlier one, `end` itself. */
static uint32_t first_of(ngrams *g, uint32_t end) {
    const size_t n = (size_t)g->rules->ngram, n_bytes = n * sizeof *g->ids;
    const int32_t *gram = g->ids + end - n;
    uint32_t *head = &g->heads[lzs_hash_bytes((const uint8_t *)gram, n_bytes, g->key) & (g->n_heads - 1)], at = *head;
    while (at && memcmp(g->ids + at - n, gram, n_bytes)) at = g->links[at - 1];
    g->links[end - 1] = at ? at | LATER : *head;
    if (!at) *head = end;
    return at ? at : end;
}

/* Counts the n-gram that ends at `end`, and returns whether the n-gram is old: its window has min_count of its kind. */
static bool count_ngram(ngrams *g, uint32_t end) {
    const lzs_stuck_rules *rules = g->rules;
    if (end > rules->window && end - rules->window > rules->ngram) { /* an n-gram leaves the window */
        uint32_t last = end - (uint32_t)rules->window - 1, link = g->links[last - 1];
        g->counts[(link & LATER ? link & ~LATER : last) - 1]--;
    }
    return ++g->counts[first_of(g, end) - 1] >= rules->min_count;
}

/* The score of a text that is read unit by unit, and the stretch that the score belongs to. */
typedef struct scorer {
    const lzs_stuck_rules *rules;
    lzs_stuck_stretch now; /* the stretch up to where its score was highest, with that score */
    uint64_t score;
    uint64_t old; /* old units from now.start on */
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
        if (s->now.score - s->score >= s->rules->threshold) end_stretch(s); /* the score fell by what makes a stretch */
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
