#include "pooling_kernels.h"

#include "device.cuh"

/* Images of one size in memory: an element's place from its number. */
struct images {
    struct divisor channels, height, width;
    int64_t step; /* from pixel to pixel */
};

struct pools {
    struct images x, y;
    struct divisor stride;
    int64_t kernel, padding;
};

static struct images images_of(struct pooling_shape shape, int64_t height, int64_t width)
{
    return {divisor_of(shape.channels), divisor_of(height), divisor_of(width),
            shape.channels_first ? 1 : shape.channels};
}

static struct pools pools_of(struct pooling_shape shape)
{
    return {images_of(shape, shape.height, shape.width), images_of(shape, shape.out_height, shape.out_width),
            divisor_of(shape.stride), shape.kernel, shape.padding};
}

static int64_t elements_of(struct pooling_shape shape, bool output)
{
    return shape.batch * shape.channels * (output ? shape.out_height * shape.out_width : shape.height * shape.width);
}

/* Row and column of an element; plane: where the first pixel of its sample's and channel's plane lies in the other
 * images. */
struct place {
    int64_t row, column, plane;
};

__device__ static struct place place_of(int64_t i, const struct images *of, const struct images *other)
{
    const int64_t pixels = (int64_t)other->height.d * other->width.d;
    if (of->step == 1) {
        const struct divided line = divide(i, of->width), plane = divide(line.quotient, of->height);
        return {plane.rest, line.rest, plane.quotient * pixels};
    }
    const struct divided pixel = divide(i, of->channels), line = divide(pixel.quotient, of->width);
    const struct divided sample = divide(line.quotient, of->height);
    return {sample.rest, line.rest, sample.quotient * pixels * of->channels.d + pixel.rest};
}

/* The part of an axis that window number i covers: [from, to), and where it would start without an edge. */
struct span {
    int64_t start, from, to;
};

__device__ static struct span span_of(const struct pools *pools, int64_t i, int64_t size)
{
    const int64_t start = i * pools->stride.d - pools->padding, end = start + pools->kernel;
    return {start, start > 0 ? start : 0, end < size ? end : size};
}

template <typename INDEX>
__global__ static void largest(struct pools pools, int64_t count, const float *x, INDEX *indices, float *y)
{
    const int64_t height = pools.x.height.d, width = pools.x.width.d, step = pools.x.step;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_of(i, &pools.y, &pools.x);
        const struct span rows = span_of(&pools, at.row, height), columns = span_of(&pools, at.column, width);
        int place = -1;
        float most = 0;
        for (int64_t h = rows.from; h < rows.to; h++)
            for (int64_t w = columns.from; w < columns.to; w++) {
                const float one = x[at.plane + (h * width + w) * step];
                if (place >= 0 && !(one > most) && !(one != one && most == most)) continue;
                place = (int)((h - rows.start) * pools.kernel + w - columns.start);
                most = one;
            }
        y[i] = most;
        if (indices != NULL) indices[i] = (INDEX)place;
    }
}

__device__ static float places_of(struct span rows, struct span columns)
{
    return (float)((rows.to - rows.from) * (columns.to - columns.from));
}

__global__ static void means(struct pools pools, int64_t count, const float *x, float *y)
{
    const int64_t height = pools.x.height.d, width = pools.x.width.d, step = pools.x.step;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_of(i, &pools.y, &pools.x);
        const struct span rows = span_of(&pools, at.row, height), columns = span_of(&pools, at.column, width);
        float sum = 0;
        for (int64_t h = rows.from; h < rows.to; h++)
            for (int64_t w = columns.from; w < columns.to; w++) sum += x[at.plane + (h * width + w) * step];
        y[i] = sum / places_of(rows, columns);
    }
}

/* The windows [from, to) of an axis that cover place i. */
__device__ static struct span windows_over(const struct pools *pools, int64_t i, int64_t windows)
{
    const int64_t from = i + pools->padding - pools->kernel + pools->stride.d; /* of the first, times stride, or more */
    const int64_t last = quotient(i + pools->padding, pools->stride) + 1;
    return {0, from > 0 ? quotient(from, pools->stride) : 0, last < windows ? last : windows};
}

template <bool LARGEST, typename INDEX>
__global__ static void gather(struct pools pools, int64_t count, const float *dy, const INDEX *indices, float *dx)
{
    const int64_t out_width = pools.y.width.d, step = pools.y.step;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_of(i, &pools.x, &pools.y);
        const struct span down = windows_over(&pools, at.row, pools.y.height.d);
        const struct span across = windows_over(&pools, at.column, out_width);
        float sum = 0;
        for (int64_t p = down.from; p < down.to; p++)
            for (int64_t q = across.from; q < across.to; q++) {
                const struct span rows = span_of(&pools, p, pools.x.height.d);
                const struct span columns = span_of(&pools, q, pools.x.width.d);
                const int64_t from = at.plane + (p * out_width + q) * step;
                const int64_t mine = (at.row - rows.start) * pools.kernel + at.column - columns.start;
                if (!LARGEST)
                    sum += dy[from] / places_of(rows, columns);
                else if (indices == NULL || indices[from] == mine)
                    sum += dy[from];
            }
        dx[i] = sum;
    }
}

/* Windows side by side that cover the image and nothing else: each element of y has its own KERNEL x KERNEL of x. */
template <int KERNEL>
__global__ static void largest_of_tiles(struct pools pools, int64_t count, const float *x, uint8_t *indices, float *y)
{
    const int64_t width = pools.x.width.d, step = pools.x.step;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_of(i, &pools.y, &pools.x);
        const float *corner = x + at.plane + (at.row * KERNEL * width + at.column * KERNEL) * step;
        float all[KERNEL * KERNEL];
        for (int u = 0; u < KERNEL; u++)
            if (KERNEL == 2 && step == 1) {
                const float2 line = *(const float2 *)(corner + u * width);
                all[u * KERNEL] = line.x, all[u * KERNEL + 1] = line.y;
            } else {
                for (int v = 0; v < KERNEL; v++) all[u * KERNEL + v] = corner[(u * width + v) * step];
            }
        int place = 0;
        float most = all[0];
        for (int k = 1; k < KERNEL * KERNEL; k++)
            if (all[k] > most || (all[k] != all[k] && most == most)) place = k, most = all[k];
        y[i] = most;
        if (indices != NULL) indices[i] = (uint8_t)place;
    }
}

/* The same, and of dx. */
template <bool LARGEST, int KERNEL>
__global__ static void spread(struct pools pools, int64_t count, const float *dy, const uint8_t *indices, float *dx)
{
    const int64_t width = pools.x.width.d, step = pools.x.step;
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_of(i, &pools.y, &pools.x);
        const float one = LARGEST ? dy[i] : dy[i] / (float)(KERNEL * KERNEL);
        const int place = LARGEST ? indices[i] : 0;
        float *corner = dx + at.plane + (at.row * KERNEL * width + at.column * KERNEL) * step;
        for (int u = 0; u < KERNEL; u++) {
            float line[KERNEL];
            for (int v = 0; v < KERNEL; v++) line[v] = !LARGEST || place == u * KERNEL + v ? one : 0.0f;
            if (KERNEL == 2 && step == 1)
                *(float2 *)(corner + u * width) = float2{line[0], line[1]};
            else
                for (int v = 0; v < KERNEL; v++) corner[(u * width + v) * step] = line[v];
        }
    }
}

/* Whether windows are such tiles, of a size with a kernel of its own. */
static bool tiles(struct pooling_shape s)
{
    return (s.kernel == 2 || s.kernel == 3) && s.stride == s.kernel && s.padding == 0 &&
           s.out_height * s.kernel == s.height && s.out_width * s.kernel == s.width;
}

void launch_max_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, void *indices, float *y)
{
    const int64_t count = elements_of(shape, true);
    const struct pools pools = pools_of(shape);
    if (tiles(shape) && shape.kernel == 2)
        LAUNCH(largest_of_tiles<2>, blocks_for(count), THREADS, stream, pools, count, x, (uint8_t *)indices, y);
    else if (tiles(shape))
        LAUNCH(largest_of_tiles<3>, blocks_for(count), THREADS, stream, pools, count, x, (uint8_t *)indices, y);
    else if (pooling_index_bytes(shape.kernel) == 1)
        LAUNCH(largest<uint8_t>, blocks_for(count), THREADS, stream, pools, count, x, (uint8_t *)indices, y);
    else
        LAUNCH(largest<int32_t>, blocks_for(count), THREADS, stream, pools, count, x, (int32_t *)indices, y);
}

void launch_avg_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, float *y)
{
    const int64_t count = elements_of(shape, true);
    LAUNCH(means, blocks_for(count), THREADS, stream, pools_of(shape), count, x, y);
}

/* Launches spread where the windows are tiles; else returns false. */
template <bool LARGEST>
static bool launch_spread(cudaStream_t stream, struct pooling_shape shape, const float *dy, const uint8_t *indices,
                          float *dx)
{
    const int64_t count = elements_of(shape, true);
    const struct pools pools = pools_of(shape);
    if (!tiles(shape)) return false;
    if (shape.kernel == 2)
        LAUNCH((spread<LARGEST, 2>), blocks_for(count), THREADS, stream, pools, count, dy, indices, dx);
    else
        LAUNCH((spread<LARGEST, 3>), blocks_for(count), THREADS, stream, pools, count, dy, indices, dx);
    return true;
}

void launch_max_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, const void *indices,
                              float *dx)
{
    const int64_t count = elements_of(shape, false);
    if (launch_spread<true>(stream, shape, dy, (const uint8_t *)indices, dx)) return;
    if (pooling_index_bytes(shape.kernel) == 1)
        LAUNCH((gather<true, uint8_t>), blocks_for(count), THREADS, stream, pools_of(shape), count, dy,
               (const uint8_t *)indices, dx);
    else
        LAUNCH((gather<true, int32_t>), blocks_for(count), THREADS, stream, pools_of(shape), count, dy,
               (const int32_t *)indices, dx);
}

void launch_avg_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, float *dx)
{
    const int64_t count = elements_of(shape, false);
    const uint8_t *none = NULL;
    if (launch_spread<false>(stream, shape, dy, none, dx)) return;
    LAUNCH((gather<false, uint8_t>), blocks_for(count), THREADS, stream, pools_of(shape), count, dy, none, dx);
}
