/* regex.h - a regular expression -> its syntax tree. */
#ifndef LZS_REGEX_H
#define LZS_REGEX_H

#include "../include/lzsampler.h"
#include "tree.h"

/* Parses the pattern into `tree`, which the caller frees in any case. LZS_EINVAL, with the error filled, for a pattern that
 * is not well formed or asks for what docs/grammar.md does not list: nothing is ever ignored. */
lzs_status lzs_regex_parse(const uint8_t *pattern, size_t n, lzs_tree *tree, lzs_grammar_error *error);

#define LZS_WHOLE SIZE_MAX /* the offset of an error that is about all of a pattern */

/* Fills an error, and returns LZS_EINVAL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
lzs_status lzs_refuse(lzs_grammar_error *error, size_t offset, const char *format, ...);

#endif
