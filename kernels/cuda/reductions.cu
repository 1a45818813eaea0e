#include "reductions.h"

#include "device.cuh"
#include "numerics/shape.h"

enum {
    BLOCKS_WANTED = 2048, /* enough to occupy any device */
    PIECE_ROWS = 64,      /* a piece has at least so many */
    PIECE_ELEMENTS = 4096,
    PIECES_MOST = 1024,
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The rows, or elements of a unit, of a piece; the last piece may have fewer. */
static int64_t piece_of(int64_t count, int64_t blocks, int64_t least_piece)
{
    const int64_t wanted = least(ratio_up(BLOCKS_WANTED, blocks), PIECES_MOST);
    const int64_t piece = ratio_up(count, wanted);
    return piece < least_piece ? least_piece : ratio_up(piece, QUAD) * QUAD;
}

static int64_t row_piece(int64_t rows, int64_t units) { return piece_of(rows, ratio_up(units, WARP), PIECE_ROWS); }

static int64_t plane_piece(int64_t elements, int64_t units) { return piece_of(elements, units, PIECE_ELEMENTS); }

/* A block sums a piece of rows for WARP columns: each of its warps every WARPS-th row, then their sums in order. */
__global__ static void sum_rows(const float *x, int64_t rows, int64_t stride, int64_t columns, int64_t piece,
                                struct divisor panels, bool add, float *out)
{
    __shared__ float sums[WARPS][WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t block = blockIdx.x;
    const struct divided place = divide(block, panels);
    const int64_t c = place.rest * WARP + lane, from = place.quotient * piece;
    const int64_t to = from + piece < rows ? from + piece : rows;
    float sum = 0;
    if (c < columns) {
#pragma unroll 4
        for (int64_t r = from + warp; r < to; r += WARPS) sum += x[r * stride + c];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || c >= columns) return;
    for (int w = 1; w < WARPS; w++) sum += sums[w][lane];
    float *to_sum = &out[place.quotient * columns + c];
    *to_sum = add ? *to_sum + sum : sum;
}

/* A block sums a piece of the outer * inner elements of a unit. */
__global__ static void sum_planes(const float *x, int64_t units, struct divisor by_units, struct divisor inner,
                                  int64_t elements, int64_t piece, bool add, float *out)
{
    __shared__ float room[WARPS];
    const int64_t block = blockIdx.x;
    const struct divided place = divide(block, by_units); /* piece and unit */
    const int64_t from = place.quotient * piece, to = from + piece < elements ? from + piece : elements;
    const int64_t unit = place.rest * inner.d, outer = units * inner.d;
    float sum = 0;
    if (inner.d % QUAD == 0 && quads_aligned(x)) {
        for (int64_t i = from + threadIdx.x * QUAD; i < to; i += THREADS * QUAD) {
            const struct divided at = divide(i, inner);
            const float4 q = *(const float4 *)(x + at.quotient * outer + unit + at.rest);
            sum += (q.x + q.y) + (q.z + q.w);
        }
    } else {
        for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
            const struct divided at = divide(i, inner);
            sum += x[at.quotient * outer + unit + at.rest];
        }
    }
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) out[block] = add ? out[block] + sum : sum;
}

/* The number of pieces; 1: no second pass. */
static int64_t pieces_of(int64_t outer, int64_t units, int64_t inner)
{
    return inner == 1 ? ratio_up(outer, row_piece(outer, units))
                      : ratio_up(outer * inner, plane_piece(outer * inner, units));
}

size_t reduce_units_scratch(int64_t outer, int64_t units, int64_t inner)
{
    const int64_t pieces = pieces_of(outer, units, inner);
    return pieces > 1 ? (size_t)(pieces * units) * sizeof(float) : 0;
}

void launch_reduce_units(cudaStream_t stream, const float *x, int64_t outer, int64_t units, int64_t inner, bool add,
                         void *scratch, float *out)
{
    const int64_t pieces = pieces_of(outer, units, inner), panels = ratio_up(units, WARP);
    float *sums = pieces > 1 ? (float *)scratch : out;
    const bool add_now = add && pieces == 1;
    if (inner == 1)
        LAUNCH(sum_rows, (unsigned)(pieces * panels), THREADS, stream, x, outer, units, units, row_piece(outer, units),
               divisor_of(panels), add_now, sums);
    else
        LAUNCH(sum_planes, (unsigned)(pieces * units), THREADS, stream, x, units, divisor_of(units), divisor_of(inner),
               outer * inner, plane_piece(outer * inner, units), add_now, sums);
    if (pieces > 1) launch_reduce_pieces(stream, sums, pieces, units, units, add, out);
}

void launch_reduce_pieces(cudaStream_t stream, const float *piece, int64_t pieces, int64_t stride, int64_t units,
                          bool add, float *out)
{
    const int64_t panels = ratio_up(units, WARP);
    LAUNCH(sum_rows, (unsigned)panels, THREADS, stream, piece, pieces, stride, units, pieces, divisor_of(panels), add,
           out);
}
