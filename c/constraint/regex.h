/* regex.h - a regular expression -> its syntax tree. */
#ifndef LZS_REGEX_H
#define LZS_REGEX_H

#include "../include/lzsampler.h"
#include "tree.h"

typedef enum lzs_dialect {
    LZS_WHOLE_TEXT, /* the pattern matches the whole text */
    LZS_JSON_STRING, /* as in ECMAScript, it matches somewhere in the value of a string of JSON; the tree is of the
                      * inside of the string, as lzs_json_escape writes it */
    LZS_YAML_STRING  /* the same in double quotes of YAML, without the characters that YAML cannot hold as they are */
} lzs_dialect;

/* Adds the tree of a pattern to `tree`, which the caller frees in any case, and its number to *root. LZS_EINVAL, with
 * the error filled, for a pattern that is not well formed or asks for what docs/grammar.md does not list: nothing of it
 * is ignored. */
lzs_status lzs_regex_parse(const uint8_t *pattern, size_t n, lzs_dialect dialect, lzs_tree *tree, uint32_t *root,
                           lzs_grammar_error *error);

/* Writes the escape of a character that a string of JSON cannot hold as it is, and returns its length; 0 for any
 * other. */
size_t lzs_json_escape(uint32_t code, uint8_t bytes[6]);

#define LZS_WHOLE SIZE_MAX /* the offset of an error that is about all of a pattern */

/* Fills an error, and returns LZS_EINVAL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
lzs_status lzs_refuse(lzs_grammar_error *error, size_t offset, const char *format, ...);

#endif
