/* Layers of sequences, in logical order: one token of each, a learnt token before the others, and a learnt table added.
 */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"

/* count floats a sample, whose rows are so far apart. */
static enum status copy_rows(const struct layer_state *s, int64_t count, float *to, int64_t to_next, const float *from,
                             int64_t from_next)
{
    const size_t one = sizeof *to;
    return cuda_check(cudaMemcpy2DAsync(to, (size_t)to_next * one, from, (size_t)from_next * one, (size_t)count * one,
                                        (size_t)s->x.batch, cudaMemcpyDeviceToDevice,
                                        cuda_queue(s->backend, CLOCK_OTHER)),
                      "copy tokens");
}

static enum status select_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t width = s->y.elements, first = node_integer(s->node, "token") * width;
    return copy_rows(s, width, args->y, width, (const float *)args->x[0] + first, s->x.elements);
}

static enum status select_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t width = s->y.elements, first = node_integer(s->node, "token") * width;
    float *dx = args->dx[0];
    launch_fill(cuda_queue(s->backend, CLOCK_OTHER), 0, s->x.count, dx);
    return copy_rows(s, width, dx + first, s->x.elements, args->dy, width);
}

/* Scratch: the learnt token's row, or its gradient, of every sample. */
static enum status class_token_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                       struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const struct layer_state *s = *state;
    footprint->forward_scratch = footprint->backward_scratch[PART_INDEX_PARAMS] =
        (size_t)(s->x.batch * shape_width(&s->x.shape)) * sizeof(float);
    return ST_OK;
}

static enum status class_token_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t width = shape_width(&s->x.shape), rows = s->x.batch * width;
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    float *row = args->scratch, *y = args->y;
    launch_fill(stream, 0, rows, row);
    launch_function(stream, row, (struct bias){args->parameters[0], width, 1}, FUNCTION_NONE, rows, row, NULL);
    TRY(copy_rows(s, width, y, s->y.elements, row, width));
    return copy_rows(s, s->x.elements, y + width, s->y.elements, args->x[0], s->x.elements);
}

static enum status class_token_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t width = shape_width(&s->x.shape);
    const float *dy = args->dy;
    if (args->parts & PART_PARAMS) {
        TRY(copy_rows(s, width, args->scratch, width, dy, s->y.elements));
        launch_reduce_units(cuda_queue(s->backend, CLOCK_OTHER), args->scratch, s->x.batch, width, 1,
                            args->gradients[0]);
    }
    if (args->parts & PART_INPUT)
        TRY(copy_rows(s, s->x.elements, args->dx[0], s->x.elements, dy + width, s->y.elements));
    return cuda_queued("gradients of class_token");
}

static enum status positions_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_function(cuda_queue(s->backend, CLOCK_OTHER), args->x[0],
                    (struct bias){args->parameters[0], s->x.elements, 1}, FUNCTION_NONE, s->x.count, args->y, NULL);
    return cuda_queued("positions");
}

static enum status positions_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    if (args->parts & PART_PARAMS)
        launch_reduce_units(stream, args->dy, s->x.batch, s->x.elements, 1, args->gradients[0]);
    if (args->parts & PART_INPUT && args->dx[0] != args->dy)
        s->backend->kind->copy(s->backend, args->dx[0], args->dy, (size_t)s->x.count * sizeof(float));
    return cuda_queued("gradients of positions");
}

const struct kernel cuda_select = {true, layer_state_prepare, select_forward, select_backward, free};
const struct kernel cuda_class_token = {true, class_token_prepare, class_token_forward, class_token_backward, free};
const struct kernel cuda_positions = {true, layer_state_prepare, positions_forward, positions_backward, free};
