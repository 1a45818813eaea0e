#include "policies/slice_rivals.h"

#include "plan/stages.h"

/* Points of fronts that are run by slices, or combined, and cuts. */
enum { BATCHES_MAX = 64, BEFORE_MAX = 6, BEHIND_MAX = 12, CUTS_MAX = 24 };

/* Adds schedules of all slices one after the other, each run by slices. */
static void add(struct optimum *o, const struct schedule *part, int parts, enum rng_mode rng)
{
    const struct slicing slicing = graph_slicing(o->target->graph);
    struct schedule schedule = schedule_empty(part->region);
    for (int i = 0; i < parts; i++) schedule_append_by_slice(&schedule, &slicing, &part[i]);
    candidate_points_add_as_is(&o->candidates, o->target, rng, &schedule, "slices", o->region);
}

void slice_rivals_add_batches(struct optimum *o, const struct optimum *slice, enum rng_mode rng)
{
    struct region *region = region_create();
    const int last = slice->front.count - 1, points = last < BATCHES_MAX ? last + 1 : BATCHES_MAX;
    for (int i = 0; i < points; i++) {
        struct schedule schedule = schedule_empty(region);
        optimum_schedule(slice, points > 1 ? i * last / (points - 1) : last, &schedule);
        add(o, &schedule, 1, rng);
    }
    region_destroy(region);
}

/* The front of the nodes before a cut, for a slice, or behind it, for the batch. A stand-in for the others is their
 * node 0, and behind those before the cut the last. */
struct stretch {
    struct subnetwork network;
    struct optimum *optimum;
    int points; /* that are combined, from the least memory to the least time */
};

static struct stretch *solve(const struct network *network, int from, int to, int most, enum rng_mode rng,
                             struct region *region)
{
    struct stretch *stretch;
    NEW(region, stretch, 1);
    subnetwork_cut(network, from, to, from == 0, false, rng, region, &stretch->network);
    for (int i = 0; i < from; i++) /* the nodes before may be computed again */
        stretch->network.network.cost[0].forward += network->cost[i].forward;
    stretch->optimum = optimum_solve(&stretch->network.network, rng);
    const int count = stretch->optimum->front.count;
    stretch->points = count < most ? count : most;
    return stretch;
}

/* The schedule of the i-th point that is combined. */
static struct schedule point_schedule(const struct stretch *stretch, int i, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    const int last = stretch->optimum->front.count - 1;
    optimum_schedule(stretch->optimum, stretch->points > 1 ? i * last / (stretch->points - 1) : last, &schedule);
    return schedule;
}

/* Appends a step's part within nodes [from, to), moved by shift. */
static void append_within(struct schedule *schedule, struct step step, int from, int to, int shift)
{
    step.from = (step.from < from ? from : step.from) + shift;
    step.to = (step.to > to ? to : step.to) + shift;
    if (step.from < step.to) schedule_append_step(schedule, step);
}

/* Nodes [0, cut) are computed, and again at the end, by before; the others by behind. A slice passes the cut before the
 * next begins, or all of them reach it first: in both directions, at the end, or never. */
static void combine(struct optimum *o, int cut, const struct schedule *before, const struct schedule *behind,
                    struct region *region, enum rng_mode rng)
{
    enum { HEAD, MIDDLE, AGAIN, PARTS };
    const int end = o->target->graph->nodes - cut + 1;
    struct schedule part[PARTS] = {schedule_empty(region), schedule_empty(region), schedule_empty(region)};
    for (size_t i = 0; i < behind->steps; i++) {
        const struct step s = behind->step[i];
        if (s.kind == STEP_FORWARD && s.from == 0)
            schedule_append(i == 0 ? &part[HEAD] : &part[MIDDLE], STEP_FORWARD, 0, cut);
        append_within(&part[MIDDLE], s, 1, end, cut - 1);
    }
    for (size_t i = 0; i < before->steps; i++) append_within(&part[AGAIN], before->step[i], 1, cut + 1, -1);
    for (int parts = PARTS; parts > 0; parts--) {
        add(o, part, parts, rng);
        if (parts == PARTS) schedule_append_all(&part[HEAD], &part[MIDDLE]), part[MIDDLE] = part[AGAIN];
        if (parts == PARTS - 1) schedule_append_all(&part[HEAD], &part[MIDDLE]);
    }
}

static void add_cut(struct optimum *o, const struct network *slice, int cut, enum rng_mode rng)
{
    struct region *region = region_create();
    const struct stretch *before = solve(slice, 0, cut, BEFORE_MAX, rng, region);
    const struct stretch *behind = solve(o->network, cut, o->target->graph->nodes, BEHIND_MAX, rng, region);
    for (int i = 0; i < before->points; i++) {
        const struct schedule first = point_schedule(before, i, region);
        for (int k = 0; k < behind->points; k++) {
            const struct schedule second = point_schedule(behind, k, region);
            combine(o, cut, &first, &second, region, rng);
        }
    }
    optimum_destroy(before->optimum);
    optimum_destroy(behind->optimum);
    region_destroy(region);
}

/* The first node that is whole. */
static int first_whole(const struct slicing *slicing)
{
    int whole = 0;
    while (whole < slicing->nodes && !slicing_whole(slicing, whole)) whole++;
    return whole;
}

bool slice_rivals_are_batches(const struct network *network)
{
    const struct slicing slicing = graph_slicing(network->graph);
    return first_whole(&slicing) == slicing.nodes;
}

void slice_rivals_add_cuts(struct optimum *o, enum rng_mode rng)
{
    struct region *region = region_create();
    const struct slicing slicing = graph_slicing(o->target->graph);
    const struct node_ranges stages = stages_find(o->target->graph, region);
    const struct network *slice = network_of_slice(o->target, region);
    int cuts = 0; /* stages before the first whole node */
    while (cuts < stages.count && stages.range[cuts].to <= first_whole(&slicing)) cuts++;
    const int tried = cuts < CUTS_MAX ? cuts : CUTS_MAX;
    for (int i = 1; i <= tried; i++) {
        const int cut = stages.range[i * cuts / tried - 1].to;
        if (o->target->graph->value[cut].wants_gradient) add_cut(o, slice, cut, rng);
    }
    region_destroy(region);
}
