/* max(x, 0), for where it cannot be fused into the layer before it. Its derivative at 0 is 0. */
#include "model/reference.h"

#include <stdlib.h>

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    TRY(reference_state(graph, node, state));
    struct reference *r = *state;
    r->settings.activation = ACTIVATION_RELU;
    *footprint = (struct footprint){.y_over_x = true, .dx_over_dy = true};
    activation_footprint(r, PART_INDEX_INPUT, footprint);
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    copy_batch(state, args->y, args->x[0]);
    activate(state, args->y, args->save ? args->saved : NULL);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    if (!(parts & PART_INPUT) || !args->dx[0]) return ST_OK;
    copy_batch(state, args->dx[0], args->dy);
    activation_derivative(state, args->y, args->saved, args->dx[0]);
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_relu = {.name = "relu",
                                 .doc = "max(x, 0)",
                                 .inputs = 1,
                                 .keys = no_keys,
                                 .infer = same_infer,
                                 .flops = element_flops,
                                 .reference = &reference};
