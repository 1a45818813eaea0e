#include "allocations.h"

#include <stdatomic.h>

static atomic_size_t count;

size_t allocations(void) { return count; }

/* The names that the linker's --wrap asks for. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t elements, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
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
    count++;
    return __real_aligned_alloc(alignment, bytes);
}
