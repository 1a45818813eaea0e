/* Time as a step function of memory, held as the list of its steps: exact in bytes, no rounding, no slots. */
#ifndef REMATCH_SEARCH_FRONT_H
#define REMATCH_SEARCH_FRONT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/region.h"

struct point {
    size_t peak;
    double time;
};

/* Peaks ascend, times descend, both strictly: with less than point[0].peak it cannot be done. */
struct front {
    int count;
    struct point *point;
};

/* Index of the step that holds with peak bytes, -1: not enough for any. */
int front_at(const struct front *front, size_t peak);

/* One way of doing something with m bytes: impossible where m < floor, else in time + a(m - shift) + b(m). */
struct alternative {
    size_t floor, shift;
    double time;
    const struct front *a, *b; /* NULL: 0 everywhere */
};

/* Whether it can be done with peak bytes, and then in what time. */
bool alternative_at(const struct alternative *alternative, size_t peak, double *time);

/* The least of many alternatives; grows as they come. Zeroed but for most: none yet. */
struct envelope {
    size_t most; /* bytes: what takes more is left out */
    struct front best;
    struct point *spare, *candidate;
    int room, candidates_room;
};

enum status envelope_add(struct envelope *envelope, const struct alternative *alternative);

/* Copies the front into region and empties the envelope, which keeps its memory. */
enum status envelope_take(struct envelope *envelope, struct region *region, struct front *front);
void envelope_free(struct envelope *envelope);

#endif
