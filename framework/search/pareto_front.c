#include "search/pareto_front.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

int front_at(const struct front *front, size_t peak) { return above(front->point, 0, front->count, peak) - 1; }

/* As above(), without a branch. */
int front_in_time(const struct front *front, double time)
{
    const struct point *at = front->point;
    int count = front->count;
    if (!count) return 0;
    while (count > 1) {
        const int half = count / 2;
        at += at[half - 1].time > time ? half : 0;
        count -= half;
    }
    return (int)(at - front->point) + (at->time > time);
}

static size_t peak_at(const struct front *front, int point)
{
    return point < front->count ? front->point[point].peak : SIZE_MAX;
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
    const struct point *best = c->envelope->best.point, *a = c->a + s->a_first, *b = c->b + s->b_first;
    const struct point *const a_last = c->a + s->a_last, *const b_last = c->b + s->b_last;
    const size_t shift = c->alternative->shift, end = s->end;
    const double before = c->alternative->time;
    struct point *next = c->envelope->candidate + c->count;
    double least = c->count ? next[-1].time : INFINITY;
    int at = s->best_first;
    for (size_t peak = s->start;;) {
        const double time = before + a->time + b->time;
        while (at < s->best_last && best[at + 1].peak <= peak) at++;
        if (time < least && (at < 0 || time < best[at].time)) *next++ = (struct point){peak, least = time};
        const size_t next_a = a < a_last ? a[1].peak + shift : SIZE_MAX;
        const size_t next_b = b < b_last ? b[1].peak : SIZE_MAX;
        peak = next_a < next_b ? next_a : next_b;
        if (peak >= end) break;
        a += next_a == peak;
        b += next_b == peak;
    }
    c->count = (int)(next - c->envelope->candidate);
}

/* Whether an alternative that takes at least so much time is of no use from the stretch's start on. */
static bool is_useless(const struct comparison *c, const struct stretch *s, double least)
{
    c->envelope->steps--;
    return (s->best_first >= 0 && least >= c->envelope->best.point[s->best_first].time) ||
           (s->ceiling_first >= 0 && least > c->ceiling->point[s->ceiling_first].time + c->envelope->above);
}

/* The same for a stretch of any length: it is halved, and left out where the alternative at its end, least, is no
 * faster than the best so far at its start. */
static void compare(struct comparison *c, struct stretch *s, double least)
{
    while (!is_useless(c, s, least)) {
        const int a_steps = s->a_last - s->a_first, b_steps = s->b_last - s->b_first;
        if (a_steps + b_steps <= STRETCH_POINTS) {
            list_steps(c, s);
            return;
        }
        struct stretch low = *s;
        const size_t shift = c->alternative->shift;
        size_t middle;
        if (a_steps > b_steps) {
            s->a_first += (a_steps + 1) / 2;
            middle = c->a[s->a_first].peak + shift;
            s->b_first = above(c->b, low.b_first + 1, s->b_last + 1, middle) - 1;
        } else {
            s->b_first += (b_steps + 1) / 2;
            middle = c->b[s->b_first].peak;
            if (middle >= shift) s->a_first = above(c->a, low.a_first + 1, s->a_last + 1, middle - shift) - 1;
        }
        low.a_last = s->a_first - (s->a_first > low.a_first && c->a[s->a_first].peak + shift == middle);
        low.b_last = s->b_first - (s->b_first > low.b_first && c->b[s->b_first].peak == middle);
        low.end = s->start = middle;
        s->best_first = above(c->envelope->best.point, low.best_first + 1, s->best_last + 1, middle) - 1;
        s->ceiling_first = above(c->ceiling->point, low.ceiling_first + 1, s->ceiling_last + 1, middle) - 1;
        low.best_last = s->best_first;
        low.ceiling_last = s->ceiling_first;
        compare(c, &low, time_at(c, low.a_last, low.b_last));
    }
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
    const int best_end = front_in_time(best, least);
    struct stretch s = {.start = alternative->floor, .end = peak_at(best, best_end)};
    if (a && c.a[0].peak + alternative->shift > s.start) s.start = c.a[0].peak + alternative->shift;
    if (c.b[0].peak > s.start) s.start = c.b[0].peak;
    if (s.start >= s.end) return; /* nowhere better */
    const int ceiling_end = front_in_time(c.ceiling, least - envelope->above);
    if (peak_at(c.ceiling, ceiling_end) < s.end) s.end = c.ceiling->point[ceiling_end].peak;
    if (envelope->most < s.end) s.end = envelope->most + 1;
    if (s.start >= s.end) return;
    const size_t shift = a ? alternative->shift : 0, last = s.end - 1;
    s.a_first = above(c.a, 0, a_count, s.start - shift) - 1;
    s.b_first = above(c.b, 0, b_count, s.start) - 1;
    s.best_first = above(best->point, 0, best_end, s.start) - 1;
    s.ceiling_first = above(c.ceiling->point, 0, ceiling_end, s.start) - 1;
    s.a_last = above(c.a, s.a_first, a_count, last - shift) - 1;
    s.b_last = above(c.b, s.b_first, b_count, last) - 1;
    s.best_last = above(best->point, s.best_first + 1, best_end, last) - 1;
    s.ceiling_last = above(c.ceiling->point, s.ceiling_first + 1, ceiling_end, last) - 1;
    reserve(&envelope->candidate, &envelope->candidates_room, a_count + b_count);
    compare(&c, &s, time_at(&c, s.a_last, s.b_last));
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
