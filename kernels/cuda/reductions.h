/* Sums over all but one dimension: gradients of biases and of tables, and whole sums.
 *
 * Contract: the order of a sum depends on the shape alone. Pieces are summed first, into scratch, then the pieces' sums
 * in a fixed order. */
#ifndef REMATCH_KERNELS_CUDA_REDUCTIONS_H
#define REMATCH_KERNELS_CUDA_REDUCTIONS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out[u] = or += the sum of x[o][u][i] over o and i, x being outer x units x inner. Rows of units and images N H W C
 * have inner 1, images N C H W have outer N and inner H * W. scratch: of as many bytes as reduce_units_scratch() says.
 */
void launch_reduce_units(cudaStream_t stream, const float *x, int64_t outer, int64_t units, int64_t inner, bool add,
                         void *scratch, float *out);
size_t reduce_units_scratch(int64_t outer, int64_t units, int64_t inner);

/* The second half of it: out[u] = or += the sum of pieces rows (at most a few thousand), stride floats apart. */
void launch_reduce_pieces(cudaStream_t stream, const float *piece, int64_t pieces, int64_t stride, int64_t units,
                          bool add, float *out);

#ifdef __cplusplus
}
#endif

#endif
