/* token_classes.h - the lists and sets of tokens that settings name. A sampler and its clones share one object, so
 * making a clone copies only the state of the sequence. The object never changes after it was made, except for the
 * number of its users. This number is atomic, so clones can be used on several threads.
 */
#ifndef LZS_TOKEN_CLASSES_H
#define LZS_TOKEN_CLASSES_H

#include <stdbool.h>

#include "../include/lzsampler.h"

typedef struct lzs_token_classes lzs_token_classes;

/* Copies the lists of valid settings, in ascending order of tokens, and the sets. The new object has one user. Returns
 * NULL if there is not enough memory. */
lzs_token_classes *lzs_token_classes_new(const lzs_params *params);
/* Adds a user to the object, and returns the object. */
lzs_token_classes *lzs_token_classes_share(lzs_token_classes *classes);
/* Removes a user. Frees the object if no user is left. Accepts NULL. */
void lzs_token_classes_leave(lzs_token_classes *classes);

/* Makes the lists and sets of settings point to the lists and sets of an object. If `classes` is NULL, makes the lists
 * and sets empty. */
void lzs_token_classes_put(const lzs_token_classes *classes, lzs_params *params);
bool lzs_token_classes_equal(const lzs_token_classes *a, const lzs_token_classes *b);
size_t lzs_token_classes_memory(const lzs_token_classes *classes);

/* Sort lists in ascending order of tokens. lzs_merge_biases also replaces several biases of one token by their sum. The
 * biases are added from the smallest to the largest. So the sum depends neither on the order of the list nor on
 * qsort. */
void lzs_sort_tokens(int32_t *tokens, size_t n);
size_t lzs_merge_biases(lzs_logit_bias *biases, size_t n); /* returns the number of biases left */

#endif
