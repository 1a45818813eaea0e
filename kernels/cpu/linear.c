/* y = activation(x W^T + b) for vectors, by oneDNN's sgemm on the master weights as they are. The forward makes W x^T,
 * which the library spreads over threads up to three times better, and transposes it out of scratch.
 *
 * Contract: sums over the batch, and the bias gradient's, are in a fixed order for a fixed number of threads. PARAMS
 * applies the activation's derivative in place on dy; INPUT reads what it wrote. */
#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "cpu/loops.h"

struct linear {
    struct backend *backend;
    int64_t batch, inputs, units;
    int activation;
    bool bias;
};

static enum status linear_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                  struct footprint *footprint, void **state)
{
    struct linear *linear = calloc(1, sizeof *linear);
    if (linear == NULL) return fail(ST_FAILED, "out of memory");
    *linear = (struct linear){
        .backend = backend,
        .batch = graph->batch,
        .inputs = shape_elements(&graph->value[node->inputs[0]].shape),
        .units = node->settings.units,
        .activation = node->settings.activation,
        .bias = node->settings.bias,
    };
    const bool relu = linear->activation == ACTIVATION_RELU;
    *footprint = (struct footprint){
        .signs = relu ? (size_t)linear->batch * sign_words(linear->units) * sizeof(uint32_t) : 0,
        .forward_scratch = (size_t)(linear->batch * linear->units) * sizeof(float),
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

/* y = activation(the transpose of product, units x batch, + bias). */
static void finish(const struct linear *linear, const float *product, const float *bias, float *y)
{
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < linear->batch; n++)
        for (int64_t i = 0; i < linear->units; i++) {
            const float sum = product[i * linear->batch + n] + (linear->bias ? bias[i] : 0.0f);
            y[n * linear->units + i] = activated(linear->activation, sum);
        }
}

static enum status linear_forward(void *state, const struct kernel_args *args)
{
    struct linear *linear = state;
    const struct matrix x = {args->x[0], linear->inputs, true}, w = {args->parameters[0], linear->inputs, false};
    uint64_t lap = clock_now_ns();
    TRY(multiply(linear->units, linear->batch, linear->inputs, w, x, false, args->scratch));
    clock_lap(linear->backend, CLOCK_LINEAR, &lap);
    finish(linear, args->scratch, args->parameters[1], args->y);
    if (args->save) sign_pack(args->y, linear->batch, linear->units, args->saved);
    clock_lap(linear->backend, CLOCK_ACTIVATION, &lap);
    return ST_OK;
}

/* dy *= the activation's derivative. */
static void derive(const struct linear *linear, const struct kernel_args *args)
{
    const int64_t count = linear->batch * linear->units;
    const float *y = args->y;
    float *dy = args->dy;
    if (args->saved) {
        sign_mask(dy, dy, args->saved, linear->batch, linear->units);
    } else if (linear->activation == ACTIVATION_RELU) {
        relu_mask(dy, dy, y, count);
    } else if (linear->activation == ACTIVATION_TANH) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; i++) dy[i] *= 1.0f - y[i] * y[i];
    }
}

/* db (+)= the sum of dy over the batch, in ascending sample order. */
static void bias_gradient(const struct linear *linear, const float *dy, bool add, float *db)
{
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < linear->units; i++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < linear->batch; n++) sum += dy[n * linear->units + i];
        db[i] = add ? db[i] + sum : sum;
    }
}

static enum status linear_backward(void *state, const struct kernel_args *args, unsigned parts)
{
    struct linear *linear = state;
    const int64_t batch = linear->batch, inputs = linear->inputs, units = linear->units;
    uint64_t lap = clock_now_ns();
    if (parts & PART_PARAMS) {
        derive(linear, args);
        clock_lap(linear->backend, CLOCK_ACTIVATION, &lap);
        const struct matrix dy = {args->dy, units, true}, x = {args->x[0], inputs, false};
        TRY(multiply(units, inputs, batch, dy, x, args->accumulate, args->gradients[0]));
        if (linear->bias) bias_gradient(linear, args->dy, args->accumulate, args->gradients[1]);
    }
    if (parts & PART_INPUT && args->dx[0] != NULL) {
        const struct matrix dy = {args->dy, units, false}, w = {args->parameters[0], inputs, false};
        TRY(multiply(batch, inputs, units, dy, w, false, args->dx[0]));
    }
    clock_lap(linear->backend, CLOCK_LINEAR, &lap);
    return ST_OK;
}

const struct kernel cpu_linear = {true, linear_prepare, linear_forward, linear_backward, free};
