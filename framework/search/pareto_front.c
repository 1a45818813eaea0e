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

/* Index of the first point in [low, high) with more than peak bytes, or high. Without a branch that depends on points,
 * as most of the time of a large problem is spent here. */
static int above(const struct point *point, int low, int high, size_t peak)
{
    const struct point *at = point + low;
    int count = high - low;
    if (count <= 0) return high;
    while (count > 1) {
        const int half = count / 2;
        at += at[half - 1].peak <= peak ? half : 0;
        count -= half;
    }
    return (int)(at - point) + (at->peak <= peak);
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

/* The alternative and the best so far over peaks [start, end): first and last, the points of a, b and the best in force
 * at its ends; -1 of the best: none yet. */
struct stretch {
    size_t start, end;
    int a_first, a_last, b_first, b_last, best_first, best_last, ceiling_first, ceiling_last;
};

struct comparison {
    struct envelope *envelope;
    const struct alternative *alternative;
    const struct point *a, *b; /* one point of no bytes and no time where the alternative has no such front */
    const struct front *ceiling;
    int count; /* candidates */
};

enum { STRETCH_POINTS = 8 };

static double time_at(const struct comparison *c, int i, int j)
{
    return c->alternative->time + c->a[i].time + c->b[j].time;
}

/* Adds the alternative's steps in the stretch that are below the best so far to the candidates. */
static void list_steps(struct comparison *c, const struct stretch *s)
{
    const struct front *best = &c->envelope->best;
    const size_t shift = c->alternative->shift;
    int i = s->a_first, j = s->b_first, at = s->best_first;
    for (size_t peak = s->start;;) {
        const double time = time_at(c, i, j);
        while (at < s->best_last && best->point[at + 1].peak <= peak) at++;
        if (at < 0 || time < best->point[at].time)
            if (!c->count || time < c->envelope->candidate[c->count - 1].time)
                c->envelope->candidate[c->count++] = (struct point){peak, time};
        const size_t next_a = i < s->a_last ? c->a[i + 1].peak + shift : SIZE_MAX;
        const size_t next_b = j < s->b_last ? c->b[j + 1].peak : SIZE_MAX;
        peak = next_a < next_b ? next_a : next_b;
        if (peak >= s->end) return;
        i += next_a == peak;
        j += next_b == peak;
    }
}

/* The same for a stretch of any length: it is halved, and left out where the alternative at its end is no faster than
 * the best so far at its start. */
static void compare(struct comparison *c, const struct stretch *s)
{
    const struct front *best = &c->envelope->best;
    const double least = time_at(c, s->a_last, s->b_last);
    c->envelope->steps--;
    if (s->best_first >= 0 && least >= best->point[s->best_first].time) return;
    if (s->ceiling_first >= 0 && least > c->ceiling->point[s->ceiling_first].time + c->envelope->above) return;
    const int a_steps = s->a_last - s->a_first, b_steps = s->b_last - s->b_first;
    if (a_steps + b_steps <= STRETCH_POINTS) {
        list_steps(c, s);
        return;
    }
    struct stretch low = *s, high = *s;
    const size_t shift = c->alternative->shift;
    size_t middle;
    if (a_steps > b_steps) {
        high.a_first = s->a_first + (a_steps + 1) / 2;
        low.a_last = high.a_first - 1;
        middle = c->a[high.a_first].peak + shift;
        high.b_first = above(c->b, s->b_first + 1, s->b_last + 1, middle) - 1;
        low.b_last = high.b_first - (high.b_first > s->b_first && c->b[high.b_first].peak == middle);
    } else {
        high.b_first = s->b_first + (b_steps + 1) / 2;
        low.b_last = high.b_first - 1;
        middle = c->b[high.b_first].peak;
        high.a_first = middle < shift ? s->a_first : above(c->a, s->a_first + 1, s->a_last + 1, middle - shift) - 1;
        low.a_last = high.a_first - (high.a_first > s->a_first && c->a[high.a_first].peak + shift == middle);
    }
    low.end = high.start = middle;
    high.best_first = above(best->point, s->best_first + 1, s->best_last + 1, middle) - 1;
    low.a_last = high.a_first - (high.a_first > s->a_first && c->a[high.a_first].peak + shift == middle);
    low.b_last = high.b_first - (high.b_first > s->b_first && c->b[high.b_first].peak == middle);
    low.best_last = high.best_first;
    high.ceiling_first = above(c->ceiling->point, s->ceiling_first + 1, s->ceiling_last + 1, middle) - 1;
    low.ceiling_last = high.ceiling_first;
    compare(c, &low);
    compare(c, &high);
}

/* The lower envelope of the best so far and the candidates, which are below it, becomes the best. */
static void merge(struct envelope *envelope, int candidates)
{
    struct front *best = &envelope->best;
    const struct point *candidate = envelope->candidate;
    reserve(&envelope->spare, &envelope->spare_room, best->count + candidates);
    const int from = candidate[0].peak ? above(best->point, 0, best->count, candidate[0].peak - 1) : 0;
    double least = from ? best->point[from - 1].time : INFINITY;
    int count = 0, x = from;
    for (int y = 0; y < candidates || (x < best->count && best->point[x].time >= least);) {
        const bool old = y == candidates || (x < best->count && best->point[x].peak <= candidate[y].peak);
        const struct point *next = old ? &best->point[x++] : &candidate[y++];
        if (!(next->time < least)) continue;
        least = next->time;
        if (count && envelope->spare[count - 1].peak == next->peak) count--;
        envelope->spare[count++] = *next;
    }
    const int rest = best->count - x;
    reserve(&best->point, &envelope->room, from + count + rest);
    memmove(best->point + from + count, best->point + x, (size_t)rest * sizeof *best->point);
    memcpy(best->point + from, envelope->spare, (size_t)count * sizeof *best->point);
    best->count = from + count + rest;
}

void envelope_add(struct envelope *envelope, const struct alternative *alternative)
{
    static const struct point zero = {0, 0};
    static const struct front none = {0, NULL};
    const struct front *a = alternative->a, *b = alternative->b, *best = &envelope->best;
    if ((a && !a->count) || (b && !b->count)) return;
    struct comparison c = {envelope,
                           alternative,
                           a ? a->point : &zero,
                           b ? b->point : &zero,
                           envelope->ceiling ? envelope->ceiling : &none,
                           0};
    const int a_count = a ? a->count : 1, b_count = b ? b->count : 1;
    const double least = time_at(&c, a_count - 1, b_count - 1);
    struct stretch s = {.start = alternative->floor, .end = reached(best, least)};
    if (a && c.a[0].peak + alternative->shift > s.start) s.start = c.a[0].peak + alternative->shift;
    if (c.b[0].peak > s.start) s.start = c.b[0].peak;
    if (s.start >= s.end) return; /* nowhere better */
    const size_t useful = reached(c.ceiling, least - envelope->above);
    if (useful < s.end) s.end = useful;
    if (envelope->most < s.end) s.end = envelope->most + 1;
    if (s.start >= s.end) return;
    const size_t shift = a ? alternative->shift : 0, last = s.end - 1;
    s.a_first = above(c.a, 0, a_count, s.start - shift) - 1;
    s.b_first = above(c.b, 0, b_count, s.start) - 1;
    s.best_first = above(best->point, 0, best->count, s.start) - 1;
    s.ceiling_first = above(c.ceiling->point, 0, c.ceiling->count, s.start) - 1;
    s.a_last = above(c.a, s.a_first, a_count, last - shift) - 1;
    s.b_last = above(c.b, s.b_first, b_count, last) - 1;
    s.best_last = above(best->point, s.best_first + 1, best->count, last) - 1;
    s.ceiling_last = above(c.ceiling->point, s.ceiling_first + 1, c.ceiling->count, last) - 1;
    reserve(&envelope->candidate, &envelope->candidates_room, a_count + b_count);
    compare(&c, &s);
    if (c.count) merge(envelope, c.count);
}

/* Leaves at most points points of a front: of those that are close to each other in bytes and in time, the fastest. */
static void thin(struct front *front, int points)
{
    struct point *point = front->point;
    if (!points || front->count <= points) return;
    const struct point low = point[0], high = point[front->count - 1];
    const double bytes = (double)(high.peak - low.peak), time = low.time - high.time;
    int count = 0;
    double before = -1;
    for (int i = front->count - 1; i >= 0; i--) {
        const double part = (double)(high.peak - point[i].peak) / bytes + (point[i].time - high.time) / time;
        const double at = floor(part * points / 2);
        if (at > before || i == 0) {
            point[front->count - 1 - count++] = point[i];
            before = at;
        }
    }
    memmove(point, point + front->count - count, (size_t)count * sizeof *point);
    front->count = count;
}

void envelope_take(struct envelope *envelope, struct region *region, struct front *front)
{
    thin(&envelope->best, envelope->points);
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
