/* words.c - splits a text into words or lines, and numbers the distinct ones.
 *
 * White space is that of Python's str.split: ASCII's, the control codes 1C to 1F, and Unicode's, whose characters have
 * two or three bytes in UTF-8. A table of bytes says which of them are white space and which may begin a longer one, so
 * that 64 bytes of ordinary text are classified without a branch. Words begin and end where the bits of such a block
 * change.
 *
 * Distinct spans are numbered through a hash table. A slot is compared by its bytes, never by its hash alone.
 */
#include "text.h"

#include <stdlib.h>

/* ---- white space ---- */

enum { OTHER, SPACE, MAYBE }; /* MAYBE is the first byte of a longer character that may be white space */

static const uint8_t byte_class[256] = {
    ['\t'] = SPACE, ['\n'] = SPACE, ['\v'] = SPACE, ['\f'] = SPACE, ['\r'] = SPACE, [0x1C] = SPACE, [0x1D] = SPACE,
    [0x1E] = SPACE, [0x1F] = SPACE, [' '] = SPACE, [0xC2] = MAYBE, [0xE1] = MAYBE, [0xE2] = MAYBE, [0xE3] = MAYBE,
};

/* Returns how many bytes the white space has with which a text of n > 0 bytes begins, or 0 if it begins with none. */
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

/* Returns how many bytes the white space has with which a text ends, or 0. */
static size_t space_before(const uint8_t *text, size_t n) {
    for (size_t width = 1; width <= 3 && width <= n; width++) {
        if (space_at(text + n - width, width) == width) return width;
    }
    return 0;
}

lzs_span lzs_text_strip(const uint8_t *text, lzs_span span) {
    size_t width;
    while (span.start < span.end && (width = space_at(text + span.start, span.end - span.start))) {
        span.start += (uint32_t)width;
    }
    while (span.start < span.end && (width = space_before(text + span.start, span.end - span.start))) {
        span.end -= (uint32_t)width;
    }
    return span;
}

/* ---- words and lines ---- */

#define BLOCK 64

/* Returns a bit for each of the at most BLOCK bytes from `at` on, which is set if the byte belongs to white space.
 * *space_end is the end of the last white space of several bytes, which may lie in the next block. */
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

/* Finds words by their edges, which are the places where the bits of white space change. */
static size_t split_words(const uint8_t *text, size_t n, lzs_span *spans, size_t capacity) {
    size_t count = 0, space_end = 0;
    uint32_t start = 0;
    uint64_t last = 1; /* as if white space preceded the text */
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
        if (count < capacity) spans[count] = lzs_text_strip(text, (lzs_span){(uint32_t)at, (uint32_t)end});
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

/* ---- hash table of indices ---- */

#define LEAST_SLOTS 64

lzs_status lzs_text_table_init(table *t, size_t expected) {
    *t = (table){.n_slots = LEAST_SLOTS};
    while (t->n_slots < expected) t->n_slots *= 2;
    t->slots = calloc(t->n_slots, sizeof *t->slots);
    uint64_t heap = (uint64_t)(uintptr_t)t->slots, stack = (uint64_t)(uintptr_t)&t;
    t->seed = mix(heap, stack << 17);
    return t->slots ? LZS_OK : LZS_ENOMEM;
}

void lzs_text_table_clear(table *t) {
    memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    t->used = 0;
}

lzs_status lzs_text_table_add(table *t, slot *free_slot, uint32_t tag, size_t index) {
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

/* ---- numbers of spans ---- */

/* Returns the hash of a span. A span of fewer than 8 bytes, as most words are, is loaded at once where 8 bytes of text
 * follow its start. */
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
    if (!text) text = (const uint8_t *)""; /* C forbids memcpy and memcmp of NULL, even for empty spans */
    table t;
    lzs_status status = lzs_text_table_init(&t, n_spans);
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
            status = lzs_text_table_add(&t, found, tag, i);
        }
    }
    *n_distinct = t.used;
    free(t.slots);
    return status;
}
