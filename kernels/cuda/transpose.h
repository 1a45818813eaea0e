/* Transpositions: images N H W C <-> N C H W, and conv weights O I H W <-> O H W I. */
#ifndef REMATCH_CUDA_TRANSPOSE_H
#define REMATCH_CUDA_TRANSPOSE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For each of batch matrices, rows x columns from and columns x rows to, one after the other: to = or += the transpose
 * of from; to is not from. N H W C to N C H W: rows = H * W, columns = C; O I H W to O H W I: batch = O, rows = I,
 * columns = H * W. */
void launch_transpose(cudaStream_t stream, const float *from, int64_t batch, int64_t rows, int64_t columns, bool add,
                      float *to);

#ifdef __cplusplus
}
#endif

#endif
