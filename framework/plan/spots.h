/* The spots of placed buffers, each list in the order of offsets. A list for every dyadic part of the time holds all
 * spots that are alive in it, so that what a buffer overlaps is found among few others, however many there are. */
#pragma once

#include <stdbool.h>

#include "base/region.h"

struct spot {
    int birth, death; /* ops, both inclusive */
    size_t offset, end;
};

struct spots {
    struct region *region;
    int ops, parts;         /* of the time at the finest level, a power of two */
    struct spot_list *list; /* 1: of the whole time; 2k and 2k + 1: of the halves of k's */
    struct chunk *unused;
};

/* Room in region for about count spots within ops ops. */
struct spots spots_create(size_t count, int ops, struct region *region);
void spots_clear(struct spots *spots);
void spots_add(struct spots *spots, struct spot spot);

/* The offset of the lowest gap of so many bytes, or of the tightest, between the spots that are alive at some op from
 * birth to death. */
size_t spots_gap(const struct spots *spots, int birth, int death, size_t bytes, bool tightest);
