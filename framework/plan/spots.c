#include "plan/spots.h"

#include <stdint.h>
#include <string.h>

enum { SPOTS_OF_A_PART = 512, PARTS_MAX = 256 };
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

static struct chunk *take(struct spots *spots)
{
    struct chunk *chunk = spots->unused;
    if (chunk)
        spots->unused = chunk->next;
    else
        NEW(spots->region, chunk, 1);
    chunk->next = NULL;
    chunk->count = 0;
    chunk->summed = false;
    return chunk;
}

struct spots spots_create(size_t count, int ops, struct region *region)
{
    struct spots spots = {.region = region, .ops = ops, .parts = 1};
    while (spots.parts < PARTS_MAX && count / (size_t)spots.parts > SPOTS_OF_A_PART) spots.parts *= 2;
    NEW(region, spots.list, 2 * (size_t)spots.parts);
    for (int i = 1; i < 2 * spots.parts; i++) spots.list[i].first = take(&spots);
    return spots;
}

void spots_clear(struct spots *spots)
{
    for (int i = 1; i < 2 * spots->parts; i++) {
        struct spot_list *list = &spots->list[i];
        for (int k = 0; k < list->marks; k++) {
            list->mark[k].chunk->next = spots->unused;
            spots->unused = list->mark[k].chunk;
        }
        list->first->next = NULL;
        list->first->count = list->marks = 0;
        list->first->summed = false;
    }
}

/* How many chunks behind the first begin at or below the offset. */
static int marks_below(const struct spot_list *list, size_t offset)
{
    int low = 0, high = list->marks;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (list->mark[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Moves the upper half of a full chunk to a new one, mark number `mark`. */
static void divide(struct spots *spots, struct spot_list *list, struct chunk *chunk, int mark)
{
    struct chunk *high = take(spots);
    high->next = chunk->next;
    chunk->next = high;
    high->count = chunk->count = CHUNK_SPOTS / 2;
    chunk->summed = false;
    memcpy(high->spot, chunk->spot + CHUNK_SPOTS / 2, sizeof chunk->spot / 2);
    region_grow(spots->region, &list->mark, list->marks, sizeof *list->mark);
    memmove(list->mark + mark + 1, list->mark + mark, (size_t)(list->marks++ - mark) * sizeof *list->mark);
    list->mark[mark] = (struct mark){high->spot[0].offset, high};
}

static void insert(struct spots *spots, struct spot_list *list, const struct spot *spot)
{
    const int mark = marks_below(list, spot->offset);
    struct chunk *chunk = mark ? list->mark[mark - 1].chunk : list->first;
    if (chunk->count == CHUNK_SPOTS) {
        divide(spots, list, chunk, mark);
        if (list->mark[mark].offset <= spot->offset) chunk = list->mark[mark].chunk;
    }
    int at = chunk->count;
    while (at > 0 && chunk->spot[at - 1].offset > spot->offset) at--;
    memmove(chunk->spot + at + 1, chunk->spot + at, (size_t)(chunk->count++ - at) * sizeof *spot);
    chunk->spot[at] = *spot;
    chunk->summed = false;
}

static int part_of(const struct spots *spots, int op) { return (int)((int64_t)op * spots->parts / spots->ops); }

void spots_add(struct spots *spots, struct spot spot)
{
    int from = spots->parts + part_of(spots, spot.birth), to = spots->parts + part_of(spots, spot.death);
    for (; from; from /= 2, to /= 2)
        for (int i = from; i <= to; i++) insert(spots, &spots->list[i], &spot);
}

/* A list with all spots that are alive at some op from birth to death, and others. */
static struct chunk *spots_near(const struct spots *spots, int birth, int death)
{
    int from = spots->parts + part_of(spots, birth), to = spots->parts + part_of(spots, death);
    for (; from != to; from /= 2) to /= 2;
    return spots->list[from].first;
}

/* Of a chunk with at least one spot. */
static const struct chunk_sum *chunk_sum(struct chunk *chunk)
{
    const struct spot *first = &chunk->spot[0];
    struct chunk_sum *sum = &chunk->sum;
    if (chunk->summed) return sum;
    *sum = (struct chunk_sum){first->birth, first->death, 0, first->end};
    for (const struct spot *spot = first + 1; spot < first + chunk->count; spot++) {
        if (spot->birth > sum->from) sum->from = spot->birth;
        if (spot->death < sum->to) sum->to = spot->death;
        if (spot->offset > sum->end && spot->offset - sum->end > sum->gap) sum->gap = spot->offset - sum->end;
        if (spot->end > sum->end) sum->end = spot->end;
    }
    chunk->summed = true;
    return sum;
}

/* Whether all spots of a chunk are alive at these ops, and none of the gaps above `at` that they end has so many bytes:
 * then only the largest end counts. */
static bool passes(struct chunk *chunk, int birth, int death, size_t bytes, size_t at)
{
    if (!chunk->count || chunk->spot[0].offset >= at + bytes) return false;
    const struct chunk_sum *sum = chunk_sum(chunk);
    return sum->from <= death && birth <= sum->to && sum->gap < bytes;
}

size_t spots_gap(const struct spots *spots, int birth, int death, size_t bytes, bool tightest)
{
    size_t at = 0, chosen = SIZE_MAX, slack = SIZE_MAX;
    for (struct chunk *chunk = spots_near(spots, birth, death); chunk; chunk = chunk->next) {
        const bool passed = passes(chunk, birth, death, bytes, at);
        if (passed && chunk->sum.end > at) at = chunk->sum.end;
        for (int i = 0; i < chunk->count && !passed; i++) {
            const struct spot *spot = &chunk->spot[i];
            if (spot->birth > death || birth > spot->death) continue;
            if (spot->offset >= at + bytes) {
                const size_t left = spot->offset - at - bytes;
                if (left < slack) chosen = at, slack = left;
                if (!tightest) return chosen;
            }
            if (spot->end > at) at = spot->end;
        }
    }
    return chosen == SIZE_MAX ? at : chosen;
}
