#include "search/pareto_front.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int front_at(const struct front *front, size_t peak)
{
    int low = 0, high = front->count; /* the answer + 1 lies in [low, high] */
    while (low < high) {
        int middle = (low + high) / 2;
        if (front->point[middle].peak <= peak) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

bool alternative_at(const struct alternative *alternative, size_t peak, double *time)
{
    const struct front *a = alternative->a, *b = alternative->b;
    if (peak < alternative->floor || (a && peak < alternative->shift)) return false;
    int i = a ? front_at(a, peak - alternative->shift) : 0, j = b ? front_at(b, peak) : 0;
    if (i < 0 || j < 0) return false;
    *time = alternative->time + (a ? a->point[i].time : 0) + (b ? b->point[j].time : 0);
    return true;
}

static void reserve(struct point **array, int *room, int count)
{
    if (count <= *room) return;
    struct point *more = allocate((size_t)count * 2, sizeof *more);
    if (*room) memcpy(more, *array, (size_t)*room * sizeof *more);
    free(*array);
    *array = more;
    *room = count * 2;
}

/* The least peak at which the best so far takes at most time. */
static size_t reached(const struct front *best, double time)
{
    int low = 0, high = best->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (best->point[middle].time <= time) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low < best->count ? best->point[low].peak : SIZE_MAX;
}

/* Writes an alternative's steps with peaks in [start, end) to candidate[]; returns their number, 0 where none is below
 * the best so far. */
static int list_steps(const struct envelope *envelope, const struct alternative *alternative, size_t start, size_t end,
                      struct point *candidate)
{
    static const struct front none = {0, NULL};
    const struct front *a = alternative->a ? alternative->a : &none, *b = alternative->b ? alternative->b : &none;
    const struct front *best = &envelope->best;
    int i = a->count ? front_at(a, start - alternative->shift) : 0, j = b->count ? front_at(b, start) : 0;
    int at = front_at(best, start), count = 0;
    bool better = false;
    for (size_t peak = start;;) {
        double time = alternative->time + (a->count ? a->point[i].time : 0) + (b->count ? b->point[j].time : 0);
        while (at + 1 < best->count && best->point[at + 1].peak <= peak) at++;
        better |= at < 0 || time < best->point[at].time;
        candidate[count++] = (struct point){peak, time};
        size_t next_a = i + 1 < a->count ? a->point[i + 1].peak + alternative->shift : SIZE_MAX;
        size_t next_b = j + 1 < b->count ? b->point[j + 1].peak : SIZE_MAX;
        peak = next_a < next_b ? next_a : next_b;
        if (peak >= end) break;
        i += next_a == peak;
        j += next_b == peak;
    }
    return better ? count : 0;
}

/* The lower envelope of the best so far and the candidates becomes the best. */
static void merge(struct envelope *envelope, int candidates)
{
    struct front *best = &envelope->best;
    int room = envelope->room;
    reserve(&envelope->spare, &room, best->count + candidates);
    reserve(&best->point, &envelope->room, best->count + candidates);
    envelope->room = room < envelope->room ? room : envelope->room;
    const struct point *x = best->point, *x_end = x + best->count;
    const struct point *y = envelope->candidate, *y_end = y + candidates;
    double least = INFINITY;
    int count = 0;
    while (x < x_end || y < y_end) {
        const struct point *next = y == y_end || (x < x_end && x->peak <= y->peak) ? x++ : y++;
        if (!(next->time < least)) continue;
        least = next->time;
        if (count && envelope->spare[count - 1].peak == next->peak) count--;
        envelope->spare[count++] = *next;
    }
    struct point *spare = best->point;
    *best = (struct front){count, envelope->spare};
    envelope->spare = spare;
}

void envelope_add(struct envelope *envelope, const struct alternative *alternative)
{
    const struct front *a = alternative->a, *b = alternative->b;
    if ((a && !a->count) || (b && !b->count)) return;
    size_t start = alternative->floor;
    double least = alternative->time;
    int steps = 1;
    if (a) {
        if (a->point[0].peak + alternative->shift > start) start = a->point[0].peak + alternative->shift;
        least += a->point[a->count - 1].time;
        steps += a->count;
    }
    if (b) {
        if (b->point[0].peak > start) start = b->point[0].peak;
        least += b->point[b->count - 1].time;
        steps += b->count;
    }
    size_t end = reached(&envelope->best, least);
    if (envelope->most < end) end = envelope->most + 1;
    if (start >= end) return; /* nowhere better */
    reserve(&envelope->candidate, &envelope->candidates_room, steps);
    int count = list_steps(envelope, alternative, start, end, envelope->candidate);
    if (count) merge(envelope, count);
}

void envelope_take(struct envelope *envelope, struct region *region, struct front *front)
{
    front->count = envelope->best.count;
    NEW(region, front->point, (size_t)front->count);
    if (front->count) memcpy(front->point, envelope->best.point, (size_t)front->count * sizeof *front->point);
    envelope->best.count = 0;
}

void envelope_free(struct envelope *envelope)
{
    free(envelope->best.point);
    free(envelope->spare);
    free(envelope->candidate);
    *envelope = (struct envelope){.most = envelope->most};
}
