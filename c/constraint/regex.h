/* regex.h - parses a regular expression into its syntax tree. */
#ifndef LZS_REGEX_H
#define LZS_REGEX_H

#include "../include/lzsampler.h"
#include "tree.h"

typedef enum lzs_dialect {
    LZS_WHOLE_TEXT, /* the pattern matches the whole text */
    /* The pattern matches anywhere in the value of a JSON string, as in ECMAScript. The tree matches the characters
     * between the quotes, with the escapes of lzs_json_escape. */
    LZS_JSON_STRING,
    LZS_YAML_STRING  /* as LZS_JSON_STRING, but for double-quoted YAML; characters that YAML must escape are left out */
} lzs_dialect;

/* Adds the nodes of a pattern to `tree`, and puts the number of its root into *root. If the pattern is malformed, or
 * uses a feature that docs/grammar.md does not list, returns LZS_EINVAL and fills the error. The caller frees `tree`,
 * also after an error. */
lzs_status lzs_regex_parse(const uint8_t *pattern, size_t n, lzs_dialect dialect, lzs_tree *tree, uint32_t *root,
                           lzs_grammar_error *error);

/* If a JSON string cannot contain a character unescaped, writes the escape of the character and returns the number of
 * bytes of the escape. Else returns 0. */
size_t lzs_json_escape(uint32_t code, uint8_t bytes[6]);

#define LZS_WHOLE SIZE_MAX /* the offset of an error that concerns the whole pattern */

/* Fills an error, and returns LZS_EINVAL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
lzs_status lzs_refuse(lzs_grammar_error *error, size_t offset, const char *format, ...);

#endif
