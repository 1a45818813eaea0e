#include "model/slicing.h"

#include <string.h>

struct slicing graph_slicing(const struct graph *graph)
{
    return (struct slicing){graph->nodes, graph->slices > 1 ? (int)graph->slices : 1, graph->whole};
}

/* A product reads its weights once a call, whatever its rows. */
static bool few_rows(const struct graph *graph, const struct node *node, int64_t slices)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    size_t bytes = 0;
    for (int k = 0; k < node_parameters(node); k++)
        bytes += parameter_bytes(&graph->parameter[node_parameter(node, k)]);
    return node->layer->footprint.by_rows && bytes > SLICING_WEIGHT_BYTES &&
           graph->batch / slices * (shape_elements(x) / shape_width(x)) < SLICING_FEW_ROWS;
}

/* A layer that mixes samples computes the whole batch at once, or takes its statistics of each slice alone. */
static enum status check_mixing(const struct graph *graph, const struct node *node)
{
    const bool by_slice = node_chooses(node, "statistics", "slice");
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    if (by_slice && node->keep_whole)
        return fail(ST_SPEC,
                    "slices: layer '%s' (%s) computes the whole batch at once, of which there are no statistics of a "
                    "slice; expected statistics: batch, or no slices: 1 of this layer",
                    node->name, node->layer->name);
    if (by_slice && graph->batch / graph->slices * shape_elements(x) == shape_width(x))
        return fail(ST_SPEC,
                    "slices: layer '%s' (%s) normalises each channel over a slice, and one value has no variance; "
                    "expected slices of more than one sample",
                    node->name, node->layer->name);
    if (by_slice || node->keep_whole) return ST_OK;
    return fail(ST_SPEC,
                "slices: the batch cannot be computed in parts: layer '%s' (%s) takes statistics over all of its "
                "samples; expected slices: 1, of this layer in the model or of the whole network, or statistics: slice "
                "of this layer",
                node->name, node->layer->name);
}

enum status graph_slice(struct graph *graph, int64_t slices, bool keep_few, int *mixing)
{
    *mixing = -1;
    graph->slices = slices;
    graph->whole = NULL;
    if (slices <= 1) return ST_OK;
    if (graph->batch % slices)
        return fail(ST_SPEC, "slices: %lld do not divide the batch of %lld samples; expected a divisor of it",
                    (long long)slices, (long long)graph->batch);
    if (slices > SLICED_NODES_MAX / graph->nodes)
        return fail(ST_SPEC, "slices: %lld of %d layers are more than %d parts of a step", (long long)slices,
                    graph->nodes, (int)SLICED_NODES_MAX);
    NEW(graph->region, graph->whole, (size_t)graph->nodes);
    for (int i = 0; i < graph->nodes; i++) {
        const struct node *node = &graph->node[i];
        *mixing = i;
        if (node->layer->mixes_samples) TRY(check_mixing(graph, node));
        graph->whole[i] = node->keep_whole || node->shared || (keep_few && few_rows(graph, node, slices));
    }
    *mixing = -1;
    return ST_OK;
}

struct graph *graph_of_slice(const struct graph *graph)
{
    struct graph *slice;
    NEW(graph->region, slice, 1);
    *slice = *graph;
    slice->batch = graph->batch / graph->slices;
    slice->slices = 1;
    slice->whole = NULL;
    NEW(graph->region, slice->value, (size_t)graph->values);
    memcpy(slice->value, graph->value, (size_t)graph->values * sizeof *slice->value);
    return slice;
}
