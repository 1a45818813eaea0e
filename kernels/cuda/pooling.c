/* Pooling; see pooling_kernels.h. Max-pool saves the indices of the maxima, in 8 bits where they suffice. A window of
 * one place needs none, and with stride 1 it is the identity. A relu after max-pool is a pass over y, its derivative
 * one in place on dy. */
#include <stdlib.h>

#include "activations.h"
#include "cuda.h"
#include "float_blocks.h"
#include "pooling_kernels.h"

struct pool {
    struct backend *backend;
    struct extent x, y;
    struct pooling_shape shape;
    bool max, identity, relu;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node, bool max,
                           struct footprint *footprint, void **state)
{
    const int64_t kernel = node_integer(node, "kernel"), stride = node_integer(node, "stride");
    const struct extent x = extent_of(graph, node->inputs[0]), y = extent_of(graph, node->output);
    const bool relu = node->activation == ACTIVATION_RELU, identity = kernel == 1 && stride <= 1 && !relu;
    struct pool *pool = *state = allocate(1, sizeof *pool);
    *pool = (struct pool){.backend = backend,
                          .x = x,
                          .y = y,
                          .shape = {x.batch, x.shape.dim[2], x.shape.dim[0], x.shape.dim[1], y.shape.dim[0],
                                    y.shape.dim[1], kernel, stride > 0 ? stride : kernel, node_integer(node, "padding"),
                                    channels_first(&x)},
                          .max = max,
                          .identity = identity,
                          .relu = relu};
    const bool saves = max && kernel > 1;
    *footprint = (struct footprint){
        .saved = saves ? (size_t)y.count * pooling_index_bytes(kernel) : 0,
        .reads = {0, (saves ? READS_SAVED : 0u) | (relu ? READS_Y : 0u)},
        .writes_dy = relu,
        .y_over_x = identity,
        .passes_gradient = identity,
        .implementation = identity ? "identity" : "own",
    };
    return ST_OK;
}

static enum status max_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    return prepare(backend, graph, node, true, footprint, state);
}

static enum status avg_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    return prepare(backend, graph, node, false, footprint, state);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct pool *pool = state;
    const cudaStream_t stream = cuda_queue(pool->backend, CLOCK_POOL);
    if (!pool->identity && pool->max)
        launch_max_pool(stream, pool->shape, args->x[0], args->save && pool->shape.kernel > 1 ? args->saved : NULL,
                        args->y);
    else if (!pool->identity)
        launch_avg_pool(stream, pool->shape, args->x[0], args->y);
    else if (args->y != args->x[0])
        launch_copy(stream, args->x[0], pool->x.count, args->y);
    if (pool->relu)
        launch_activation(stream, args->y, (struct bias){.values = NULL}, ACTIVATION_RELU, pool->y.count, args->y,
                          NULL);
    return cuda_queued("pooling");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct pool *pool = state;
    const cudaStream_t stream = cuda_queue(pool->backend, CLOCK_POOL);
    if (pool->relu)
        launch_activation_derivative(stream, args->dy, args->y, NULL, ACTIVATION_RELU, pool->y.count, args->dy);
    if (!pool->identity && pool->max)
        launch_max_pool_gradient(stream, pool->shape, args->dy, pool->shape.kernel > 1 ? args->saved : NULL,
                                 args->dx[0]);
    else if (!pool->identity)
        launch_avg_pool_gradient(stream, pool->shape, args->dy, args->dx[0]);
    else if (args->dx[0] != args->dy)
        launch_copy(stream, args->dy, pool->x.count, args->dx[0]);
    return cuda_queued("gradient of pooling");
}

const struct kernel cuda_max_pool = {true, max_prepare, forward, backward, free};
const struct kernel cuda_avg_pool = {true, avg_prepare, forward, backward, free};

/* The mean over whole images, {H, W, C} to {C}. */

static enum status mean_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    *state = layer_state_create(backend, graph, node);
    *footprint = (struct footprint){.implementation = "own"};
    return ST_OK;
}

static struct global_pooling_shape mean_shape(const struct layer_state *s)
{
    return (struct global_pooling_shape){s->x.batch, s->x.shape.dim[2], image_pixels(&s->x), channels_first(&s->x)};
}

static enum status mean_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_global_avg_pool(cuda_queue(s->backend, CLOCK_POOL), mean_shape(s), args->x[0], args->y);
    return cuda_queued("global_avg_pool");
}

static enum status mean_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_global_avg_pool_gradient(cuda_queue(s->backend, CLOCK_POOL), mean_shape(s), args->dy, args->dx[0]);
    return cuda_queued("gradient of global_avg_pool");
}

const struct kernel cuda_global_avg_pool = {true, mean_prepare, mean_forward, mean_backward, free};
