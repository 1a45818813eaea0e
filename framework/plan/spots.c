#include "plan/spots.h"

#include <stdint.h>
#include <string.h>

enum { SPOTS_OF_A_PART = 512, PARTS_MAX = 16 };

static struct chunk *take(struct spots *spots)
{
    struct chunk *chunk = spots->unused;
    if (chunk)
        spots->unused = chunk->next;
    else
        NEW(spots->region, chunk, 1);
    chunk->next = NULL;
    chunk->count = 0;
    return chunk;
}

struct spots spots_create(size_t count, int ops, struct region *region)
{
    struct spots spots = {.region = region, .ops = ops, .parts = 1};
    while (spots.parts < PARTS_MAX && count / (size_t)spots.parts > SPOTS_OF_A_PART) spots.parts *= 2;
    NEW(region, spots.list, 2 * (size_t)spots.parts);
    for (int i = 1; i < 2 * spots.parts; i++) spots.list[i] = take(&spots);
    return spots;
}

void spots_clear(struct spots *spots)
{
    for (int i = 1; i < 2 * spots->parts; i++) {
        for (struct chunk *chunk = spots->list[i]->next, *next; chunk; chunk = next) {
            next = chunk->next;
            chunk->next = spots->unused;
            spots->unused = chunk;
        }
        spots->list[i]->next = NULL;
        spots->list[i]->count = 0;
    }
}

static void insert(struct spots *spots, struct chunk *chunk, const struct spot *spot)
{
    while (chunk->next && chunk->next->spot[0].offset <= spot->offset) chunk = chunk->next;
    if (chunk->count == CHUNK_SPOTS) {
        struct chunk *high = take(spots);
        high->next = chunk->next;
        chunk->next = high;
        high->count = chunk->count = CHUNK_SPOTS / 2;
        memcpy(high->spot, chunk->spot + CHUNK_SPOTS / 2, sizeof chunk->spot / 2);
        if (high->spot[0].offset <= spot->offset) chunk = high;
    }
    int at = chunk->count;
    while (at > 0 && chunk->spot[at - 1].offset > spot->offset) at--;
    memmove(chunk->spot + at + 1, chunk->spot + at, (size_t)(chunk->count++ - at) * sizeof *spot);
    chunk->spot[at] = *spot;
}

static int part_of(const struct spots *spots, int op) { return (int)((int64_t)op * spots->parts / spots->ops); }

void spots_add(struct spots *spots, struct spot spot)
{
    int from = spots->parts + part_of(spots, spot.birth), to = spots->parts + part_of(spots, spot.death);
    for (; from; from /= 2, to /= 2)
        for (int i = from; i <= to; i++) insert(spots, spots->list[i], &spot);
}

const struct chunk *spots_near(const struct spots *spots, int birth, int death)
{
    int from = spots->parts + part_of(spots, birth), to = spots->parts + part_of(spots, death);
    for (; from != to; from /= 2) to /= 2;
    return spots->list[from];
}
