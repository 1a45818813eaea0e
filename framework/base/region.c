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

static void *checked(void *memory, size_t count, size_t size)
{
    if (memory) return memory;
    fprintf(stderr, "rematch: out of memory for set-up: %zu elements of %zu bytes\n", count, size);
    _Exit(ST_FAILED); /* no exit handlers: HDF5's would rewrite open files */
}

void *allocate(size_t count, size_t size) { return checked(calloc(count, size + !size), count, size); }

void freed_end(void *variable)
{
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    free(memory);
}

struct region *region_create(void) { return allocate(1, sizeof(struct region)); }

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
    struct block *b = checked(size <= SIZE_MAX - sizeof *b ? calloc(1, sizeof *b + size) : NULL, size, 1);
    b->size = size;
    b->next = region->blocks;
    region->blocks = b;
    return b;
}

void *region_array(struct region *region, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX - ALIGN) / size) checked(NULL, count, size);
    size_t bytes = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    struct block *b = region->blocks;
    if (!b || b->size - b->used < bytes) b = grow(region, bytes);
    void *p = (char *)b->data + b->used;
    b->used += bytes;
    return p;
}

void region_grow(struct region *region, void *array, int count, size_t size)
{
    if (count & (count - 1)) return; /* not yet full: count is no power of two (nor 0) */
    size_t room = count ? (size_t)count * 2 : 1;
    void *old, *more = region_array(region, room, size);
    memcpy(&old, array, sizeof old);
    if (count) memcpy(more, old, (size_t)count * size);
    memcpy(array, &more, sizeof more);
}

char *region_text(struct region *region, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = region_array(region, length < 0 ? 1 : (size_t)length + 1, 1);
    if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
