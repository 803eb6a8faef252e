/* kinds.c - the bytes of tokens by kind. */
#include "kinds.h"

#include <stdlib.h>
#include <string.h>

/* The kinds of ASCII characters that are seen: each string is one. Marks that patterns name often are a kind by themselves. */
static const char *const SEEN[] = {
    "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "0", "123456789", " ", "_", "-", ".", ",", ":", "+", "%",
    "@", "/", "\"", "\\", "'", "()", "[]", "{}", "<=>", "!?;", "#$&*^`|~", "\n",
};
enum { N_SEEN = sizeof SEEN / sizeof *SEEN, CONTROLS = N_SEEN, FOLLOWING, LEADING, N_KINDS };
enum { MIN_WIDE = 16 }; /* children of a node from which on it pays to look one up */

_Static_assert((int)N_KINDS == (int)LZS_KINDS, "kinds are numbered below LZS_KINDS");

static void find_kinds(lzs_vocabulary *v) {
    for (int byte = 0; byte < 256; byte++) v->kind_of[byte] = byte < 0x80 ? CONTROLS : byte < 0xC0 ? FOLLOWING : LEADING;
    for (uint8_t kind = 0; kind < N_SEEN; kind++) {
        for (const char *c = SEEN[kind]; *c; c++) v->kind_of[(uint8_t)*c] = kind;
    }
}

/* What lies below each node: the kinds of the bytes, and whether it has many children. */
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

/* The tokens that are text, by the set of the kinds of their bytes. */
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
        for (size_t at = v->begins[token]; at < v->begins[token + 1]; at++) k->kinds |= UINT32_C(1) << v->kind_of[v->bytes[at]];
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

lzs_status lzs_kinds_init(lzs_vocabulary *v) {
    size_t n_wide, n_children;
    find_kinds(v);
    mark_nodes(v, &n_wide, &n_children);
    return list_wide(v, n_wide, n_children) && group_tokens(v) ? LZS_OK : LZS_ENOMEM;
}

void lzs_kinds_free(lzs_vocabulary *v) {
    free(v->wide);
    free(v->wide_begins);
    free(v->wide_bytes);
    free(v->wide_nodes);
    free(v->grouped);
    free(v->grouped_bytes);
    free(v->group_kinds);
    free(v->group_begins);
}

size_t lzs_kinds_memory(const lzs_vocabulary *v) {
    size_t n_children = v->wide_begins[v->n_wide];
    return v->n_wide * sizeof *v->wide + (v->n_wide + 1) * sizeof *v->wide_begins +
           n_children * (sizeof *v->wide_bytes + sizeof *v->wide_nodes) + v->n_text * (sizeof *v->grouped + sizeof *v->grouped_bytes) +
           v->n_groups * sizeof *v->group_kinds + (v->n_groups + 1) * sizeof *v->group_begins;
}

size_t lzs_wide_number(const lzs_vocabulary *v, uint32_t node) {
    size_t low = 0, high = v->n_wide;
    while (high - low > 1) { /* the node is one of these */
        size_t middle = (low + high) / 2;
        if (v->wide[middle] <= node) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
