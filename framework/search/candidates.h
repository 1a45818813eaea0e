/* Schedules from elsewhere as points of a front, where nothing else is as fast with as few bytes. */
#ifndef REMATCH_SEARCH_CANDIDATES_H
#define REMATCH_SEARCH_CANDIDATES_H

#include "plan/plan.h"
#include "search/front.h"

struct candidate_point {
    const char *by;     /* whose it is, for people */
    struct point point; /* live peak, and time of all ops */
    struct schedule schedule;
};

struct candidate_points {
    int count;
    struct candidate_point *offer;
};

/* A schedule of any class, without those of its recomputations that nobody reads. What is kept of it lives in region;
 * by must outlive it. */
enum status candidate_points_add(struct candidate_points *offers, const struct network *network, enum rng_mode rng,
                                 const struct schedule *schedule, const char *by, struct region *region);

/* The front with the offers of at most most bytes; by point the offer that it is, NULL: a point that was there. Both in
 * region. */
enum status candidate_points_merge(const struct candidate_points *offers, size_t most, struct region *region,
                                   struct front *front, const struct candidate_point ***offered);

#endif
