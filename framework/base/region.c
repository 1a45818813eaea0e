#include "base/region.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = sizeof(max_align_t), BLOCK = 64 * 1024 };

struct block {
    struct block *next;
    size_t used, size;
    max_align_t data[];
};

struct region {
    struct block *blocks;
};

struct region *region_create(void) { return calloc(1, sizeof(struct region)); }

void region_destroy(struct region *region)
{
    if (!region) return;
    for (struct block *b = region->blocks; b;) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
    free(region);
}

static struct block *grow(struct region *region, size_t bytes)
{
    size_t size = bytes > BLOCK ? bytes : BLOCK;
    struct block *b = size <= SIZE_MAX - sizeof *b ? calloc(1, sizeof *b + size) : NULL;
    if (!b) return NULL;
    b->size = size;
    b->next = region->blocks;
    region->blocks = b;
    return b;
}

void *region_array(struct region *region, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX - ALIGN) / size) {
        fail(ST_FAILED, "%zu elements of %zu bytes are more than memory can address", count, size);
        return NULL;
    }
    size_t bytes = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    struct block *b = region->blocks;
    if (!b || b->size - b->used < bytes) b = grow(region, bytes);
    if (!b) {
        fail(ST_FAILED, "out of memory: %zu bytes for set-up", bytes);
        return NULL;
    }
    void *p = (char *)b->data + b->used;
    b->used += bytes;
    return p;
}

enum status region_grow(struct region *region, void *array, int count, size_t size)
{
    if (count & (count - 1)) return ST_OK; /* not yet full: count is no power of two (nor 0) */
    size_t room = count ? (size_t)count * 2 : 1;
    void *old, *more = region_array(region, room, size);
    if (!more) return ST_FAILED;
    memcpy(&old, array, sizeof old);
    if (count) memcpy(more, old, (size_t)count * size);
    memcpy(array, &more, sizeof more);
    return ST_OK;
}

char *region_text(struct region *region, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : region_array(region, (size_t)length + 1, 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
