/* lzs_metrics.c - words and lines of a text, their ids, and the figures of repetition that need no runs.
 *
 * Equal stretches get equal ids through hash tables that compare what they find, so nothing is counted by its hash
 * alone. Tables start from an address of this call, so that a text cannot be made to fill one slot. An n-gram of words
 * is the pair of its first n - 1 words and its last one, as ids: exact without a hash of its own.
 *
 * Datatrove's duplicate 5- to 10-grams are compared without the spaces between their words ("ab c" is "a bc"), so they
 * are stretches of the joined words. Two such can be equal only where their first 16 bytes come twice from a word on, or
 * 24 and 32 for the longer ones; in ordinary text that is one place in twenty, and only those are looked up.
 *
 * Memory: 16 bytes a distinct word to find it again, and for the figures about 80 bytes a word and 1 a byte, of at most
 * PIECE bytes of text at once. Time: linear, whatever the text: each word is hashed and compared in at most 45 n-grams.
 */
#include <stdlib.h>
#include <string.h>

#include "lzs_internal.h"

#define PIECE ((size_t)4 << 20)
#define LEAST_SLOTS 64

/* ---- characters ---- */

enum { OTHER, SPACE, MAYBE }; /* MAYBE: the first byte of a character of more bytes that may be white space */

static const uint8_t byte_class[256] = {
    ['\t'] = SPACE, ['\n'] = SPACE, ['\v'] = SPACE, ['\f'] = SPACE, ['\r'] = SPACE, [0x1C] = SPACE, [0x1D] = SPACE,
    [0x1E] = SPACE, [0x1F] = SPACE, [' '] = SPACE, [0xC2] = MAYBE, [0xE1] = MAYBE, [0xE2] = MAYBE, [0xE3] = MAYBE,
};

/* Bytes of the white space (that of Python's str.split) at the beginning of a text of n > 0 bytes, 0 when there is none. */
static size_t space_at(const uint8_t *text, size_t n) {
    uint8_t class = byte_class[text[0]];
    if (class != MAYBE) return class == SPACE;
    if (n < 2) return 0;
    if (text[0] == 0xC2) return text[1] == 0x85 || text[1] == 0xA0 ? 2 : 0;
    if (n < 3) return 0;
    uint32_t rest = (uint32_t)text[1] << 8 | text[2];
    bool is_space = text[0] == 0xE1   ? rest == 0x9A80
                    : text[0] == 0xE3 ? rest == 0x8080
                                      : (rest >= 0x8080 && rest <= 0x808A) || rest == 0x80A8 || rest == 0x80A9 ||
                                            rest == 0x80AF || rest == 0x819F;
    return is_space ? 3 : 0;
}

/* Bytes of the white space at the end of a text. */
static size_t space_before(const uint8_t *text, size_t n) {
    for (size_t width = 1; width <= 3 && width <= n; width++) {
        if (space_at(text + n - width, width) == width) return width;
    }
    return 0;
}

static lzs_span stripped(const uint8_t *text, lzs_span span) {
    size_t width;
    while (span.start < span.end && (width = space_at(text + span.start, span.end - span.start))) {
        span.start += (uint32_t)width;
    }
    while (span.start < span.end && (width = space_before(text + span.start, span.end - span.start))) {
        span.end -= (uint32_t)width;
    }
    return span;
}

static uint64_t count_characters(const uint8_t *text, size_t n) {
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) count += (text[i] & 0xC0) != 0x80;
    return count;
}

static uint64_t span_characters(const uint8_t *text, lzs_span span) {
    return count_characters(text + span.start, span.end - span.start);
}

/* ---- words and lines ---- */

#define BLOCK 64

/* White space among the bytes from `at` on, at most BLOCK, a bit each; what begins as white space before *space_end is. */
static uint64_t space_bits(const uint8_t *text, size_t n, size_t at, size_t *space_end) {
    size_t count = n - at < BLOCK ? n - at : BLOCK;
    uint64_t bits = 0;
    bool plain = at >= *space_end;
    for (size_t i = 0; i < count; i++) {
        uint8_t class = byte_class[text[at + i]];
        bits |= (uint64_t)(class == SPACE) << i;
        plain &= class != MAYBE;
    }
    for (size_t i = 0; i < count && !plain; i++) {
        size_t width = byte_class[text[at + i]] == MAYBE ? space_at(text + at + i, n - at - i) : 0;
        if (width) *space_end = at + i + width;
        bits |= (uint64_t)(at + i < *space_end) << i;
    }
    return bits;
}

static int lowest_bit(uint64_t bits) {
#ifdef __GNUC__
    return __builtin_ctzll(bits);
#else
    int i = 0;
    while (!(bits >> i & 1)) i++;
    return i;
#endif
}

/* Words by their edges, the places at which white space begins or ends, found in the bits of a block of text. */
static size_t split_words(const uint8_t *text, size_t n, lzs_span *spans, size_t capacity) {
    size_t count = 0, space_end = 0;
    uint32_t start = 0;
    uint64_t last = 1; /* before the text is white space */
    for (size_t at = 0; at < n; at += BLOCK) {
        uint64_t bits = space_bits(text, n, at, &space_end), edges = bits ^ (bits << 1 | last);
        if (n - at < BLOCK) edges &= (UINT64_C(1) << (n - at)) - 1;
        for (; edges; edges &= edges - 1) {
            uint32_t edge = (uint32_t)at + (uint32_t)lowest_bit(edges);
            last = !last;
            if (last) {
                if (count < capacity) spans[count] = (lzs_span){start, edge};
                count++;
            } else {
                start = edge;
            }
        }
    }
    if (!last) {
        if (count < capacity) spans[count] = (lzs_span){start, (uint32_t)n};
        count++;
    }
    return count;
}

static size_t split_lines(const uint8_t *text, size_t n, lzs_span *spans, size_t capacity) {
    size_t count = 0;
    for (size_t at = 0; at < n; count++) {
        const uint8_t *line_end = memchr(text + at, '\n', n - at);
        size_t end = line_end ? (size_t)(line_end - text) : n;
        if (count < capacity) spans[count] = stripped(text, (lzs_span){(uint32_t)at, (uint32_t)end});
        at = end + 1;
    }
    return count;
}

lzs_status lzs_split(const uint8_t *text, size_t n, int32_t kind, lzs_span *spans, size_t capacity, size_t *n_spans) {
    if (!n_spans) return LZS_EINVAL;
    *n_spans = 0;
    if ((!text && n) || (!spans && capacity) || n > UINT32_MAX) return LZS_EINVAL;
    if (kind != LZS_SPLIT_WORDS && kind != LZS_SPLIT_LINES) return LZS_EINVAL;
    *n_spans = kind == LZS_SPLIT_WORDS ? split_words(text, n, spans, capacity) : split_lines(text, n, spans, capacity);
    return *n_spans > capacity ? LZS_ESPACE : LZS_OK;
}

/* ---- hash tables ---- */

typedef struct slot {
    uint32_t tag;   /* the hash; its low bits are the slot's number, when that is free */
    uint32_t index; /* of what is there, from 1; 0: free */
} slot;

typedef struct table {
    slot *slots;
    size_t n_slots, used; /* n_slots: a power of two, at least twice the used ones */
    uint64_t seed;
} table;

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

/* An empty table that need not grow for half of `expected` indices, as many as are distinct in ordinary texts. */
static lzs_status table_init(table *t, size_t expected) {
    *t = (table){.n_slots = LEAST_SLOTS};
    while (t->n_slots < expected) t->n_slots *= 2;
    t->slots = calloc(t->n_slots, sizeof *t->slots);
    uint64_t heap = (uint64_t)(uintptr_t)t->slots, stack = (uint64_t)(uintptr_t)&t;
    t->seed = mix(heap, stack << 17);
    return t->slots ? LZS_OK : LZS_ENOMEM;
}

static void table_clear(table *t) {
    memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    t->used = 0;
}

/* Puts an index into the free slot that a search ended at. */
static lzs_status table_add(table *t, slot *free_slot, uint32_t tag, size_t index) {
    *free_slot = (slot){tag, (uint32_t)index + 1};
    if (++t->used <= t->n_slots / 2) return LZS_OK;
    size_t n_slots = 2 * t->n_slots;
    slot *slots = n_slots > SIZE_MAX / sizeof *slots / 4 ? NULL : calloc(n_slots, sizeof *slots);
    if (!slots) return LZS_ENOMEM;
    for (slot *old = t->slots; old < t->slots + t->n_slots; old++) {
        if (!old->index) continue;
        size_t at = old->tag & (n_slots - 1);
        while (slots[at].index) at = (at + 1) & (n_slots - 1);
        slots[at] = *old;
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return LZS_OK;
}

/* The next slot from a search's last one on (NULL: the first) that is free or has this tag. */
static slot *table_next(const table *t, slot *last, uint32_t tag) {
    size_t mask = t->n_slots - 1, at = last ? (size_t)(last - t->slots + 1) & mask : tag & mask;
    while (t->slots[at].index && t->slots[at].tag != tag) at = (at + 1) & mask;
    return &t->slots[at];
}

/* ---- ids of spans ---- */

static uint32_t hash_bytes(const uint8_t *bytes, size_t n, uint64_t seed) {
    uint64_t hash = seed ^ n, word;
    size_t at = 0;
    for (; n - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = mix(hash, word);
    }
    if (at == n && n) return (uint32_t)hash;
    word = 0;
    memcpy(&word, bytes + at, n - at);
    return (uint32_t)mix(hash, word);
}

/* The hash of a span; a short one, as most words are, that is not at the text's end is loaded at once. */
static uint32_t hash_span(const uint8_t *text, size_t n, lzs_span span, uint64_t seed) {
    static const uint8_t keep[16] = {255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t word, mask;
    size_t length = span.end - span.start;
    if (length >= sizeof word || n - span.start < sizeof word) return hash_bytes(text + span.start, length, seed);
    memcpy(&word, text + span.start, sizeof word);
    memcpy(&mask, keep + sizeof mask - length, sizeof mask);
    return (uint32_t)mix(seed ^ length, word & mask);
}

lzs_status lzs_intern(const uint8_t *text, size_t n, const lzs_span *spans, size_t n_spans, int32_t *ids,
                      size_t *n_distinct) {
    if ((!text && n) || ((!spans || !ids) && n_spans) || !n_distinct || n_spans > INT32_MAX) return LZS_EINVAL;
    *n_distinct = 0;
    table t;
    lzs_status status = table_init(&t, n_spans);
    for (size_t i = 0; i < n_spans && status == LZS_OK; i++) {
        lzs_span span = spans[i];
        if (span.start > span.end || span.end > n) {
            status = LZS_EINVAL;
            break;
        }
        size_t length = span.end - span.start;
        uint32_t tag = hash_span(text, n, span, t.seed);
        slot *found = NULL;
        do {
            found = table_next(&t, found, tag);
            if (!found->index) break;
            lzs_span other = spans[found->index - 1];
            if (other.end - other.start == length && !memcmp(text + other.start, text + span.start, length)) break;
        } while (true);
        if (found->index) {
            ids[i] = ids[found->index - 1];
        } else {
            ids[i] = (int32_t)t.used;
            status = table_add(&t, found, tag, i);
        }
    }
    *n_distinct = t.used;
    free(t.slots);
    return status;
}

/* ---- figures ---- */

/* Words first to first + n of the text, and scratch for the figures they give. */
typedef struct piece {
    const uint8_t *text;
    const lzs_span *words;
    const int32_t *ids;
    size_t n;
    void *block;                   /* what the arrays are of */
    int32_t *gram_of;              /* (n_ids) id of the 1-gram of a word's number */
    int32_t *grams;                /* (n) id of the n-gram that starts at each word */
    uint32_t *first, *prefix;      /* (n) by id: the first word of an n-gram, the id of its first n - 1 words */
    uint32_t *counts, *new_counts; /* (n) by id: how often an n-gram comes */
    uint64_t *bits;                /* (n_bits / 32) two sets of hashes */
    uint8_t *joined;               /* the words without anything between them */
    uint32_t *joined_at;           /* (n + 1) where they start in it */
    uint32_t *heads;               /* (n) hash of some bytes of it that start with each word */
    uint32_t *listed;              /* (n_listed) words from which on n-grams may come more than once */
    size_t n_ids, n_listed, n_bits; /* n_bits: a power of two, at least 8 a word */
    table table; /* of n-grams */
} piece;

static void piece_free(piece *p) {
    free(p->block);
    free(p->table.slots);
}

/* All arrays are of one block: freed and taken again for each text, it is mapped once (glibc learns the size). */
static lzs_status piece_init(piece *p) {
    size_t n = p->n + 1, n_bytes = 0;
    int32_t last_id = 0;
    for (size_t i = 0; i < p->n; i++) {
        n_bytes += p->words[i].end - p->words[i].start;
        if (p->ids[i] > last_id) last_id = p->ids[i];
    }
    p->n_bits = 64;
    while (p->n_bits / 8 < n) p->n_bits *= 2;
    p->n_ids = (size_t)last_id + 1;
    size_t n_words32 = 8 * n + p->n_ids;
    p->block = malloc(p->n_bits / 4 + n_words32 * sizeof *p->first + n_bytes);
    if (!p->block) return LZS_ENOMEM;
    p->bits = p->block;
    p->grams = (int32_t *)(void *)(p->bits + p->n_bits / 32);
    p->first = (uint32_t *)p->grams + n;
    p->prefix = p->first + n;
    p->counts = p->prefix + n;
    p->new_counts = p->counts + n;
    p->joined_at = p->new_counts + n;
    p->gram_of = (int32_t *)p->joined_at + n;
    p->heads = (uint32_t *)p->gram_of + p->n_ids;
    p->listed = p->heads + n;
    p->joined = (uint8_t *)(p->listed + n);
    return table_init(&p->table, n);
}

/* Elements of what is left between stretches of `least` line ends or more (re.split), and those that came before. */
static lzs_status count_elements(const uint8_t *text, lzs_span within, size_t least, uint64_t *n, uint64_t *n_duplicate,
                                 uint64_t *duplicate_characters) {
    size_t count = 0, capacity = 0;
    lzs_span *spans = NULL;
    lzs_status status = LZS_OK;
    for (size_t from = within.start, at = from; at <= within.end;) {
        const uint8_t *line_end = at < within.end ? memchr(text + at, '\n', within.end - at) : NULL;
        size_t end = line_end ? (size_t)(line_end - text) : within.end, next = end;
        while (next < within.end && text[next] == '\n') next++;
        at = end < within.end ? next : (size_t)within.end + 1;
        if (end < within.end && next - end < least) continue;
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            lzs_span *more = realloc(spans, capacity * sizeof *spans);
            if (!more) {
                free(spans);
                return LZS_ENOMEM;
            }
            spans = more;
        }
        spans[count++] = (lzs_span){(uint32_t)from, (uint32_t)end};
        from = at;
    }
    int32_t *ids = malloc((count + 1) * sizeof *ids), next_id = 0;
    size_t n_distinct;
    if (!ids) status = LZS_ENOMEM;
    if (status == LZS_OK) status = lzs_intern(text, within.end, spans, count, ids, &n_distinct);
    for (size_t i = 0; i < count && status == LZS_OK; i++) {
        if (ids[i] == next_id) {
            next_id++;
        } else {
            *n_duplicate += 1;
            *duplicate_characters += span_characters(text, spans[i]);
        }
    }
    *n += count;
    free(spans);
    free(ids);
    return status;
}

/* Notes that an n-gram starts at word i: one with an id, or a new one with the id *n_distinct, whose first n - 1 words
 * have the id `prefix`. */
static void count_gram(piece *p, size_t i, size_t id, uint32_t prefix, size_t *n_distinct) {
    p->grams[i] = (int32_t)id;
    if (id < *n_distinct) {
        p->new_counts[id]++;
        return;
    }
    p->first[id] = (uint32_t)i;
    p->prefix[id] = prefix;
    p->new_counts[id] = 1;
    *n_distinct = id + 1;
}

static void swap_counts(piece *p) {
    uint32_t *counts = p->counts;
    p->counts = p->new_counts;
    p->new_counts = counts;
}

/* Makes ids of the words of this piece, in order of the first one. */
static void make_unigrams(piece *p, size_t *n_distinct) {
    *n_distinct = 0;
    memset(p->gram_of, 0xFF, p->n_ids * sizeof *p->gram_of);
    for (size_t i = 0; i < p->n; i++) {
        int32_t *id = &p->gram_of[p->ids[i]];
        if (*id < 0) *id = (int32_t)*n_distinct;
        count_gram(p, i, (size_t)*id, 0, n_distinct);
    }
    swap_counts(p);
}

/* Makes ids of the n-grams, n > 1, of those of the (n - 1)-grams and the last words. */
static lzs_status make_grams(piece *p, size_t n, size_t *n_distinct) {
    *n_distinct = 0;
    table_clear(&p->table);
    for (size_t i = 0; i + n <= p->n; i++) {
        int32_t last = p->ids[i + n - 1];
        uint32_t start = (uint32_t)p->grams[i];
        if (p->counts[start] == 1 || p->counts[p->grams[i + 1]] == 1) { /* what has a part that comes once comes once */
            count_gram(p, i, *n_distinct, start, n_distinct);
            continue;
        }
        uint32_t tag = (uint32_t)mix(p->table.seed, (uint64_t)start << 32 | (uint32_t)last);
        slot *found = NULL;
        do {
            found = table_next(&p->table, found, tag);
            if (!found->index) break;
        } while (p->prefix[found->index - 1] != start || p->ids[p->first[found->index - 1] + n - 1] != last);
        size_t id = found->index ? found->index - 1 : *n_distinct;
        count_gram(p, i, id, start, n_distinct);
        lzs_status status = found->index ? LZS_OK : table_add(&p->table, found, tag, id);
        if (status != LZS_OK) return status;
    }
    swap_counts(p);
    return LZS_OK;
}

/* Characters of the n-gram that comes most often, the first of equals, with a space between words, times its count. */
static uint64_t top_characters(const piece *p, size_t n, size_t n_distinct) {
    if (!n_distinct) return 0;
    size_t top = 0;
    for (size_t id = 1; id < n_distinct; id++) {
        if (p->counts[id] > p->counts[top]) top = id;
    }
    uint64_t characters = n - 1;
    for (size_t i = 0; i < n; i++) characters += span_characters(p->text, p->words[p->first[top] + i]);
    return characters * p->counts[top];
}

/* Joins the words and lists all of them. */
static void join_words(piece *p) {
    uint32_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        lzs_span word = p->words[i];
        memcpy(p->joined + at, p->text + word.start, word.end - word.start);
        p->joined_at[i] = at;
        p->listed[i] = (uint32_t)i;
        at += word.end - word.start;
    }
    p->joined_at[p->n] = at;
    p->n_listed = p->n;
}

/* Keeps in the list the words at which an n-gram, or a longer one, may begin that comes more than once: those with less
 * than `head` bytes, and those whose first `head` bytes may come from another listed word on. A first pass notes the
 * hashes that come in `seen`, and those that come again in `twice`, a bit each. */
static void narrow_list(piece *p, size_t n, size_t head) {
    uint64_t *seen = p->bits, *twice = p->bits + p->n_bits / 64;
    memset(p->bits, 0, p->n_bits / 4);
    while (p->n_listed && p->listed[p->n_listed - 1] + n > p->n) p->n_listed--;
    for (size_t k = 0; k < p->n_listed; k++) {
        size_t i = p->listed[k];
        if (p->joined_at[i + n] - p->joined_at[i] < head) continue;
        uint64_t hash = hash_bytes(p->joined + p->joined_at[i], head, p->table.seed) & (p->n_bits - 1);
        uint64_t bit = UINT64_C(1) << hash % 64;
        p->heads[i] = (uint32_t)hash;
        twice[hash / 64] |= seen[hash / 64] & bit;
        seen[hash / 64] |= bit;
    }
    size_t kept = 0;
    for (size_t k = 0; k < p->n_listed; k++) {
        size_t i = p->listed[k];
        bool is_short = p->joined_at[i + n] - p->joined_at[i] < head;
        p->listed[kept] = (uint32_t)i;
        kept += is_short || (twice[p->heads[i] / 64] >> p->heads[i] % 64 & 1);
    }
    p->n_listed = kept;
}

/* Characters of the n-grams, n >= 5, that came before, none of which overlap. */
static lzs_status duplicate_characters(piece *p, size_t n, uint64_t *characters) {
    table *t = &p->table;
    table_clear(t);
    size_t next = 0;
    for (size_t of_list = 0; of_list < p->n_listed && p->listed[of_list] + n <= p->n; of_list++) {
        size_t i = p->listed[of_list];
        if (i < next) continue;
        size_t length = p->joined_at[i + n] - p->joined_at[i];
        const uint8_t *joined = p->joined + p->joined_at[i];
        uint32_t tag = hash_bytes(joined, length, t->seed);
        slot *found = NULL;
        do {
            found = table_next(t, found, tag);
            if (!found->index) break;
            size_t other = found->index - 1;
            if (p->joined_at[other + n] - p->joined_at[other] != length) continue;
            if (!memcmp(p->joined + p->joined_at[other], joined, length)) break;
        } while (true);
        if (found->index) {
            *characters += count_characters(joined, length);
            next = i + n;
        } else {
            lzs_status status = table_add(t, found, tag, i);
            if (status != LZS_OK) return status;
        }
    }
    return LZS_OK;
}

static lzs_status word_figures(piece *p, lzs_figures *figures) {
    for (size_t n = 1; n <= 4; n++) {
        size_t n_distinct;
        if (n == 1) {
            make_unigrams(p, &n_distinct);
        } else {
            lzs_status status = make_grams(p, n, &n_distinct);
            if (status != LZS_OK) return status;
            figures->top_characters[n - 2] += top_characters(p, n, n_distinct);
        }
        figures->ngrams[n - 1] += p->n >= n ? p->n - n + 1 : 0;
        figures->distinct[n - 1] += n_distinct;
    }
    join_words(p);
    free(p->table.slots); /* few n-grams are looked up from here on: a small table is quickly emptied */
    lzs_status status = table_init(&p->table, 0);
    for (size_t n = 5; n <= 10 && status == LZS_OK; n++) {
        if (n % 2) narrow_list(p, n, n < 6 ? 16 : n < 8 ? 24 : 32);
        status = duplicate_characters(p, n, &figures->duplicate_characters[n - 5]);
    }
    return status;
}

lzs_status lzs_text_figures(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                            lzs_figures *figures) {
    if ((!text && n) || ((!words || !ids) && n_words) || !figures || n > UINT32_MAX) return LZS_EINVAL;
    for (size_t i = 0; i < n_words; i++) {
        if (words[i].start > words[i].end || words[i].end > n || (i && words[i].start < words[i - 1].end) || ids[i] < 0 ||
            (size_t)ids[i] >= n_words) {
            return LZS_EINVAL;
        }
    }
    *figures = (lzs_figures){.characters = count_characters(text, n), .words = n_words};
    lzs_status status = LZS_OK;
    for (size_t from = 0, word = 0; from < n && status == LZS_OK;) {
        size_t first = word, to = n;
        while (word < n_words && words[word].end - from <= PIECE) word++;
        if (word < n_words) { /* a longer text is cut after a word */
            if (word == first) word++;
            to = words[word - 1].end;
        }
        lzs_span all = {(uint32_t)from, (uint32_t)to};
        piece p = {.text = text, .words = words + first, .ids = ids + first, .n = word - first};
        status = piece_init(&p);
        if (status == LZS_OK) status = word_figures(&p, figures);
        piece_free(&p);
        if (status == LZS_OK) {
            status = count_elements(text, all, 1, &figures->lines, &figures->duplicate_lines,
                                    &figures->duplicate_line_characters);
        }
        if (status == LZS_OK) {
            status = count_elements(text, stripped(text, all), 2, &figures->paragraphs, &figures->duplicate_paragraphs,
                                    &figures->duplicate_paragraph_characters);
        }
        from = to;
    }
    return status;
}
