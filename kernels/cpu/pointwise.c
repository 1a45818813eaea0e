/* Pointwise layers: relu, add. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"

static enum status relu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const struct layer_state *s = *state;
    footprint->signs = (size_t)s->x.batch * sign_words(s->x.elements) * sizeof(uint32_t);
    return ST_OK;
}

static enum status relu_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    relu_apply(args->y, args->x[0], s->x.count);
    if (args->save) sign_pack(args->y, s->x.batch, s->x.elements, args->saved);
    clock_lap(s->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

static enum status relu_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    if (args->saved)
        sign_mask(args->dx[0], args->dy, args->saved, s->x.batch, s->x.elements);
    else
        relu_mask(args->dx[0], args->dy, args->y, s->x.count);
    clock_lap(s->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

static enum status add_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    sum_into(args->y, args->x[0], args->x[1], s->x.count);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_relu = {true, relu_prepare, relu_forward, relu_backward, free};
const struct kernel cpu_add = {true, layer_state_prepare, add_forward, NULL, free};
