#include "device.cuh"
#include "kernels.h"

__device__ static float value_of(enum function function, float x)
{
    switch (function) {
    case FUNCTION_RELU:
        return x <= 0.0f ? 0.0f : x;
    case FUNCTION_TANH:
        return element_tanh(x);
    default:
        return x;
    }
}

/* Eight adjacent lanes share a byte of sign bits, so all threads of a block run the same iterations. */
__global__ static void apply(const float *from, struct bias bias, enum function function, int64_t count, float *to,
                             uint8_t *signs)
{
    for (int64_t first = (int64_t)blockIdx.x * blockDim.x; first < count; first += thread_stride()) {
        const int64_t i = first + threadIdx.x;
        float x = i < count ? from[i] : 0;
        if (bias.values != NULL && i < count) x += bias.values[i / bias.inner % bias.units];
        const float y = value_of(function, x);
        if (i < count) to[i] = y;
        if (signs == NULL) continue;
        unsigned bits = (unsigned)(i < count && y > 0.0f) << i % 8;
        for (int other = 1; other < 8; other *= 2) bits |= __shfl_xor_sync(ALL_LANES, bits, other);
        if (i < count && i % 8 == 0) signs[i / 8] = (uint8_t)bits;
    }
}

__device__ static float derived(enum function function, float dy, float at)
{
    switch (function) {
    case FUNCTION_RELU:
        return at > 0.0f ? dy : 0.0f;
    case FUNCTION_TANH:
        return dy * (1.0f - at * at);
    default:
        return dy;
    }
}

__global__ static void derive(const float *dy, const float *at, const uint8_t *signs, enum function function,
                              int64_t count, float *dx)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride())
        dx[i] = derived(function, dy[i], signs != NULL ? (float)(signs[i / 8] >> i % 8 & 1) : at[i]);
}

void launch_function(cudaStream_t stream, const float *from, struct bias bias, enum function function, int64_t count,
                     float *to, uint8_t *signs)
{
    LAUNCH(apply, blocks_for(count), THREADS, stream, from, bias, function, count, to, signs);
}

void launch_derivative(cudaStream_t stream, const float *dy, const float *at, const uint8_t *signs,
                       enum function function, int64_t count, float *dx)
{
    LAUNCH(derive, blocks_for(count), THREADS, stream, dy, at, signs, function, count, dx);
}

#define VALUE(layer, value, gradient)                                                                                  \
    case ELEMENT_##layer:                                                                                              \
        return value;
__device__ static float element_value(enum element_function function, float number, float x)
{
    switch (function) {
        ELEMENT_FUNCTIONS(VALUE)
    }
    return number; /* not reached */
}

#define GRADIENT(layer, value, gradient)                                                                               \
    case ELEMENT_##layer:                                                                                              \
        return gradient;
__device__ static float element_gradient(enum element_function function, float number, float dy, float at)
{
    switch (function) {
        ELEMENT_FUNCTIONS(GRADIENT)
    }
    return number; /* not reached */
}

__global__ static void elementwise(enum element_function function, float number, const float *x, int64_t count,
                                   float *y)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) y[i] = element_value(function, number, x[i]);
}

__global__ static void elementwise_gradient(enum element_function function, float number, const float *dy,
                                            const float *at, int64_t count, float *dx)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride())
        dx[i] = element_gradient(function, number, dy[i], at[i]);
}

void launch_elementwise(cudaStream_t stream, enum element_function function, float number, const float *x,
                        int64_t count, float *y)
{
    LAUNCH(elementwise, blocks_for(count), THREADS, stream, function, number, x, count, y);
}

void launch_elementwise_gradient(cudaStream_t stream, enum element_function function, float number, const float *dy,
                                 const float *at, int64_t count, float *dx)
{
    LAUNCH(elementwise_gradient, blocks_for(count), THREADS, stream, function, number, dy, at, count, dx);
}

__global__ static void add(const float *a, const float *b, int64_t count, float *out)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) out[i] = a[i] + b[i];
}

void launch_add(cudaStream_t stream, const float *a, const float *b, int64_t count, float *out)
{
    LAUNCH(add, blocks_for(count), THREADS, stream, a, b, count, out);
}

/* The gate of element i of all samples. */
__device__ static int64_t gate_of(struct gate_shape s, int64_t i)
{
    const int64_t elements = s.channels * s.pixels, at = i % elements;
    if (s.gates == elements) return i;
    return i / elements * s.gates + (s.channels_first ? at / s.pixels : at % s.channels);
}

__global__ static void multiply(struct gate_shape s, const float *from, const float *gate, float *to)
{
    for (int64_t i = thread_first(); i < s.batch * s.channels * s.pixels; i += thread_stride())
        to[i] = from[i] * gate[gate_of(s, i)];
}

void launch_multiply(cudaStream_t stream, struct gate_shape shape, const float *from, const float *gate, float *to)
{
    LAUNCH(multiply, blocks_for(shape.batch * shape.channels * shape.pixels), THREADS, stream, shape, from, gate, to);
}

__global__ static void gate_gradient(struct gate_shape s, const float *x, const float *dy, float *gradient)
{
    const int64_t elements = s.channels * s.pixels, pixels = elements / s.gates;
    const bool first = s.channels_first || s.gates == elements; /* a gate's pixels lie together */
    for (int64_t i = thread_first(); i < s.batch * s.gates; i += thread_stride()) {
        const int64_t gate = i % s.gates, at = i / s.gates * elements + (first ? gate * pixels : gate);
        double sum = 0;
        for (int64_t p = 0; p < pixels; p++) {
            const int64_t k = at + p * (first ? 1 : s.gates);
            sum += (double)dy[k] * x[k];
        }
        gradient[i] = (float)sum;
    }
}

void launch_gate_gradient(cudaStream_t stream, struct gate_shape shape, const float *x, const float *dy,
                          float *gradient)
{
    LAUNCH(gate_gradient, blocks_for(shape.batch * shape.gates), THREADS, stream, shape, x, dy, gradient);
}

/* As integers, since a pattern may be a signalling NaN. */
__global__ static void fill(uint32_t pattern, int64_t count, uint32_t *to)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) to[i] = pattern;
}

void launch_fill(cudaStream_t stream, uint32_t pattern, int64_t count, void *to)
{
    LAUNCH(fill, blocks_for(count), THREADS, stream, pattern, count, (uint32_t *)to);
}

__global__ static void transpose(const float *from, int64_t rows, int64_t columns, int64_t count, float *to)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride())
        to[i] = from[(i / rows / columns * rows + i % rows) * columns + i / rows % columns];
}

void launch_transpose(cudaStream_t stream, const float *from, int64_t batch, int64_t rows, int64_t columns, float *to)
{
    const int64_t count = batch * rows * columns;
    LAUNCH(transpose, blocks_for(count), THREADS, stream, from, rows, columns, count, to);
}

__global__ static void drop(const float *from, float *to, struct dropout_shape shape, struct element_draw draw,
                            float factor)
{
    const int64_t elements = shape.channels * shape.pixels;
    draw = element_draw_read(draw);
    for (int64_t i = thread_first(); i < shape.batch * elements; i += thread_stride()) {
        const int64_t place = i % shape.pixels * shape.channels + i / shape.pixels % shape.channels;
        to[i] = element_keep(&draw, elements, i / elements, place) ? from[i] * factor : 0.0f;
    }
}

void launch_dropout(cudaStream_t stream, struct dropout_shape shape, const struct element_draw *draw, float factor,
                    const float *from, float *to)
{
    LAUNCH(drop, blocks_for(shape.batch * shape.channels * shape.pixels), THREADS, stream, from, to, shape, *draw,
           factor);
}

/* A byte a thread. */
__global__ static void fill_mask(uint8_t *mask, int64_t batch, int64_t elements, struct element_draw draw)
{
    const int64_t row = (elements + 7) / 8;
    draw = element_draw_read(draw);
    for (int64_t i = thread_first(); i < batch * row; i += thread_stride()) {
        unsigned bits = 0;
        for (int64_t j = 0, first = i % row * 8; j < 8 && first + j < elements; j++)
            bits |= element_keep(&draw, elements, i / row, first + j) << j;
        mask[i] = (uint8_t)bits;
    }
}

void launch_dropout_mask(cudaStream_t stream, const struct element_draw *draw, int64_t elements, int64_t batch,
                         uint8_t *mask)
{
    struct element_draw counter = *draw;
    counter.mask = NULL;
    counter.sequential = false;
    LAUNCH(fill_mask, blocks_for(batch * ((elements + 7) / 8)), THREADS, stream, mask, batch, elements, counter);
}

__global__ static void put_position(const uint64_t *base, uint64_t offset, uint64_t *to)
{
    if (thread_first() == 0) *to = *base + offset;
}

void launch_stream_position(cudaStream_t stream, const uint64_t *base, uint64_t offset, uint64_t *to)
{
    LAUNCH(put_position, 1, WARP, stream, base, offset, to);
}
