/* Sums of a matrix's columns: gradients of biases, and of a layernorm's parameters.
 *
 * Contract: a column is summed in pieces of PIECE_ROWS rows, each in ascending order, then the pieces in ascending
 * order; so the bits depend neither on threads nor on the distribution of columns. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PIECE_ROWS = 256 };

static inline int64_t row_pieces(int64_t rows) { return (rows + PIECE_ROWS - 1) / PIECE_ROWS; }

/* out[c] = the sum of column c of x, rows x columns. scratch: reduce_columns_scratch() bytes, 0 for a single
 * piece. */
void reduce_columns(const float *x, int64_t rows, int64_t columns, void *scratch, float *out);
size_t reduce_columns_scratch(int64_t rows, int64_t columns);

/* The second half of it: out = the sum of pieces rows, stride floats apart. */
void reduce_pieces(const float *piece, int64_t pieces, int64_t stride, int64_t columns, float *out);
