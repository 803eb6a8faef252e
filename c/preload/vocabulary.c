/* vocabulary.c - finds the separators of a vocabulary once, and forgets them with the vocabulary's last sampler. */
#include "vocabulary.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../hash.h"
#include "../include/lzsampler_separators.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lzs_known_vocabulary *known; /* guarded by `lock`, like the users of each */

typedef struct token_texts {
    char *text;
    size_t size, room;
    size_t *begins; /* (n_vocab + 1) */
} token_texts;

static bool read_texts(const lzs_libllama *l, const void *vocab, int32_t n_vocab, token_texts *t) {
    *t = (token_texts){.room = 16 * (size_t)n_vocab + 256, .begins = malloc(((size_t)n_vocab + 1) * sizeof *t->begins)};
    t->text = malloc(t->room);
    if (!t->text || !t->begins) return false;
    t->begins[0] = 0;
    for (int32_t token = 0; token < n_vocab; token++) {
        int32_t n = l->token_to_piece(vocab, token, t->text + t->size, (int32_t)(t->room - t->size), 0, true);
        if (n < 0) { /* the size that the text needs, negated */
            t->room = 2 * (t->size + (size_t)-n);
            char *more = realloc(t->text, t->room);
            if (!more) return false;
            t->text = more;
            n = l->token_to_piece(vocab, token, t->text + t->size, (int32_t)(t->room - t->size), 0, true);
            if (n < 0) return false;
        }
        t->size += (size_t)n;
        t->begins[token + 1] = t->size;
    }
    return true;
}

/* 64 bits, by two hashes of the texts with keys that depend on where the texts begin. */
static uint64_t fingerprint_of(const token_texts *t, int32_t n_vocab) {
    const uint64_t begins = lzs_hash_bytes((const uint8_t *)t->begins, ((size_t)n_vocab + 1) * sizeof *t->begins, 1);
    const uint32_t high = lzs_hash_bytes((const uint8_t *)t->text, t->size, begins + 2);
    return (uint64_t)high << 32 | lzs_hash_bytes((const uint8_t *)t->text, t->size, begins + 3);
}

static void release(lzs_known_vocabulary *v) {
    if (!v) return;
    free(v->separators);
    free(v->commas);
    free(v);
}

static lzs_known_vocabulary *make(const token_texts *t, int32_t n_vocab, uint64_t fingerprint) {
    lzs_known_vocabulary *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    v->n_vocab = n_vocab;
    v->n_words = ((size_t)n_vocab + 31) / 32;
    v->fingerprint = fingerprint;
    v->separators = malloc(v->n_words * sizeof *v->separators);
    v->commas = malloc(v->n_words * sizeof *v->commas);
    const bool has_room = v->separators && v->commas;
    if (has_room && lzs_separators_of(t->text, t->begins, n_vocab, v->separators, v->commas) == LZS_OK) return v;
    release(v);
    return NULL;
}

lzs_status lzs_vocabulary_take(const lzs_libllama *l, const void *vocab, lzs_known_vocabulary **taken) {
    const int32_t n_vocab = l->vocab_n_tokens(vocab);
    token_texts t = {0};
    lzs_status status = read_texts(l, vocab, n_vocab, &t) ? LZS_OK : LZS_ENOMEM;
    if (status == LZS_OK) {
        const uint64_t fingerprint = fingerprint_of(&t, n_vocab);
        pthread_mutex_lock(&lock);
        lzs_known_vocabulary *v = known;
        while (v && (v->fingerprint != fingerprint || v->n_vocab != n_vocab)) v = v->next;
        if (!v && (v = make(&t, n_vocab, fingerprint))) {
            v->next = known;
            known = v;
        }
        if (v) v->users++;
        pthread_mutex_unlock(&lock);
        *taken = v;
        if (!v) status = LZS_ENOMEM;
    }
    free(t.text);
    free(t.begins);
    return status;
}

void lzs_vocabulary_hold(void) {
    pthread_mutex_lock(&lock);
}

void lzs_vocabulary_let_go(void) {
    pthread_mutex_unlock(&lock);
}

void lzs_vocabulary_share(lzs_known_vocabulary *v) {
    pthread_mutex_lock(&lock);
    v->users++;
    pthread_mutex_unlock(&lock);
}

void lzs_vocabulary_give_back(lzs_known_vocabulary *v) {
    pthread_mutex_lock(&lock);
    const bool was_last = --v->users == 0;
    for (lzs_known_vocabulary **at = &known; was_last; at = &(*at)->next) {
        if (*at != v) continue;
        *at = v->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    if (was_last) release(v);
}
