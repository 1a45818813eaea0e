/* How long a step takes: the steps after the first, which warms up. Two answers: the median of what was measured, and
 * what a step takes that nothing disturbs. */
#ifndef REMATCH_RESULT_TIMING_H
#define REMATCH_RESULT_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timing {
    size_t steps; /* counted; 0: there was but one step, or none */
    double median_ns, least_ns, most_ns;
};

/* Sorts ns[1..count), the times of count steps in order. */
struct timing timing_of(uint64_t *ns, size_t count);

/* A shared machine holds up now one op and now another, and never speeds one up: the sum of each op's least time and of
 * the least time between the ops is a step that nothing disturbed. */
struct best_case {
    int ops;
    uint64_t *op_ns, rest_ns; /* ops of them, and what is no op: least so far */
    bool known;               /* after the first step that was added */
};

/* Adds a step's times: of each op, and of the whole step, ops included. */
void timing_add(struct best_case *least, const uint64_t *op_ns, uint64_t step_ns);

/* Of the whole step; 0: not known. */
uint64_t timing_best_case(const struct best_case *least);

#endif
