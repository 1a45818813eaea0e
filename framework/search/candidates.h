/* Pareto points contributed by schedules outside the solver's class. */
#pragma once

#include "plan/plan.h"
#include "search/pareto_front.h"

struct candidate_point {
    const char *policy; /* that made the schedule */
    struct point point; /* live peak, and time of all ops */
    struct schedule schedule;
};

struct candidate_points {
    int count;
    struct candidate_point *candidate;
};

/* Adds a schedule of any class without its dead recomputations, unless another candidate is as good. It is copied into
 * region; policy must outlive it. */
void candidate_points_add(struct candidate_points *candidates, const struct network *network, enum rng_mode rng,
                          const struct schedule *schedule, const char *policy, struct region *region);

/* The same with all its recomputations. */
void candidate_points_add_as_is(struct candidate_points *candidates, const struct network *network, enum rng_mode rng,
                                const struct schedule *schedule, const char *policy, struct region *region);

/* The front with the candidates of at most most bytes; (*origin)[point]: the candidate that the point is, NULL: the
 * front had it. Both in region. */
void candidate_points_merge(const struct candidate_points *candidates, size_t most, struct region *region,
                            struct front *front, const struct candidate_point ***origin);
