#include "layernorm_kernels.h"

#include "device.cuh"
#include "reductions.h"

enum { PIECES_WANTED = 256, PIECE_ROWS_LEAST = 4 * WARPS };

/* Where quad q of this thread starts in its row. */
template <int LANES> __device__ static int64_t quad_place(int q)
{
    return (int64_t)(q * LANES + (int)threadIdx.x % LANES) * QUAD;
}

template <int LANES, int QUADS>
__global__ static void normalise(struct layernorm_shape shape, const float *x, const float *w, const float *b,
                                 struct layernorm_statistics *statistics, float *y)
{
    __shared__ float room[WARPS];
    const int64_t width = shape.width;
    for (int64_t row = row_first<LANES>(); row < shape.rows; row += row_stride<LANES>()) {
        struct quad v[QUADS];
        float sum = 0, squares = 0;
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            v[q] = quad_load(x + row * width, quad_place<LANES>(q), width);
            sum += (v[q].v[0] + v[q].v[1]) + (v[q].v[2] + v[q].v[3]);
        }
        const float mean = row_sum<LANES>(sum, room) / (float)width;
#pragma unroll
        for (int q = 0; q < QUADS; q++)
            for (int j = 0; j < QUAD; j++) {
                v[q].v[j] -= mean;
                if (quad_place<LANES>(q) + j < width) squares += v[q].v[j] * v[q].v[j];
            }
        const float rstd = 1.0f / sqrtf(row_sum<LANES>(squares, room) / (float)width + shape.epsilon);
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int64_t i = quad_place<LANES>(q);
            const struct quad scale = quad_load(w, i, width), shift = quad_load(b, i, width);
            for (int j = 0; j < QUAD; j++) v[q].v[j] = v[q].v[j] * rstd * scale.v[j] + shift.v[j];
            quad_store(y + row * width, i, width, v[q]);
        }
        if (statistics != NULL && threadIdx.x % LANES == 0) statistics[row] = {mean, rstd};
    }
}

void launch_layernorm(cudaStream_t stream, struct layernorm_shape shape, const float *x, const float *w, const float *b,
                      struct layernorm_statistics *statistics, float *y)
{
    LAUNCH_BY_WIDTH(normalise, blocks_for_rows, shape.rows, shape.width, stream, shape, x, w, b, statistics, y);
}

/* A row's x becomes h, the normal elements; adds its share of the parameters' gradients to dw and db. */
template <int QUADS>
__device__ static void collect(struct layernorm_statistics s, struct quad *x, const struct quad *dy, struct quad *dw,
                               struct quad *db)
{
#pragma unroll
    for (int q = 0; q < QUADS; q++)
        for (int j = 0; j < QUAD; j++) {
            x[q].v[j] = (x[q].v[j] - s.mean) * s.rstd;
            dw[q].v[j] += dy[q].v[j] * x[q].v[j];
            db[q].v[j] += dy[q].v[j];
        }
}

/* A row's dx from h and dy. */
template <int LANES, int QUADS>
__device__ static void write_row(float rstd, int64_t width, const float *w, const struct quad *h, struct quad *dy,
                                 float *room, float *dx)
{
    float sum = 0, product = 0;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const struct quad scale = quad_load(w, quad_place<LANES>(q), width);
        for (int j = 0; j < QUAD; j++) {
            dy[q].v[j] *= scale.v[j]; /* 0 behind the row's end */
            sum += dy[q].v[j];
            product += dy[q].v[j] * h[q].v[j];
        }
    }
    sum = row_sum<LANES>(sum, room) / (float)width;
    product = row_sum<LANES>(product, room) / (float)width;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        for (int j = 0; j < QUAD; j++) dy[q].v[j] = rstd * (dy[q].v[j] - sum - h[q].v[j] * product);
        quad_store(dx, quad_place<LANES>(q), width, dy[q]);
    }
}

/* The sums of a block's warps, added in order, are its piece's. */
template <int LANES, int QUADS> __device__ static void write_sums(int64_t width, const struct quad *part, float *to)
{
    __shared__ float sums[LANES == WARP ? LANES * QUADS * QUAD : 1];
    const int group = threadIdx.x / LANES, groups = THREADS / LANES;
    for (int turn = 0; turn < groups; turn++) {
#pragma unroll
        for (int q = 0; q < QUADS && group == turn; q++) {
            const int64_t i = quad_place<LANES>(q);
            struct quad sum = part[q];
            if (turn > 0)
                for (int j = 0; j < QUAD; j++) sum.v[j] += sums[i + j];
            if (turn + 1 < groups)
                for (int j = 0; j < QUAD; j++) sums[i + j] = sum.v[j];
            else
                quad_store(to, i, width, sum);
        }
        __syncthreads();
    }
}

template <int LANES, int QUADS>
__global__ static void differentiate(struct layernorm_shape shape, struct layernorm_operands o, int64_t piece)
{
    __shared__ float room[WARPS];
    const int64_t width = shape.width, from = blockIdx.x * piece;
    const int64_t to = from + piece < shape.rows ? from + piece : shape.rows;
    struct quad dw[QUADS] = {}, db[QUADS] = {};
    for (int64_t row = from + threadIdx.x / LANES; row < to; row += THREADS / LANES) {
        const struct layernorm_statistics s = o.statistics[row];
        struct quad x[QUADS], dy[QUADS];
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            x[q] = quad_load(o.x + row * width, quad_place<LANES>(q), width);
            dy[q] = quad_load(o.dy + row * width, quad_place<LANES>(q), width);
        }
        collect<QUADS>(s, x, dy, dw, db);
        if (o.dx != NULL) write_row<LANES, QUADS>(s.rstd, width, o.w, x, dy, room, o.dx + row * width);
    }
    if (o.dw == NULL) return;
    float *sums = (float *)o.scratch + blockIdx.x * 2 * width;
    write_sums<LANES, QUADS>(width, dw, sums);
    write_sums<LANES, QUADS>(width, db, sums + width);
}

static int64_t piece_rows(struct layernorm_shape shape)
{
    const int64_t piece = (shape.rows + PIECES_WANTED - 1) / PIECES_WANTED;
    return piece < PIECE_ROWS_LEAST ? PIECE_ROWS_LEAST : piece;
}

static int64_t pieces_of(struct layernorm_shape shape)
{
    return (shape.rows + piece_rows(shape) - 1) / piece_rows(shape);
}

size_t layernorm_scratch(struct layernorm_shape shape)
{
    return (size_t)(2 * pieces_of(shape) * shape.width) * sizeof(float);
}

void launch_layernorm_gradients(cudaStream_t stream, struct layernorm_shape shape, struct layernorm_operands o)
{
    const int64_t width = shape.width, pieces = pieces_of(shape);
    const float *sums = (const float *)o.scratch;
    LAUNCH_BY_WIDTH(differentiate, blocks_for_pieces, pieces, width, stream, shape, o, piece_rows(shape));
    if (o.dw == NULL) return;
    launch_reduce_pieces(stream, sums, pieces, 2 * width, width, o.add, o.dw);
    launch_reduce_pieces(stream, sums + width, pieces, 2 * width, width, o.add, o.db);
}
