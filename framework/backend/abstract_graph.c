#include "backend/abstract_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

/* One parameter, so that there is a part PARAMS; bind() sets its elements. */
static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)settings;
    definitions[0] = (struct parameter_definition){.name = "weight", .shape = *input, .init = INIT_ZEROS};
    return 1;
}

static const int64_t BYTES_MAX = INT64_C(1) << 58; /* a schedule holds nothing twice, so no sum can overflow */

struct totals {
    double time;
    int64_t bytes;
};

/* "node 3 (conv)" */
static const char *node_text(const struct abstract_node *node, int number, char text[96])
{
    const char *name = node->stage.name;
    snprintf(text, 96, name ? "node %d (%.*s)" : "node %d", number, name ? text_shown(name, 64) : 0, name);
    return text;
}

static enum status check_sizes(const struct abstract_node *node, int number, struct totals *totals)
{
    char text[96];
    const struct abstract_stage *s = &node->stage;
    const int64_t size[] = {s->output,           s->saved,         s->gradient,     s->forward_scratch,
                            s->backward_scratch, node->parameters, node->parameters /* their gradients */};
    totals->time += s->forward + s->backward + node->once;
    if (!(s->forward >= 0 && s->backward >= 0 && node->once >= 0))
        return fail(ST_SPEC, "%s: expected times of at least 0", node_text(node, number, text));
    if (!(totals->time <= ABSTRACT_TIME_MAX))
        return fail(ST_SPEC, "%s: the times of all nodes up to it add up to %.6g; expected at most %g in all",
                    node_text(node, number, text), totals->time, ABSTRACT_TIME_MAX);
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        if (size[k] < 0) return fail(ST_SPEC, "%s: expected sizes of at least 0", node_text(node, number, text));
        if (size[k] > BYTES_MAX - totals->bytes)
            return fail(
                ST_SPEC,
                "%s: the sizes of all nodes up to it add up to %.6g bytes or more; expected at most 2^58 in all",
                node_text(node, number, text), (double)totals->bytes + (double)size[k]);
        totals->bytes += size[k];
    }
    return ST_OK;
}

static enum status check_inputs(const struct abstract_node *node, int i)
{
    const struct abstract_stage *s = &node[i].stage;
    if (node[i].inputs < 1 || node[i].inputs > NODE_INPUTS_MAX)
        return fail(ST_SPEC, "node %d: %d inputs; expected 1 to %d", i + 1, node[i].inputs, NODE_INPUTS_MAX);
    for (int k = 0; k < node[i].inputs; k++) {
        const int x = node[i].input[k];
        if (x < 0 || x > i)
            return fail(ST_SPEC, "node %d: reads value %d; expected one of 0 to %d, written before", i + 1, x, i);
        if (x && node[i].passes_gradient && !node[x - 1].forward_only && node[x - 1].stage.gradient != s->gradient)
            return fail(ST_SPEC, "node %d: passes a gradient of %lld bytes on as one of %lld; expected the same size",
                        i + 1, (long long)s->gradient, (long long)node[x - 1].stage.gradient);
    }
    if (node[i].forward_only && (s->backward > 0 || s->gradient || s->backward_scratch || s->split))
        return fail(ST_SPEC, "node %d: has no backward; expected no time, gradient or scratch of it", i + 1);
    return ST_OK;
}

/* Whether every output is read, and every gradient computed. */
static enum status check_readers(const struct abstract_node *node, int nodes, int *at)
{
    enum { FORWARD = 1, BACKWARD = 2 };
    *at = nodes - 1;
    if (node[*at].forward_only) return fail(ST_SPEC, "node %d: the last one has no backward; expected the loss", nodes);
    unsigned *readers = allocate((size_t)nodes + 1, sizeof *readers), found = 0; /* by value */
    for (int i = 0; i < nodes; i++)
        for (int k = 0; k < node[i].inputs; k++)
            readers[node[i].input[k]] |= node[i].forward_only ? FORWARD : FORWARD | BACKWARD;
    readers[nodes] = BACKWARD;
    for (*at = 0; *at < nodes; ++*at) {
        found = readers[*at + 1];
        if (!(found & (node[*at].forward_only ? FORWARD : BACKWARD))) break;
    }
    free(readers);
    if (*at == nodes) return ST_OK;
    if (!found) return fail(ST_SPEC, "node %d: no node reads its output; expected a later one that does", *at + 1);
    return fail(ST_SPEC, "node %d: no gradient reaches it; expected a later node with a backward that reads it",
                *at + 1);
}

static enum status check(const struct abstract_node *node, int nodes, int *at)
{
    struct totals totals = {0, 0};
    *at = 0;
    if (nodes < 1) return fail(ST_SPEC, "no node; expected at least one");
    for (*at = 0; *at < nodes; ++*at) {
        TRY(check_sizes(&node[*at], *at + 1, &totals));
        TRY(check_inputs(node, *at));
    }
    return check_readers(node, nodes, at);
}

static enum status add_nodes(struct graph *graph, const struct abstract_node *node, int nodes, int *at)
{
    for (int i = 0; i < nodes; i++) {
        struct layer *layer;
        int output;
        NEW(graph->region, layer, 1);
        *layer = (struct layer){.name = "stage",
                                .inputs = node[i].inputs,
                                .loss = i + 1 == nodes,
                                .parameters = node[i].forward_only ? NULL : parameters};
        const char *name = node[i].stage.name ? node[i].stage.name : region_text(graph->region, "stage%d", i + 1);
        *at = i;
        TRY(graph_add(graph, layer, NULL, name, node[i].input, &output));
    }
    return graph_finish(graph);
}

/* Times stand for flops, too, so that every number in flops is one in the unit of the times. */
static struct network *bind(struct graph *graph, const struct abstract_node *node)
{
    struct network *n;
    NEW(graph->region, n, 1);
    NEW(graph->region, n->binding, (size_t)graph->nodes);
    NEW(graph->region, n->cost, (size_t)graph->nodes);
    n->graph = graph;
    n->granularity = 1;
    graph->batch = 0; /* no labels: nothing but parameters is static */
    for (int i = 0; i < graph->nodes; i++) {
        const struct abstract_stage *s = &node[i].stage;
        struct value *y = &graph->value[graph->node[i].output];
        y->bytes = (size_t)s->output;
        y->gradient_bytes = (size_t)s->gradient;
        if (graph->node[i].parameters)
            graph->parameter[graph->node[i].first_parameter].elements =
                (node[i].parameters + (int64_t)sizeof(float) - 1) / (int64_t)sizeof(float);
        size_t scratch = (size_t)s->backward_scratch;
        n->binding[i].footprint = (struct footprint){.saved = (size_t)s->saved,
                                                     .forward_scratch = (size_t)s->forward_scratch,
                                                     .backward_scratch = {scratch, scratch},
                                                     .reads = {node[i].reads, node[i].reads & ~(unsigned)READS_X},
                                                     .split = s->split,
                                                     .y_over_x = node[i].in_place,
                                                     .dx_over_dy = node[i].gradient_in_place,
                                                     .passes_gradient = node[i].passes_gradient || node[i].forward_only,
                                                     .implementation = "abstract"};
        n->cost[i] = (struct cost){s->forward, node[i].once, {s->backward, 0}};
        graph->node[i].flops = (struct flops){s->forward, s->backward, 0, node[i].once};
    }
    return n;
}

enum status abstract_graph_create(const struct abstract_node *node, int nodes, int *at, struct network **network)
{
    *network = NULL;
    struct graph *graph;
    TRY(check(node, nodes, at));
    TRY(graph_create(&(struct shape){1, {1}}, 1, &graph));
    enum status status = add_nodes(graph, node, nodes, at);
    if (status == ST_OK)
        *network = bind(graph, node);
    else
        graph_destroy(graph);
    return status;
}

void abstract_destroy(struct network *network)
{
    if (network) graph_destroy(network->graph);
}
