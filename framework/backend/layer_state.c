#include "backend/layer_state.h"

#include "backend/backend.h"

struct extent extent_of(const struct graph *graph, int value)
{
    const struct value *v = &graph->value[value];
    const int64_t count = (int64_t)(v->bytes / sizeof(float));
    return (struct extent){graph->batch, count / graph->batch, count, v->shape, v->layout};
}

enum status layer_state_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    struct layer_state *s = *state = allocate(1, sizeof *s);
    *s = (struct layer_state){backend, node, extent_of(graph, node->inputs[0]),
                              extent_of(graph, node->inputs[node->layer->inputs - 1]), extent_of(graph, node->output)};
    *footprint = node->layer->footprint;
    footprint->implementation = backend->kind->device ? "own" : "loops";
    return ST_OK;
}

enum status value_arrange(struct graph *graph, int value, int layout)
{
    const int64_t elements = shape_elements(&graph->value[value].shape);
    if (elements < 0 || elements > INT64_MAX / 8 / graph->batch)
        return fail(ST_SPEC, "value %d of %lld samples is too large", value, (long long)graph->batch);
    graph->value[value].layout = layout;
    graph->value[value].bytes = (size_t)(elements * graph->batch) * sizeof(float);
    return ST_OK;
}
