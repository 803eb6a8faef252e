/* vocabulary.c - the byte strings of all tokens, as a tree of their prefixes, and groups of tokens that are added to a
 * mask at once.
 */
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "../plan/plan.h"
#include "../utf8.h"

typedef struct text {
    const uint8_t *bytes;
    size_t n;
    int32_t token;
} text;

static int by_bytes(const void *a, const void *b) {
    const text *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->bytes, y->bytes, n);
    if (order) return order;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static uint8_t level_of(size_t n) {
    static const size_t levels[LZS_N_SHORT] = LZS_SHORT_LEVELS;
    uint8_t level = 0;
    while (level < LZS_N_SHORT && n > levels[level]) level++;
    return level;
}

static size_t common(const text *a, const text *b) {
    size_t n = 0;
    while (n < a->n && n < b->n && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

/* Makes the nodes of sorted texts. Nodes on the path to the last node are in `open`, because their sizes are not known
 * yet. */
static bool make_nodes(lzs_vocabulary *v, const text *texts, size_t n) {
    size_t n_nodes = 0;
    for (size_t i = 0; i < n; i++) n_nodes += texts[i].n - (i ? common(&texts[i - 1], &texts[i]) : 0);
    size_t *open = malloc(((size_t)v->longest + 1) * sizeof *open);
    v->nodes = malloc((n_nodes ? n_nodes : 1) * sizeof *v->nodes);
    if (!open || !v->nodes || n_nodes > UINT32_MAX) {
        free(open);
        return false;
    }
    for (size_t i = 0; i <= n; i++) {
        size_t kept = i && i < n ? common(&texts[i - 1], &texts[i]) : 0;
        for (size_t depth = i ? texts[i - 1].n : 0; depth > kept; depth--) {
            lzs_trie_node *node = &v->nodes[open[depth]];
            node->size = (uint32_t)(v->n_nodes - open[depth]);
            lzs_trie_node *parent = depth > 1 ? &v->nodes[open[depth - 1]] : NULL;
            if (parent && parent->level < node->level) parent->level = node->level;
        }
        if (i == n) break;
        for (size_t depth = kept + 1; depth <= texts[i].n; depth++) {
            open[depth] = v->n_nodes;
            v->nodes[v->n_nodes++] = (lzs_trie_node){.token = -1, .depth = (uint16_t)depth,
                                                     .byte = texts[i].bytes[depth - 1]};
        }
        lzs_trie_node *end = &v->nodes[open[texts[i].n]];
        /* if the previous text has the same bytes, links the token into the list of equal tokens */
        if (end->token >= 0) {
            v->same[texts[i].token] = v->same[end->token];
            v->same[end->token] = texts[i].token;
        } else {
            end->token = texts[i].token;
        }
        uint8_t level = level_of(texts[i].n);
        if (end->level < level) end->level = level & 7;
    }
    free(open);
    return true;
}

static void find_roots(lzs_vocabulary *v) {
    for (int byte = 0; byte < 256; byte++) v->roots[byte] = LZS_NO_ROOT;
    for (size_t i = 0; i < v->n_nodes; i += v->nodes[i].size) v->roots[v->nodes[i].byte] = (uint32_t)i;
}

/* Makes the masks and lists of text tokens, and the list of tokens that end a text. */
static bool sort_kinds(lzs_vocabulary *v, const uint8_t *kinds, text *texts) {
    for (int32_t token = 0; token < v->n_vocab; token++) {
        size_t n = v->begins[token + 1] - v->begins[token];
        if (kinds[token] == LZS_TOKEN_END) {
            v->ends[v->n_ends++] = token;
            v->is_end[token] = true;
        }
        if (kinds[token] != LZS_TOKEN_TEXT || !n) continue;
        if (n > UINT16_MAX) return false;
        const uint8_t *bytes = v->bytes + v->begins[token];
        texts[v->n_text++] = (text){bytes, n, token};
        if (n == 1) v->single[bytes[0]] = true;
        if (n > v->longest) v->longest = (uint32_t)n;
        v->texts[token / 32] |= UINT32_C(1) << (token % 32);
        for (int level = level_of(n); level < LZS_N_SHORT; level++) {
            v->short_words[level][token / 32] |= UINT32_C(1) << (token % 32);
        }
    }
    return true;
}

/* ---- tokens by the kinds of their bytes ---- */

/* Each string has the characters of one kind: the visible ASCII characters, the space and the line feed. A character
 * that patterns often name has a kind of its own. */
static const char *const SEEN[] = {
    "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "0", "123456789", " ", "_", "-", ".", ",", ":",
    "+", "%", "@", "/", "\"", "\\", "'", "()", "[]", "{}", "<=>", "!?;", "#$&*^`|~", "\n",
};
enum { N_SEEN = sizeof SEEN / sizeof *SEEN, CONTROLS = N_SEEN, FOLLOWING, LEADING, N_KINDS };
enum { MIN_WIDE = 16 }; /* least number of children of a wide node; with fewer children, a list saves no time */

_Static_assert((int)N_KINDS == (int)LZS_KINDS, "kinds are numbered below LZS_KINDS");

static void find_kinds(lzs_vocabulary *v) {
    for (int byte = 0; byte < 256; byte++) {
        v->kind_of[byte] = byte < 0x80 ? CONTROLS : byte < 0xC0 ? FOLLOWING : LEADING;
    }
    for (uint8_t kind = 0; kind < N_SEEN; kind++) {
        for (const char *c = SEEN[kind]; *c; c++) v->kind_of[(uint8_t)*c] = kind;
    }
}

/* Sets `kinds` and `wide` of each node. Counts the wide nodes and their children. */
static void mark_nodes(lzs_vocabulary *v, size_t *n_wide, size_t *n_children) {
    *n_wide = *n_children = 0;
    for (size_t i = v->n_nodes; i > 0; i--) {
        lzs_trie_node *node = &v->nodes[i - 1], *end = node + node->size;
        uint32_t kinds = 0;
        size_t children = 0;
        for (const lzs_trie_node *child = node + 1; child < end; child += child->size) {
            kinds |= child->kinds | UINT32_C(1) << v->kind_of[child->byte];
            children++;
        }
        node->kinds = kinds;
        node->wide = children >= MIN_WIDE;
        *n_wide += node->wide;
        if (node->wide) *n_children += children;
    }
}

static bool list_wide(lzs_vocabulary *v, size_t n_wide, size_t n_children) {
    v->wide = malloc((n_wide ? n_wide : 1) * sizeof *v->wide);
    v->wide_begins = malloc((n_wide + 1) * sizeof *v->wide_begins);
    v->wide_bytes = malloc(n_children ? n_children : 1);
    v->wide_nodes = malloc((n_children ? n_children : 1) * sizeof *v->wide_nodes);
    if (!v->wide || !v->wide_begins || !v->wide_bytes || !v->wide_nodes) return false;
    uint32_t n = 0;
    for (size_t i = 0; i < v->n_nodes; i++) {
        const lzs_trie_node *node = &v->nodes[i], *end = node + node->size;
        if (!node->wide) continue;
        v->wide[v->n_wide] = (uint32_t)i;
        v->wide_begins[v->n_wide++] = n;
        for (const lzs_trie_node *child = node + 1; child < end; child += child->size) {
            v->wide_bytes[n] = child->byte;
            v->wide_nodes[n++] = (uint32_t)(child - v->nodes);
        }
    }
    v->wide_begins[v->n_wide] = n;
    return true;
}

typedef struct kinds_of_token {
    uint32_t kinds, n_bytes;
    int32_t token;
} kinds_of_token;

static int by_kinds(const void *a, const void *b) {
    const kinds_of_token *x = a, *y = b;
    if (x->kinds != y->kinds) return x->kinds < y->kinds ? -1 : 1;
    if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

/* Groups the text tokens by the set of the kinds of their bytes. */
static bool group_tokens(lzs_vocabulary *v) {
    size_t n = v->n_text ? v->n_text : 1;
    kinds_of_token *all = malloc(n * sizeof *all);
    v->grouped = malloc(n * sizeof *v->grouped);
    v->grouped_bytes = malloc(n * sizeof *v->grouped_bytes);
    if (!all || !v->grouped || !v->grouped_bytes) {
        free(all);
        return false;
    }
    size_t n_listed = 0;
    for (int32_t token = 0; token < v->n_vocab; token++) {
        if (!lzs_bit(v->texts, token)) continue;
        kinds_of_token *k = &all[n_listed++];
        *k = (kinds_of_token){0, (uint32_t)(v->begins[token + 1] - v->begins[token]), token};
        for (size_t at = v->begins[token]; at < v->begins[token +
                                                          1]; at++) k->kinds |= UINT32_C(1) << v->kind_of[v->bytes[at]];
    }
    if (v->n_text) qsort(all, v->n_text, sizeof *all, by_kinds);
    for (size_t i = 0; i < v->n_text; i++) v->n_groups += !i || all[i].kinds != all[i - 1].kinds;
    v->group_kinds = malloc((v->n_groups ? v->n_groups : 1) * sizeof *v->group_kinds);
    v->group_begins = malloc((v->n_groups + 1) * sizeof *v->group_begins);
    bool ok = v->group_kinds && v->group_begins;
    size_t group = 0;
    for (size_t i = 0; i < v->n_text && ok; i++) {
        v->grouped[i] = all[i].token;
        v->grouped_bytes[i] = (uint16_t)all[i].n_bytes;
        if (i && all[i].kinds == all[i - 1].kinds) continue;
        v->group_kinds[group] = all[i].kinds;
        v->group_begins[group++] = (uint32_t)i;
    }
    if (ok) v->group_begins[group] = (uint32_t)v->n_text;
    free(all);
    return ok;
}

static lzs_status init_kinds(lzs_vocabulary *v) {
    size_t n_wide, n_children;
    find_kinds(v);
    mark_nodes(v, &n_wide, &n_children);
    return list_wide(v, n_wide, n_children) && group_tokens(v) ? LZS_OK : LZS_ENOMEM;
}

size_t lzs_wide_number(const lzs_vocabulary *v, uint32_t node) {
    size_t low = 0, high = v->n_wide;
    while (high - low > 1) { /* the index of the node is in [low, high) */
        size_t middle = (low + high) / 2;
        if (v->wide[middle] <= node) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- inner tokens ---- */

static const lzs_lead *lead_of(uint8_t byte) {
    for (size_t i = 0; i < LZS_N_LEADS; i++) {
        if (byte >= LZS_LEADS[i].first && byte <= LZS_LEADS[i].last) return &LZS_LEADS[i];
    }
    return NULL;
}

/* Returns the number of characters of an inner token, or 0 for any other token. The last character may be
 * incomplete. */
static uint32_t characters(const uint8_t *bytes, size_t n) {
    uint32_t count = 0;
    for (size_t i = 0; i < n; count++) {
        uint8_t byte = bytes[i++];
        if (lzs_is_plain(byte)) continue;
        const lzs_lead *l = lead_of(byte);
        if (!l) return 0;
        for (uint8_t k = 0; k < l->more && i < n; k++, i++) {
            uint8_t first = k ? 0x80 : l->second_first, last = k ? 0xBF : l->second_last;
            if (bytes[i] < first || bytes[i] > last) return 0;
        }
    }
    return count;
}

typedef struct counted {
    int32_t token;
    uint32_t characters;
} counted;

static int by_characters(const void *a, const void *b) {
    const counted *x = a, *y = b;
    if (x->characters != y->characters) return x->characters < y->characters ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static lzs_status sort_inner(lzs_vocabulary *v, uint32_t *counts) {
    size_t n = 0, n_words = v->n_words;
    for (int32_t token = 0; token < v->n_vocab; token++) {
        if (!lzs_bit(v->texts, token)) continue;
        size_t begin = v->begins[token];
        uint32_t count = counts[token] = characters(v->bytes + begin, v->begins[token + 1] - begin);
        n += count > LZS_INNER_LEVELS;
        for (uint32_t most = count; count && most <= LZS_INNER_LEVELS; most++) {
            v->inner_words[most * n_words + (size_t)token / 32] |= UINT32_C(1) << (token % 32);
        }
        if (count) v->inner_words[token / 32] |= UINT32_C(1) << (token % 32); /* mask 0 has all inner tokens */
    }
    counted *longer = malloc((n ? n : 1) * sizeof *longer);
    if (!longer) return LZS_ENOMEM;
    for (int32_t token = 0; token < v->n_vocab; token++) {
        if (counts[token] > LZS_INNER_LEVELS) longer[v->n_inner_long++] = (counted){token, counts[token]};
    }
    if (n) qsort(longer, n, sizeof *longer, by_characters);
    v->inner_long = malloc((n ? n : 1) * sizeof *v->inner_long);
    v->inner_counts = malloc((n ? n : 1) * sizeof *v->inner_counts);
    for (size_t i = 0; i < n && v->inner_long && v->inner_counts; i++) {
        v->inner_long[i] = longer[i].token;
        v->inner_counts[i] = longer[i].characters;
    }
    free(longer);
    return v->inner_long && v->inner_counts ? LZS_OK : LZS_ENOMEM;
}

static void mark_inner(lzs_vocabulary *v, const uint32_t *counts) {
    for (size_t i = v->n_nodes; i > 0; i--) {
        lzs_trie_node *node = &v->nodes[i - 1], *child = node + 1, *end = node + node->size;
        bool inner = node->token < 0 || counts[node->token] > 0;
        for (; child < end; child += child->size) inner = inner && child->inner;
        node->inner = inner;
    }
}

static lzs_status init_inner(lzs_vocabulary *v) {
    uint32_t *counts = calloc((size_t)v->n_vocab, sizeof *counts);
    v->inner_words = calloc((1 + (size_t)LZS_INNER_LEVELS) * v->n_words, sizeof *v->inner_words);
    lzs_status status = counts && v->inner_words ? sort_inner(v, counts) : LZS_ENOMEM;
    if (status == LZS_OK) mark_inner(v, counts);
    free(counts);
    return status;
}

void lzs_inner_write(const lzs_vocabulary *v, int32_t most, uint32_t *words) {
    if (most == 0) {
        memset(words, 0, v->n_words * sizeof *words);
        return;
    }
    bool some = most > 0 && most <= LZS_INNER_LEVELS;
    memcpy(words, v->inner_words + (some ? (size_t)most : 0) * v->n_words, v->n_words * sizeof *words);
    if (some || most == LZS_INNER_ALL) return;
    for (size_t i = v->n_inner_long; i > 0 && v->inner_counts[i - 1] > (uint32_t)most; i--) {
        int32_t token = v->inner_long[i - 1];
        words[token / 32] &= ~(UINT32_C(1) << (token % 32));
    }
}

/* ---- life ---- */

static lzs_status fill(lzs_vocabulary *v, const uint8_t *bytes, const uint64_t *ends, const uint8_t *kinds) {
    size_t n = (size_t)v->n_vocab, n_bytes = (size_t)ends[n - 1];
    v->bytes = malloc(n_bytes ? n_bytes : 1);
    v->begins = calloc(n + 1, sizeof *v->begins);
    v->ends = malloc(n * sizeof *v->ends);
    v->is_end = calloc(n, sizeof *v->is_end);
    v->same = malloc(n * sizeof *v->same);
    v->texts = calloc(v->n_words, sizeof *v->texts);
    bool ok = v->bytes && v->begins && v->ends && v->is_end && v->same && v->texts;
    for (int level = 0; level < LZS_N_SHORT; level++) {
        v->short_words[level] = calloc(v->n_words, sizeof *v->short_words[level]);
        ok &= v->short_words[level] != NULL;
    }
    text *texts = malloc(n * sizeof *texts);
    if (!ok || !texts) {
        free(texts);
        return LZS_ENOMEM;
    }
    if (n_bytes) memcpy(v->bytes, bytes, n_bytes);
    for (size_t i = 0; i < n; i++) {
        v->begins[i + 1] = (size_t)ends[i];
        v->same[i] = -1;
    }
    lzs_status status = sort_kinds(v, kinds, texts) ? LZS_OK : LZS_EINVAL;
    if (status == LZS_OK && v->n_text) qsort(texts, v->n_text, sizeof *texts, by_bytes);
    if (status == LZS_OK && !make_nodes(v, texts, v->n_text)) status = LZS_ENOMEM;
    free(texts);
    find_roots(v);
    if (status == LZS_OK) status = init_inner(v);
    return status == LZS_OK ? init_kinds(v) : status;
}

lzs_status lzs_vocabulary_new(int32_t n_vocab, const uint8_t *bytes, const uint64_t *ends, const uint8_t *kinds,
                              lzs_vocabulary **vocabulary) {
    *vocabulary = NULL;
    if (n_vocab < 1 || n_vocab > LZS_MAX_VOCAB || !ends || !kinds || (!bytes && ends[n_vocab - 1])) return LZS_EINVAL;
    bool has_end = false;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (kinds[i] > LZS_TOKEN_END || ends[i] > SIZE_MAX / 2 || (i && ends[i] < ends[i - 1])) return LZS_EINVAL;
        has_end |= kinds[i] == LZS_TOKEN_END;
    }
    if (!has_end) return LZS_EINVAL;
    lzs_vocabulary *v = calloc(1, sizeof *v);
    if (!v) return LZS_ENOMEM;
    v->n_vocab = n_vocab;
    v->n_words = lzs_mask_words(n_vocab);
    v->longest = 1;
    lzs_status status = fill(v, bytes, ends, kinds);
    if (status != LZS_OK) {
        lzs_vocabulary_free(v);
        return status;
    }
    *vocabulary = v;
    return LZS_OK;
}

void lzs_vocabulary_free(lzs_vocabulary *v) {
    if (!v) return;
    free(v->bytes);
    free(v->begins);
    free(v->nodes);
    free(v->same);
    free(v->ends);
    free(v->is_end);
    free(v->texts);
    for (int level = 0; level < LZS_N_SHORT; level++) free(v->short_words[level]);
    free(v->inner_words);
    free(v->inner_long);
    free(v->inner_counts);
    free(v->wide);
    free(v->wide_begins);
    free(v->wide_bytes);
    free(v->wide_nodes);
    free(v->grouped);
    free(v->grouped_bytes);
    free(v->group_kinds);
    free(v->group_begins);
    free(v);
}

size_t lzs_vocabulary_memory(const lzs_vocabulary *v) {
    size_t n = (size_t)v->n_vocab;
    size_t inner = (1 + (size_t)LZS_INNER_LEVELS) * v->n_words * sizeof *v->inner_words +
                   v->n_inner_long * (sizeof *v->inner_long + sizeof *v->inner_counts);
    size_t wide = v->n_wide * sizeof *v->wide + (v->n_wide + 1) * sizeof *v->wide_begins +
                  v->wide_begins[v->n_wide] * (sizeof *v->wide_bytes + sizeof *v->wide_nodes);
    size_t groups = v->n_text * (sizeof *v->grouped + sizeof *v->grouped_bytes) + v->n_groups * sizeof *v->group_kinds +
                    (v->n_groups + 1) * sizeof *v->group_begins;
    return sizeof *v + inner + wide + groups + v->begins[n] + (n + 1) * sizeof *v->begins +
           n * (sizeof *v->ends + sizeof *v->is_end + sizeof *v->same) + (1 +
                                                                          LZS_N_SHORT) * v->n_words * sizeof *v->texts +
           v->n_nodes * sizeof *v->nodes;
}
