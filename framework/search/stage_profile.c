#include "search/stage_profile.h"

#include <assert.h>
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

/* The tensors of a part of a traced step, while its operators are copied. */
struct cut_tensors {
    const struct traced_step *whole;
    struct traced_step *part;
    struct region *region;
    int *number;     /* of those of the part: in the whole step */
    size_t incoming; /* bytes that operators of the part read and later nodes wrote */
};

/* The part's number of a tensor, which is added if it is new. */
static int cut_tensor(struct cut_tensors *c, int tensor, bool written)
{
    assert(c->number || !c->part->tensors);
    for (int t = c->part->tensors; !written && t-- > 0;) /* each is written before it is read */
        if (c->number[t] == tensor) return t;
    const int t = c->part->tensors;
    region_grow(c->region, &c->part->tensor, t, sizeof *c->part->tensor);
    region_grow(c->region, &c->number, t, sizeof *c->number);
    c->part->tensor[t] = c->whole->tensor[tensor];
    c->part->tensor[t].stays = false;
    c->number[t] = tensor;
    if (!written) c->incoming += (size_t)c->whole->tensor[tensor].bytes;
    return c->part->tensors++;
}

static struct traced_backward *cut_backward(struct cut_tensors *c, const struct traced_backward *b, int from)
{
    struct traced_backward *copy;
    struct traced_read *read;
    int *input, *output;
    NEW(c->region, copy, 1);
    NEW(c->region, read, (size_t)b->reads + 1);
    NEW(c->region, input, (size_t)b->inputs + 1);
    NEW(c->region, output, (size_t)b->outputs + 1);
    for (int k = 0; k < b->reads; k++) read[k] = (struct traced_read){b->read[k].node - from + 1, b->read[k].what};
    for (int k = 0; k < b->inputs; k++) input[k] = cut_tensor(c, b->input[k], false);
    for (int k = 0; k < b->outputs; k++) output[k] = cut_tensor(c, b->output[k], true);
    *copy = *b;
    copy->read = read;
    copy->input = input;
    copy->output = output;
    return copy;
}

/* An operator of the source or the sink: of so many tensors. */
static struct traced_backward *end_backward(struct cut_tensors *c, int **tensor)
{
    struct traced_backward *b;
    NEW(c->region, b, 1);
    NEW(c->region, *tensor, (size_t)c->part->tensors + 1);
    b->input = b->output = *tensor;
    return b;
}

/* The sink's backward writes what later nodes' backwards do, the source's reads what earlier ones do; what passes by is
 * one tensor. */
static void cut_traced(const struct network *network, int from, int to, bool outlives, struct region *region,
                       struct subnetwork *subnetwork)
{
    static const struct traced_read cut_value = {0, HELD_VALUE};
    struct binding *binding = subnetwork->network.binding;
    struct cut_tensors c = {.whole = network->traced, .region = region};
    int *tensor;
    NEW(region, c.part, 1);
    for (int i = to - 1; i >= from; i--)
        if (network->binding[i].traced)
            binding[i - from + 1].traced = cut_backward(&c, network->binding[i].traced, from);
    const int passing = c.part->tensors++;
    region_grow(region, &c.part->tensor, passing, sizeof *c.part->tensor);
    region_grow(region, &c.number, passing, sizeof *c.number);
    c.part->tensor[passing] =
        (struct traced_tensor){.bytes = (int64_t)(c.whole->across[to] - c.incoming), .writer = to, .last = from - 1};
    struct traced_backward *source = end_backward(&c, &tensor);
    for (int t = 0; t < c.part->tensors; t++)
        if (t == passing || c.whole->tensor[c.number[t]].stays || c.whole->tensor[c.number[t]].last < from)
            tensor[source->inputs++] = t;
    source->reads = outlives;
    source->read = &cut_value;
    binding[0].traced = source;
    binding[0].footprint.reads[PART_INDEX_INPUT] = READS_X;
    if (subnetwork->sink) {
        struct traced_backward *sink = end_backward(&c, &tensor);
        for (int t = 0; t < c.part->tensors; t++)
            if (t == passing || c.whole->tensor[c.number[t]].writer >= to) tensor[sink->outputs++] = t;
        binding[subnetwork->nodes + 1].traced = sink;
    }
    subnetwork->network.traced = c.part;
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
        NEW(region, node->inputs, (size_t)node->layer->inputs);
        for (int k = 0; k < node->layer->inputs; k++) node->inputs[k] = map(from, whole->node[i].inputs[k]);
        g->value[node->output] = whole->value[i + 1];
        binding[node->index] = network->binding[i];
        cost[node->index] = network->cost[i];
    }
    if (subnetwork->sink) {
        struct node *node = &g->node[g->nodes - 1];
        *node = stand_in(&sink_layer, g->nodes - 1, true);
        NEW(region, node->inputs, 1);
        node->inputs[0] = node->index;
    }
    subnetwork->network =
        (struct network){.graph = g, .binding = binding, .cost = cost, .granularity = network->granularity};
    if (network->traced) cut_traced(network, from, to, outlives, region, subnetwork);
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
    for (int k = 0; op->kind == OP_FORWARD && k < node->layer->inputs; k++)
        if (node->inputs[k] == 1) return true;
    struct reading r = reading_of(&subnetwork->network, op->node, footprint_reads(f->reads, op->parts));
    while (op->kind == OP_BACKWARD && reading_next(&r))
        if (r.node == 0) return true;
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
static bool find_due(const struct network *network, int from, int to, int node, const bool *due, bool *now)
{
    const struct graph *graph = network->graph;
    bool any = false;
    for (struct reading r = reading_of(network, node, network_reads(network, node)); reading_next(&r);)
        if (r.node >= from && r.node < to && due[r.node - from]) now[r.node - from] = any = true;
    for (int i = to - 1; any && i >= from; i--) /* and what they are made from */
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
        if (find_due(network, from, to, node, due, now))
            for (int i = from; i < to; i++) {
                if (!now[i - from]) continue;
                schedule_append(schedule, STEP_FORWARD, i, i + 1);
                due[i - from] = now[i - from] = false;
            }
        schedule_append(schedule, STEP_BACKWARD, node, node + 1);
    }
}
