/* How long a step takes: the steps after the first, which warms up. */
#ifndef REMATCH_TIMING_H
#define REMATCH_TIMING_H

#include <stddef.h>
#include <stdint.h>

struct timing {
    size_t steps; /* counted; 0: there was but one step, or none */
    double median_ns, least_ns, most_ns;
};

/* Sorts ns[1..count), the times of count steps in order. */
struct timing timing_of(uint64_t *ns, size_t count);

#endif
