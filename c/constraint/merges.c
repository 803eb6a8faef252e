/* merges.c - the rules by which a tokenizer joins tokens, and the pairs of tokens that the tokenizer never writes side
 * by side.
 *
 * In the order of lzs_merge_tree, the tokens that may not follow a token form a few intervals. Let the left part a of a
 * rule (a, b) be on the right edge of the first token. The rule forbids b itself. The rule also forbids each token that
 * begins with b and keeps b as a part until the rule applies. In the order, these tokens reach from one of b's children
 * to the end of b's subtree.
 *
 * The rules have a hash table of their own, because encoding looks up pairs, and most pairs have no rule. The bit set
 * `maybe` answers most of these look-ups before the table is read. With the table of table.h instead, making a spelling
 * (spelling.h) takes 12 % longer.
 */
#include "merges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../table.h"
#include "tree.h"

/* A token of more than MAX_LEAVES leaves counts as never written, because the time to encode a token grows with the
 * square of its length. No known vocabulary has such a token. */
enum { MAX_LEAVES = 1024 };

#define NEVER UINT64_MAX /* the key of a part that is never used up */

static uint64_t hash_pair(const lzs_merges *m, int32_t left, int32_t right) {
    return lzs_fold((uint64_t)(uint32_t)left << 32 | (uint32_t)right, m->key);
}

/* ---- finding tokens by their bytes ---- */

/* A table that finds tokens by fingerprints of their bytes. The fingerprints of a token's prefixes and suffixes are
 * computed without reading the bytes again. */
typedef struct names {
    const lzs_vocabulary *v;
    lzs_table table;
    uint64_t base;
    uint64_t *prints; /* (n_vocab) fingerprints of the tokens */
    uint64_t *powers; /* (longest + 1) powers of `base` */
} names;

/* A byte string in one or two pieces. */
typedef struct pieces {
    const uint8_t *first, *second;
    size_t n_first, n_second;
    uint64_t print;
} pieces;

static const uint8_t *bytes_of(const lzs_vocabulary *v, int32_t token, size_t *n) {
    *n = v->begins[token + 1] - v->begins[token];
    return v->bytes + v->begins[token];
}

static uint64_t print_of(const names *names, const uint8_t *bytes, size_t n) {
    uint64_t print = 0;
    for (size_t i = 0; i < n; i++) print = lzs_print_on(print, names->base, bytes[i]);
    return print;
}

/* Returns the slot of the token that has these bytes. If there is no such token, returns the free slot for it. */
static lzs_slot *slot_of(const names *names, pieces p, uint32_t *tag) {
    lzs_slot *slot = NULL;
    *tag = (uint32_t)lzs_fold(p.print, names->table.key);
    while ((slot = lzs_table_next(&names->table, slot, *tag))->index) {
        size_t length;
        const uint8_t *other = bytes_of(names->v, (int32_t)slot->index - 1, &length);
        if (names->prints[slot->index - 1] != p.print || length != p.n_first + p.n_second) continue;
        if (!memcmp(other, p.first, p.n_first) && !memcmp(other + p.n_first, p.second, p.n_second)) break;
    }
    return slot;
}

/* Returns the token that has these bytes, or -1 if there is none. */
static int32_t token_of_pieces(const names *names, pieces p) {
    uint32_t tag;
    return (int32_t)slot_of(names, p, &tag)->index - 1;
}

static int32_t token_of(const names *names, const uint8_t *bytes, size_t n, uint64_t print) {
    return token_of_pieces(names, (pieces){bytes, bytes, n, 0, print});
}

/* Enters all text tokens that are not in `lone`. If several tokens have the same bytes, enters the first of them. */
static bool name_tokens(names *names, const lzs_vocabulary *v, const bool *lone) {
    *names = (struct names){.v = v};
    bool ok = lzs_table_init(&names->table, 2 * (size_t)v->n_vocab) == LZS_OK;
    names->prints = malloc((size_t)v->n_vocab * sizeof *names->prints);
    names->powers = malloc(((size_t)v->longest + 1) * sizeof *names->powers);
    if (!ok || !names->prints || !names->powers) return false;
    names->base = lzs_print_base(lzs_hash_key(names->prints));
    names->powers[0] = 1;
    for (size_t i = 0; i < v->longest; i++) names->powers[i + 1] = lzs_print_times(names->powers[i], names->base);
    for (int32_t token = 0; token < v->n_vocab; token++) {
        if (!lzs_bit(v->texts, token) || (lone && lone[token])) continue;
        size_t n;
        const uint8_t *bytes = bytes_of(v, token, &n);
        names->prints[token] = print_of(names, bytes, n);
        uint32_t tag;
        lzs_slot *slot = slot_of(names, (pieces){bytes, bytes, n, 0, names->prints[token]}, &tag);
        if (!slot->index && lzs_table_add(&names->table, slot, tag, (size_t)token) != LZS_OK) return false;
    }
    return true;
}

static void names_free(names *names) {
    free(names->table.slots);
    free(names->prints);
    free(names->powers);
}

/* ---- rules ---- */

static struct lzs_rule_slot *rule_slot(const lzs_merges *m, int32_t left, int32_t right) {
    for (size_t at = (size_t)hash_pair(m, left, right);; at++) {
        struct lzs_rule_slot *slot = &m->table[at & (m->table_size - 1)];
        if (slot->left < 0 || (slot->left == left && slot->right == right)) return slot;
    }
}

static size_t maybe_bit(const lzs_merges *m, int32_t left, int32_t right) {
    return (size_t)(hash_pair(m, left, right) >> 20) & (4 * m->table_size - 1);
}

static const struct lzs_rule_slot *rule_of(const lzs_merges *m, int32_t left, int32_t right) {
    size_t bit = maybe_bit(m, left, right);
    if (!(m->maybe[bit / 32] >> (bit % 32) & 1)) return NULL;
    const struct lzs_rule_slot *slot = rule_slot(m, left, right);
    return slot->left < 0 ? NULL : slot;
}

static bool make_table(lzs_merges *m, size_t n_rules) {
    m->table_size = 64;
    while (m->table_size < 2 * n_rules) m->table_size *= 2;
    m->table = malloc(m->table_size * sizeof *m->table);
    m->key = lzs_hash_key(m->table);
    for (size_t i = 0; m->table && i < m->table_size; i++) m->table[i].left = -1;
    m->maybe = calloc(m->table_size / 8, sizeof *m->maybe);
    return m->table && m->maybe;
}

/* Adds a rule. If a rule with the same parts exists, keeps that rule instead. */
static void add_rule(lzs_merges *m, int32_t left, int32_t right, uint32_t rank) {
    struct lzs_rule_slot *slot = rule_slot(m, left, right);
    if (slot->left >= 0) return;
    *slot = (struct lzs_rule_slot){left, right, rank};
    size_t bit = maybe_bit(m, left, right);
    m->maybe[bit / 32] |= UINT32_C(1) << (bit % 32);
    m->n_rules++;
}

static uint64_t time_of(lzs_merge_key key) {
    return key >> 32;
}

/* Returns the key when the left part of a token is used up. The key is for comparison with rules further left. Rules
 * with the same time apply from left to right. If the token's right part is made at the time of the token's last rule,
 * all rules of this time further left apply before this last rule. */
static lzs_merge_key left_end_of(const lzs_merges *m, int32_t token) {
    lzs_merge_key key = m->keys[token];
    return time_of(m->keys[m->right[token]]) == time_of(key) ? key | UINT32_MAX : key;
}

/* A rule with the key `rule` joins a left token with `right`. Returns the least key at which the left token may be used
 * up. If the left token is used up earlier, the rule does not apply. */
static lzs_merge_key least_end(const lzs_merges *m, int32_t right, lzs_merge_key rule) {
    return time_of(m->keys[right]) == time_of(rule) ? (time_of(rule) + 1) << 32 : rule + 1;
}

/* Returns the key of a rule (lzs_merge_key). */
static lzs_merge_key key_of(const lzs_merges *m, int32_t left, int32_t right, uint64_t rank) {
    uint64_t time = rank;
    if (time < time_of(m->keys[left])) time = time_of(m->keys[left]);
    if (time < time_of(m->keys[right])) time = time_of(m->keys[right]);
    return time << 32 | rank;
}

/* ---- how a token is made ---- */

typedef struct encoder {
    const names *names;
    bool characters; /* whether the leaves are characters instead of bytes */
    int32_t tokens[MAX_LEAVES];
    const struct lzs_rule_slot *rules[MAX_LEAVES]; /* by token: the rule that joins it with the next token, or NULL */
} encoder;

/* Splits bytes into leaves, and returns the number of leaves. Returns 0 if a leaf is not a token, or if there are too
 * many leaves. */
static size_t find_leaves(encoder *e, const uint8_t *bytes, size_t n) {
    size_t count = 0;
    for (size_t at = 0; at < n;) {
        size_t length = 1;
        while (e->characters && at + length < n && (bytes[at + length] & 0xC0) == 0x80) length++;
        int32_t token = token_of(e->names, bytes + at, length, print_of(e->names, bytes + at, length));
        if (token < 0 || count == MAX_LEAVES) return 0;
        e->tokens[count++] = token;
        at += length;
    }
    return count;
}

/* Returns the token that two tokens form together, or -1 if the vocabulary has none. */
static int32_t joined(const encoder *e, int32_t left, int32_t right) {
    const names *names = e->names;
    pieces p;
    p.first = bytes_of(names->v, left, &p.n_first);
    p.second = bytes_of(names->v, right, &p.n_second);
    if (p.n_first + p.n_second > names->v->longest) return -1;
    p.print = lzs_print_reduced(lzs_print_times(names->prints[left], names->powers[p.n_second]) + names->prints[right]);
    return token_of_pieces(names, p);
}

static bool comes_first(const struct lzs_rule_slot *a, const struct lzs_rule_slot *b) {
    return a && (!b || (uint32_t)a->key < (uint32_t)b->key);
}

/* Encodes the bytes of a token. If the tokenizer writes the bytes as this token, returns true and stores the token's
 * parts and key. Else returns false. */
static bool encode(lzs_merges *m, encoder *e, int32_t token) {
    size_t n;
    const uint8_t *bytes = bytes_of(e->names->v, token, &n);
    size_t count = find_leaves(e, bytes, n);
    if (!count) return false;
    for (size_t i = 0; i < count; i++) e->rules[i] = i + 1 < count ? rule_of(m, e->tokens[i], e->tokens[i + 1]) : NULL;
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            if (comes_first(e->rules[i], e->rules[best])) best = i;
        }
        const struct lzs_rule_slot *rule = e->rules[best];
        int32_t made = rule ? joined(e, rule->left, rule->right) : -1;
        if (made < 0) return false;
        if (count == 2) {
            m->left[token] = rule->left;
            m->right[token] = rule->right;
            m->keys[token] = key_of(m, rule->left, rule->right, (uint32_t)rule->key);
        }
        e->tokens[best] = made;
        count--;
        memmove(e->tokens + best + 1, e->tokens + best + 2, (count - best - 1) * sizeof *e->tokens);
        memmove(e->rules + best + 1, e->rules + best + 2, (count - best - 1) * sizeof *e->rules);
        e->rules[best] = best + 1 < count ? rule_of(m, e->tokens[best], e->tokens[best + 1]) : NULL;
        if (best > 0) e->rules[best - 1] = rule_of(m, e->tokens[best - 1], e->tokens[best]);
    }
    return e->tokens[0] == token;
}

/* Returns the tokens, sorted by length, so the parts of a token come before the token. */
static int32_t *by_length(const lzs_vocabulary *v) {
    size_t *counts = calloc((size_t)UINT16_MAX + 2, sizeof *counts);
    int32_t *tokens = malloc((size_t)v->n_vocab * sizeof *tokens);
    if (counts && tokens) {
        for (int32_t token = 0; token < v->n_vocab; token++) {
            size_t n = lzs_bit(v->texts, token) ? v->begins[token + 1] - v->begins[token] : 0;
            counts[n + 1]++;
        }
        for (size_t n = 1; n <= UINT16_MAX; n++) counts[n] += counts[n - 1];
        for (int32_t token = 0; token < v->n_vocab; token++) {
            size_t n = lzs_bit(v->texts, token) ? v->begins[token + 1] - v->begins[token] : 0;
            tokens[counts[n]++] = token;
        }
    } else {
        free(tokens);
        tokens = NULL;
    }
    free(counts);
    return tokens;
}

static int by_key(const void *a, const void *b) {
    const lzs_merge_rule *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

/* Groups the rules by their left part (`of_left`) or right part. The rules must be sorted by key, and each group stays
 * sorted. */
static bool order_rules(const lzs_merges *m, const lzs_merge_rule *rules, bool of_left, lzs_merge_rule **ordered,
                        int32_t **begins) {
    *ordered = malloc((m->n_rules + 1) * sizeof **ordered);
    *begins = calloc((size_t)m->n_vocab + 2, sizeof **begins);
    if (!*ordered || !*begins) return false;
    int32_t *at = *begins + 1; /* at[i] becomes the end of token i's group */
    for (size_t i = 0; i < m->n_rules; i++) at[(of_left ? rules[i].left : rules[i].right) + 1]++;
    for (int32_t i = 0; i < m->n_vocab; i++) at[i + 1] += at[i];
    for (size_t i = 0; i < m->n_rules; i++) (*ordered)[at[of_left ? rules[i].left : rules[i].right]++] = rules[i];
    return true;
}

/* Computes the keys of the rules, and sorts the rules that can apply. A rule can apply only if both of its parts are
 * written. */
static lzs_status settle_rules(lzs_merges *m) {
    lzs_merge_rule *rules = malloc((m->n_rules + 1) * sizeof *rules);
    if (!rules) return LZS_ENOMEM;
    size_t n = 0;
    for (size_t i = 0; i < m->table_size; i++) {
        struct lzs_rule_slot *slot = &m->table[i];
        if (slot->left < 0) continue;
        slot->key = key_of(m, slot->left, slot->right, slot->key);
        if (!m->written[slot->left] || !m->written[slot->right]) continue;
        rules[n++] = (lzs_merge_rule){slot->left, slot->right, slot->key};
    }
    m->n_rules = n;
    qsort(rules, n, sizeof *rules, by_key);
    bool ok = order_rules(m, rules, true, &m->of_left, &m->left_begins);
    ok = ok && order_rules(m, rules, false, &m->of_right, &m->right_begins);
    free(rules);
    return ok ? LZS_OK : LZS_ENOMEM;
}

/* ---- the two orders ---- */

static void tree_free(lzs_merge_tree *tree) {
    free(tree->place);
    free(tree->size);
    free(tree->tokens);
    free(tree->begins);
    free(tree->children);
}

/* Makes the order of all tokens. `part` has the left part of each token, or the right part of each token. `tokens` is
 * sorted by length. `made` has the tokens with parts, sorted by key. */
static bool make_tree(const lzs_merges *m, lzs_merge_tree *tree, const int32_t *part, const int32_t *tokens,
                      const lzs_merge_rule *made, size_t n_made) {
    size_t n = (size_t)m->n_vocab;
    tree->place = malloc(n * sizeof *tree->place);
    tree->size = malloc(n * sizeof *tree->size);
    tree->tokens = malloc(n * sizeof *tree->tokens);
    tree->begins = calloc(n + 2, sizeof *tree->begins);
    tree->children = malloc((n_made + 1) * sizeof *tree->children);
    if (!tree->place || !tree->size || !tree->tokens || !tree->begins || !tree->children) return false;
    int32_t *at = tree->begins + 1;
    for (size_t i = 0; i < n_made; i++) at[part[made[i].left] + 1]++; /* `left` in `made` is the token itself */
    for (size_t i = 0; i < n; i++) at[i + 1] += at[i];
    for (size_t i = 0; i < n_made; i++) tree->children[at[part[made[i].left]]++] = made[i].left;
    for (size_t i = 0; i < n; i++) tree->size[i] = 1;
    for (size_t i = n; i > 0; i--) {
        int32_t token = tokens[i - 1];
        if (part[token] >= 0) tree->size[part[token]] += tree->size[token];
    }
    int32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t token = tokens[i];
        if (part[token] < 0) {
            tree->place[token] = next;
            next += tree->size[token];
        }
        tree->tokens[tree->place[token]] = token;
        int32_t place = tree->place[token] + 1;
        for (int32_t k = tree->begins[token]; k < tree->begins[token + 1]; k++) {
            tree->place[tree->children[k]] = place;
            place += tree->size[tree->children[k]];
        }
    }
    return true;
}

static lzs_status make_trees(lzs_merges *m, const int32_t *tokens) {
    lzs_merge_rule *made = malloc((size_t)m->n_vocab * sizeof *made);
    if (!made) return LZS_ENOMEM;
    size_t n = 0;
    for (int32_t token = 0; token < m->n_vocab; token++) {
        if (m->left[token] < 0) continue;
        m->left_ends[token] = left_end_of(m, token);
        made[n++] = (lzs_merge_rule){token, 0, m->left_ends[token]};
    }
    qsort(made, n, sizeof *made, by_key);
    bool ok = make_tree(m, &m->by_left, m->left, tokens, made, n);
    for (size_t i = 0; i < n; i++) made[i].key = m->keys[made[i].left];
    qsort(made, n, sizeof *made, by_key);
    ok = ok && make_tree(m, &m->by_right, m->right, tokens, made, n);
    free(made);
    return ok ? LZS_OK : LZS_ENOMEM;
}

/* ---- making the rules ---- */

static lzs_status begin(lzs_merges *m, const lzs_vocabulary *v, size_t n_rules) {
    size_t n = (size_t)v->n_vocab;
    *m = (lzs_merges){.n_vocab = v->n_vocab};
    m->written = calloc(n, sizeof *m->written);
    m->keys = calloc(n, sizeof *m->keys);
    m->left_ends = calloc(n, sizeof *m->left_ends);
    m->left = malloc(n * sizeof *m->left);
    m->right = malloc(n * sizeof *m->right);
    if (!m->written || !m->keys || !m->left_ends || !m->left || !m->right || !make_table(m, n_rules)) return LZS_ENOMEM;
    for (size_t i = 0; i < n; i++) m->left[i] = m->right[i] = -1;
    return LZS_OK;
}

/* Computes everything that follows from the rules in the table. */
static lzs_status finish(lzs_merges *m, const names *names, bool characters, const bool *lone) {
    encoder *e = malloc(sizeof *e);
    int32_t *tokens = by_length(names->v);
    lzs_status status = e && tokens ? LZS_OK : LZS_ENOMEM;
    if (status == LZS_OK) {
        e->names = names;
        e->characters = characters;
        for (int32_t i = 0; i < m->n_vocab; i++) {
            int32_t token = tokens[i];
            if (!lzs_bit(names->v->texts, token) || (lone && lone[token])) continue;
            m->written[token] = encode(m, e, token);
            if (!m->written[token]) {
                m->left[token] = m->right[token] = -1;
                m->keys[token] = 0;
            }
        }
        status = settle_rules(m);
    }
    if (status == LZS_OK) status = make_trees(m, tokens);
    free(tokens);
    free(e);
    return status;
}

lzs_status lzs_merges_of_pairs(lzs_merges *m, const lzs_vocabulary *v, const int32_t *pairs, size_t n) {
    lzs_status status = n < UINT32_MAX / 2 ? begin(m, v, n) : LZS_EINVAL;
    for (size_t i = 0; i < n && status == LZS_OK; i++) {
        int32_t left = pairs[2 * i], right = pairs[2 * i + 1];
        if (left < 0 || left >= v->n_vocab || right < 0 || right >= v->n_vocab) {
            status = LZS_EINVAL;
        } else if (lzs_bit(v->texts, left) && lzs_bit(v->texts, right)) {
            add_rule(m, left, right, (uint32_t)i + 1);
        }
    }
    if (status != LZS_OK) return status;
    names names;
    if (!name_tokens(&names, v, NULL)) {
        names_free(&names);
        return LZS_ENOMEM;
    }
    status = finish(m, &names, false, NULL);
    names_free(&names);
    return status;
}

typedef struct scored {
    float score;
    int32_t token;
} scored;

static int highest_first(const void *a, const void *b) {
    const scored *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* Adds a rule for each way to split a token into two tokens. If a token has more than 2 * MAX_LEAVES characters, adds
 * no rule, because one part would be too long to be written. */
static void add_splits(lzs_merges *m, const names *names, int32_t token, uint32_t rank) {
    size_t n, n_characters = 0;
    const uint8_t *bytes = bytes_of(names->v, token, &n);
    for (size_t i = 0; i < n; i++) n_characters += i == 0 || (bytes[i] & 0xC0) != 0x80;
    uint64_t print = 0; /* fingerprint of the first part */
    for (size_t at = 1; at < n && n_characters <= 2 * MAX_LEAVES; at++) {
        print = lzs_print_on(print, names->base, bytes[at - 1]);
        if ((bytes[at] & 0xC0) == 0x80) continue;
        int32_t left = token_of(names, bytes, at, print);
        if (left < 0) continue;
        uint64_t before = lzs_print_times(print, names->powers[n - at]);
        int32_t right = token_of(names, bytes + at, n - at,
                                 lzs_print_reduced(names->prints[token] + LZS_PRINT_MODULUS - before));
        if (right >= 0) add_rule(m, left, right, rank);
    }
}

lzs_status lzs_merges_of_scores(lzs_merges *m, const lzs_vocabulary *v, const float *scores, const bool *lone) {
    size_t most = 0, n = 0;
    bool some_nan = false;
    for (int32_t token = 0; token < v->n_vocab; token++) {
        some_nan |= isnan(scores[token]);
        bool joins = lzs_bit(v->texts, token) && !lone[token];
        if (joins) most += v->begins[token + 1] - v->begins[token];
    }
    scored *order = malloc((size_t)v->n_vocab * sizeof *order);
    lzs_status status = begin(m, v, most);
    names names = {0};
    if (status == LZS_OK && some_nan) status = LZS_EINVAL; /* NaN cannot be sorted */
    if (!order || (status == LZS_OK && !name_tokens(&names, v, lone))) status = LZS_ENOMEM;
    for (int32_t token = 0; token < v->n_vocab && status == LZS_OK; token++) {
        if (lzs_bit(v->texts, token) && !lone[token]) order[n++] = (scored){scores[token], token};
    }
    if (status == LZS_OK) qsort(order, n, sizeof *order, highest_first);
    uint32_t rank = 0;
    for (size_t i = 0; i < n && status == LZS_OK; i++) {
        if (i == 0 || order[i].score != order[i - 1].score) rank++;
        add_splits(m, &names, order[i].token, rank);
    }
    if (status == LZS_OK) status = finish(m, &names, true, lone);
    free(order);
    names_free(&names);
    return status;
}

void lzs_merges_free(lzs_merges *m) {
    free(m->written);
    free(m->keys);
    free(m->left_ends);
    free(m->left);
    free(m->right);
    tree_free(&m->by_left);
    tree_free(&m->by_right);
    free(m->of_left);
    free(m->of_right);
    free(m->left_begins);
    free(m->right_begins);
    free(m->table);
    free(m->maybe);
}

size_t lzs_merges_memory(const lzs_merges *m) {
    size_t n = (size_t)m->n_vocab;
    return n * (sizeof *m->written + 2 * sizeof *m->keys + 14 * sizeof(int32_t)) + 2 * m->n_rules * sizeof *m->of_left +
           m->table_size * (sizeof *m->table + sizeof *m->maybe / 8);
}

/* ---- pairs of tokens side by side ---- */

bool lzs_merges_pair(const lzs_merges *m, int32_t first, int32_t second) {
    if (!m->written[first] || !m->written[second]) return false;
    /* the keys when `first` and `second`, the parts at the common edge, are used up */
    lzs_merge_key first_ends = NEVER, second_ends = NEVER;
    for (;;) {
        const struct lzs_rule_slot *rule = rule_of(m, first, second);
        if (rule && least_end(m, second, rule->key) <= first_ends && rule->key <= second_ends) return false;
        /* Undoes the later of the two rules that made these parts. If both rules have the same time, the right part was
         * made later. */
        if (m->left[second] >= 0 && (m->right[first] < 0 || time_of(m->keys[second]) >= time_of(m->keys[first]))) {
            second_ends = m->left_ends[second];
            second = m->left[second];
        } else if (m->right[first] >= 0) {
            first_ends = m->keys[first];
            first = m->right[first];
        } else {
            return true;
        }
    }
}

/* Returns the place of the first token in `token`'s subtree that uses up `token` at `key` or later. If there is none,
 * returns the end of the subtree. `ends` has, by child, the key when the child uses up `token`. */
static int32_t late_place(const lzs_merge_tree *tree, const lzs_merge_key *ends, int32_t token, lzs_merge_key key) {
    int32_t low = tree->begins[token], high = tree->begins[token + 1];
    if (low == high || ends[tree->children[high - 1]] < key) return tree->place[token] + tree->size[token];
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (ends[tree->children[middle]] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return tree->place[tree->children[low]];
}

void lzs_merges_forbid_after(const lzs_merges *m, int32_t first, uint32_t *words) {
    const lzs_merge_tree *tree = &m->by_left;
    lzs_merge_key ends = NEVER;
    for (int32_t part = first; part >= 0; part = m->right[part]) {
        for (int32_t i = m->left_begins[part]; i < m->left_begins[part + 1] && m->of_left[i].key < ends; i++) {
            int32_t second = m->of_left[i].right;
            if (least_end(m, second, m->of_left[i].key) > ends) continue;
            words[second / 32] &= ~(UINT32_C(1) << (second % 32));
            int32_t end = tree->place[second] + tree->size[second];
            for (int32_t place = late_place(tree, m->left_ends, second, m->of_left[i].key); place < end; place++) {
                int32_t token = tree->tokens[place];
                words[token / 32] &= ~(UINT32_C(1) << (token % 32));
            }
        }
        ends = m->keys[part];
    }
}

void lzs_merges_mark_before(const lzs_merges *m, int32_t second, uint32_t *words) {
    const lzs_merge_tree *tree = &m->by_right;
    lzs_merge_key ends = NEVER;
    for (int32_t part = second; part >= 0; part = m->left[part]) {
        for (int32_t i = m->right_begins[part]; i < m->right_begins[part + 1] && m->of_right[i].key <= ends; i++) {
            int32_t first = m->of_right[i].left;
            words[first / 32] |= UINT32_C(1) << (first % 32);
            int32_t end = tree->place[first] + tree->size[first];
            const lzs_merge_key least = least_end(m, part, m->of_right[i].key);
            for (int32_t place = late_place(tree, m->keys, first, least); place < end; place++) {
                int32_t token = tree->tokens[place];
                words[token / 32] |= UINT32_C(1) << (token % 32);
            }
        }
        ends = m->left_ends[part];
    }
}
