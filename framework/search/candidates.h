/* Schedules from elsewhere as points of a front, where nothing else is as fast with as few bytes. */
#ifndef REMATCH_SEARCH_CANDIDATES_H
#define REMATCH_SEARCH_CANDIDATES_H

#include "plan/plan.h"
#include "search/front.h"

struct offer {
    const char *by;     /* whose it is, for people */
    struct point point; /* live peak, and time of all ops */
    struct word word;
};

struct offers {
    int count;
    struct offer *offer;
};

/* A word of any class, without those of its replays that nobody reads. What is kept of it lives in region; by must
 * outlive it. */
enum status offers_add(struct offers *offers, const struct network *network, enum rng_mode rng, const struct word *word,
                       const char *by, struct region *region);

/* The front with the offers of at most most bytes; by point the offer that it is, NULL: a point that was there. Both in
 * region. */
enum status offers_merge(const struct offers *offers, size_t most, struct region *region, struct front *front,
                         const struct offer ***offered);

#endif
