/* y = activation(x W^T + b) for rows, a vector each or a sequence's tokens, by cuBLASLt on the master weights as they
 * are, which adds the bias and takes the relu as it goes; tanh is a pass of our own over y.
 *
 * Contract: products as gemm.h says, the bias' gradient as reductions.h says. PARAMS applies the activation's
 * derivative in place on dy; INPUT reads what it wrote. */
#include <stdlib.h>

#include "activations.h"
#include "gemm.h"
#include "reductions.h"

enum { PRODUCT_Y, PRODUCT_DW, PRODUCT_DX, PRODUCTS };

struct linear {
    struct backend *backend;
    int64_t rows, inputs, units;
    struct product product[PRODUCTS]; /* DX: none where no gradient is wanted */
    int activation;
    bool bias;
};

static void linear_release(void *state)
{
    struct linear *linear = state;
    if (linear == NULL) return;
    for (int i = 0; i < PRODUCTS; i++) product_release(&linear->product[i]);
    free(linear);
}

static enum status make_products(struct linear *linear, bool input)
{
    const struct cuda *cuda = cuda_of(linear->backend);
    const int64_t rows = linear->rows, inputs = linear->inputs, units = linear->units;
    const enum product_end end = (enum product_end)((linear->bias ? PRODUCT_BIAS : PRODUCT_PLAIN) |
                                                    (linear->activation == ACTIVATION_RELU ? PRODUCT_RELU : 0));
    const struct product_want y = {rows, units, inputs, false, true, end};
    const struct product_want dw = {units, inputs, rows, true, false, PRODUCT_PLAIN};
    const struct product_want dx = {rows, inputs, units, false, false, PRODUCT_PLAIN};
    TRY(product_make(cuda, &y, &linear->product[PRODUCT_Y]));
    TRY(product_make(cuda, &dw, &linear->product[PRODUCT_DW]));
    return input ? product_make(cuda, &dx, &linear->product[PRODUCT_DX]) : ST_OK;
}

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct linear *linear = calloc(1, sizeof *linear);
    if (linear == NULL) return fail(ST_FAILED, "out of memory");
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
    const size_t sums = linear->bias ? unit_sums_scratch(linear->rows, linear->units, 1) : 0;
    const size_t params = linear->product[PRODUCT_DW].workspace;
    *footprint = (struct footprint){
        .signs = linear->activation == ACTIVATION_RELU ? sign_bytes(linear->rows * linear->units) : 0,
        .forward_scratch = linear->product[PRODUCT_Y].workspace,
        .backward_scratch = {params > sums ? params : sums, linear->product[PRODUCT_DX].workspace},
        .reads = {READS_X | (active ? READS_Y : 0u), 0},
        .split = true,
        .writes_dy = active,
        .implementation = cuda_of(backend)->tf32 ? "cuBLASLt tf32" : "cuBLASLt",
    };
    *state = linear;
    return ST_OK;
}

static enum status run(const struct linear *linear, int which, const struct product_operands *operands)
{
    cuda_clock(linear->backend, CLOCK_LINEAR);
    return product_run(cuda_of(linear->backend), &linear->product[which], operands);
}

/* The product's relu is not taken again, so that no zero changes its sign where signs are saved. */
static enum status linear_forward(void *state, const struct kernel_args *args)
{
    const struct linear *linear = state;
    const struct product_operands operands = {.a = args->x[0],
                                              .b = args->parameters[0],
                                              .bias = linear->bias ? args->parameters[1] : NULL,
                                              .c = args->y,
                                              .workspace = args->scratch};
    const int left = linear->activation == ACTIVATION_TANH ? ACTIVATION_TANH : ACTIVATION_NONE;
    TRY(run(linear, PRODUCT_Y, &operands));
    if (left != ACTIVATION_NONE || args->save) {
        cuda_clock(linear->backend, CLOCK_ACTIVATION);
        launch_activation(cuda_of(linear->backend)->stream, args->y, (struct bias){.values = NULL}, left,
                          linear->rows * linear->units, args->y, args->save ? args->saved : NULL);
    }
    return cuda_queued("linear");
}

static enum status backward_params(const struct linear *linear, const struct kernel_args *args)
{
    cudaStream_t stream = cuda_of(linear->backend)->stream;
    const struct product_operands operands = {.a = args->dy,
                                              .b = args->x[0],
                                              .c = args->gradients[0],
                                              .accumulate = args->accumulate,
                                              .workspace = args->scratch};
    if (linear->activation != ACTIVATION_NONE) {
        cuda_clock(linear->backend, CLOCK_ACTIVATION);
        launch_activation_derivative(stream, args->dy, args->y, args->saved, linear->activation,
                                     linear->rows * linear->units, args->dy);
    }
    cuda_clock(linear->backend, CLOCK_LINEAR);
    if (linear->bias)
        launch_unit_sums(stream, args->dy, linear->rows, linear->units, 1, args->accumulate, args->scratch,
                         args->gradients[1]);
    return run(linear, PRODUCT_DW, &operands);
}

static enum status linear_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct linear *linear = state;
    const struct product_operands operands = {
        .a = args->dy, .b = args->parameters[0], .c = args->dx[0], .workspace = args->scratch};
    if (parts & PART_PARAMS) TRY(backward_params(linear, args));
    if (parts & PART_INPUT && args->dx[0] != NULL) TRY(run(linear, PRODUCT_DX, &operands));
    return cuda_queued("gradients of a linear layer");
}

const struct kernel cuda_linear = {true, linear_prepare, linear_forward, linear_backward, linear_release};
