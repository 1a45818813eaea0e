#include "device.cuh"
#include "pooling_kernels.h"

/* N C H W: a warp a plane. */
__global__ static void plane_means(const float *x, int64_t planes, int64_t pixels, float *y)
{
    for (int64_t plane = row_first<WARP>(); plane < planes; plane += row_stride<WARP>()) {
        float sum = 0;
        for (int64_t i = threadIdx.x % WARP; i < pixels; i += WARP) sum += x[plane * pixels + i];
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0) y[plane] = sum / (float)pixels;
    }
}

/* N H W C: a thread a channel of a sample. */
__global__ static void channel_means(const float *x, int64_t count, struct divisor channels, int64_t pixels, float *y)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct divided place = divide(i, channels);
        const float *first = x + place.quotient * pixels * channels.d + place.rest;
        float sum = 0;
#pragma unroll 8
        for (int64_t p = 0; p < pixels; p++) sum += first[p * channels.d];
        y[i] = sum / (float)pixels;
    }
}

void launch_global_avg_pool(cudaStream_t stream, struct global_pooling_shape shape, const float *x, float *y)
{
    const int64_t planes = shape.batch * shape.channels;
    if (shape.channels_first)
        LAUNCH(plane_means, blocks_for_rows(planes, WARP), THREADS, stream, x, planes, shape.pixels, y);
    else
        LAUNCH(channel_means, blocks_for(planes), THREADS, stream, x, planes, divisor_of(shape.channels), shape.pixels,
               y);
}

__global__ static void spread_means(const float *dy, int64_t count, struct divisor pixels, struct divisor channels,
                                    bool channels_first, float *dx)
{
    const float factor = (float)pixels.d;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        int64_t mean;
        if (channels_first) {
            mean = quotient(i, pixels);
        } else {
            const struct divided pixel = divide(i, channels);
            mean = quotient(pixel.quotient, pixels) * channels.d + pixel.rest;
        }
        dx[i] = dy[mean] / factor;
    }
}

void launch_global_avg_pool_gradient(cudaStream_t stream, struct global_pooling_shape shape, const float *dy, float *dx)
{
    const int64_t count = shape.batch * shape.channels * shape.pixels;
    LAUNCH(spread_means, blocks_for(count), THREADS, stream, dy, count, divisor_of(shape.pixels),
           divisor_of(shape.channels), shape.channels_first, dx);
}
