/* y = activation(x W^T + b) for rows, a vector each or a sequence's tokens, by oneDNN's sgemm on the master weights as
 * they are. Of vectors the forward makes W x^T, which the library spreads over threads up to three times better, and
 * transposes it out of scratch; sequences have rows enough.
 *
 * Contract: sums over rows, and the bias gradient's, are in a fixed order for a fixed number of threads. PARAMS
 * applies the activation's derivative in place on dy; INPUT reads what it wrote. */
#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "cpu/loops.h"

struct linear {
    struct backend *backend;
    int64_t batch, rows, inputs, units;
    bool transposed; /* the forward's product */
    int activation;
    bool bias;
};

/* Of one sample's y. */
static int64_t sample_elements(const struct linear *linear) { return linear->rows / linear->batch * linear->units; }

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct linear *linear = calloc(1, sizeof *linear);
    if (linear == NULL) return fail(ST_FAILED, "out of memory");
    *linear = (struct linear){
        .backend = backend,
        .batch = graph->batch,
        .rows = graph->batch * shape_elements(x) / shape_width(x),
        .inputs = shape_width(x),
        .units = node->settings.units,
        .transposed = x->rank == 1,
        .activation = node->settings.activation,
        .bias = node->settings.bias,
    };
    const bool relu = linear->activation == ACTIVATION_RELU;
    *footprint = (struct footprint){
        .signs = relu ? (size_t)linear->batch * sign_words(sample_elements(linear)) * sizeof(uint32_t) : 0,
        .forward_scratch = linear->transposed ? (size_t)(linear->rows * linear->units) * sizeof(float) : 0,
        .reads = {READS_X | (linear->activation != ACTIVATION_NONE ? READS_Y : 0u), 0},
        .split = true,
        .writes_dy = linear->activation != ACTIVATION_NONE,
        .implementation = "sgemm",
    };
    *state = linear;
    return ST_OK;
}

static float activated(int activation, float x)
{
    if (activation == ACTIVATION_RELU) return x <= 0.0f ? 0.0f : x;
    return activation == ACTIVATION_TANH ? tanhf(x) : x;
}

/* y = activation(product + bias); an element of the product, rows x units, lies at row * row_step + unit * unit_step,
 * and product may be y. */
static void finish(const struct linear *linear, const float *product, int64_t row_step, int64_t unit_step,
                   const float *bias, float *y)
{
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < linear->rows; n++)
        for (int64_t i = 0; i < linear->units; i++) {
            const float sum = product[n * row_step + i * unit_step] + (linear->bias ? bias[i] : 0.0f);
            y[n * linear->units + i] = activated(linear->activation, sum);
        }
}

static enum status linear_forward(void *state, const struct kernel_args *args)
{
    struct linear *linear = state;
    const int64_t rows = linear->rows, inputs = linear->inputs, units = linear->units;
    const struct matrix x = {args->x[0], inputs, linear->transposed};
    const struct matrix w = {args->parameters[0], inputs, !linear->transposed};
    uint64_t lap = clock_now_ns();
    if (linear->transposed)
        TRY(multiply(units, rows, inputs, w, x, false, args->scratch));
    else
        TRY(multiply(rows, units, inputs, x, w, false, args->y));
    clock_lap(linear->backend, CLOCK_LINEAR, &lap);
    if (linear->transposed)
        finish(linear, args->scratch, 1, rows, args->parameters[1], args->y);
    else
        finish(linear, args->y, units, 1, args->parameters[1], args->y);
    if (args->save) sign_pack(args->y, linear->batch, sample_elements(linear), args->saved);
    clock_lap(linear->backend, CLOCK_ACTIVATION, &lap);
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

/* db (+)= the sum of dy over the rows, in ascending order. */
static void bias_gradient(const struct linear *linear, const float *dy, bool add, float *db)
{
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < linear->units; i++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < linear->rows; n++) sum += dy[n * linear->units + i];
        db[i] = add ? db[i] + sum : sum;
    }
}

static enum status linear_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    struct linear *linear = state;
    const int64_t rows = linear->rows, inputs = linear->inputs, units = linear->units;
    uint64_t lap = clock_now_ns();
    if (parts & PART_PARAMS) {
        derive(linear, args);
        clock_lap(linear->backend, CLOCK_ACTIVATION, &lap);
        const struct matrix dy = {args->dy, units, true}, x = {args->x[0], inputs, false};
        TRY(multiply(units, inputs, rows, dy, x, args->accumulate, args->gradients[0]));
        if (linear->bias) bias_gradient(linear, args->dy, args->accumulate, args->gradients[1]);
    }
    if (parts & PART_INPUT && args->dx[0] != NULL) {
        const struct matrix dy = {args->dy, units, false}, w = {args->parameters[0], inputs, false};
        TRY(multiply(rows, inputs, units, dy, w, false, args->dx[0]));
    }
    clock_lap(linear->backend, CLOCK_LINEAR, &lap);
    return ST_OK;
}

const struct kernel cpu_linear = {true, linear_prepare, linear_forward, linear_backward, free};
