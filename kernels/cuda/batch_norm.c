/* Batch normalisation, alone or with a second input; framework/layers/batch_norm.c has the formulas. */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"

static struct units shape_of(const struct layer_state *s)
{
    const int64_t channels = shape_width(&s->x.shape), pixels = s->x.elements / channels;
    if (channels_first(&s->x)) return (struct units){s->x.batch, channels, pixels};
    return (struct units){s->x.batch * pixels, channels, 1};
}

/* Whether there is a second input, added in a pass of its own; and whether a relu follows in another. */
static bool adds(const struct node *node) { return node->layer->inputs == 2; }
static bool masks(const struct node *node) { return adds(node) && node->activation == ACTIVATION_RELU; }

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const size_t two = (size_t)(2 * shape_of(*state).units) * sizeof(float);
    footprint->once = footprint->backward_scratch[0] = footprint->backward_scratch[1] = two;
    if (!masks(node)) return ST_OK;
    footprint->reads[PART_INDEX_PARAMS] = footprint->reads[PART_INDEX_INPUT] = READS_X0 | READS_Y;
    footprint->writes_dy = true;
    footprint->signs = sign_bytes(((const struct layer_state *)*state)->x.count);
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
        .relu = !adds(s->node) && s->node->activation == ACTIVATION_RELU,
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
    if (adds(s->node)) launch_add(cuda_queue(s->backend, CLOCK_OTHER), args->y, args->x[1], s->x.count, args->y);
    if (masks(s->node))
        launch_function(cuda_queue(s->backend, CLOCK_ACTIVATION), args->y, (struct bias){.values = NULL}, FUNCTION_RELU,
                        s->x.count, args->y, args->save ? args->saved : NULL);
    return cuda_queued(s->node->layer->name);
}

/* dy before the relu that follows the addition, if any: dx[1], or it replaces dy. */
static const float *dy_of_norm(const struct layer_state *s, const struct kernel_args *args)
{
    float *dy = adds(s->node) && args->parts & PART_INPUT && args->dx[1] != NULL ? args->dx[1] : args->dy;
    if (masks(s->node))
        launch_derivative(cuda_queue(s->backend, CLOCK_ACTIVATION), args->dy, args->y, args->saved, FUNCTION_RELU,
                          s->x.count, dy);
    else if (dy != args->dy)
        s->backend->kind->copy(s->backend, dy, args->dy, (size_t)s->x.count * sizeof(float));
    return dy;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const float *dy = dy_of_norm(s, args);
    const struct units shape = shape_of(s);
    const struct batch_norm_scaling scaling = scaling_of(s, args);
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_NORM);
    const bool params = args->parts & PART_PARAMS;
    launch_batch_norm_sums(stream, shape, scaling, args->x[0], dy, args->scratch, params ? args->gradients[0] : NULL,
                           params ? args->gradients[1] : NULL);
    if (args->parts & PART_INPUT && args->dx[0] != NULL)
        launch_batch_norm_gradient(stream, shape, scaling, args->x[0], dy, args->scratch, args->dx[0]);
    return cuda_queued("gradients of batch_norm");
}

const struct kernel cuda_batch_norm = {true, prepare, forward, backward, free};
