/* Pooling; see kernels.h. Max-pool saves the indices of the maxima, in 8 bits where they suffice. A window of one place
 * needs none, and with stride 1 it is the identity. A relu after max-pool is a pass over y, its derivative one in place
 * on dy. The mean over whole images, {H, W, C} to {C}, or over the tokens of a sequence, {T, C}, is that of one
 * window. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kernels.h"

struct pool {
    struct backend *backend;
    struct extent x, y;
    struct pooling_shape shape;
    bool max, identity, relu;
};

static bool is_max(const struct node *node) { return strcmp(node->layer->name, "max_pool") == 0; }

static struct pooling_shape shape_of(const struct node *node, const struct extent *x, const struct extent *y)
{
    const int64_t height = x->shape.dim[0], width = x->shape.rank == 3 ? x->shape.dim[1] : 1;
    const int64_t all = height > width ? height : width;
    const bool global = y->shape.rank == 1;
    const int64_t kernel = global ? all : node_integer(node, "kernel");
    const int64_t stride = global ? all : node_integer(node, "stride");
    return (struct pooling_shape){.batch = x->batch,
                                  .channels = shape_width(&x->shape),
                                  .height = height,
                                  .width = width,
                                  .out_height = global ? 1 : y->shape.dim[0],
                                  .out_width = global ? 1 : y->shape.dim[1],
                                  .kernel = kernel,
                                  .stride = stride > 0 ? stride : kernel,
                                  .padding = global ? 0 : node_integer(node, "padding"),
                                  .count_padding = !global && !is_max(node) && node_integer(node, "count_padding"),
                                  .channels_first = channels_first(x)};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct extent x = extent_of(graph, node->inputs[0]), y = extent_of(graph, node->output);
    const struct pooling_shape shape = shape_of(node, &x, &y);
    const bool max = is_max(node), relu = node->activation == ACTIVATION_RELU;
    const bool identity = y.shape.rank == 3 && shape.kernel == 1 && shape.stride == 1 && !relu;
    const bool saves = max && shape.kernel > 1;
    struct pool *pool = *state = allocate(1, sizeof *pool);
    *pool = (struct pool){backend, x, y, shape, max, identity, relu};
    *footprint = (struct footprint){
        .saved = saves ? (size_t)y.count * pooling_index_bytes(shape.kernel) : 0,
        .reads = {0, (saves ? READS_SAVED : 0u) | (relu ? READS_Y : 0u)},
        .writes_dy = relu,
        .y_over_x = identity,
        .passes_gradient = identity,
        .implementation = identity ? "identity" : "own",
    };
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct pool *pool = state;
    const cudaStream_t stream = cuda_queue(pool->backend, CLOCK_POOL);
    if (pool->identity && args->y != args->x[0])
        pool->backend->kind->copy(pool->backend, args->y, args->x[0], (size_t)pool->x.count * sizeof(float));
    else if (!pool->identity && pool->max)
        launch_max_pool(stream, pool->shape, args->x[0], args->save && pool->shape.kernel > 1 ? args->saved : NULL,
                        args->y);
    else if (!pool->identity)
        launch_avg_pool(stream, pool->shape, args->x[0], args->y);
    if (pool->relu)
        launch_function(stream, args->y, (struct bias){.values = NULL}, FUNCTION_RELU, pool->y.count, args->y, NULL);
    return cuda_queued("pooling");
}

/* Not of an identity, which passes its gradient. */
static enum status backward(void *state, const struct kernel_args *args)
{
    const struct pool *pool = state;
    const cudaStream_t stream = cuda_queue(pool->backend, CLOCK_POOL);
    if (pool->relu) launch_derivative(stream, args->dy, args->y, NULL, FUNCTION_RELU, pool->y.count, args->dy);
    if (pool->max)
        launch_max_pool_gradient(stream, pool->shape, args->dy, pool->shape.kernel > 1 ? args->saved : NULL,
                                 args->dx[0]);
    else
        launch_avg_pool_gradient(stream, pool->shape, args->dy, args->dx[0]);
    return cuda_queued("gradient of pooling");
}

const struct kernel cuda_max_pool = {true, prepare, forward, backward, free};
const struct kernel cuda_avg_pool = {true, prepare, forward, backward, free};
const struct kernel cuda_global_avg_pool = {true, prepare, forward, backward, free};
