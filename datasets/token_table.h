/* Byte strings numbered in the order of their first appearance: the tokens of a vocabulary, the words of a text. */
#ifndef REMATCH_TOKEN_TABLE_H
#define REMATCH_TOKEN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* All zero is an empty table. */
struct token_table {
    int64_t count;
    size_t *end; /* of token i in text; it begins where the one before ends */
    char *text;
    int32_t *slot; /* by hash: 1 + a token's number, 0: free */
    size_t tokens_max, text_max, slots;
};

/* The number of a token, -1: it is not in the table. */
int64_t token_table_find(const struct token_table *table, const char *text, size_t bytes);

/* The number of a token, which is added where it is not in the table. ST_FAILED: no memory, or over 2^30 tokens. */
enum status token_table_add(struct token_table *table, const char *text, size_t bytes, int64_t *number);

/* A token, not ended by a zero; valid until the next is added. */
const char *token_table_text(const struct token_table *table, int64_t number, size_t *bytes);

void token_table_release(struct token_table *table);

#endif
