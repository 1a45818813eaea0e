/* What an allocator has handed out and not taken back, counted where that happens: the witness of memory: dynamic,
 * which knows nothing of plans. */
#ifndef REMATCH_BACKEND_ALLOCATION_COUNT_H
#define REMATCH_BACKEND_ALLOCATION_COUNT_H

#include <stdbool.h>
#include <stddef.h>

struct allocation_count {
    struct loan {
        const void *buffer;
        size_t bytes;
    } * loan;
    size_t loans, room;
    size_t bytes; /* of all loans together */
};

/* buffer was handed out, with so many bytes; false: no memory to note it. */
bool allocation_count_lend(struct allocation_count *ledger, const void *buffer, size_t bytes);

/* buffer is taken back; what is not out changes nothing. */
void allocation_count_take_back(struct allocation_count *ledger, const void *buffer);

void allocation_count_free(struct allocation_count *ledger);

#endif
