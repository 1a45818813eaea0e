/* Byte strings numbered in the order of their first appearance: the tokens of a vocabulary, the words of a text. */
#ifndef REMATCH_TOKEN_TABLE_H
#define REMATCH_TOKEN_TABLE_H

#include <stdint.h>

#include "base/region.h"

struct token {
    const char *text; /* not ended by a zero */
    size_t bytes;
};

/* Empty where all but region is zero. */
struct token_table {
    struct region *region;
    int64_t count;
    struct token *token; /* by number */
    int32_t *slot;       /* by hash: 1 + a token's number, 0: free */
    size_t slots;
};

/* The number of a token, -1: it is not in the table. */
int64_t token_table_find(const struct token_table *table, const char *text, size_t bytes);

/* The number of a token, which is added if the table does not have it. */
int64_t token_table_add(struct token_table *table, const char *text, size_t bytes);

#endif
