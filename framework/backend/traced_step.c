#include "backend/traced_step.h"

#include "backend/abstract_graph.h"

#define BYTES_MAX (INT64_C(1) << 58)

static enum status same_infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    (void)inputs;
    *output = (struct shape){1, {1}};
    return ST_OK;
}

static enum status check_sums(const struct traced_step *step, int *at)
{
    int64_t bytes = step->always;
    double time = 0;
    for (int i = 0; i < step->tensors; i++)
        if ((bytes += step->tensor[i].bytes) > BYTES_MAX) break;
    for (*at = 0; *at < step->nodes; ++*at) {
        const struct traced_node *n = &step->node[*at];
        const int64_t size[] = {n->output, n->saved, n->kept, n->forward_scratch, n->backward_scratch};
        time += n->forward + n->once + n->backward;
        for (size_t k = 0; k < sizeof size / sizeof *size && bytes <= BYTES_MAX; k++) bytes += size[k];
        if (bytes > BYTES_MAX)
            return fail(ST_SPEC, "the sizes up to '%s' add up to %.6g bytes; expected at most 2^58 in all", n->name,
                        (double)bytes);
        if (!(time <= ABSTRACT_TIME_MAX))
            return fail(ST_SPEC, "the times up to '%s' add up to %.6g; expected at most %g in all", n->name, time,
                        ABSTRACT_TIME_MAX);
    }
    return ST_OK;
}

static enum status add_nodes(struct graph *graph, const struct traced_step *step, int *at)
{
    for (int i = 0; i < step->nodes; i++) {
        const struct traced_node *n = &step->node[i];
        struct layer *layer;
        int output;
        NEW(graph->region, layer, 1);
        *layer =
            (struct layer){.name = "operator", .inputs = n->inputs, .loss = i + 1 == step->nodes, .infer = same_infer};
        *at = i;
        TRY(graph_add(graph, layer, NULL, n->name, n->input, &output));
        for (int k = 0; k < n->inputs; k++) graph->value[n->input[k]].consumers++;
    }
    return ST_OK;
}

static void keep_together(int *together, int one, int other)
{
    const int from = one < other ? one : other, to = one < other ? other : one;
    if (to > together[from]) together[from] = to;
}

/* A value that backwards of later nodes read may be a cut; whatever else a backward reads is of its own stage. */
static void find_together(struct graph *graph, const struct traced_step *step)
{
    NEW(graph->region, graph->together, (size_t)graph->nodes);
    for (int i = 0; i < step->nodes; i++) {
        const struct traced_backward *b = step->node[i].back;
        for (int k = 0; b && k < b->reads; k++) {
            const int n = b->read[k].node;
            keep_together(graph->together, b->read[k].what == HELD_VALUE && n < i ? n + 1 : n, i);
        }
    }
}

static struct network *bind(struct graph *graph, const struct traced_step *step)
{
    struct network *network;
    NEW(graph->region, network, 1);
    NEW(graph->region, network->binding, (size_t)graph->nodes);
    NEW(graph->region, network->cost, (size_t)graph->nodes);
    network->graph = graph;
    network->granularity = 1;
    network->traced = step;
    graph->batch = 0; /* no labels */
    graph->value[0].bytes = (size_t)step->always;
    for (int i = 0; i < graph->nodes; i++) {
        const struct traced_node *n = &step->node[i];
        const size_t scratch = (size_t)n->backward_scratch;
        graph->value[i + 1].bytes = (size_t)n->output;
        network->binding[i] = (struct binding){.footprint = {.saved = (size_t)n->saved,
                                                             .once = (size_t)n->kept,
                                                             .forward_scratch = (size_t)n->forward_scratch,
                                                             .backward_scratch = {scratch, scratch},
                                                             .reads = {READS_X, READS_X},
                                                             .y_over_x = n->in_place,
                                                             .implementation = "traced"},
                                               .traced = n->back,
                                               .runs_once = n->random,
                                               .no_forward = n->no_forward};
        network->cost[i] = (struct cost){n->forward, n->once, {0, n->backward}};
        graph->node[i].flops = (struct flops){n->forward, 0, n->backward, n->once};
    }
    return network;
}

enum status traced_step_create(const struct traced_step *step, int *at, struct network **network)
{
    struct graph *graph;
    *network = NULL;
    TRY(check_sums(step, at));
    TRY(graph_create(&(struct shape){1, {1}}, 1, &graph));
    const enum status status = add_nodes(graph, step, at);
    if (status != ST_OK) return graph_destroy(graph), status;
    find_together(graph, step);
    *network = bind(graph, step);
    return ST_OK;
}
