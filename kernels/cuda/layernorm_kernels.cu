#include "device.cuh"
#include "kernels.h"

__global__ static void normalise(struct layernorm_shape shape, const float *x, const float *w, const float *b,
                                 struct layernorm_statistics *statistics, float *y)
{
    const int64_t width = shape.width;
    for (int64_t row = warp_first(); row < shape.rows; row += warp_stride()) {
        const float *from = x + row * width;
        float sum = 0, squares = 0;
        for (int64_t i = lane(); i < width; i += WARP) sum += from[i];
        const float mean = warp_sum(sum) / (float)width;
        for (int64_t i = lane(); i < width; i += WARP) squares += (from[i] - mean) * (from[i] - mean);
        const float rstd = 1.0f / sqrtf(warp_sum(squares) / (float)width + shape.epsilon);
        for (int64_t i = lane(); i < width; i += WARP) y[row * width + i] = (from[i] - mean) * rstd * w[i] + b[i];
        if (statistics != NULL && lane() == 0) statistics[row] = {mean, rstd};
    }
}

void launch_layernorm(cudaStream_t stream, struct layernorm_shape shape, const float *x, const float *w, const float *b,
                      struct layernorm_statistics *statistics, float *y)
{
    LAUNCH(normalise, blocks_for_rows(shape.rows), THREADS, stream, shape, x, w, b, statistics, y);
}

__global__ static void differentiate(struct layernorm_shape shape, const float *x,
                                     const struct layernorm_statistics *statistics, const float *w, const float *dy,
                                     float *dx)
{
    const int64_t width = shape.width;
    for (int64_t row = warp_first(); row < shape.rows; row += warp_stride()) {
        const struct layernorm_statistics s = statistics[row];
        const float *in = x + row * width, *slope = dy + row * width;
        float sum = 0, product = 0;
        for (int64_t i = lane(); i < width; i += WARP) {
            sum += slope[i] * w[i];
            product += slope[i] * w[i] * ((in[i] - s.mean) * s.rstd);
        }
        sum = warp_sum(sum) / (float)width;
        product = warp_sum(product) / (float)width;
        for (int64_t i = lane(); i < width; i += WARP)
            dx[row * width + i] = s.rstd * (slope[i] * w[i] - sum - (in[i] - s.mean) * s.rstd * product);
    }
}

void launch_layernorm_gradient(cudaStream_t stream, struct layernorm_shape shape, const float *x,
                               const struct layernorm_statistics *statistics, const float *w, const float *dy,
                               float *dx)
{
    LAUNCH(differentiate, blocks_for_rows(shape.rows), THREADS, stream, shape, x, statistics, w, dy, dx);
}
