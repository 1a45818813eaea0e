#include "device.cuh"
#include "kernels.h"

static int64_t elements_of(struct pooling_shape shape, bool output)
{
    return shape.batch * shape.channels * (output ? shape.out_height * shape.out_width : shape.height * shape.width);
}

/* Floats from pixel to pixel. */
__device__ static int64_t step_of(const struct pooling_shape *s) { return s->channels_first ? 1 : s->channels; }

/* Row and column of an element of images; other: where the first pixel of its sample's and channel's plane lies in
 * other images, of so many pixels. */
struct place {
    int64_t row, column, other;
};

__device__ static struct place place_of(const struct pooling_shape *s, int64_t i, int64_t height, int64_t width,
                                        int64_t others)
{
    const int64_t channel = s->channels_first ? 0 : i % s->channels, pixel = i / step_of(s);
    return {pixel / width % height, pixel % width, pixel / width / height * others * step_of(s) + channel};
}

__device__ static struct place place_in_x(const struct pooling_shape *s, int64_t i)
{
    return place_of(s, i, s->height, s->width, s->out_height * s->out_width);
}

__device__ static struct place place_in_y(const struct pooling_shape *s, int64_t i)
{
    return place_of(s, i, s->out_height, s->out_width, s->height * s->width);
}

/* The part of an axis that window number i covers: [from, to), and where it would start without an edge. */
struct span {
    int64_t start, from, to;
};

__device__ static struct span span_of(const struct pooling_shape *s, int64_t i, int64_t size)
{
    const int64_t start = i * s->stride - s->padding, end = start + s->kernel;
    return {start, start > 0 ? start : 0, end < size ? end : size};
}

template <typename INDEX>
__global__ static void largest(struct pooling_shape s, int64_t count, const float *x, INDEX *indices, float *y)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_in_y(&s, i);
        const struct span rows = span_of(&s, at.row, s.height), columns = span_of(&s, at.column, s.width);
        int place = -1;
        float most = 0;
        for (int64_t h = rows.from; h < rows.to; h++)
            for (int64_t w = columns.from; w < columns.to; w++) {
                const float one = x[at.other + (h * s.width + w) * step_of(&s)];
                if (place >= 0 && !(one > most) && !(one != one && most == most)) continue;
                place = (int)((h - rows.start) * s.kernel + w - columns.start);
                most = one;
            }
        y[i] = most;
        if (indices != NULL) indices[i] = (INDEX)place;
    }
}

/* A window's places along an axis of so many pixels, those in the padding too. */
__device__ static int64_t padded_places(const struct pooling_shape *s, struct span span, int64_t size)
{
    const int64_t left = size + s->padding - span.start;
    return left < s->kernel ? left : s->kernel;
}

/* What the sum over a window is divided by. */
__device__ static float places_of(const struct pooling_shape *s, struct span rows, struct span columns)
{
    if (s->count_padding) return (float)(padded_places(s, rows, s->height) * padded_places(s, columns, s->width));
    return (float)((rows.to - rows.from) * (columns.to - columns.from));
}

__global__ static void means(struct pooling_shape s, int64_t count, const float *x, float *y)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_in_y(&s, i);
        const struct span rows = span_of(&s, at.row, s.height), columns = span_of(&s, at.column, s.width);
        float sum = 0;
        for (int64_t h = rows.from; h < rows.to; h++)
            for (int64_t w = columns.from; w < columns.to; w++) sum += x[at.other + (h * s.width + w) * step_of(&s)];
        y[i] = sum / places_of(&s, rows, columns);
    }
}

/* The windows [from, to) of an axis that cover place i. */
__device__ static struct span windows_over(const struct pooling_shape *s, int64_t i, int64_t windows)
{
    const int64_t from = i + s->padding - s->kernel + s->stride; /* of the first, times stride, or more */
    const int64_t last = (i + s->padding) / s->stride + 1;
    return {0, from > 0 ? from / s->stride : 0, last < windows ? last : windows};
}

template <bool LARGEST, typename INDEX>
__global__ static void gather(struct pooling_shape s, int64_t count, const float *dy, const INDEX *indices, float *dx)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct place at = place_in_x(&s, i);
        const struct span down = windows_over(&s, at.row, s.out_height);
        const struct span across = windows_over(&s, at.column, s.out_width);
        float sum = 0;
        for (int64_t p = down.from; p < down.to; p++)
            for (int64_t q = across.from; q < across.to; q++) {
                const struct span rows = span_of(&s, p, s.height), columns = span_of(&s, q, s.width);
                const int64_t from = at.other + (p * s.out_width + q) * step_of(&s);
                const int64_t mine = (at.row - rows.start) * s.kernel + at.column - columns.start;
                if (!LARGEST)
                    sum += dy[from] / places_of(&s, rows, columns);
                else if (indices == NULL || indices[from] == mine)
                    sum += dy[from];
            }
        dx[i] = sum;
    }
}

void launch_max_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, void *indices, float *y)
{
    const int64_t count = elements_of(shape, true);
    if (pooling_index_bytes(shape.kernel) == 1)
        LAUNCH(largest<uint8_t>, blocks_for(count), THREADS, stream, shape, count, x, (uint8_t *)indices, y);
    else
        LAUNCH(largest<int32_t>, blocks_for(count), THREADS, stream, shape, count, x, (int32_t *)indices, y);
}

void launch_avg_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, float *y)
{
    const int64_t count = elements_of(shape, true);
    LAUNCH(means, blocks_for(count), THREADS, stream, shape, count, x, y);
}

void launch_max_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, const void *indices,
                              float *dx)
{
    const int64_t count = elements_of(shape, false);
    if (pooling_index_bytes(shape.kernel) == 1)
        LAUNCH((gather<true, uint8_t>), blocks_for(count), THREADS, stream, shape, count, dy, (const uint8_t *)indices,
               dx);
    else
        LAUNCH((gather<true, int32_t>), blocks_for(count), THREADS, stream, shape, count, dy, (const int32_t *)indices,
               dx);
}

void launch_avg_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, float *dx)
{
    const int64_t count = elements_of(shape, false);
    const uint8_t *none = NULL;
    LAUNCH((gather<false, uint8_t>), blocks_for(count), THREADS, stream, shape, count, dy, none, dx);
}
