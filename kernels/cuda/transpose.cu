#include "transpose.h"

#include "device.cuh"

enum { TILE = 32, LINES = THREADS / TILE }; /* a block moves TILE x TILE elements, LINES lines at a time */

struct tiles {
    struct divisor across, all; /* tiles side by side, and of a matrix */
    int64_t count;
};

/* Matrices at least a tile both ways: both sides are read and written along their rows. */
__global__ static void transpose_tiles(const float *from, struct tiles tiles, int64_t rows, int64_t columns, bool add,
                                       float *to)
{
    __shared__ float tile[TILE][TILE + 1]; /* one more, so that a column's elements lie in different banks */
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    for (int64_t t = blockIdx.x; t < tiles.count; t += gridDim.x) {
        const struct divided matrix = divide(t, tiles.all), place = divide(matrix.rest, tiles.across);
        const int64_t row = place.quotient * TILE, column = place.rest * TILE, at = matrix.quotient * rows * columns;
        for (int k = y; k < TILE; k += LINES)
            if (row + k < rows && column + x < columns) tile[k][x] = from[at + (row + k) * columns + column + x];
        __syncthreads();
        for (int k = y; k < TILE; k += LINES)
            if (column + k < columns && row + x < rows) {
                float *out = &to[at + (column + k) * rows + row + x];
                *out = add ? *out + tile[x][k] : tile[x][k];
            }
        __syncthreads();
    }
}

/* Narrow matrices, where caches suffice: to is written along its rows. */
__global__ static void transpose_elements(const float *from, struct divisor by_rows, struct divisor by_columns,
                                          int64_t count, bool add, float *to)
{
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct divided line = divide(i, by_rows), place = divide(line.quotient, by_columns);
        const float x = from[(place.quotient * by_rows.d + line.rest) * by_columns.d + place.rest];
        to[i] = add ? to[i] + x : x;
    }
}

void launch_transpose(cudaStream_t stream, const float *from, int64_t batch, int64_t rows, int64_t columns, bool add,
                      float *to)
{
    const int64_t across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
    const int64_t count = batch * rows * columns, blocks = batch * across * down;
    if (rows < TILE / 2 || columns < TILE / 2) {
        LAUNCH(transpose_elements, blocks_for(count), THREADS, stream, from, divisor_of(rows), divisor_of(columns),
               count, add, to);
        return;
    }
    const struct tiles tiles = {divisor_of(across), divisor_of(across * down), blocks};
    LAUNCH(transpose_tiles, blocks_for(blocks * THREADS), THREADS, stream, from, tiles, rows, columns, add, to);
}
