#include "allocations.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { BLOCKS_MAX = 4096 };

static atomic_size_t count;
static struct {
    void *at;
    size_t bytes;
} block[BLOCKS_MAX];
static size_t blocks, held;

size_t allocations(void) { return count; }
size_t allocations_held(void) { return held; }

/* The names that the linker's --wrap asks for. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t elements, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *old);
void __wrap_free(void *old);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t elements, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    count++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t elements, size_t bytes)
{
    count++;
    return __real_calloc(elements, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    count++;
    return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    void *got = __real_aligned_alloc(alignment, bytes);
    count++;
    if (!got) return NULL;
    if (blocks == BLOCKS_MAX) abort();
    block[blocks].at = got;
    block[blocks++].bytes = bytes;
    held += bytes;
    return got;
}

/* From the newest on: it is freed first. */
void __wrap_free(void *old)
{
    size_t i = old ? blocks : 0;
    while (i > 0 && block[i - 1].at != old) i--;
    if (i > 0) {
        held -= block[i - 1].bytes;
        block[i - 1] = block[--blocks];
    }
    __real_free(old);
}
