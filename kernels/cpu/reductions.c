#include "reductions.h"

#include <string.h>

#include "numerics/shape.h"

enum { PANEL = 512 }; /* columns summed together: their sums stay in the first-level cache */

/* sum[c] = the sum of count rows, stride floats apart. */
static void sum_rows(const float *x, int64_t stride, int64_t rows, int64_t columns, float *restrict sum)
{
    memset(sum, 0, (size_t)columns * sizeof *sum);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * stride;
#pragma omp simd
        for (int64_t c = 0; c < columns; c++) sum[c] += row[c];
    }
}

size_t reduce_columns_scratch(int64_t rows, int64_t columns)
{
    return rows > PIECE_ROWS ? (size_t)(row_pieces(rows) * columns) * sizeof(float) : 0;
}

void reduce_columns(const float *x, int64_t rows, int64_t columns, void *scratch, float *out)
{
    const int64_t pieces = row_pieces(rows);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t p = 0; p < pieces; p++)
        for (int64_t c = 0; c < columns; c += PANEL) {
            float *sum = pieces > 1 ? (float *)scratch + p * columns + c : out + c;
            sum_rows(x + p * PIECE_ROWS * columns + c, columns, lesser(PIECE_ROWS, rows - p * PIECE_ROWS),
                     lesser(PANEL, columns - c), sum);
        }
    if (pieces > 1) reduce_pieces(scratch, pieces, columns, columns, out);
}

void reduce_pieces(const float *piece, int64_t pieces, int64_t stride, int64_t columns, float *out)
{
#pragma omp parallel for schedule(static)
    for (int64_t c = 0; c < columns; c += PANEL)
        sum_rows(piece + c, stride, pieces, lesser(PANEL, columns - c), out + c);
}
