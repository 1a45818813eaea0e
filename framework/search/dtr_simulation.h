/* Simulates a training step that evicts and rematerialises under a memory limit, as an online runtime would, and writes
 * it down as a schedule. */
#pragma once

#include "plan/lower.h"
#include "search/dtr_residency.h"

/* An op of a backward, in what no schedule can change. */
struct backward_op {
    unsigned parts; /* enum part; 0: it copies or adds gradients */
    double time;
    size_t bytes; /* gradients and scratch, live while it runs */
};

/* What is the same for every limit. */
struct dtr_simulation {
    const struct network *network;
    struct region *region;
    enum dtr_score score;
    size_t *once;           /* by node: stash or mask */
    size_t *gap;            /* by node: gradients that wait for its backward */
    struct backward_op *op; /* node n's are op[first[n]..first[n + 1]) */
    int *first;
};

struct dtr_result {
    size_t peak;   /* most live bytes, at most the limit */
    int evictions; /* storages evicted before their last read */
};

/* Lives in region. Errors: ST_SPEC for more nodes than a simulation is meant for. */
enum status dtr_simulation_create(const struct network *network, const struct lower_options *options,
                                  struct region *region, struct dtr_simulation *simulation);

/* Appends the step to an empty schedule. Bytes are counted as by lowering, except that lowering frees a storage that is
 * evicted at its last read already. Errors: ST_SPEC naming the pass that does not fit, or at which the number of
 * recomputations exceeds a limit. */
enum status dtr_simulation_schedule(const struct dtr_simulation *simulation, size_t limit, struct schedule *schedule,
                                    struct dtr_result *result);
