/* Pooling; see pooling_kernels.h. Max-pool saves the places of the largest, in 8 bits where they do. A window of one
 * place needs none, and with stride 1 it is the identity. A relu after the largest is a pass over y, its derivative one
 * in place on dy. */
#include <stdlib.h>

#include "activations.h"
#include "float_blocks.h"
#include "pooling_kernels.h"
#include "value_layout.h"

struct pool {
    struct backend *backend;
    struct extent x, y;
    struct window_shape shape;
    bool identity, relu, places; /* places: they are saved */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node, bool max,
                           struct footprint *footprint, void **state)
{
    const int64_t kernel = node_integer(node, "kernel"), stride = node_integer(node, "stride");
    const struct extent x = extent_of(graph, node->inputs[0]), y = extent_of(graph, node->output);
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return fail(ST_FAILED, "out of memory");
    const bool relu = node->activation == ACTIVATION_RELU;
    *pool =
        (struct pool){.backend = backend,
                      .x = x,
                      .y = y,
                      .shape = {x.batch, x.shape.dim[2], x.shape.dim[0], x.shape.dim[1], y.shape.dim[0], y.shape.dim[1],
                                kernel, stride > 0 ? stride : kernel, node_integer(node, "padding"), x.channels_first},
                      .identity = kernel == 1 && stride <= 1 && !relu,
                      .relu = relu,
                      .places = max && kernel > 1};
    *footprint = (struct footprint){
        .saved = pool->places ? (size_t)y.count * window_place_bytes(kernel) : 0,
        .reads = {0, (pool->places ? READS_SAVED : 0u) | (relu ? READS_Y : 0u)},
        .writes_dy = relu,
        .y_over_x = pool->identity,
        .passes_gradient = pool->identity,
        .implementation = pool->identity ? "identity" : "own",
    };
    *state = pool;
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

/* The identity, where it is one. */
static void copy(const struct pool *pool, const float *from, float *to)
{
    if (to != from) launch_copy(cuda_of(pool->backend)->stream, from, pool->x.count, to);
}

static enum status max_forward(void *state, const struct kernel_args *args)
{
    const struct pool *pool = state;
    const cudaStream_t stream = cuda_of(pool->backend)->stream;
    cuda_clock(pool->backend, CLOCK_POOL);
    if (pool->identity)
        copy(pool, args->x[0], args->y);
    else
        launch_max_pool(stream, pool->shape, args->x[0], args->save && pool->places ? args->saved : NULL, args->y);
    if (pool->relu)
        launch_activation(stream, args->y, (struct bias){.values = NULL}, ACTIVATION_RELU, pool->y.count, args->y,
                          NULL);
    return cuda_queued("max_pool");
}

static enum status max_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct pool *pool = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    const cudaStream_t stream = cuda_of(pool->backend)->stream;
    cuda_clock(pool->backend, CLOCK_POOL);
    if (pool->relu)
        launch_activation_derivative(stream, args->dy, args->y, NULL, ACTIVATION_RELU, pool->y.count, args->dy);
    if (pool->identity)
        copy(pool, args->dy, args->dx[0]);
    else
        launch_max_pool_gradient(stream, pool->shape, args->dy, pool->places ? args->saved : NULL, args->dx[0]);
    return cuda_queued("gradient of max_pool");
}

static enum status avg_forward(void *state, const struct kernel_args *args)
{
    const struct pool *pool = state;
    cuda_clock(pool->backend, CLOCK_POOL);
    if (pool->identity)
        copy(pool, args->x[0], args->y);
    else
        launch_avg_pool(cuda_of(pool->backend)->stream, pool->shape, args->x[0], args->y);
    return cuda_queued("avg_pool");
}

static enum status avg_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct pool *pool = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cuda_clock(pool->backend, CLOCK_POOL);
    if (pool->identity)
        copy(pool, args->dy, args->dx[0]);
    else
        launch_avg_pool_gradient(cuda_of(pool->backend)->stream, pool->shape, args->dy, args->dx[0]);
    return cuda_queued("gradient of avg_pool");
}

const struct kernel cuda_max_pool = {true, max_prepare, max_forward, max_backward, free};
const struct kernel cuda_avg_pool = {true, avg_prepare, avg_forward, avg_backward, free};

/* The mean over whole images, {H, W, C} to {C}. */
struct mean {
    struct backend *backend;
    struct mean_shape shape;
};

static enum status mean_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    const struct extent x = extent_of(graph, node->inputs[0]);
    struct mean *mean = calloc(1, sizeof *mean);
    if (mean == NULL) return fail(ST_FAILED, "out of memory");
    *mean = (struct mean){backend, {x.batch, x.shape.dim[2], x.shape.dim[0] * x.shape.dim[1], x.channels_first}};
    *footprint = (struct footprint){.implementation = "own"};
    *state = mean;
    return ST_OK;
}

static enum status mean_forward(void *state, const struct kernel_args *args)
{
    const struct mean *mean = state;
    cuda_clock(mean->backend, CLOCK_POOL);
    launch_mean_pool(cuda_of(mean->backend)->stream, mean->shape, args->x[0], args->y);
    return cuda_queued("global_avg_pool");
}

static enum status mean_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct mean *mean = state;
    if (!(parts & PART_INPUT) || args->dx[0] == NULL) return ST_OK;
    cuda_clock(mean->backend, CLOCK_POOL);
    launch_mean_pool_gradient(cuda_of(mean->backend)->stream, mean->shape, args->dy, args->dx[0]);
    return cuda_queued("gradient of global_avg_pool");
}

const struct kernel cuda_global_avg_pool = {true, mean_prepare, mean_forward, mean_backward, free};
