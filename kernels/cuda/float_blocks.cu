#include "float_blocks.h"

#include "device.cuh"

__global__ static void add(const float *a, const float *b, int64_t count, float *out)
{
    for (int64_t i = thread_first() * QUAD; i < count; i += thread_stride() * QUAD) {
        struct quad sum = quad_load(a, i, count);
        const struct quad other = quad_load(b, i, count);
        for (int j = 0; j < QUAD; j++) sum.v[j] += other.v[j];
        quad_store(out, i, count, sum);
    }
}

void launch_add(cudaStream_t stream, const float *a, const float *b, int64_t count, float *out)
{
    LAUNCH(add, blocks_for((count + QUAD - 1) / QUAD), THREADS, stream, a, b, count, out);
}

__global__ static void copy(const float *from, int64_t count, float *to)
{
    for (int64_t i = thread_first() * QUAD; i < count; i += thread_stride() * QUAD)
        quad_store(to, i, count, quad_load(from, i, count));
}

void launch_copy(cudaStream_t stream, const float *from, int64_t count, float *to)
{
    LAUNCH(copy, blocks_for((count + QUAD - 1) / QUAD), THREADS, stream, from, count, to);
}

/* As integers, since a pattern may be a signalling NaN. */
__global__ static void fill(uint32_t pattern, int64_t count, uint32_t *to)
{
    const int64_t quads = quads_aligned(to) ? count / QUAD : 0;
    for (int64_t i = thread_first(); i < quads; i += thread_stride())
        ((uint4 *)to)[i] = uint4{pattern, pattern, pattern, pattern};
    for (int64_t i = quads * QUAD + thread_first(); i < count; i += thread_stride()) to[i] = pattern;
}

void launch_fill(cudaStream_t stream, uint32_t pattern, int64_t count, void *to)
{
    LAUNCH(fill, blocks_for((count + QUAD - 1) / QUAD), THREADS, stream, pattern, count, (uint32_t *)to);
}

/* Element i of a row of width elements. */
struct rows {
    struct divisor tokens, width;
    int64_t token, count;
};

__global__ static void select(const float *x, struct rows rows, float *y)
{
    for (int64_t i = thread_first(); i < rows.count; i += thread_stride()) {
        const struct divided place = divide(i, rows.width);
        y[i] = x[(place.quotient * rows.tokens.d + rows.token) * rows.width.d + place.rest];
    }
}

void launch_select(cudaStream_t stream, const float *x, int64_t batch, int64_t tokens, int64_t width, int64_t token,
                   float *y)
{
    const struct rows rows = {divisor_of(tokens), divisor_of(width), token, batch * width};
    LAUNCH(select, blocks_for(rows.count), THREADS, stream, x, rows, y);
}

__global__ static void unselect(const float *dy, struct rows rows, float *dx)
{
    for (int64_t i = thread_first(); i < rows.count; i += thread_stride()) {
        const struct divided place = divide(i, rows.width), row = divide(place.quotient, rows.tokens);
        dx[i] = row.rest == rows.token ? dy[row.quotient * rows.width.d + place.rest] : 0.0f;
    }
}

void launch_select_gradient(cudaStream_t stream, const float *dy, int64_t batch, int64_t tokens, int64_t width,
                            int64_t token, float *dx)
{
    const struct rows rows = {divisor_of(tokens), divisor_of(width), token, batch * tokens * width};
    LAUNCH(unselect, blocks_for(rows.count), THREADS, stream, dy, rows, dx);
}
