/* token_classes.c - the lists and sets of tokens that settings name, in one block of memory. */
#include "token_classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/arithmetic.h"
#include "../atomics.h"
#include "penalty.h"

struct lzs_token_classes {
    lzs_users users;
    size_t bytes;  /* size of the whole block of memory */
    lzs_params of; /* its lists and sets point into the block; its other fields are unused */
    lzs_logit_bias biases[]; /* after the biases: the tokens of the lists and the words of the sets, of 4 bytes each */
};

/* ---- order ---- */

static int by_token(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int by_token_and_bias(const void *a, const void *b) {
    const lzs_logit_bias *x = a, *y = b;
    int order = by_token(&x->token, &y->token);
    return order ? order : (x->bias > y->bias) - (x->bias < y->bias);
}

void lzs_sort_tokens(int32_t *tokens, size_t n) {
    if (n) qsort(tokens, n, sizeof *tokens, by_token);
}

size_t lzs_merge_biases(lzs_logit_bias *biases, size_t n) {
    size_t left = 0;
    if (n) qsort(biases, n, sizeof *biases, by_token_and_bias);
    for (size_t i = 0; i < n; i++) {
        if (left == 0 || biases[left - 1].token != biases[i].token) {
            biases[left++] = biases[i];
        } else if (biases[left - 1].bias > -INFINITY) { /* a bias of -inf comes first, and the sum stays -inf */
            biases[left - 1].bias = lzs_finite(biases[left - 1].bias + biases[i].bias);
        }
    }
    return left;
}

/* ---- creating and freeing ---- */

lzs_token_classes *lzs_token_classes_new(const lzs_params *p) {
    uint64_t bytes = sizeof(lzs_token_classes) + (uint64_t)p->n_logit_bias * sizeof *p->logit_bias;
#define ADD_BYTES(name) bytes += (uint64_t)p->n_##name * sizeof *p->name;
    LZS_TOKEN_LISTS(ADD_BYTES)
    LZS_TOKEN_SETS(ADD_BYTES)
    lzs_token_classes *c = bytes <= SIZE_MAX ? malloc((size_t)bytes) : NULL;
    if (!c) return NULL;
    lzs_users_begin(&c->users);
    c->bytes = (size_t)bytes;
    if (p->n_logit_bias) memcpy(c->biases, p->logit_bias, p->n_logit_bias * sizeof *c->biases);
    c->of = (lzs_params){.logit_bias = c->biases, .n_logit_bias = lzs_merge_biases(c->biases, p->n_logit_bias)};
    int32_t *to = (int32_t *)(void *)(c->biases + p->n_logit_bias);
#define COPY(name) \
    if (p->n_##name) memcpy(to, p->name, p->n_##name * sizeof *to); \
    c->of.name = (const void *)to; \
    c->of.n_##name = p->n_##name; \
    to += p->n_##name;
#define COPY_SORTED(name) \
    COPY(name) \
    lzs_sort_tokens(to - p->n_##name, p->n_##name);
    LZS_TOKEN_LISTS(COPY_SORTED)
    LZS_TOKEN_SETS(COPY)
    return c;
}

lzs_token_classes *lzs_token_classes_share(lzs_token_classes *c) {
    lzs_users_add(&c->users);
    return c;
}

void lzs_token_classes_leave(lzs_token_classes *c) {
    if (c && lzs_users_leave(&c->users)) free(c);
}

/* ---- use ---- */

void lzs_token_classes_put(const lzs_token_classes *c, lzs_params *params) {
    static const lzs_params none;
    const lzs_params *of = c ? &c->of : &none;
    params->logit_bias = of->logit_bias;
    params->n_logit_bias = of->n_logit_bias;
#define PUT(name) \
    params->name = of->name; \
    params->n_##name = of->n_##name;
    LZS_TOKEN_LISTS(PUT)
    LZS_TOKEN_SETS(PUT)
}

static bool same_items(const void *a, size_t n_a, const void *b, size_t n_b, size_t size) {
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * size) == 0);
}

bool lzs_token_classes_equal(const lzs_token_classes *a, const lzs_token_classes *b) {
    const lzs_params *x = &a->of, *y = &b->of;
    if (a == b) return true;
#define SAME(name) same_items(x->name, x->n_##name, y->name, y->n_##name, sizeof *x->name)
#define AND_SAME(name) && SAME(name)
    return SAME(logit_bias) LZS_TOKEN_LISTS(AND_SAME) LZS_TOKEN_SETS(AND_SAME);
}

size_t lzs_token_classes_memory(const lzs_token_classes *c) {
    return c->bytes;
}
