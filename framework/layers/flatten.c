/* An image or sequence as one vector, in logical order: no arithmetic, and no byte moved where y lies over x. */
#include "model/reference.h"

#include <stdlib.h>

static enum status infer(const struct settings *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    *output = (struct shape){1, {shape_elements(&inputs[0])}};
    return ST_OK;
}

static struct flops flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)input, (void)output;
    return (struct flops){0, 0, 0};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    *footprint = (struct footprint){.y_over_x = true, .passes_gradient = true};
    return reference_state(graph, node, state);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    copy_batch(state, args->y, args->x[0]);
    return ST_OK;
}

static const struct kernel reference = {.deterministic = true, .prepare = prepare, .forward = forward, .release = free};

const struct layer layer_flatten = {.name = "flatten",
                                    .doc = "an image as one row",
                                    .inputs = 1,
                                    .keys = no_keys,
                                    .infer = infer,
                                    .flops = flops,
                                    .reference = &reference};
