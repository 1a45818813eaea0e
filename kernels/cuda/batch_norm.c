/* Batch normalisation; framework/layers/batch_norm.c has the formulas. */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"

static struct units shape_of(const struct layer_state *s)
{
    const int64_t channels = shape_width(&s->x.shape), pixels = s->x.elements / channels;
    if (channels_first(&s->x)) return (struct units){s->x.batch, channels, pixels};
    return (struct units){s->x.batch * pixels, channels, 1};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const size_t two = (size_t)(2 * shape_of(*state).units) * sizeof(float);
    footprint->once = footprint->backward_scratch[0] = footprint->backward_scratch[1] = two;
    return ST_OK;
}

static struct batch_norm_scaling scaling_of(const struct layer_state *s, const struct kernel_args *args)
{
    const bool affine = s->node->parameters > 0;
    const float *once = args->once;
    return (struct batch_norm_scaling){
        .mean = args->evaluate ? args->states[0] : once,
        .rstd = args->evaluate ? NULL : once + shape_width(&s->x.shape),
        .variance = args->states[1],
        .weight = affine ? args->parameters[0] : NULL,
        .bias = affine ? args->parameters[1] : NULL,
        .epsilon = node_real(s->node, "epsilon"),
        .relu = s->node->activation == ACTIVATION_RELU,
    };
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const struct units shape = shape_of(s);
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_NORM);
    const double n = (double)shape.outer * (double)shape.inner;
    if (args->first || args->commit)
        launch_batch_norm_statistics(
            stream, shape, args->x[0],
            (struct batch_norm_statistics){.once = args->first ? args->once : NULL,
                                           .running_mean = args->commit ? args->states[0] : NULL,
                                           .running_variance = args->states[1],
                                           .epsilon = node_real(s->node, "epsilon"),
                                           .momentum = node_real(s->node, "momentum"),
                                           .unbias = node_chooses(s->node, "variance", "unbiased") ? n / (n - 1) : 1});
    launch_batch_norm(stream, shape, scaling_of(s, args), args->x[0], args->y);
    return cuda_queued("batch_norm");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const struct units shape = shape_of(s);
    const struct batch_norm_scaling scaling = scaling_of(s, args);
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_NORM);
    const bool params = args->parts & PART_PARAMS;
    launch_batch_norm_sums(stream, shape, scaling, args->x[0], args->dy, args->scratch,
                           params ? args->gradients[0] : NULL, params ? args->gradients[1] : NULL);
    if (args->parts & PART_INPUT)
        launch_batch_norm_gradient(stream, shape, scaling, args->x[0], args->dy, args->scratch, args->dx[0]);
    return cuda_queued("gradients of batch_norm");
}

const struct kernel cuda_batch_norm = {true, prepare, forward, backward, free};
