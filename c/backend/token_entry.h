/* token_entry.h - what the penalties want to know of one token; token_table.h finds it. */
#ifndef LZS_TOKEN_ENTRY_H
#define LZS_TOKEN_ENTRY_H

#include <stdint.h>

typedef struct lzs_token_entry {
    int32_t token;
    int32_t count; /* occurrences in the window of the penalties that count */
    int32_t last;  /* last position that the LZ penalty can match, -1 if there is none */
} lzs_token_entry;

#endif
