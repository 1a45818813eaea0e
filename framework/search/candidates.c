#include "search/candidates.h"

#include <math.h>
#include <stdlib.h>

/* Nodes' backwards from due - 1 down to from; they say of relus what those of said say. */
static enum status append_backwards(struct schedule *schedule, int from, int due, const struct schedule *said)
{
    for (size_t i = 0; i < said->steps; i++) {
        const struct step *s = &said->step[i];
        if (s->kind != STEP_BACKWARD || s->from >= due || s->to <= from) continue;
        schedule_append_backward(schedule, s->from > from ? s->from : from, s->to < due ? s->to : due, s->relu);
    }
    return ST_OK;
}

/* The schedule of what was lowered of said. A node's backward stands where the first of its ops is; of nodes that have
 * none it does not matter. */
static enum status word_again(const struct lowered *l, const struct schedule *said, int nodes,
                              struct schedule *schedule)
{
    int due = nodes; /* backwards of nodes from here on are written */
    for (int i = 0; i < l->ops; i++) {
        const struct op *op = &l->op[i];
        if (op->kind == OP_FORWARD) {
            schedule_append(schedule, STEP_FORWARD, op->node, op->node + 1);
        } else if (op->node < due) {
            TRY(append_backwards(schedule, op->node, due, said));
            due = op->node;
        }
    }
    return append_backwards(schedule, 0, due, said);
}

enum status candidate_points_add(struct candidate_points *offers, const struct network *network, enum rng_mode rng,
                                 const struct schedule *schedule, const char *by, struct region *region)
{
    const struct lower_options options = {.drop_dead = true, .rng = rng};
    const int nodes = network->graph->nodes;
    struct candidate_point offer = {.by = by, .schedule = schedule_empty(region)};
    struct point *point = &offer.point;
    const struct network *seen;
    struct lowered l;
    size_t *live;
    seen = plan_network(network, schedule, schedule->region);
    TRY(lower(seen, schedule, &options, schedule->region, &l));
    NEW(schedule->region, live, (size_t)l.ops + 1);
    point->peak = buffers_live(l.buffer, l.buffers, l.ops, live);
    for (int i = 0; i < l.ops; i++) point->time += l.op[i].kind == OP_FORWARD ? network->cost[l.op[i].node].forward : 0;
    for (int i = 0; i < nodes; i++) point->time += network_backward_time(network, i);
    for (int i = 0; i < offers->count; i++)
        if (offers->offer[i].point.peak <= point->peak && offers->offer[i].point.time <= point->time) return ST_OK;
    region_grow(region, &offers->offer, offers->count, sizeof *offers->offer);
    TRY(word_again(&l, schedule, nodes, &offer.schedule));
    offers->offer[offers->count++] = offer;
    return ST_OK;
}

/* A point and the offer that it is. */
struct candidate {
    struct point point;
    const struct candidate_point *offer;
};

/* By peak, then time; of equals that which is no offer. */
static int by_peak(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->point.peak != b->point.peak) return a->point.peak < b->point.peak ? -1 : 1;
    if (a->point.time != b->point.time) return a->point.time < b->point.time ? -1 : 1;
    return (a->offer != NULL) - (b->offer != NULL);
}

enum status candidate_points_merge(const struct candidate_points *offers, size_t most, struct region *region,
                                   struct front *front, const struct candidate_point ***offered)
{
    struct candidate *candidate;
    const size_t room = (size_t)front->count + (size_t)offers->count;
    size_t count = 0;
    double least = INFINITY;
    struct front merged = {0, NULL};
    NEW(region, candidate, room);
    NEW(region, merged.point, room);
    NEW(region, *offered, room);
    for (int i = 0; i < front->count; i++) candidate[count++] = (struct candidate){front->point[i], NULL};
    for (int i = 0; i < offers->count; i++)
        if (offers->offer[i].point.peak <= most)
            candidate[count++] = (struct candidate){offers->offer[i].point, &offers->offer[i]};
    qsort(candidate, count, sizeof *candidate, by_peak);
    for (size_t i = 0; i < count; i++) {
        if (!(candidate[i].point.time < least)) continue;
        least = candidate[i].point.time;
        merged.point[merged.count] = candidate[i].point;
        (*offered)[merged.count++] = candidate[i].offer;
    }
    *front = merged;
    return ST_OK;
}
