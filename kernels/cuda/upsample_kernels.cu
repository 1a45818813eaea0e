#include "device.cuh"
#include "kernels.h"

/* i: an element of y; its row counts through all images. */
__global__ static void spread(struct upsample_shape s, int64_t count, const float *x, float *y)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const int64_t pixel = i / s.channels, row = pixel / (s.width * s.factor), column = pixel % (s.width * s.factor);
        y[i] = x[(row / s.factor * s.width + column / s.factor) * s.channels + i % s.channels];
    }
}

__global__ static void collect(struct upsample_shape s, int64_t count, const float *dy, float *dx)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const int64_t pixel = i / s.channels, row = pixel / s.width * s.factor, column = pixel % s.width * s.factor;
        float sum = 0;
        for (int64_t p = row; p < row + s.factor; p++)
            for (int64_t q = column; q < column + s.factor; q++)
                sum += dy[(p * s.width * s.factor + q) * s.channels + i % s.channels];
        dx[i] = sum;
    }
}

static int64_t elements_of(struct upsample_shape s) { return s.images * s.height * s.width * s.channels; }

void launch_upsample(cudaStream_t stream, struct upsample_shape shape, const float *x, float *y)
{
    const int64_t count = elements_of(shape) * shape.factor * shape.factor;
    LAUNCH(spread, blocks_for(count), THREADS, stream, shape, count, x, y);
}

void launch_upsample_gradient(cudaStream_t stream, struct upsample_shape shape, const float *dy, float *dx)
{
    const int64_t count = elements_of(shape);
    LAUNCH(collect, blocks_for(count), THREADS, stream, shape, count, dy, dx);
}
