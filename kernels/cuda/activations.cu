#include "activations.h"

#include "device.cuh"
#include "numerics/element_gelu.h"

/* As enum activation says; see layer.h. */
enum { NONE, RELU, TANH };

struct bias_view {
    const float *values;
    int64_t units;
    struct divisor by_inner, by_units;
};

/* The biases of elements [i, i + 4). */
__device__ static struct quad bias_quad(struct bias_view bias, int64_t i)
{
    const struct divided place = divide(i, bias.by_inner);
    int64_t unit = divide(place.quotient, bias.by_units).rest, rest = place.rest;
    if (bias.by_inner.d == 1 && bias.units % QUAD == 0) return quad_load(bias.values, unit, bias.units);
    struct quad q;
    if (bias.by_inner.d % QUAD == 0) {
        const float one = bias.values[unit];
        return {one, one, one, one};
    }
    for (int j = 0; j < QUAD; j++) {
        q.v[j] = bias.values[unit];
        if (++rest < bias.by_inner.d) continue;
        rest = 0;
        unit = unit + 1 < bias.units ? unit + 1 : 0;
    }
    return q;
}

template <int ACTIVATION> __device__ static float activated(float x)
{
    if (ACTIVATION == RELU) return x <= 0.0f ? 0.0f : x;
    return ACTIVATION == TANH ? tanhf(x) : x;
}

/* Two adjacent lanes share a byte of sign bits, so all threads of a block run the same iterations. */
template <int ACTIVATION>
__global__ static void activate(const float *from, struct bias_view bias, int64_t count, float *to, uint8_t *signs)
{
    const int64_t tile = (int64_t)THREADS * QUAD;
    for (int64_t first = blockIdx.x * tile; first < count; first += gridDim.x * tile) {
        const int64_t i = first + threadIdx.x * QUAD;
        struct quad q = quad_load(from, i, count);
        if (bias.values != NULL && i < count) {
            const struct quad b = bias_quad(bias, i);
            for (int j = 0; j < QUAD; j++) q.v[j] += b.v[j];
        }
        unsigned bits = 0;
        for (int j = 0; j < QUAD; j++) {
            q.v[j] = activated<ACTIVATION>(q.v[j]);
            bits |= (unsigned)(i + j < count && q.v[j] > 0.0f) << j;
        }
        quad_store(to, i, count, q);
        if (signs == NULL) continue;
        const unsigned other = __shfl_xor_sync(0xffffffffu, bits, 1);
        if (threadIdx.x % 2 == 0 && i < count) signs[i / 8] = (uint8_t)(bits | other << QUAD);
    }
}

template <int ACTIVATION>
__global__ static void derive(const float *dy, const float *y, const uint8_t *signs, int64_t count, float *dx)
{
    for (int64_t i = thread_first() * QUAD; i < count; i += thread_stride() * QUAD) {
        struct quad q = quad_load(dy, i, count);
        if (signs != NULL) {
            const unsigned bits = signs[i / 8] >> i % 8;
            for (int j = 0; j < QUAD; j++) q.v[j] = bits >> j & 1u ? q.v[j] : 0.0f;
        } else {
            const struct quad out = quad_load(y, i, count);
            for (int j = 0; j < QUAD; j++)
                if (ACTIVATION == RELU)
                    q.v[j] = out.v[j] > 0.0f ? q.v[j] : 0.0f;
                else
                    q.v[j] *= 1.0f - out.v[j] * out.v[j];
        }
        quad_store(dx, i, count, q);
    }
}

template <bool BY_TANH> __global__ static void gelu(const float *x, int64_t count, float *y)
{
    for (int64_t i = thread_first() * QUAD; i < count; i += thread_stride() * QUAD) {
        struct quad q = quad_load(x, i, count);
        for (int j = 0; j < QUAD; j++) q.v[j] = BY_TANH ? element_gelu_tanh(q.v[j]) : element_gelu(q.v[j]);
        quad_store(y, i, count, q);
    }
}

template <bool BY_TANH> __global__ static void gelu_derive(const float *dy, const float *x, int64_t count, float *dx)
{
    for (int64_t i = thread_first() * QUAD; i < count; i += thread_stride() * QUAD) {
        struct quad q = quad_load(dy, i, count);
        const struct quad at = quad_load(x, i, count);
        for (int j = 0; j < QUAD; j++)
            q.v[j] *= BY_TANH ? element_gelu_tanh_slope(at.v[j]) : element_gelu_slope(at.v[j]);
        quad_store(dx, i, count, q);
    }
}

void launch_activation(cudaStream_t stream, const float *from, struct bias bias, int activation, int64_t count,
                       float *to, uint8_t *signs)
{
    const bool has_bias = bias.values != NULL;
    const struct bias_view view = {bias.values, bias.units, divisor_of(has_bias ? bias.inner : 1),
                                   divisor_of(has_bias ? bias.units : 1)};
    const unsigned blocks = blocks_for((count + QUAD - 1) / QUAD);
    if (activation == RELU)
        LAUNCH(activate<RELU>, blocks, THREADS, stream, from, view, count, to, signs);
    else if (activation == TANH)
        LAUNCH(activate<TANH>, blocks, THREADS, stream, from, view, count, to, signs);
    else
        LAUNCH(activate<NONE>, blocks, THREADS, stream, from, view, count, to, signs);
}

void launch_activation_derivative(cudaStream_t stream, const float *dy, const float *y, const uint8_t *signs,
                                  int activation, int64_t count, float *dx)
{
    const unsigned blocks = blocks_for((count + QUAD - 1) / QUAD);
    if (activation == RELU)
        LAUNCH(derive<RELU>, blocks, THREADS, stream, dy, y, signs, count, dx);
    else if (activation == TANH)
        LAUNCH(derive<TANH>, blocks, THREADS, stream, dy, y, signs, count, dx);
}

void launch_gelu(cudaStream_t stream, const float *x, bool by_tanh, int64_t count, float *y)
{
    const unsigned blocks = blocks_for((count + QUAD - 1) / QUAD);
    if (by_tanh)
        LAUNCH(gelu<true>, blocks, THREADS, stream, x, count, y);
    else
        LAUNCH(gelu<false>, blocks, THREADS, stream, x, count, y);
}

void launch_gelu_derivative(cudaStream_t stream, const float *dy, const float *x, bool by_tanh, int64_t count,
                            float *dx)
{
    const unsigned blocks = blocks_for((count + QUAD - 1) / QUAD);
    if (by_tanh)
        LAUNCH(gelu_derive<true>, blocks, THREADS, stream, dy, x, count, dx);
    else
        LAUNCH(gelu_derive<false>, blocks, THREADS, stream, dy, x, count, dx);
}
