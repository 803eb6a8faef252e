/* words.c - splits a text into words or lines, and numbers the distinct ones.
 *
 * White space is the white space of Python's str.split: ASCII characters, the control codes 1C to 1F, and Unicode
 * characters of two or three bytes in UTF-8. A table says which bytes are white space and which may begin a longer
 * white-space character. So 64 bytes of ordinary text are turned into 64 bits without a branch. Words begin and end
 * where neighbouring bits differ.
 *
 * Distinct spans are numbered through a hash table. Spans with equal hashes are also compared byte by byte.
 */
#include "text.h"

/* ---- white space ---- */

enum { OTHER, SPACE, MAYBE }; /* MAYBE is for a byte that may begin a white-space character of several bytes */

static const uint8_t byte_class[256] = {
    ['\t'] = SPACE, ['\n'] = SPACE, ['\v'] = SPACE, ['\f'] = SPACE, ['\r'] = SPACE, [0x1C] = SPACE, [0x1D] = SPACE,
    [0x1E] = SPACE, [0x1F] = SPACE, [' '] = SPACE, [0xC2] = MAYBE, [0xE1] = MAYBE, [0xE2] = MAYBE, [0xE3] = MAYBE,
};

/* If a text of n > 0 bytes begins with a white-space character, returns the character's number of bytes, else 0. */
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

/* If a text ends with a white-space character, returns the character's number of bytes, else 0. */
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

/* Whether a byte of a block may begin white space of several bytes, as byte_class says. Compilers turn this function
 * and the next one into instructions on many bytes at once. */
static bool may_have_wide_space(const uint8_t *block) {
    uint8_t some = 0;
    for (size_t i = 0; i < BLOCK; i++) some |= (block[i] == 0xC2) | ((uint8_t)(block[i] - 0xE1) < 3);
    return some;
}

/* Returns a bit for each byte of a block. The bit is set if the byte is white space by itself. */
static uint64_t ascii_space_bits(const uint8_t *block) {
    uint8_t flags[BLOCK];
    uint64_t bits = 0, eight;
    for (size_t i = 0; i < BLOCK; i++) {
        flags[i] = (block[i] == ' ') | ((uint8_t)(block[i] - '\t') < 5) | ((uint8_t)(block[i] - 0x1C) < 4);
    }
    for (size_t i = 0; i < BLOCK; i += 8) { /* the product moves the flag of byte k (0 to 7) to bit 56 + k */
        eight = 0;
        for (size_t k = 0; k < 8; k++) eight |= (uint64_t)flags[i + k] << 8 * k;
        bits |= (eight * UINT64_C(0x0102040810204080) >> 56) << i;
    }
    return bits;
}

/* Returns a bit for each of up to BLOCK bytes from `at` on. The bit is set if the byte belongs to white space.
 * *space_end is the end of the last white-space character of several bytes, which may lie in the next block. */
static uint64_t space_bits(const uint8_t *text, size_t n, size_t at, size_t *space_end) {
    size_t count = n - at < BLOCK ? n - at : BLOCK;
    if (count == BLOCK && at >= *space_end && !may_have_wide_space(text + at)) return ascii_space_bits(text + at);
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        size_t width = byte_class[text[at + i]] == MAYBE ? space_at(text + at + i, n - at - i) : 0;
        if (width) *space_end = at + i + width;
        bits |= (uint64_t)(byte_class[text[at + i]] == SPACE || at + i < *space_end) << i;
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

/* ---- numbers of spans ---- */

/* for fewer spans than this, the table has two slots for each span from the start, so few spans collide */
#define SMALL 65536

/* The part of a span that is compared first. `length` is the span's number of bytes. `word` has the span's bytes if
 * they are fewer than 8 (as in most words) and 8 bytes can be loaded from the start of the span. Else `word` is 0. */
typedef struct key {
    uint64_t word;
    size_t length;
    bool is_short;
} key;

static inline key key_of(const uint8_t *text, size_t n, lzs_span span) {
    static const uint8_t keep[16] = {255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t word = 0, mask;
    size_t length = span.end - span.start;
    bool is_short = length < sizeof word && n - span.start >= sizeof word;
    if (is_short) {
        memcpy(&word, text + span.start, sizeof word);
        memcpy(&mask, keep + sizeof mask - length, sizeof mask);
        word &= mask;
    }
    return (key){word, length, is_short};
}

/* Whether two spans have the same bytes. `key` is the key of the first span. */
static inline bool are_equal(const uint8_t *text, size_t n, lzs_span span, key of_span, lzs_span other) {
    if (other.end - other.start != of_span.length) return false;
    if (of_span.is_short && n - other.start >= sizeof of_span.word) return key_of(text, n, other).word == of_span.word;
    return !memcmp(text + other.start, text + span.start, of_span.length);
}

lzs_status lzs_intern(const uint8_t *text, size_t n, const lzs_span *spans, size_t n_spans, int32_t *ids,
                      size_t *n_distinct) {
    if ((!text && n) || ((!spans || !ids) && n_spans) || !n_distinct || n_spans > INT32_MAX) return LZS_EINVAL;
    *n_distinct = 0;
    if (!text) text = (const uint8_t *)""; /* C forbids memcpy and memcmp of NULL, even for empty spans */
    lzs_table t;
    lzs_status status = lzs_table_init(&t, n_spans < SMALL ? 2 * n_spans : n_spans);
    for (size_t i = 0; i < n_spans && status == LZS_OK; i++) {
        lzs_span span = spans[i];
        if (span.start > span.end || span.end > n) {
            status = LZS_EINVAL;
            break;
        }
        key of_span = key_of(text, n, span);
        uint32_t tag = of_span.is_short ? (uint32_t)lzs_fold(of_span.length ^ of_span.word, t.key)
                                        : lzs_hash_bytes(text + span.start, of_span.length, t.key);
        lzs_slot *found = NULL;
        do found = lzs_table_next(&t, found, tag);
        while (found->index && !are_equal(text, n, span, of_span, spans[found->index - 1]));
        if (found->index) {
            ids[i] = ids[found->index - 1];
        } else {
            ids[i] = (int32_t)t.used;
            status = lzs_table_add(&t, found, tag, i);
        }
    }
    *n_distinct = t.used;
    free(t.slots);
    return status;
}
