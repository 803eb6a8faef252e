/* vocabulary.c - the byte strings of all tokens, as a tree of their beginnings. */
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "../plan/plan.h"
#include "inner.h"
#include "kinds.h"

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

/* The nodes of sorted texts. The ones on the way to the last node are open: their sizes are not known yet. */
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
            v->nodes[v->n_nodes++] = (lzs_trie_node){.token = -1, .depth = (uint16_t)depth, .byte = texts[i].bytes[depth - 1]};
        }
        lzs_trie_node *end = &v->nodes[open[texts[i].n]];
        if (end->token >= 0) { /* the same bytes as the text before, which may be one of several */
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

/* Masks and lists of what the tokens are. */
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
    if (status == LZS_OK) status = lzs_inner_init(v);
    return status == LZS_OK ? lzs_kinds_init(v) : status;
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
    lzs_inner_free(v);
    lzs_kinds_free(v);
    free(v);
}

size_t lzs_vocabulary_memory(const lzs_vocabulary *v) {
    size_t n = (size_t)v->n_vocab;
    return sizeof *v + lzs_inner_memory(v) + lzs_kinds_memory(v) + v->begins[n] + (n + 1) * sizeof *v->begins +
           n * (sizeof *v->ends + sizeof *v->is_end + sizeof *v->same) + (1 + LZS_N_SHORT) * v->n_words * sizeof *v->texts +
           v->n_nodes * sizeof *v->nodes;
}
