/* spelling.c - how a tokenizer writes texts as tokens. */
#include "spelling.h"

#include <stdlib.h>
#include <string.h>

#include "../utf8.h"

/* ---- life ---- */

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Finds the characters that are tokens. */
static bool find_characters(lzs_spelling *s) {
    const lzs_vocabulary *v = s->vocabulary;
    s->characters = malloc((size_t)v->n_vocab * sizeof *s->characters);
    if (!s->characters) return false;
    for (int32_t token = 0; token < v->n_vocab; token++) {
        size_t n = v->begins[token + 1] - v->begins[token];
        uint32_t code;
        if (s->roles[token] != LZS_TOKEN_USUAL || !lzs_bit(v->texts, token) || n == 0 || n > 4) continue;
        if (lzs_utf8_decode(v->bytes + v->begins[token], n, &code) == n) s->characters[s->n_characters++] = code;
    }
    qsort(s->characters, s->n_characters, sizeof *s->characters, ascending);
    size_t n = 0; /* removes duplicates, because several tokens may be the same character */
    for (size_t i = 0; i < s->n_characters; i++) {
        if (!n || s->characters[n - 1] != s->characters[i]) s->characters[n++] = s->characters[i];
    }
    s->n_characters = n;
    return true;
}

static lzs_status begin(const lzs_vocabulary *v, const uint8_t *roles, lzs_spelling **spelling) {
    lzs_spelling *s = calloc(1, sizeof *s);
    if (!s) return LZS_ENOMEM;
    s->vocabulary = v;
    s->roles = calloc((size_t)v->n_vocab, sizeof *s->roles);
    *spelling = s;
    if (!s->roles) return LZS_ENOMEM;
    for (int32_t token = 0; roles && token < v->n_vocab; token++) {
        if (roles[token] > LZS_TOKEN_WHOLE) return LZS_EINVAL;
        bool is_text = lzs_bit(v->texts, token);
        if (roles[token] == LZS_TOKEN_BYTE && is_text && v->begins[token + 1] -
            v->begins[token] != 1) return LZS_EINVAL;
        s->roles[token] = roles[token];
        s->some_whole |= roles[token] == LZS_TOKEN_WHOLE;
    }
    return LZS_OK;
}

static bool find_plain(lzs_spelling *s) {
    const lzs_vocabulary *v = s->vocabulary;
    s->plain = calloc(v->n_nodes ? v->n_nodes : 1, sizeof *s->plain);
    for (size_t i = 0; s->plain && i < v->n_nodes && !s->by_scores; i++) {
        int32_t token = v->nodes[i].token;
        s->plain[i] = token >= 0 && v->same[token] < 0 && s->roles[token] == LZS_TOKEN_USUAL &&
                      s->merges.written[token];
    }
    return s->plain != NULL;
}

static lzs_status ended(lzs_status status, lzs_spelling **spelling) {
    if (status == LZS_OK && !find_plain(*spelling)) status = LZS_ENOMEM;
    if (status != LZS_OK) {
        lzs_spelling_free(*spelling);
        *spelling = NULL;
    }
    return status;
}

lzs_status lzs_spelling_new_pairs(const lzs_vocabulary *v, const uint8_t *roles, const int32_t *pairs, size_t n,
                                  int32_t words, int32_t whole_words, lzs_spelling **spelling) {
    *spelling = NULL;
    if (!v || (n && !pairs) || words < 0 || words > LZS_WORDS_QWEN2) return LZS_EINVAL;
    if (whole_words && words == LZS_WORDS_NONE) return LZS_EINVAL;
    lzs_status status = begin(v, roles, spelling);
    if (status == LZS_OK) {
        (*spelling)->whole_words = whole_words != 0;
        status = lzs_words_init(&(*spelling)->words, (lzs_words_kind)words);
    }
    if (status == LZS_OK) status = lzs_merges_of_pairs(&(*spelling)->merges, v, pairs, n);
    return ended(status, spelling);
}

lzs_status lzs_spelling_new_scores(const lzs_vocabulary *v, const uint8_t *roles, const float *scores,
                                   lzs_spelling **spelling) {
    *spelling = NULL;
    if (!v || !scores) return LZS_EINVAL;
    bool *lone = calloc((size_t)v->n_vocab, sizeof *lone);
    lzs_status status = lone ? begin(v, roles, spelling) : LZS_ENOMEM;
    if (status == LZS_OK) {
        (*spelling)->by_scores = true;
        for (int32_t token = 0; token < v->n_vocab; token++) lone[token] = (*spelling)->roles[token] != LZS_TOKEN_USUAL;
        status = lzs_words_init(&(*spelling)->words, LZS_WORDS_NONE);
    }
    if (status == LZS_OK) status = lzs_merges_of_scores(&(*spelling)->merges, v, scores, lone);
    if (status == LZS_OK && !find_characters(*spelling)) status = LZS_ENOMEM;
    free(lone);
    return ended(status, spelling);
}

void lzs_spelling_free(lzs_spelling *s) {
    if (!s) return;
    lzs_merges_free(&s->merges);
    lzs_words_free(&s->words);
    free(s->roles);
    free(s->characters);
    free(s->plain);
    free(s);
}

size_t lzs_spelling_memory(const lzs_spelling *s) {
    return sizeof *s + lzs_merges_memory(&s->merges) + (size_t)s->vocabulary->n_vocab +
           s->words.n_nodes * sizeof *s->words.nodes + s->n_characters * sizeof *s->characters +
           s->vocabulary->n_nodes * sizeof *s->plain;
}

/* ---- bytes that stand for characters ---- */

/* If a text ends inside a character, the context's `set` has the bytes of this character instead of states. The bit
 * PENDING marks such a `set`. The bytes begin at bit PENDING_SHIFT, and the number of bytes is at bit PENDING_BYTES. */
enum { PENDING_SHIFT = 1, PENDING_BYTES = 26 };
#define PENDING 0x80000000u

static size_t characters_below(const lzs_spelling *s, uint32_t code) {
    size_t low = 0, high = s->n_characters;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->characters[middle] < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Whether some character of first..last is not a token. Surrogates, which UTF-8 does not have, are not counted. */
static bool some_missing(const lzs_spelling *s, uint32_t first, uint32_t last) {
    if (first > last) return false;
    size_t n = last - first + 1;
    if (first <= 0xDFFF && last >= 0xD800) n -= (last < 0xDFFF ? last : 0xDFFF) - (first > 0xD800 ? first : 0xD800) + 1;
    return characters_below(s, last + 1) - characters_below(s, first) < n;
}

/* Whether n bytes begin a character that is not a token. *length gets the number of bytes of the whole character. */
static bool begins_missing(const lzs_spelling *s, const uint8_t *bytes, size_t n, size_t *length) {
    uint32_t lead = bytes[0];
    *length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || n > *length) return false;
    uint32_t code = *length == 1 ? lead : lead & (0x7Fu >> *length);
    for (size_t i = 1; i < n; i++) {
        if ((bytes[i] & 0xC0) != 0x80) return false;
        code = code << 6 | (bytes[i] & 0x3F);
    }
    size_t rest = 6 * (*length - n);
    uint32_t first = code << rest, last = first + (UINT32_C(1) << rest) - 1;
    uint32_t lowest = *length == 1 ? 0 : *length == 2 ? 0x80 : *length == 3 ? 0x800 : 0x10000;
    if (first < lowest) first = lowest;
    if (last > 0x10FFFF) last = 0x10FFFF;
    return some_missing(s, first, last);
}

static lzs_status step_by_scores(const lzs_spelling *s, lzs_contexts *c, int32_t context, int32_t token,
                                 lzs_joint joint, int32_t *next) {
    uint32_t set = c->all[context].set;
    uint32_t n = set & PENDING ? set >> PENDING_BYTES & 3 : 0;
    *next = LZS_NO_CONTEXT;
    if (!context) return LZS_OK;
    if (s->roles[token] == LZS_TOKEN_USUAL) {
        if (!n && joint != LZS_APART && s->merges.written[token]) *next = LZS_TEXT_BEGINS;
        return LZS_OK;
    }
    uint8_t bytes[4] = {0};
    for (uint32_t i = 0; i < n; i++) bytes[i] = (uint8_t)(set >> (PENDING_SHIFT + 8 * i));
    bytes[n] = s->vocabulary->bytes[s->vocabulary->begins[token]];
    size_t length;
    if (!begins_missing(s, bytes, n + 1, &length)) return LZS_OK;
    *next = LZS_TEXT_BEGINS;
    if (n + 1 == length) return LZS_OK;
    set = PENDING | (n + 1) << PENDING_BYTES;
    for (uint32_t i = 0; i <= n; i++) set |= (uint32_t)bytes[i] << (PENDING_SHIFT + 8 * i);
    return lzs_contexts_of(c, set, next);
}

/* ---- steps ---- */

lzs_joint lzs_spelling_joint(const lzs_spelling *s, int32_t last, int32_t token) {
    if (last < 0 || s->roles[last] != LZS_TOKEN_USUAL || s->roles[token] != LZS_TOKEN_USUAL) return LZS_EITHER;
    return lzs_merges_pair(&s->merges, last, token) ? LZS_EITHER : LZS_APART;
}

lzs_status lzs_spelling_step(const lzs_spelling *s, lzs_contexts *c, int32_t context, int32_t token, lzs_joint joint,
                             int32_t *next) {
    *next = LZS_NO_CONTEXT;
    if (s->roles[token] == LZS_TOKEN_WHOLE) {
        if (lzs_contexts_may_end(c, context)) *next = LZS_TEXT_BEGINS;
        return LZS_OK;
    }
    if (s->by_scores) return step_by_scores(s, c, context, token, joint, next);
    if (!s->merges.written[token]) {
        if (!s->whole_words) return LZS_OK;
        joint = LZS_APART;
    }
    const lzs_vocabulary *v = s->vocabulary;
    lzs_status status = LZS_OK;
    for (size_t i = v->begins[token]; i < v->begins[token + 1] && context && status == LZS_OK; i++,
         joint = LZS_INSIDE) {
        status = lzs_contexts_step(c, context, v->bytes[i], joint, &context);
    }
    *next = context;
    return status;
}

void lzs_spelling_forbid(const lzs_spelling *s, int32_t last, uint32_t *words) {
    if (last < 0 || s->roles[last] != LZS_TOKEN_USUAL) return;
    if (s->merges.written[last]) {
        lzs_merges_forbid_after(&s->merges, last, words);
    } else {
        memset(words, 0, s->vocabulary->n_words * sizeof *words);
    }
}

lzs_status lzs_spelling_check(const lzs_spelling *s, const int32_t *tokens, size_t n, size_t *wrong) {
    lzs_contexts contexts;
    lzs_status status = lzs_contexts_init(&contexts, &s->words);
    int32_t context = LZS_TEXT_BEGINS;
    *wrong = SIZE_MAX;
    for (size_t i = 0; i < n && status == LZS_OK && *wrong == SIZE_MAX; i++) {
        int32_t token = tokens[i];
        if (token < 0 || token >= s->vocabulary->n_vocab) {
            status = LZS_EINVAL;
        } else if (!lzs_bit(s->vocabulary->texts, token)) {
            *wrong = i;
        } else {
            lzs_joint joint = lzs_spelling_joint(s, i ? tokens[i - 1] : -1, token);
            status = lzs_spelling_step(s, &contexts, context, token, joint, &context);
            if (status == LZS_OK && !context) *wrong = i;
        }
    }
    if (status == LZS_OK && *wrong == SIZE_MAX && !lzs_contexts_may_end(&contexts, context)) *wrong = n;
    lzs_contexts_free(&contexts);
    return status;
}
