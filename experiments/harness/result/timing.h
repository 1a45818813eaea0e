/* Times of the steps after the first, which warms up: their median, and the best-case step. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timing {
    size_t steps; /* timed; 0: the run had at most one step */
    double median_ns, least_ns, most_ns;
};

/* Of the times of count steps in order. */
struct timing timing_of(const uint64_t *ns, size_t count);

/* The best-case step: the sum of each op's least time and of the least time between the ops. Other processes of a
 * shared machine delay now one op and now another, but never speed one up. */
struct best_case {
    int ops;
    uint64_t *op_ns, rest_ns; /* least so far of each op, and of the time between them */
    bool known;               /* a step was added */
};

/* Adds a step: the time of each op, and of the whole step. */
void timing_add(struct best_case *least, const uint64_t *op_ns, uint64_t step_ns);

/* The best-case time of a step; 0: not known. */
uint64_t timing_best_case(const struct best_case *least);
