#include "token_table.h"

#include "numerics/digest.h"

#include <string.h>

enum { SLOTS_LEAST = 64 };

/* The slot of a token, or the free one where it belongs. */
static int32_t *find_slot(const struct token_table *t, const char *text, size_t bytes)
{
    size_t at = (size_t)digest_bytes(text, bytes).low & (t->slots - 1);
    for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
        const struct token *other = &t->token[t->slot[at] - 1];
        if (other->bytes == bytes && memcmp(other->text, text, bytes) == 0) break;
    }
    return &t->slot[at];
}

int64_t token_table_find(const struct token_table *table, const char *text, size_t bytes)
{
    return table->slots ? *find_slot(table, text, bytes) - 1 : -1;
}

/* Twice the slots as soon as half of them are taken. */
static void grow_slots(struct token_table *t)
{
    if ((size_t)t->count < t->slots / 2) return;
    t->slots = t->slots ? 2 * t->slots : SLOTS_LEAST;
    NEW(t->region, t->slot, t->slots);
    for (int64_t i = 0; i < t->count; i++) *find_slot(t, t->token[i].text, t->token[i].bytes) = (int32_t)(i + 1);
}

int64_t token_table_add(struct token_table *table, const char *text, size_t bytes)
{
    const int64_t number = token_table_find(table, text, bytes);
    if (number >= 0) return number;
    grow_slots(table);
    region_grow(table->region, &table->token, (int)table->count, sizeof *table->token);
    char *copy = region_array(table->region, bytes, 1);
    memcpy(copy, text, bytes);
    *find_slot(table, text, bytes) = (int32_t)(table->count + 1);
    table->token[table->count] = (struct token){copy, bytes};
    return table->count++;
}
