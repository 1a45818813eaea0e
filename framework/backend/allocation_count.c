#include "backend/allocation_count.h"

#include <stdlib.h>
#include <string.h>

#include "base/region.h"

void allocation_count_add(struct allocation_count *allocated, const void *buffer, size_t bytes)
{
    if (allocated->count == allocated->room) {
        allocated->room = allocated->room ? 2 * allocated->room : 64;
        struct allocation *more = allocate(allocated->room, sizeof *more);
        if (allocated->count) memcpy(more, allocated->live, allocated->count * sizeof *more);
        free(allocated->live);
        allocated->live = more;
    }
    allocated->live[allocated->count++] = (struct allocation){buffer, bytes};
    allocated->bytes += bytes;
}

/* From the newest on: a backward releases last what was allocated first. */
void allocation_count_remove(struct allocation_count *allocated, const void *buffer)
{
    size_t at = allocated->count;
    while (at > 0 && allocated->live[at - 1].buffer != buffer) at--;
    if (at == 0) return;
    allocated->bytes -= allocated->live[at - 1].bytes;
    for (allocated->count--; at <= allocated->count; at++) allocated->live[at - 1] = allocated->live[at];
}

void allocation_count_free(struct allocation_count *allocated) { free(allocated->live); }
