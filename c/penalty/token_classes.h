/* token_classes.h - the lists and sets of tokens that settings name. A sampler and its clones share one object, so that
 * a clone copies the state of its sequence and nothing else. Nobody writes to it after it was made: only the number of
 * its users changes, and that is atomic, so that clones can live on several threads.
 */
#ifndef LZS_TOKEN_CLASSES_H
#define LZS_TOKEN_CLASSES_H

#include <stdbool.h>

#include "../include/lzsampler.h"

typedef struct lzs_token_classes lzs_token_classes;

/* Copies the lists of valid settings, in ascending order of tokens, and the sets, for one user; NULL when out of
 * memory. */
lzs_token_classes *lzs_token_classes_new(const lzs_params *params);
/* Adds a user, and returns the same object. */
lzs_token_classes *lzs_token_classes_share(lzs_token_classes *classes);
/* Removes a user; the last one frees it. Accepts NULL. */
void lzs_token_classes_leave(lzs_token_classes *classes);

/* Makes the lists of settings those of an object, or empty for NULL. */
void lzs_token_classes_put(const lzs_token_classes *classes, lzs_params *params);
bool lzs_token_classes_equal(const lzs_token_classes *a, const lzs_token_classes *b);
size_t lzs_token_classes_memory(const lzs_token_classes *classes);

/* How lists are put in order: tokens ascend, and the biases of a token become one, their sum. Biases are added from the
 * smallest to the largest, so that the sum depends neither on the order of the list nor on the C library's qsort. */
void lzs_sort_tokens(int32_t *tokens, size_t n);
size_t lzs_merge_biases(lzs_logit_bias *biases, size_t n); /* returns how many are left */

#endif
