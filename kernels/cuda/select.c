/* One token of each sequence, and its gradient among zeros. */
#include <stdlib.h>

#include "cuda.h"
#include "float_blocks.h"

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    *state = layer_state_create(backend, graph, node);
    *footprint = (struct footprint){.implementation = "own"};
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_select(cuda_queue(s->backend, CLOCK_OTHER), args->x[0], s->x.batch, s->x.shape.dim[0], s->y.elements,
                  node_integer(s->node, "token"), args->y);
    return cuda_queued("select");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_select_gradient(cuda_queue(s->backend, CLOCK_OTHER), args->dy, s->x.batch, s->x.shape.dim[0], s->y.elements,
                           node_integer(s->node, "token"), args->dx[0]);
    return cuda_queued("gradient of select");
}

const struct kernel cuda_select = {true, prepare, forward, backward, free};
