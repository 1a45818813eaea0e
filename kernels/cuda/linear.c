/* y = activation(x W^T + b) for rows, a vector each or a sequence's tokens, by cuBLAS on the master weights as they
 * are; bias, activation and sign bits are one pass of our own over y.
 *
 * Contract: the backward's first op, which alone gets y or its sign bits, multiplies dy by the activation's derivative,
 * in place. */
#include <stdlib.h>

#include "cuda.h"
#include "kernels.h"

struct linear {
    struct backend *backend;
    int64_t rows, inputs, units;
    enum function activation;
    bool bias;
};

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    const int64_t rows = graph->batch * shape_elements(x) / shape_width(x), units = node_integer(node, "units");
    if (rows > INT32_MAX || shape_width(x) > INT32_MAX || units > INT32_MAX)
        return fail(ST_SPEC, "linear on cuda takes at most %d rows, inputs and units", INT32_MAX);
    struct linear *linear = *state = allocate(1, sizeof *linear);
    *linear = (struct linear){.backend = backend,
                              .rows = rows,
                              .inputs = shape_width(x),
                              .units = units,
                              .activation = (enum function)node->activation,
                              .bias = node_integer(node, "bias")};
    const bool active = node->activation != ACTIVATION_NONE;
    *footprint = (struct footprint){
        .signs = node->activation == ACTIVATION_RELU ? sign_bytes(rows * units) : 0,
        .reads = {READS_X | (active ? READS_Y : 0u), 0},
        .split = true,
        .by_rows = true,
        .writes_dy = active,
        .implementation = cuda_of(backend)->tf32 ? "cuBLAS tf32" : "cuBLAS",
    };
    return ST_OK;
}

/* out {rows, columns} = a b, without gaps. */
static enum status multiply(const struct linear *linear, const int64_t size[3], struct matrices a, struct matrices b,
                            void *out)
{
    const struct cuda *cuda = cuda_of(linear->backend);
    const struct gemm gemm = {1, size[0], size[1], size[2], a, b, {.data = out, .row = size[1]}, cuda->tf32};
    cuda_queue(linear->backend, CLOCK_LINEAR);
    return gemm_run(cuda, &gemm);
}

static enum status linear_forward(void *state, const struct kernel_args *args)
{
    const struct linear *l = state;
    const struct matrices x = {.data = args->x[0], .row = l->inputs};
    const struct matrices w = {.data = args->parameters[0], .row = l->inputs, .transposed = true};
    const struct bias bias = {l->bias ? args->parameters[1] : NULL, l->units, 1};
    TRY(multiply(l, (int64_t[]){l->rows, l->units, l->inputs}, x, w, args->y));
    if (l->bias || l->activation != FUNCTION_NONE)
        launch_function(cuda_queue(l->backend, CLOCK_ACTIVATION), args->y, bias, l->activation, l->rows * l->units,
                        args->y, args->save ? args->saved : NULL);
    return cuda_queued("linear");
}

static enum status backward_params(const struct linear *l, const struct kernel_args *args)
{
    const struct matrices dy = {.data = (const float *)args->dy + args->row, .row = l->units, .transposed = true};
    const struct matrices x = {.data = args->x[0], .row = l->inputs};
    if (l->bias && !args->row)
        launch_reduce_units(cuda_queue(l->backend, CLOCK_LINEAR), args->dy, l->rows, l->units, 1, args->gradients[1]);
    return multiply(l, (int64_t[]){args->rows ? args->rows : l->units, l->inputs, l->rows}, dy, x, args->gradients[0]);
}

static enum status linear_backward(void *state, const struct kernel_args *args)
{
    const struct linear *l = state;
    const struct matrices dy = {.data = args->dy, .row = l->units}, w = {.data = args->parameters[0], .row = l->inputs};
    if ((args->y || args->saved) && l->activation != FUNCTION_NONE)
        launch_derivative(cuda_queue(l->backend, CLOCK_ACTIVATION), args->dy, args->y, args->saved, l->activation,
                          l->rows * l->units, args->dy);
    if (args->parts & PART_PARAMS) TRY(backward_params(l, args));
    if (args->parts & PART_INPUT) TRY(multiply(l, (int64_t[]){l->rows, l->inputs, l->units}, dy, w, args->dx[0]));
    return cuda_queued("gradients of a linear layer");
}

const struct kernel cuda_linear = {true, linear_prepare, linear_forward, linear_backward, free};
