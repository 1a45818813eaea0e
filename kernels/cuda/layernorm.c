/* Layer normalisation; see layernorm_kernels.h, and framework/layers/layernorm.c for the formulas. */
#include <stdlib.h>

#include "cuda.h"
#include "layernorm_kernels.h"

struct layernorm {
    struct backend *backend;
    struct layernorm_shape shape;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct extent x = extent_of(graph, node->inputs[0]);
    const int64_t width = shape_width(&x.shape);
    if (width > LAYERNORM_WIDTH_MOST)
        return fail(ST_SPEC, "cuda: layernorm takes rows of at most %d elements, these have %lld", LAYERNORM_WIDTH_MOST,
                    (long long)width);
    struct layernorm *norm = *state = allocate(1, sizeof *norm);
    *norm = (struct layernorm){backend, {x.count / width, width, (float)node_real(node, "epsilon")}};
    const size_t sums = layernorm_scratch(norm->shape);
    *footprint = (struct footprint){
        .saved = (size_t)norm->shape.rows * sizeof(struct layernorm_statistics),
        .backward_scratch = {sums, sums},
        .reads = {READS_X | READS_SAVED, READS_X | READS_SAVED},
        .y_over_x = true,
        .dx_over_dy = true,
        .implementation = "own",
    };
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layernorm *norm = state;
    launch_layernorm(cuda_queue(norm->backend, CLOCK_NORM), norm->shape, args->x[0], args->parameters[0],
                     args->parameters[1], args->save ? args->saved : NULL, args->y);
    return cuda_queued("layernorm");
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layernorm *norm = state;
    const bool params = args->parts & PART_PARAMS;
    const struct layernorm_operands operands = {.x = args->x[0],
                                                .dy = args->dy,
                                                .w = args->parameters[0],
                                                .statistics = args->saved,
                                                .scratch = args->scratch,
                                                .add = false,
                                                .dw = params ? args->gradients[0] : NULL,
                                                .db = params ? args->gradients[1] : NULL,
                                                .dx = args->parts & PART_INPUT ? args->dx[0] : NULL};
    launch_layernorm_gradients(cuda_queue(norm->backend, CLOCK_NORM), norm->shape, operands);
    return cuda_queued("gradients of layernorm");
}

const struct kernel cuda_layernorm = {true, prepare, forward, backward, free};
