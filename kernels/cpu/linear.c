/* y = activation(x W^T + b) for rows, a vector each or a sequence's tokens.
 *
 * Contract: y and dx are sums of products as product.h defines them, then the bias is added; the weights' gradient sums
 * over rows in spans; the bias's gradient as reductions.h says. So no bit depends on threads, or y and dx on how many
 * rows there are. The backward's first op, which alone gets y or its sign bits, multiplies dy by the activation's
 * derivative, in place. */
#include <stdlib.h>

#include "cpu.h"
#include "element_loops.h"
#include "matrix.h"
#include "numerics/element_functions.h"
#include "reductions.h"

/* The products of a linear layer. */
enum use { USE_FORWARD, USE_WEIGHTS, USE_INPUT, USES };

struct linear {
    struct backend *backend;
    int64_t batch, rows, inputs, units;
    struct product_plan plan[USES];
    int activation;
    bool bias;
};

/* Of one sample's y. */
static int64_t sample_elements(const struct linear *linear) { return linear->rows / linear->batch * linear->units; }

/* A product and what it works on; units: those of a part of the weights' gradient. */
static struct product product_for(const struct linear *l, enum use use, int64_t units, const struct kernel_args *args,
                                  struct matrix_product *of)
{
    /* Up to so many rows, a product is faster with the weights as the operand that is not packed in panels. */
    enum { FEW_ROWS = 256 };
    const struct matrix x = {args->x[0], l->inputs, false}, w = {args->parameters[0], l->inputs, false};
    const struct matrix dy = {args->dy, l->units, false};
    const bool few = l->rows <= FEW_ROWS;
    if (use == USE_FORWARD) {
        *of = (struct matrix_product){.c = {args->y, l->units}, .turned = few && l->units > l->rows};
        of->c.bias = l->bias ? args->parameters[1] : NULL;
        of->c.relu = l->activation == ACTIVATION_RELU;
        return matrix_product(l->rows, l->units, l->inputs, x, (struct matrix){w.data, w.stride, true}, of);
    }
    if (use == USE_INPUT) {
        *of = (struct matrix_product){.c = {args->dx[0], l->inputs}, .turned = few && l->inputs > l->rows};
        return matrix_product(l->rows, l->inputs, l->units, dy, w, of);
    }
    const struct matrix part = {dy.data != NULL ? dy.data + args->row : NULL, l->units, true};
    *of = (struct matrix_product){.c = {args->gradients[0], l->inputs, .add = args->adds & 1}};
    struct product product = matrix_product(units, l->inputs, l->rows, part, x, of);
    product.spans = true;
    return product;
}

static void compute(const struct linear *l, enum use use, const struct kernel_args *args)
{
    struct matrix_product of;
    const struct product product = product_for(l, use, args->rows ? args->rows : l->units, args, &of);
    product_run(&product, &l->plan[use], &of, args->scratch);
}

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    static const struct kernel_args none;
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct linear *linear = allocate(1, sizeof *linear);
    *linear = (struct linear){
        .backend = backend,
        .batch = graph->batch,
        .rows = graph->batch * shape_elements(x) / shape_width(x),
        .inputs = shape_width(x),
        .units = node_integer(node, "units"),
        .activation = node->activation,
        .bias = node_integer(node, "bias"),
    };
    const uint64_t limit = scratch_within(node->scratch_limit ? node->scratch_limit : UINT64_MAX);
    size_t backward = linear->bias ? reduce_columns_scratch(linear->rows, linear->units) : 0;
    for (enum use use = 0; use < USES; use++) {
        struct matrix_product of;
        const struct product product = product_for(linear, use, linear->units, &none, &of);
        const struct product_plan *plan = &linear->plan[use];
        linear->plan[use] = product_plan(&product, backend->options.threads, limit);
        if (use != USE_FORWARD && plan->scratch > backward) backward = plan->scratch;
    }
    const bool relu = linear->activation == ACTIVATION_RELU;
    *footprint = (struct footprint){
        .signs = relu ? (size_t)linear->batch * sign_words(sample_elements(linear)) * sizeof(uint32_t) : 0,
        .forward_scratch = linear->plan[USE_FORWARD].scratch,
        .backward_scratch = {backward, backward}, /* by rows, INPUT must not need more than PARAMS */
        .reads = {READS_X | (linear->activation != ACTIVATION_NONE ? READS_Y : 0u), 0},
        .split = true,
        .by_rows = true,
        .writes_dy = linear->activation != ACTIVATION_NONE,
        .implementation = "product " LANES_ISA,
    };
    *state = linear;
    return ST_OK;
}

static enum status linear_forward(void *state, const struct kernel_args *args)
{
    struct linear *linear = state;
    float *y = args->y;
    compute(linear, USE_FORWARD, args);
    clock_lap(linear->backend, CLOCK_LINEAR);
    if (linear->activation == ACTIVATION_TANH) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < linear->rows * linear->units; i++) y[i] = element_tanh(y[i]);
    }
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
    if (args->y || args->saved) derive(linear, args);
    clock_lap(linear->backend, CLOCK_ACTIVATION);
    if (args->parts & PART_PARAMS) {
        compute(linear, USE_WEIGHTS, args);
        if (linear->bias && !args->row)
            reduce_columns(args->dy, linear->rows, linear->units, args->scratch, args->gradients[1]);
    }
    if (args->parts & PART_INPUT) compute(linear, USE_INPUT, args);
    clock_lap(linear->backend, CLOCK_LINEAR);
    return ST_OK;
}

const struct kernel cpu_linear = {true, linear_prepare, linear_forward, linear_backward, free, true};
