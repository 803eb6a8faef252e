/* stuck.c - finds the stretches of a text that say next to nothing new, with or without a period.
 *
 * The definition of old and new units, and the score, are those of c/state/stuck.c, which finds the same in a text that is
 * being written; here the whole text is there, so that a stretch has an end, too. The n-grams lie in lists by their hash,
 * each from the last one back, and are compared themselves; a walk ends at the (min_count - 1)th equal one, or where the
 * window does. Hashes are seeded by an address of the call, so no text can put all its n-grams into one list.
 */
#include "text.h"

#include <stdlib.h>

typedef struct ngrams {
    const int32_t *ids;
    const lzs_stuck_rules *rules;
    uint32_t *heads; /* where the last n-gram of each list ends, as a number of units; 0: none */
    uint32_t *links; /* (n) the n-gram that ends with unit i: where the one before it in its list ends */
    uint64_t seed;
    size_t n_heads; /* a power of two */
} ngrams;

/* Files the n-gram that ends the first `end` units, and returns whether it is old. */
static bool file_ngram(ngrams *g, uint32_t end) {
    size_t n = (size_t)g->rules->ngram;
    const int32_t *gram = g->ids + end - n;
    uint64_t hash = g->seed, count = 1, first = end > g->rules->window ? end - g->rules->window : 1;
    for (size_t i = 0; i < n; i++) hash = mix(hash, (uint64_t)(uint32_t)gram[i]);
    uint32_t *head = &g->heads[hash & (g->n_heads - 1)];
    for (uint32_t at = *head; at >= first && count < g->rules->min_count; at = g->links[at - 1]) {
        count += memcmp(g->ids + at - n, gram, n * sizeof *gram) == 0;
    }
    g->links[end - 1] = *head;
    *head = end;
    return count == g->rules->min_count;
}

/* The score of a text that is read unit by unit, and the stretch that it counts. */
typedef struct scorer {
    const lzs_stuck_rules *rules;
    lzs_stuck_stretch now; /* up to the highest score so far, which it holds */
    uint64_t score;
    uint64_t old; /* units since now.start, to their last */
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
        if (s->now.score - s->score >= s->rules->threshold) end_stretch(s); /* as far below its peak as makes one */
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
    g.seed = mix((uint64_t)(uintptr_t)g.heads, (uint64_t)(uintptr_t)&g << 17);
    lzs_status status = g.heads && g.links ? LZS_OK : LZS_ENOMEM;
    if (status == LZS_OK) {
        scorer s = {.rules = rules, .found = found, .capacity = capacity};
        size_t decided = 0, gram = (size_t)rules->ngram;
        for (size_t end = gram; end <= n; end++) {
            bool old = file_ngram(&g, (uint32_t)end);
            while (decided < (old ? end : end - gram + 1)) count_unit(&s, decided++, old);
        }
        while (decided < n) count_unit(&s, decided++, false);
        end_stretch(&s);
        *n_found = s.n_found;
        if (s.n_found > capacity) status = LZS_ESPACE;
    }
    free(g.heads);
    free(g.links);
    return status;
}
