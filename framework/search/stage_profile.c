#include "search/stage_profile.h"

#include <string.h>

static const struct layer source_layer = {.name = "source", .inputs = 0};
static const struct layer sink_layer = {.name = "sink", .inputs = 1};

/* The value of the subnetwork that stands for a value of the network. */
static int map(int from, int value) { return value ? value - from + 1 : 0; }

static struct node stand_in(const struct layer *layer, int index, bool backward)
{
    return (struct node){.name = layer->name,
                         .layer = layer,
                         .index = index,
                         .output = index + 1,
                         .group = -1,
                         .parameters = backward ? 1 : 0};
}

void subnetwork_cut(const struct network *network, int from, int to, bool sink, bool outlives, enum rng_mode rng,
                    struct region *region, struct subnetwork *subnetwork)
{
    const struct graph *whole = network->graph;
    *subnetwork = (struct subnetwork){.nodes = to - from, .sink = sink, .rng = rng};
    struct graph *g;
    NEW(region, g, 1);
    g->batch = whole->batch;
    g->slices = 1;
    g->parameter = whole->parameter;
    g->nodes = to - from + 1 + subnetwork->sink;
    g->values = g->nodes + 1;
    struct binding *binding;
    struct cost *cost;
    NEW(region, g->node, (size_t)g->nodes);
    NEW(region, g->value, (size_t)g->values);
    NEW(region, binding, (size_t)g->nodes);
    NEW(region, cost, (size_t)g->nodes);
    g->value[0] = whole->value[0];
    if (from) g->value[1] = whole->value[from];
    g->node[0] = stand_in(&source_layer, 0, g->value[1].wants_gradient);
    if (outlives) binding[0].footprint.reads[PART_INDEX_PARAMS] = READS_Y;
    for (int i = from; i < to; i++) {
        struct node *node = &g->node[i - from + 1];
        *node = whole->node[i];
        node->index = i - from + 1;
        node->output = node->index + 1;
        for (int k = 0; k < node->layer->inputs; k++) node->inputs[k] = map(from, node->inputs[k]);
        g->value[node->output] = whole->value[i + 1];
        binding[node->index].footprint = network->binding[i].footprint;
        cost[node->index] = network->cost[i];
    }
    if (subnetwork->sink) {
        struct node *node = &g->node[g->nodes - 1];
        *node = stand_in(&sink_layer, g->nodes - 1, true);
        node->inputs[0] = node->index;
    }
    subnetwork->network =
        (struct network){.graph = g, .binding = binding, .cost = cost, .granularity = network->granularity};
}

/* What stashes and masks add to the live bytes of an op, where all of them are there from the start. */
static void count_forward(struct stage_profile *p, int end)
{
    const struct lowered *l = &p->lowered;
    size_t born = 0;
    for (int i = 0; i < end; i++) {
        if (l->op[i].once >= 0) born += l->buffer[l->op[i].once].bytes;
        size_t again = p->live[i] + p->once - born;
        if (p->live[i] > p->forward) p->forward = p->live[i];
        if (again > p->again) p->again = again;
    }
}

static bool reads_cut(const struct subnetwork *subnetwork, const struct op *op)
{
    const struct node *node = &subnetwork->network.graph->node[op->node];
    const struct footprint *f = &subnetwork->network.binding[op->node].footprint;
    if (op->node < 1 || op->node > subnetwork->nodes || op->kind > OP_BACKWARD) return false;
    int inputs = node->layer->inputs;
    if (op->kind == OP_BACKWARD) inputs = inputs_read(footprint_reads(f->reads, op->parts), inputs);
    for (int k = 0; k < inputs; k++)
        if (node->inputs[k] == 1) return true;
    return false;
}

static void count(const struct subnetwork *subnetwork, struct stage_profile *p)
{
    const struct lowered *l = &p->lowered;
    p->sink = p->turn = -1;
    for (int i = 0; i < l->ops; i++) {
        const struct op *op = &l->op[i];
        double time = subnetwork->network.cost[op->node].forward;
        if (op->kind == OP_FORWARD && op->recompute) p->recompute_time += time;
        if (op->kind == OP_FORWARD && !op->recompute)
            p->forward_time += network_first_time(&subnetwork->network, op->node);
        if (op->kind == OP_FORWARD && !op->recompute && op->once >= 0) p->once += l->buffer[op->once].bytes;
        if (!subnetwork->sink || op->node != subnetwork->nodes + 1) continue;
        if (op->kind == OP_FORWARD) p->sink = i;
        if (op->kind == OP_BACKWARD) p->turn = i;
    }
    if (subnetwork->sink) {
        count_forward(p, p->sink);
        p->keep = p->live[p->sink] -
                  network_round(&subnetwork->network, subnetwork->network.graph->value[subnetwork->nodes + 1].bytes);
    }
    for (int i = p->turn + 1; i < l->ops; i++) {
        if (p->live[i] > p->backward) p->backward = p->live[i];
        p->reads_input |= reads_cut(subnetwork, &l->op[i]);
    }
}

struct stage_profile subnetwork_profile(const struct subnetwork *subnetwork, const struct schedule *schedule,
                                        struct region *region)
{
    const struct lower_options options = {.drop_dead = true, .rng = subnetwork->rng};
    struct stage_profile profile = {.lowered = lower(&subnetwork->network, schedule, &options, region)};
    const struct lowered *l = &profile.lowered;
    NEW(region, profile.live, (size_t)l->ops + 1);
    buffers_live(l->buffer, l->buffers, l->ops, profile.live);
    count(subnetwork, &profile);
    return profile;
}

/* Marks in now[] those nodes marked in due[] that must be recomputed before node's backward. */
static bool find_due(const struct network *network, int from, int node, const bool *due, bool *now)
{
    const struct graph *graph = network->graph;
    const struct node *at = &graph->node[node];
    unsigned reads = network_reads(network, node);
    bool any = false;
    if (due[node - from] && ((reads & READS_Y) || (reads & READS_SAVED && network->binding[node].footprint.saved)))
        now[node - from] = any = true;
    for (int k = 0; k < inputs_read(reads, at->layer->inputs); k++) {
        int producer = at->inputs[k] - 1;
        if (producer >= from && due[producer - from]) now[producer - from] = any = true;
    }
    for (int i = node; any && i >= from; i--) /* and what they are made from */
        for (int k = 0; now[i - from] && k < graph->node[i].layer->inputs; k++) {
            int producer = graph->node[i].inputs[k] - 1;
            if (producer >= from && due[producer - from]) now[producer - from] = true;
        }
    return any;
}

void subnetwork_backward(const struct network *network, int from, int to, const bool *recompute,
                         struct schedule *schedule)
{
    bool *due, *now;
    NEW(schedule->region, due, (size_t)(to - from));
    NEW(schedule->region, now, (size_t)(to - from));
    memcpy(due, recompute, (size_t)(to - from) * sizeof *due);
    for (int node = to - 1; node >= from; node--) {
        if (find_due(network, from, node, due, now))
            for (int i = from; i <= node; i++) {
                if (!now[i - from]) continue;
                schedule_append(schedule, STEP_FORWARD, i, i + 1);
                due[i - from] = now[i - from] = false;
            }
        schedule_append(schedule, STEP_BACKWARD, node, node + 1);
    }
}
