/* token_entry.h - what the penalties need to know of one token. token_table.h looks an entry up. */
#ifndef LZS_TOKEN_ENTRY_H
#define LZS_TOKEN_ENTRY_H

#include <stdint.h>

typedef struct lzs_token_entry {
    int32_t token;
    int32_t count; /* occurrences in the window of the penalties that count */
    int32_t last;  /* last position of the token that the LZ penalty can match, or -1 */
} lzs_token_entry;

#endif
