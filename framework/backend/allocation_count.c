#include "backend/allocation_count.h"

#include <stdlib.h>

bool allocation_count_lend(struct allocation_count *ledger, const void *buffer, size_t bytes)
{
    if (ledger->loans == ledger->room) {
        const size_t room = ledger->room ? 2 * ledger->room : 64;
        struct loan *more = realloc(ledger->loan, room * sizeof *more);
        if (!more) return false;
        ledger->loan = more;
        ledger->room = room;
    }
    ledger->loan[ledger->loans++] = (struct loan){buffer, bytes};
    ledger->bytes += bytes;
    return true;
}

/* From the newest on: what a backward gives back last was lent first. */
void allocation_count_take_back(struct allocation_count *ledger, const void *buffer)
{
    size_t at = ledger->loans;
    while (at > 0 && ledger->loan[at - 1].buffer != buffer) at--;
    if (at == 0) return;
    ledger->bytes -= ledger->loan[at - 1].bytes;
    for (ledger->loans--; at <= ledger->loans; at++) ledger->loan[at - 1] = ledger->loan[at];
}

void allocation_count_free(struct allocation_count *ledger) { free(ledger->loan); }
