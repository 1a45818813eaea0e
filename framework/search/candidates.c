#include "search/candidates.h"

#include <math.h>
#include <stdlib.h>

/* Backwards of nodes due - 1 down to from, with what those of the original state of relus. */
static void append_backwards(struct schedule *schedule, int from, int due, const struct schedule *original)
{
    for (size_t i = 0; i < original->steps; i++) {
        const struct step *s = &original->step[i];
        if (s->kind != STEP_BACKWARD || s->from >= due || s->to <= from) continue;
        schedule_append_backward(schedule, s->from > from ? s->from : from, s->to < due ? s->to : due, s->relu);
    }
}

/* Whether the op is half a backward, and there are forwards before the other half. */
static bool is_apart(const struct lowered *l, int op)
{
    int next = op + 1;
    if (l->op[op].kind != OP_BACKWARD) return false;
    while (next < l->ops && l->op[next].kind == OP_FORWARD) next++;
    return next > op + 1 && next < l->ops && l->op[next].kind == OP_BACKWARD && l->op[next].node == l->op[op].node;
}

/* The schedule of the ops that the original was lowered to. A node's backward stands at the first of its ops; that of a
 * node without ops may stand anywhere. */
static void append_lowered(const struct lowered *l, const struct schedule *original, int nodes,
                           struct schedule *schedule)
{
    int due = nodes; /* backwards of nodes from here on are written */
    for (int i = 0; i < l->ops; i++) {
        const struct op *op = &l->op[i];
        if (op->kind == OP_COPY) continue; /* its node's backward follows */
        if (op->kind == OP_FORWARD) {
            schedule_append(schedule, STEP_FORWARD, op->node, op->node + 1);
        } else if (is_apart(l, i)) {
            append_backwards(schedule, op->node + 1, due, original);
            schedule_append(schedule, STEP_PARAMS, op->node, op->node + 1);
            due = op->node + 1;
        } else if (op->node < due) {
            append_backwards(schedule, op->node, due, original);
            due = op->node;
        }
    }
    append_backwards(schedule, 0, due, original);
}

/* The plan of a schedule that is a candidate now, whose own schedule is still empty; NULL: another is as good. */
static struct plan *add(struct candidate_points *candidates, const struct network *network, enum rng_mode rng,
                        const struct schedule *schedule, const char *policy, struct region *region)
{
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = rng}, .unplaced = true};
    struct plan *plan = plan_build(network, schedule, &options);
    bool better = true;
    for (int i = 0; i < candidates->count; i++) {
        const struct point *other = &candidates->candidate[i].point;
        better &= other->peak > plan->live_peak || other->time > plan->time;
    }
    if (!better) {
        plan_destroy(plan);
        return NULL;
    }
    region_grow(region, &candidates->candidate, candidates->count, sizeof *candidates->candidate);
    candidates->candidate[candidates->count++] =
        (struct candidate_point){policy, {plan->live_peak, plan->time}, schedule_empty(region)};
    return plan;
}

void candidate_points_add(struct candidate_points *candidates, const struct network *network, enum rng_mode rng,
                          const struct schedule *schedule, const char *policy, struct region *region)
{
    struct plan *plan = add(candidates, network, rng, schedule, policy, region);
    if (!plan) return;
    append_lowered(&plan->lowered, schedule, network->graph->nodes,
                   &candidates->candidate[candidates->count - 1].schedule);
    plan_destroy(plan);
}

void candidate_points_add_as_is(struct candidate_points *candidates, const struct network *network, enum rng_mode rng,
                                const struct schedule *schedule, const char *policy, struct region *region)
{
    struct plan *plan = add(candidates, network, rng, schedule, policy, region);
    if (plan) schedule_append_all(&candidates->candidate[candidates->count - 1].schedule, schedule);
    plan_destroy(plan);
}

struct merged_point {
    struct point point;
    const struct candidate_point *origin;
};

/* By peak, then time; of equal points the front's first. */
static int by_peak(const void *x, const void *y)
{
    const struct merged_point *a = x, *b = y;
    if (a->point.peak != b->point.peak) return a->point.peak < b->point.peak ? -1 : 1;
    if (a->point.time != b->point.time) return a->point.time < b->point.time ? -1 : 1;
    return (a->origin != NULL) - (b->origin != NULL);
}

void candidate_points_merge(const struct candidate_points *candidates, size_t most, struct region *region,
                            struct front *front, const struct candidate_point ***origin)
{
    struct merged_point *all;
    const size_t room = (size_t)front->count + (size_t)candidates->count;
    size_t count = 0;
    double least = INFINITY;
    struct front merged = {0, NULL};
    NEW(region, all, room);
    NEW(region, merged.point, room);
    NEW(region, *origin, room);
    for (int i = 0; i < front->count; i++) all[count++] = (struct merged_point){front->point[i], NULL};
    for (int i = 0; i < candidates->count; i++)
        if (candidates->candidate[i].point.peak <= most)
            all[count++] = (struct merged_point){candidates->candidate[i].point, &candidates->candidate[i]};
    qsort(all, count, sizeof *all, by_peak);
    for (size_t i = 0; i < count; i++) {
        if (!(all[i].point.time < least)) continue;
        least = all[i].point.time;
        merged.point[merged.count] = all[i].point;
        (*origin)[merged.count++] = all[i].origin;
    }
    *front = merged;
}
