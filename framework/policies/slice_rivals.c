#include "policies/slice_rivals.h"

#include "policies/rivals.h"

enum { POINTS_MAX = 24 }; /* of a front that is combined with another */

/* Appends a step's part within nodes [from, to), moved by shift. */
static void append_within(struct schedule *schedule, const struct step *step, int from, int to, int shift, int slice)
{
    struct step s = *step;
    if (s.from < from) s.from = from;
    if (s.to > to) s.to = to;
    s.from += shift;
    s.to += shift;
    s.slice = slice;
    if (s.from < s.to) schedule_append_step(schedule, s);
}

/* Appends nodes [from, to) of inner for each slice; moved by shift. */
static void append_slices(struct schedule *schedule, const struct schedule *inner, int from, int to, int shift,
                          int slices)
{
    for (int k = 0; k < slices; k++)
        for (size_t i = 0; i < inner->steps; i++) append_within(schedule, &inner->step[i], from, to, shift, k);
}

static void add(struct optimum *o, const struct schedule *schedule, enum rng_mode rng)
{
    candidate_points_add_as_is(&o->candidates, o->target, rng, schedule, "slices", o->region);
}

/* The whole network for one slice after the other. */
static void add_batches(struct optimum *o, enum rng_mode rng)
{
    struct region *region = region_create();
    const int nodes = o->target->graph->nodes, slices = (int)o->target->graph->slices;
    struct optimum *slice = rivals_front(network_of_slice(o->target, region), rng);
    for (int point = 0; point < slice->front.count; point++) {
        struct schedule inner = schedule_empty(region), all = schedule_empty(region);
        optimum_schedule(slice, point, &inner);
        append_slices(&all, &inner, 0, nodes, 0, slices);
        add(o, &all, rng);
    }
    optimum_destroy(slice);
    region_destroy(region);
}

/* The front of nodes before a cut, for a slice, or behind it, for the batch: with a stand-in for the others. */
struct stretch {
    struct subnetwork network;
    struct optimum *optimum;
    int points; /* that are combined: up to POINTS_MAX, from the least memory to the least time */
};

static struct stretch *solve(const struct network *network, int from, int to, enum rng_mode rng, struct region *region)
{
    struct stretch *stretch;
    NEW(region, stretch, 1);
    const bool before = from == 0;
    subnetwork_cut(network, from, to, before, false, rng, region, &stretch->network);
    for (int i = 0; i < from; i++) /* the source stands for nodes that may be computed again */
        stretch->network.network.cost[0].forward += network->cost[i].forward;
    stretch->optimum = optimum_solve(&stretch->network.network, rng);
    const int count = stretch->optimum->front.count;
    stretch->points = count < POINTS_MAX ? count : POINTS_MAX;
    return stretch;
}

/* The i-th point that is combined. */
static int point_of(const struct stretch *stretch, int i)
{
    const int last = stretch->optimum->front.count - 1;
    return stretch->points > 1 ? (int)((int64_t)i * last / (stretch->points - 1)) : last;
}

/* Nodes [0, cut) by before, for one slice at a time, the others by behind. */
static void combine(struct optimum *o, int cut, const struct schedule *before, const struct schedule *behind,
                    struct region *region, enum rng_mode rng)
{
    const struct slicing slicing = graph_slicing(o->target->graph);
    struct schedule all = schedule_empty(region);
    const int end = slicing.nodes - cut + 1;
    for (size_t i = 0; i < behind->steps; i++) {
        const struct step *s = &behind->step[i];
        if (s->kind == STEP_FORWARD && s->from == 0) schedule_append_sliced(&all, &slicing, 0, cut);
        append_within(&all, s, 1, end, cut - 1, WHOLE_BATCH);
        if (s->kind == STEP_BACKWARD && s->from == 0) append_slices(&all, before, 1, cut + 1, -1, slicing.slices);
    }
    add(o, &all, rng);
}

/* Each schedule of one part with the fastest of the other that takes no more memory: more would not lower the peak. A
 * slice is differentiated beside the gradient of the batch at the cut. */
static void add_cut(struct optimum *o, const struct network *slice, int cut, enum rng_mode rng)
{
    struct region *region = region_create();
    const struct graph *graph = o->target->graph;
    const struct stretch *before = solve(slice, 0, cut, rng, region);
    const struct stretch *behind = solve(o->network, cut, graph->nodes, rng, region);
    const size_t beside = network_round(o->network, graph->value[cut].gradient_bytes);
    for (int side = 0; side < 2; side++) {
        const struct stretch *one = side ? before : behind, *other = side ? behind : before;
        for (int i = 0; i < one->points; i++) {
            const size_t peak = one->optimum->front.point[point_of(one, i)].peak;
            const size_t room = side ? peak + beside : peak > beside ? peak - beside : 0;
            int match = front_at(&other->optimum->front, room);
            if (match < 0) match = 0;
            struct schedule first = schedule_empty(region), second = schedule_empty(region);
            optimum_schedule(one->optimum, point_of(one, i), &first);
            optimum_schedule(other->optimum, match, &second);
            combine(o, cut, side ? &first : &second, side ? &second : &first, region, rng);
        }
    }
    optimum_destroy(before->optimum);
    optimum_destroy(behind->optimum);
    region_destroy(region);
}

void slice_rivals_add(struct optimum *o, enum rng_mode rng)
{
    const struct slicing slicing = graph_slicing(o->target->graph);
    int whole = 0; /* the first whole node */
    while (whole < slicing.nodes && !slicing_whole(&slicing, whole)) whole++;
    if (whole == slicing.nodes) {
        add_batches(o, rng);
        return;
    }
    struct region *region = region_create();
    const struct node_ranges stages = stages_find(o->target->graph, region);
    const struct network *slice = network_of_slice(o->target, region);
    for (int s = 0; s < stages.count && stages.range[s].to <= whole; s++)
        if (o->target->graph->value[stages.range[s].to].wants_gradient) add_cut(o, slice, stages.range[s].to, rng);
    region_destroy(region);
}
