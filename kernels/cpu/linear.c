/* y = activation(x W^T + b) for rows, a vector each or a sequence's tokens, by oneDNN's sgemm on the master weights.
 * For vectors the forward computes W x^T, which the library runs up to three times faster on several threads, and
 * transposes it from scratch; sequences have enough rows, and the library adds the bias in the same call.
 *
 * Contract: products are summed in a fixed order for a fixed number of threads, the bias gradient as reductions.h says.
 * The backward's first op, which alone gets y or its sign bits, multiplies dy by the activation's derivative, in place.
 */
#include <math.h>
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"
#include "reductions.h"

struct linear {
    struct backend *backend;
    int64_t batch, rows, inputs, units;
    bool transposed;     /* the forward's product */
    struct call product; /* the forward of a sequence with a bias, else none */
    int activation;
    bool bias;
};

static void linear_release(void *state)
{
    struct linear *linear = state;
    call_release(&linear->product);
    free(linear);
}

/* The forward as one call, arguments: x, w, b, y, scratch. */
static enum status make_product(struct linear *linear)
{
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    const struct cpu *cpu = cpu_of(linear->backend);
    if (!call_inner_product(cpu->engine, linear->rows, linear->inputs, linear->units, &linear->product))
        return fail(ST_FAILED, "oneDNN has no such inner product");
    return call_ready(&linear->product, cpu->engine, cpu->stream, 5, arguments);
}

/* Of one sample's y. */
static int64_t sample_elements(const struct linear *linear) { return linear->rows / linear->batch * linear->units; }

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct linear *linear = allocate(1, sizeof *linear);
    *linear = (struct linear){
        .backend = backend,
        .batch = graph->batch,
        .rows = graph->batch * shape_elements(x) / shape_width(x),
        .inputs = shape_width(x),
        .units = node_integer(node, "units"),
        .transposed = x->rank == 1,
        .activation = node->activation,
        .bias = node_integer(node, "bias"),
    };
    expect_product(backend, linear->rows, linear->inputs, linear->units);
    enum status status = !linear->transposed && linear->bias ? make_product(linear) : ST_OK;
    if (status != ST_OK) {
        linear_release(linear);
        return status;
    }
    const bool relu = linear->activation == ACTIVATION_RELU, product = linear->product.primitive != NULL;
    const size_t transposed = (size_t)(linear->rows * linear->units) * sizeof(float);
    *footprint = (struct footprint){
        .signs = relu ? (size_t)linear->batch * sign_words(sample_elements(linear)) * sizeof(uint32_t) : 0,
        .forward_scratch = product              ? call_scratch(&linear->product)
                           : linear->transposed ? transposed
                                                : 0,
        .backward_scratch = {linear->bias ? reduce_columns_scratch(linear->rows, linear->units) : 0, 0},
        .reads = {READS_X | (linear->activation != ACTIVATION_NONE ? READS_Y : 0u), 0},
        .split = true,
        .by_rows = true,
        .writes_dy = linear->activation != ACTIVATION_NONE,
        .implementation = product ? call_implementation(&linear->product) : "sgemm",
    };
    *state = linear;
    return ST_OK;
}

static float activated(int activation, float x)
{
    if (activation == ACTIVATION_RELU) return x <= 0.0f ? 0.0f : x;
    return activation == ACTIVATION_TANH ? tanhf(x) : x;
}

/* y = activation(the transpose of product, units x rows, + bias). */
static void finish_transposed(const struct linear *linear, const float *product, const float *bias, float *y)
{
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < linear->rows; n++)
        for (int64_t i = 0; i < linear->units; i++) {
            const float sum = product[i * linear->rows + n] + (linear->bias ? bias[i] : 0.0f);
            y[n * linear->units + i] = activated(linear->activation, sum);
        }
}

static enum status forward_transposed(struct linear *linear, const struct kernel_args *args)
{
    const struct matrix x = {args->x[0], linear->inputs, true}, w = {args->parameters[0], linear->inputs, false};
    TRY(gemm(linear->units, linear->rows, linear->inputs, w, x, args->scratch, linear->rows));
    clock_lap(linear->backend, CLOCK_LINEAR);
    finish_transposed(linear, args->scratch, args->parameters[1], args->y);
    return ST_OK;
}

static enum status forward_direct(struct linear *linear, const struct kernel_args *args)
{
    const struct matrix x = {args->x[0], linear->inputs, false}, w = {args->parameters[0], linear->inputs, true};
    float *y = args->y;
    if (linear->product.primitive != NULL)
        TRY(call_run(&linear->product, (const void *[]){x.data, w.data, args->parameters[1], y, args->scratch}));
    else
        TRY(gemm(linear->rows, linear->units, linear->inputs, x, w, y, linear->units));
    clock_lap(linear->backend, CLOCK_LINEAR);
    if (linear->activation == ACTIVATION_NONE) return ST_OK;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < linear->rows * linear->units; i++) y[i] = activated(linear->activation, y[i]);
    return ST_OK;
}

static enum status linear_forward(void *state, const struct kernel_args *args)
{
    struct linear *linear = state;
    TRY(linear->transposed ? forward_transposed(linear, args) : forward_direct(linear, args));
    if (args->save) sign_pack(args->y, linear->batch, sample_elements(linear), args->saved);
    clock_lap(linear->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

/* dy *= the activation's derivative. */
static void derive(const struct linear *linear, const struct kernel_args *args)
{
    const int64_t count = linear->rows * linear->units;
    const float *y = args->y;
    float *dy = args->dy;
    if (args->saved) {
        sign_mask(dy, dy, args->saved, linear->batch, sample_elements(linear));
    } else if (linear->activation == ACTIVATION_RELU) {
        relu_mask(dy, dy, y, count);
    } else if (linear->activation == ACTIVATION_TANH) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; i++) dy[i] *= 1.0f - y[i] * y[i];
    }
}

static enum status linear_backward(void *state, const struct kernel_args *args)
{
    struct linear *linear = state;
    const int64_t rows = linear->rows, inputs = linear->inputs, units = linear->units;
    if (args->y || args->saved) derive(linear, args);
    clock_lap(linear->backend, CLOCK_ACTIVATION);
    if (args->parts & PART_PARAMS) {
        const struct matrix dy = {(const float *)args->dy + args->row, units, true}, x = {args->x[0], inputs, false};
        TRY(gemm(args->rows ? args->rows : units, inputs, rows, dy, x, args->gradients[0], inputs));
        if (linear->bias && !args->row) reduce_columns(args->dy, rows, units, args->scratch, args->gradients[1]);
    }
    if (args->parts & PART_INPUT) {
        const struct matrix dy = {args->dy, units, false}, w = {args->parameters[0], inputs, false};
        TRY(gemm(rows, inputs, units, dy, w, args->dx[0], inputs));
    }
    clock_lap(linear->backend, CLOCK_LINEAR);
    return ST_OK;
}

const struct kernel cpu_linear = {true, linear_prepare, linear_forward, linear_backward, linear_release};
