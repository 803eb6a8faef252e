/* vocabulary.h - the separators of the vocabularies that a process uses, one copy for all samplers of a vocabulary. */
#ifndef LZS_PRELOAD_VOCABULARY_H
#define LZS_PRELOAD_VOCABULARY_H

#include "../include/lzsampler_status.h"
#include "libllama.h"

typedef struct lzs_known_vocabulary {
    int32_t n_vocab;
    size_t n_words;
    uint32_t *separators, *commas; /* (n_words) */
    /* Of the list of known vocabularies: */
    uint64_t fingerprint; /* of the texts of all tokens. An address is no key: a router loads and unloads models */
    size_t users;
    struct lzs_known_vocabulary *next;
} lzs_known_vocabulary;

/* Finds the vocabulary with these texts, which the caller gives back. */
lzs_status lzs_vocabulary_take(const lzs_libllama *l, const void *vocab, lzs_known_vocabulary **taken);
void lzs_vocabulary_share(lzs_known_vocabulary *v);
void lzs_vocabulary_give_back(lzs_known_vocabulary *v);

/* A process that forks holds the list of known vocabularies meanwhile, so that the child has a whole one. */
void lzs_vocabulary_hold(void);
void lzs_vocabulary_let_go(void);

#endif
