/* The buffers that an allocator has handed out and that are not released, counted in the allocator itself: the measured
 * memory of memory: dynamic, independent of plans. */
#pragma once

#include <stddef.h>

struct allocation_count {
    struct allocation {
        const void *buffer;
        size_t bytes;
    } * live;
    size_t count, room;
    size_t bytes; /* of all live ones together */
};

/* buffer was allocated, and was released; an unknown buffer changes nothing. */
void allocation_count_add(struct allocation_count *allocated, const void *buffer, size_t bytes);
void allocation_count_remove(struct allocation_count *allocated, const void *buffer);

void allocation_count_free(struct allocation_count *allocated);
