/* The channels of two values side by side: in channels first a part of every sample is copied, else a part of every
 * row. */
#include <stdlib.h>

#include "cuda.h"

struct concat {
    struct backend *backend;
    size_t rows, x[2], y; /* bytes of a row */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct concat *c = *state = allocate(1, sizeof *c);
    const struct extent y = extent_of(graph, node->output);
    *c = (struct concat){.backend = backend};
    c->rows = (size_t)(channels_first(&y) ? y.batch : y.count / shape_width(&y.shape));
    for (int k = 0; k < 2; k++) c->x[k] = graph->value[node->inputs[k]].bytes / c->rows;
    c->y = c->x[0] + c->x[1];
    *footprint = (struct footprint){.implementation = "copy"};
    return ST_OK;
}

static enum status copy(const struct concat *c, void *to, size_t to_next, const void *from, size_t from_next,
                        size_t bytes)
{
    const cudaStream_t stream = cuda_queue(c->backend, CLOCK_REORDER);
    return cuda_check(cudaMemcpy2DAsync(to, to_next, from, from_next, bytes, c->rows, cudaMemcpyDeviceToDevice, stream),
                      "concat");
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct concat *c = state;
    TRY(copy(c, args->y, c->y, args->x[0], c->x[0], c->x[0]));
    return copy(c, (char *)args->y + c->x[0], c->y, args->x[1], c->x[1], c->x[1]);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct concat *c = state;
    if (args->dx[0]) TRY(copy(c, args->dx[0], c->x[0], args->dy, c->y, c->x[0]));
    if (args->dx[1]) TRY(copy(c, args->dx[1], c->x[1], (const char *)args->dy + c->x[0], c->y, c->x[1]));
    return ST_OK;
}

const struct kernel cuda_concat = {true, prepare, forward, backward, free};
