/* The kernel of linear_cross_entropy on ref and cpu, in backend/chunked_loss.c: it calls the backend's own kernels of
 * linear and cross_entropy for one chunk of rows after the other.
 *
 * Contract: the rows of a call (of the batch, or of a slice) are divided into chunks of ceil(rows / chunks) consecutive
 * rows; the last one has what is left. Each has the bits that these two layers have for a sequence of its rows; the
 * loss, the number of correct predictions, dW and db are the first chunk's, to which the others' are added in ascending
 * order, in float. So the results are those of as many slices of the two layers, and do not depend on threads. */
#pragma once

#include "model/layer.h"

enum status chunked_loss_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                 struct footprint *footprint, void **state);
enum status chunked_loss_forward(void *state, const struct kernel_args *args);
enum status chunked_loss_backward(void *state, const struct kernel_args *args);
void chunked_loss_release(void *state);

/* The rows of a chunk, the last one perhaps but for, of so many rows. */
static inline int64_t chunk_rows(int64_t rows, int64_t chunks) { return (rows + chunks - 1) / chunks; }
