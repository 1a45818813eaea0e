#include "token_table.h"

#include "numerics/digest.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 1 << 30, SLOTS_LEAST = 64 };

/* The slot of a token, or the free one where it belongs. */
static size_t find_slot(const struct token_table *t, const char *text, size_t bytes)
{
    size_t at = (size_t)digest_bytes(text, bytes).low & (t->slots - 1);
    for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
        size_t length;
        const char *other = token_table_text(t, t->slot[at] - 1, &length);
        if (length == bytes && memcmp(other, text, bytes) == 0) break;
    }
    return at;
}

int64_t token_table_find(const struct token_table *table, const char *text, size_t bytes)
{
    return table->slots ? table->slot[find_slot(table, text, bytes)] - 1 : -1;
}

/* Twice the slots as soon as half of them are taken. */
static bool grow_slots(struct token_table *t)
{
    if ((size_t)t->count < t->slots / 2) return true;
    int32_t *old = t->slot;
    size_t slots = t->slots ? 2 * t->slots : SLOTS_LEAST;
    int32_t *slot = calloc(slots, sizeof *slot);
    if (!slot) return false;
    t->slot = slot;
    t->slots = slots;
    for (int64_t i = 0; i < t->count; i++) {
        size_t bytes;
        const char *text = token_table_text(t, i, &bytes);
        t->slot[find_slot(t, text, bytes)] = (int32_t)(i + 1);
    }
    free(old);
    return true;
}

static bool grow_text(struct token_table *t, size_t bytes)
{
    size_t used = t->count ? t->end[t->count - 1] : 0;
    if ((size_t)t->count == t->tokens_max) {
        size_t most = t->tokens_max ? 2 * t->tokens_max : SLOTS_LEAST;
        size_t *end = realloc(t->end, most * sizeof *end);
        if (!end) return false;
        t->end = end;
        t->tokens_max = most;
    }
    if (t->text_max - used < bytes || !t->text) {
        if (bytes > SIZE_MAX / 4 - used) return false;
        size_t most = 2 * (used + bytes) + SLOTS_LEAST;
        char *text = realloc(t->text, most);
        if (!text) return false;
        t->text = text;
        t->text_max = most;
    }
    return true;
}

enum status token_table_add(struct token_table *table, const char *text, size_t bytes, int64_t *number)
{
    *number = token_table_find(table, text, bytes);
    if (*number >= 0) return ST_OK;
    if (table->count == TOKENS_MAX) return fail(ST_FAILED, "more than %d different tokens", TOKENS_MAX);
    if (!grow_slots(table) || !grow_text(table, bytes)) return fail(ST_FAILED, "out of memory for tokens");
    size_t used = table->count ? table->end[table->count - 1] : 0;
    memcpy(table->text + used, text, bytes);
    table->end[table->count] = used + bytes;
    *number = table->count++;
    table->slot[find_slot(table, text, bytes)] = (int32_t)(*number + 1);
    return ST_OK;
}

const char *token_table_text(const struct token_table *table, int64_t number, size_t *bytes)
{
    size_t from = number ? table->end[number - 1] : 0;
    *bytes = table->end[number] - from;
    return table->text + from;
}

void token_table_release(struct token_table *table)
{
    free(table->end);
    free(table->text);
    free(table->slot);
    *table = (struct token_table){0};
}
