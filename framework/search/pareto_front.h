/* Time as a step function of memory, as the list of its steps: exact in bytes, without rounding or slots. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/region.h"

struct point {
    size_t peak;
    double time;
};

/* Peaks ascend, times descend, both strictly; below point[0].peak the time is infinite. */
struct front {
    int count;
    struct point *point;
};

/* Index of the last point with at most peak bytes, -1: none. */
int front_at(const struct front *front, size_t peak);

/* Index of the first point that takes at most time; the count: none. */
int front_in_time(const struct front *front, double time);

/* The time of one alternative with m bytes: infinite where m < floor, else time + a(m - shift) + b(m). */
struct alternative {
    size_t floor, shift;
    double time;
    const struct front *a, *b; /* NULL: 0 everywhere */
};

/* Whether it is finite with peak bytes; then *time is it. */
bool alternative_at(const struct alternative *alternative, size_t peak, double *time);

/* The minimum of the alternatives added so far. Zeroed except most: none. */
struct envelope {
    size_t most;                 /* bytes: points above are left out */
    int points;                  /* of a front at most; 0: all */
    const struct front *ceiling; /* points whose time is above its time plus above may be left out; NULL: none */
    double above;
    int64_t steps; /* comparisons left; below 0: none, and the minimum is not complete */
    struct front best;
    struct point *spare, *candidate;
    int room, spare_room, candidates_room;
};

void envelope_add(struct envelope *envelope, const struct alternative *alternative);

/* Copies the front into region and empties the envelope, which keeps its memory. */
void envelope_take(struct envelope *envelope, struct region *region, struct front *front);
void envelope_free(struct envelope *envelope);
