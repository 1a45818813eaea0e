#include "search/slices.h"

#include "plan/stages.h"
#include "search/limits.h"

/* Adds schedules of all slices one after the other, each run by slices. */
static void add(struct pool *pool, const struct schedule *part, int parts)
{
    const struct slicing slicing = graph_slicing(pool->network->graph);
    struct schedule schedule = schedule_empty(part->region);
    for (int i = 0; i < parts; i++) schedule_append_by_slice(&schedule, &slicing, &part[i]);
    pool_add(pool, &schedule, "slices");
}

/* Appends micro-batches of nodes [from, to). */
static void append_phase(struct schedule *part, int from, int to, struct region *region)
{
    *part = schedule_empty(region);
    schedule_append(part, STEP_FORWARD, from, to);
    schedule_append(part, STEP_BACKWARD, from, to);
}

/* Micro-batches of one phase after the other: the stages from tail on; those from head on, in phases of about as many
 * nodes; the stages before head. The first forward keeps what is between phases, and one phase's gradients of
 * parameters are live at a time. */
static void add_phases(struct pool *pool, const struct node_ranges *stages, int head, int tail, int phases)
{
    region_auto *region = region_create();
    struct schedule part[SLICES_PHASES + 3] = {schedule_empty(region)};
    const int first = stages->range[head].from, last = stages->range[tail].from;
    int parts = 1, end = last, stage = tail;
    schedule_append(&part[0], STEP_FORWARD, 0, last);
    append_phase(&part[parts++], last, pool->network->graph->nodes, region);
    for (int i = phases - 1; i >= 0 && end > first; i--) {
        while (stage > head && stages->range[stage].from > first + i * (last - first) / phases) stage--;
        const int from = stages->range[stage].from;
        if (from < end) append_phase(&part[parts++], from, end, region);
        end = from;
    }
    if (first > 0) append_phase(&part[parts++], 0, first, region);
    add(pool, part, parts);
}

void slices_add_batches(struct pool *pool, const struct pool *slice)
{
    region_auto *region = region_create();
    const struct member *const *origin;
    const struct front front = pool_front(slice, region, &origin);
    const int last = front.count - 1, points = last < SLICES_BATCHES ? last + 1 : SLICES_BATCHES;
    for (int i = 0; i < points; i++) {
        struct schedule schedule = schedule_empty(region);
        pool_schedule(slice, origin[points > 1 ? i * last / (points - 1) : last], &schedule);
        add(pool, &schedule, 1);
    }
    if (network_fused(pool->network)) {
        const struct node_ranges stages = stages_find(pool->network->graph, region);
        const int all = stages.count - 1, cuts = all < SLICES_PHASE_CUTS ? all : SLICES_PHASE_CUTS;
        for (int i = 1; i <= cuts; i++)
            for (int k = 0; k < 2 * SLICES_PHASES; k++) add_phases(pool, &stages, k % 2, i * all / cuts, k / 2 + 1);
    }
}

static struct node stand_in(const struct layer *layer, int index, bool backward)
{
    return (struct node){.name = layer->name,
                         .layer = layer,
                         .index = index,
                         .output = index + 1,
                         .group = -1,
                         .parameters = backward ? 1 : 0};
}

/* A network as the other one, with room for so many nodes. */
static struct network *new_network(const struct network *other, int nodes, struct region *region)
{
    struct network *network = network_copy(other, region);
    struct graph *g;
    NEW(region, g, 1);
    *g = *other->graph;
    g->nodes = nodes;
    g->values = nodes + 1;
    NEW(region, g->node, (size_t)g->nodes);
    NEW(region, g->value, (size_t)g->values);
    NEW(region, network->binding, (size_t)g->nodes);
    NEW(region, network->cost, (size_t)g->nodes);
    g->value[0] = other->graph->value[0];
    network->graph = g;
    return network;
}

/* Node at of the other network becomes node i. Values from number first on have numbers that are less lower. */
static void copy_node(struct network *network, int i, const struct network *other, int at, int first, int less,
                      struct region *region)
{
    const struct node *from = &other->graph->node[at];
    struct node *node = &network->graph->node[i];
    *node = *from;
    node->index = i;
    node->output = i + 1;
    NEW(region, node->inputs, (size_t)node->layer->inputs);
    for (int k = 0; k < node->layer->inputs; k++)
        node->inputs[k] = from->inputs[k] < first ? from->inputs[k] : from->inputs[k] - less;
    network->graph->value[i + 1] = other->graph->value[at + 1];
    network->binding[i] = other->binding[at];
    network->cost[i] = other->cost[at];
}

/* Nodes [from, to) alone: a source before them writes the value that they read, and where there is something before
 * them its backward reads that value; a sink after them reads their output and returns its gradient. */
static struct network *cut_stretch(const struct network *network, int from, int to, struct region *region)
{
    static const struct layer source = {.name = "source", .inputs = 0}, sink = {.name = "sink", .inputs = 1};
    const int end = to - from + 1;
    struct network *cut = new_network(network, end + 1, region);
    struct graph *g = cut->graph;
    if (from) g->value[1] = network->graph->value[from];
    g->node[0] = stand_in(&source, 0, g->value[1].wants_gradient);
    if (from) cut->binding[0].footprint.reads[PART_INDEX_PARAMS] = READS_Y;
    for (int i = 1; i < end; i++) copy_node(cut, i, network, from + i - 1, 1, from - 1, region);
    g->node[end] = stand_in(&sink, end, true);
    NEW(region, g->node[end].inputs, 1);
    g->node[end].inputs[0] = end;
    return cut;
}

/* Nodes [from, to) as one, which keeps nothing but its input and its output. */
static struct network *contract(const struct network *network, int from, int to, struct region *region)
{
    static const struct layer one = {.name = "stretch", .inputs = 1};
    const struct graph *whole = network->graph;
    const int gone = to - from - 1, nodes = whole->nodes - gone;
    struct network *contracted = new_network(network, nodes, region);
    struct graph *g = contracted->graph;
    for (int i = 0; i < nodes; i++)
        if (i != from) copy_node(contracted, i, network, i > from ? i + gone : i, to, gone, region);
    g->node[from] = stand_in(&one, from, true);
    g->node[from].first_parameter = whole->node[from].first_parameter;
    NEW(region, g->node[from].inputs, 1);
    g->node[from].inputs[0] = from;
    g->value[from + 1] = whole->value[to];
    contracted->binding[from] = (struct binding){.footprint = {.reads = {READS_X, READS_X}}};
    for (int i = from; i < to; i++) contracted->cost[from].forward += network->cost[i].forward;
    return contracted;
}

/* Points of a front, from the least memory to the least time. */
struct points {
    struct optimum *optimum;
    int count; /* that are combined */
};

static struct points solve(const struct network *network, int most, enum rng_mode rng)
{
    struct points points = {optimum_solve(network, rng), most};
    if (points.optimum->front.count < most) points.count = points.optimum->front.count;
    return points;
}

/* The schedule of the i-th point that is combined. */
static struct schedule point_schedule(const struct points *points, int i, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    const int last = points->optimum->front.count - 1;
    optimum_schedule(points->optimum, points->count > 1 ? i * last / (points->count - 1) : last, &schedule);
    return schedule;
}

/* Appends a step's part within nodes [from, to), moved by shift. */
static void append_within(struct schedule *schedule, struct step step, int from, int to, int shift)
{
    step.from = (step.from < from ? from : step.from) + shift;
    step.to = (step.to > to ? to : step.to) + shift;
    if (step.from < step.to) schedule_append_step(schedule, step);
}

/* Nodes [from, to) are one node of around, whose backward is again; node 0 of again stands for what is before them. A
 * slice passes on before the next begins, or all of them reach the first output and the backward of the stretch first,
 * or its backward alone. kept: the last nodes that again does not recompute, since what they saved is kept. */
static void combine(struct pool *pool, int from, int to, int kept, const struct schedule *around,
                    const struct schedule *again, struct region *region)
{
    enum { HEAD, MIDDLE, AGAIN, PARTS };
    const int gone = to - from - 1, end = pool->network->graph->nodes - gone;
    struct schedule part[PARTS] = {schedule_empty(region), schedule_empty(region), schedule_empty(region)};
    int at = HEAD;
    for (size_t i = 0; i < around->steps; i++) {
        const struct step s = around->step[i];
        const bool stretch = s.from <= from && s.to > from, forward = s.kind == STEP_FORWARD;
        append_within(&part[at], s, forward ? 0 : from + 1, forward ? from : end, forward ? 0 : gone);
        if (stretch && forward) schedule_append(&part[at], STEP_FORWARD, from, to);
        if (stretch && (!forward || at == HEAD)) at = forward ? MIDDLE : AGAIN;
        for (size_t k = 0; stretch && !forward && k < again->steps; k++) {
            const int last = to - from + 1 - (again->step[k].kind == STEP_FORWARD ? kept : 0);
            append_within(&part[AGAIN], again->step[k], 1, last, from - 1);
        }
        append_within(&part[at], s, forward ? from + 1 : 0, forward ? end : from, forward ? gone : 0);
    }
    for (int parts = PARTS; parts > 0; parts--) {
        add(pool, part, parts);
        if (parts == PARTS) schedule_append_all(&part[HEAD], &part[MIDDLE]), part[MIDDLE] = part[AGAIN];
        if (parts == PARTS - 1) schedule_append_all(&part[HEAD], &part[MIDDLE]);
    }
}

/* Whether the backward of node reads what it saved, but not its output. */
static bool reads_saved_alone(const struct network *network, int node)
{
    return (network_reads(network, node) & (READS_Y | READS_SAVED)) == READS_SAVED;
}

static void add_stretch(struct pool *pool, const struct network *slice, int from, int to)
{
    const enum rng_mode rng = pool->options.lower.rng;
    region_auto *region = region_create();
    const struct points again = solve(cut_stretch(slice, from, to, region), SLICES_STRETCH_POINTS, rng),
                        around = solve(contract(pool->whole, from, to, region), SLICES_AROUND_POINTS, rng);
    for (int i = 0; i < again.count; i++) {
        const struct schedule backward = point_schedule(&again, i, region);
        for (int k = 0; k < around.count; k++) {
            const struct schedule all = point_schedule(&around, k, region);
            combine(pool, from, to, 0, &all, &backward, region);
            if (reads_saved_alone(slice, to - 1)) combine(pool, from, to, 1, &all, &backward, region);
        }
    }
    optimum_destroy(again.optimum);
    optimum_destroy(around.optimum);
}

bool slices_are_batches(const struct network *network)
{
    const struct slicing slicing = graph_slicing(network->graph);
    int sliced = 0;
    while (sliced < slicing.nodes && !slicing_whole(&slicing, sliced)) sliced++;
    return sliced == slicing.nodes;
}

/* The stretches of sliced stages from the start, or a whole node, to each cut; the last one's gradient is wanted. */
static struct node_ranges find_stretches(const struct graph *graph, struct region *region)
{
    const struct slicing slicing = graph_slicing(graph);
    const struct node_ranges stages = stages_find(graph, region);
    struct node_ranges stretches = {.count = 0};
    NEW(region, stretches.range, (size_t)stages.count);
    for (int i = 0, from = 0; i + 1 < stages.count; i++) {
        const int to = stages.range[i].to;
        for (int n = stages.range[i].from; n < to; n++)
            if (slicing_whole(&slicing, n)) from = to;
        if (from < to && graph->value[to].wants_gradient)
            stretches.range[stretches.count++] = (struct node_range){from, to};
    }
    return stretches;
}

void slices_add_stretches(struct pool *pool)
{
    region_auto *region = region_create();
    const struct network *slice = network_of_slice(pool->network, region);
    const struct node_ranges all = find_stretches(pool->network->graph, region);
    const int tried = all.count < SLICES_STRETCHES ? all.count : SLICES_STRETCHES;
    for (int i = 1; i <= tried; i++) {
        const struct node_range *stretch = &all.range[i * all.count / tried - 1];
        add_stretch(pool, slice, stretch->from, stretch->to);
    }
}
