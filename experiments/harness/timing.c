/* The median with its spread. */
#include "timing.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct timing timing_of(uint64_t *ns, size_t count)
{
    if (count < 2) return (struct timing){0};
    const size_t steps = count - 1;
    ns++;
    const size_t lower = (steps - 1) / 2, upper = steps / 2;
    qsort(ns, steps, sizeof *ns, ascending);
    return (struct timing){
        .steps = steps,
        .median_ns = ((double)ns[lower] + (double)ns[upper]) / 2,
        .least_ns = (double)ns[0],
        .most_ns = (double)ns[steps - 1],
    };
}
