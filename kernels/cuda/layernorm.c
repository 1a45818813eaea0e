/* Layer normalisation; framework/layers/layernorm.c has the formulas. */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"

static struct layernorm_shape shape_of(const struct layer_state *s)
{
    const int64_t width = shape_width(&s->x.shape);
    return (struct layernorm_shape){s->x.count / width, width, (float)node_real(s->node, "epsilon")};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    footprint->saved = (size_t)shape_of(*state).rows * sizeof(struct layernorm_statistics);
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_layernorm(cuda_queue(s->backend, CLOCK_NORM), shape_of(s), args->x[0], args->parameters[0],
                     args->parameters[1], args->save ? args->saved : NULL, args->y);
    return cuda_queued("layernorm");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const struct layernorm_shape shape = shape_of(s);
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_NORM);
    if (args->parts & PART_PARAMS) {
        launch_layernorm_weights(stream, shape, args->x[0], args->saved, args->dy, args->gradients[0]);
        launch_reduce_units(stream, args->dy, shape.rows, shape.width, 1, args->gradients[1]);
    }
    if (args->parts & PART_INPUT)
        launch_layernorm_gradient(stream, shape, args->x[0], args->saved, args->parameters[0], args->dy, args->dx[0]);
    return cuda_queued("gradients of layernorm");
}

const struct kernel cuda_layernorm = {true, prepare, forward, backward, free};
