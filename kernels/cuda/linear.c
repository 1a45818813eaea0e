/* y = activation(x W^T + b) for rows, a vector each or a sequence's tokens, by cuBLASLt on the master weights as they
 * are, which adds the bias and applies the relu in the same call; tanh is a pass of our own over y.
 *
 * Contract: products as gemm.h says, the bias' gradient as reductions.h says. PARAMS applies the activation's
 * derivative in place on dy; INPUT reads what it wrote. */
#include <stdlib.h>

#include "activations.h"
#include "gemm.h"
#include "reductions.h"

enum { GEMM_Y, GEMM_DW, GEMM_DX, GEMMS };

struct linear {
    struct backend *backend;
    int64_t rows, inputs, units;
    struct gemm product[GEMMS]; /* DX: none where no gradient is wanted */
    int activation;
    bool bias;
};

static void linear_release(void *state)
{
    struct linear *linear = state;
    for (int i = 0; i < GEMMS; i++) gemm_release(&linear->product[i]);
    free(linear);
}

static enum status make_products(struct linear *linear, bool input)
{
    const struct cuda *cuda = cuda_of(linear->backend);
    const int64_t rows = linear->rows, inputs = linear->inputs, units = linear->units;
    const enum gemm_epilogue end = (enum gemm_epilogue)((linear->bias ? GEMM_BIAS : GEMM_PLAIN) |
                                                        (linear->activation == ACTIVATION_RELU ? GEMM_RELU : 0));
    const struct gemm_problem y = {rows, units, inputs, false, true, end};
    const struct gemm_problem dw = {units, inputs, rows, true, false, GEMM_PLAIN};
    const struct gemm_problem dx = {rows, inputs, units, false, false, GEMM_PLAIN};
    TRY(gemm_create(cuda, &y, &linear->product[GEMM_Y]));
    TRY(gemm_create(cuda, &dw, &linear->product[GEMM_DW]));
    return input ? gemm_create(cuda, &dx, &linear->product[GEMM_DX]) : ST_OK;
}

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct linear *linear = allocate(1, sizeof *linear);
    *linear = (struct linear){
        .backend = backend,
        .rows = graph->batch * shape_elements(x) / shape_width(x),
        .inputs = shape_width(x),
        .units = node_integer(node, "units"),
        .activation = node->activation,
        .bias = node_integer(node, "bias"),
    };
    const enum status status = make_products(linear, graph->value[node->inputs[0]].wants_gradient);
    if (status != ST_OK) {
        linear_release(linear);
        return status;
    }
    const bool active = linear->activation != ACTIVATION_NONE;
    const size_t sums = linear->bias ? reduce_units_scratch(linear->rows, linear->units, 1) : 0;
    const size_t params = linear->product[GEMM_DW].workspace;
    *footprint = (struct footprint){
        .signs = linear->activation == ACTIVATION_RELU ? sign_bytes(linear->rows * linear->units) : 0,
        .forward_scratch = linear->product[GEMM_Y].workspace,
        .backward_scratch = {params > sums ? params : sums, linear->product[GEMM_DX].workspace},
        .reads = {READS_X | (active ? READS_Y : 0u), 0},
        .split = true,
        .writes_dy = active,
        .implementation = cuda_of(backend)->tf32 ? "cuBLASLt tf32" : "cuBLASLt",
    };
    *state = linear;
    return ST_OK;
}

static enum status run(const struct linear *linear, int which, const struct gemm_operands *operands)
{
    cuda_queue(linear->backend, CLOCK_LINEAR);
    return gemm_run(cuda_of(linear->backend), &linear->product[which], operands);
}

/* The product's relu is not applied again where sign bits are saved, so that no zero changes its sign. */
static enum status linear_forward(void *state, const struct kernel_args *args)
{
    const struct linear *linear = state;
    const struct gemm_operands operands = {.a = args->x[0],
                                           .b = args->parameters[0],
                                           .bias = linear->bias ? args->parameters[1] : NULL,
                                           .c = args->y,
                                           .workspace = args->scratch};
    const int left = linear->activation == ACTIVATION_TANH ? ACTIVATION_TANH : ACTIVATION_NONE;
    TRY(run(linear, GEMM_Y, &operands));
    if (left != ACTIVATION_NONE || args->save)
        launch_activation(cuda_queue(linear->backend, CLOCK_ACTIVATION), args->y, (struct bias){.values = NULL}, left,
                          linear->rows * linear->units, args->y, args->save ? args->saved : NULL);
    return cuda_queued("linear");
}

static enum status backward_params(const struct linear *linear, const struct kernel_args *args)
{
    const struct gemm_operands operands = {
        .a = args->dy, .b = args->x[0], .c = args->gradients[0], .accumulate = false, .workspace = args->scratch};
    if (linear->activation != ACTIVATION_NONE)
        launch_activation_derivative(cuda_queue(linear->backend, CLOCK_ACTIVATION), args->dy, args->y, args->saved,
                                     linear->activation, linear->rows * linear->units, args->dy);
    if (linear->bias)
        launch_reduce_units(cuda_queue(linear->backend, CLOCK_LINEAR), args->dy, linear->rows, linear->units, 1, false,
                            args->scratch, args->gradients[1]);
    return run(linear, GEMM_DW, &operands);
}

static enum status linear_backward(void *state, const struct kernel_args *args)
{
    const struct linear *linear = state;
    const struct gemm_operands operands = {
        .a = args->dy, .b = args->parameters[0], .c = args->dx[0], .workspace = args->scratch};
    if (args->parts & PART_PARAMS) TRY(backward_params(linear, args));
    if (args->parts & PART_INPUT) TRY(run(linear, GEMM_DX, &operands));
    return cuda_queued("gradients of a linear layer");
}

const struct kernel cuda_linear = {true, linear_prepare, linear_forward, linear_backward, linear_release};
