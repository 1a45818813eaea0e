/* The spots of placed buffers, each list in the order of offsets. A list for every dyadic part of the time holds all
 * spots that are alive in it, so that what a buffer overlaps is found among few others, however many there are. */
#pragma once

#include <stdbool.h>

#include "base/region.h"

struct spot {
    int birth, death; /* ops, both inclusive */
    size_t offset, end;
};

enum { CHUNK_SPOTS = 512 };

/* Of a chunk's spots: the ops at which all of them are alive, the largest gap between them, and their largest end. */
struct chunk_sum {
    int from, to;
    size_t gap, end;
};

/* Part of a list; only the first one may be empty. */
struct chunk {
    struct chunk *next;
    int count;
    bool summed; /* false: sum is of fewer spots */
    struct chunk_sum sum;
    struct spot spot[CHUNK_SPOTS];
};

/* A chunk behind the first, by the offset of its first spot, which stays. */
struct mark {
    size_t offset;
    struct chunk *chunk;
};

struct spot_list {
    struct chunk *first;
    struct mark *mark; /* in the order of the chunks */
    int marks;
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

/* A list with all spots that are alive at some op from birth to death, and others. */
struct chunk *spots_near(const struct spots *spots, int birth, int death);

/* Of a chunk with at least one spot. */
const struct chunk_sum *chunk_sum(struct chunk *chunk);
