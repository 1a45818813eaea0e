/* Pointwise layers: relu, gelu, add, in any layout that input and output share; and flatten, which transposes images
 * from channels first to the logical order.
 *
 * Contract: a relu's sign bits lie as activations.h says. */
#include <stdlib.h>

#include "activations.h"
#include "cuda.h"
#include "float_blocks.h"
#include "transpose.h"

static enum status relu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    const struct layer_state *s = *state = layer_state_create(backend, graph, node);
    *footprint = (struct footprint){
        .signs = sign_bytes(s->x.count),
        .reads = {0, READS_Y},
        .y_over_x = true,
        .dx_over_dy = true,
        .implementation = "own",
    };
    return ST_OK;
}

static enum status relu_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_activation(cuda_queue(s->backend, CLOCK_ACTIVATION), args->x[0], (struct bias){.values = NULL},
                      ACTIVATION_RELU, s->x.count, args->y, args->save ? args->saved : NULL);
    return cuda_queued("relu");
}

static enum status relu_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_activation_derivative(cuda_queue(s->backend, CLOCK_ACTIVATION), args->dy, args->y, args->saved,
                                 ACTIVATION_RELU, s->x.count, args->dx[0]);
    return cuda_queued("gradient of relu");
}

static enum status gelu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    *state = layer_state_create(backend, graph, node);
    *footprint =
        (struct footprint){.reads = {0, READS_X}, .y_over_x = true, .dx_over_dy = true, .implementation = "own"};
    return ST_OK;
}

static enum status gelu_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_gelu(cuda_queue(s->backend, CLOCK_ACTIVATION), args->x[0], false, s->x.count, args->y);
    return cuda_queued("gelu");
}

static enum status gelu_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_gelu_derivative(cuda_queue(s->backend, CLOCK_ACTIVATION), args->dy, args->x[0], false, s->x.count,
                           args->dx[0]);
    return cuda_queued("gradient of gelu");
}

static enum status add_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                               struct footprint *footprint, void **state)
{
    *state = layer_state_create(backend, graph, node);
    *footprint = (struct footprint){.y_over_x = true, .passes_gradient = true, .implementation = "own"};
    return ST_OK;
}

static enum status add_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_add(cuda_queue(s->backend, CLOCK_OTHER), args->x[0], args->x[1], s->x.count, args->y);
    return cuda_queued("add");
}

/* Whether both orders differ. */
static bool transposes(const struct layer_state *s)
{
    return channels_first(&s->x) && s->x.shape.dim[2] > 1 && image_pixels(&s->x) > 1;
}

static enum status flatten_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    const struct layer_state *s = *state = layer_state_create(backend, graph, node);
    const bool same = !transposes(s);
    *footprint = (struct footprint){
        .y_over_x = same, .passes_gradient = same, .implementation = same ? "copy" : "transposition"};
    return ST_OK;
}

/* to = from, each sample a matrix of rows rows that is transposed. */
static enum status move(const struct layer_state *s, const float *from, int64_t rows, float *to)
{
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_REORDER);
    if (transposes(s))
        launch_transpose(stream, from, s->x.batch, rows, s->x.elements / rows, false, to);
    else if (to != from)
        launch_copy(stream, from, s->x.count, to);
    return cuda_queued("flatten");
}

static enum status flatten_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    return move(s, args->x[0], s->x.shape.dim[2], args->y);
}

static enum status flatten_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    return move(s, args->dy, image_pixels(&s->x), args->dx[0]);
}

const struct kernel cuda_relu = {true, relu_prepare, relu_forward, relu_backward, free};
const struct kernel cuda_gelu = {true, gelu_prepare, gelu_forward, gelu_backward, free};
const struct kernel cuda_add = {true, add_prepare, add_forward, NULL, free};
const struct kernel cuda_flatten = {true, flatten_prepare, flatten_forward, flatten_backward, free};
