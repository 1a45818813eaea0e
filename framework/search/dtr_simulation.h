/* A training step run under a limit of memory by evicting and rematerialising, on paper: what an online runtime would
 * do, written down as a schedule. */
#ifndef REMATCH_SEARCH_DTR_SIMULATION_H
#define REMATCH_SEARCH_DTR_SIMULATION_H

#include "plan/lower.h"
#include "search/dtr_residency.h"

/* An op of a backward: what no schedule can change about it. */
struct moment {
    unsigned parts; /* enum part; 0: it copies or adds gradients */
    double time;
    size_t bytes; /* gradients and scratch, live while it runs */
};

/* What is the same for every limit and heuristic. */
struct dtr_simulation {
    const struct network *network;
    struct region *region;
    size_t *once;          /* by node: stash or mask */
    size_t *gap;           /* by node: gradients that wait for its backward */
    struct moment *moment; /* node n's are moment[moments[n]..moments[n + 1]) */
    int *moments;
};

/* What came of a simulation. */
struct evicted {
    size_t peak;   /* the most bytes that were there at once, at most its limit */
    int evictions; /* storages given up, though they were to be read again */
};

/* Lives in region. Errors: ST_SPEC for more nodes than a simulation is meant for. */
enum status dtr_simulation_create(const struct network *network, const struct lower_options *options,
                                  struct region *region, struct dtr_simulation *eviction);

/* Appends the step to an empty schedule. Bytes are counted as lowering counts them, but for what it finds out later: a
 * storage that is evicted is dead since its last read. Errors: ST_SPEC naming the pass that has no room, or at which
 * recomputations have got out of hand. */
enum status dtr_simulation_schedule(const struct dtr_simulation *eviction, int heuristic, size_t limit,
                                    struct schedule *schedule, struct evicted *evicted);

#endif
