/* Sums over the rows of a matrix, one for each column: gradients of biases, and of a norm's parameters.
 *
 * Contract: a column is summed in pieces of PIECE_ROWS rows, each in ascending order, and the pieces in ascending order
 * after that; so the bits depend neither on threads nor on how columns are shared out. */
#ifndef REMATCH_KERNELS_CPU_REDUCTIONS_H
#define REMATCH_KERNELS_CPU_REDUCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PIECE_ROWS = 256 };

static inline int64_t row_pieces(int64_t rows) { return (rows + PIECE_ROWS - 1) / PIECE_ROWS; }

/* out[c] = or += the sum of column c of x, rows x columns. scratch: of as many bytes as columns_scratch says, 0 where
 * one piece is all. */
void columns_sum(const float *x, int64_t rows, int64_t columns, bool add, void *scratch, float *out);
size_t columns_scratch(int64_t rows, int64_t columns);

/* The second half of it: out = or += the sum of pieces rows, stride floats apart. */
void columns_total(const float *piece, int64_t pieces, int64_t stride, int64_t columns, bool add, float *out);

#endif
