/* token_entry.h - what the penalties keep about one token. The table of token_table.h finds a token's entry. */
#ifndef LZS_TOKEN_ENTRY_H
#define LZS_TOKEN_ENTRY_H

#include <stdint.h>

typedef struct lzs_token_entry {
    int32_t token;
    int32_t count; /* number of occurrences in the window of the repetition, frequency and presence penalties */
    int32_t last;  /* last position of the token in reach of LZS_RULE_PAPER, or -1 */
} lzs_token_entry;

#endif
