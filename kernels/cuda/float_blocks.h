/* Whole blocks of floats: sums, copies, patterns, and selected rows.
 *
 * Contract: every element is computed alone. */
#ifndef REMATCH_KERNELS_CUDA_FLOAT_BLOCKS_H
#define REMATCH_KERNELS_CUDA_FLOAT_BLOCKS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out[i] = a[i] + b[i]; out may be a or b. */
void launch_add(cudaStream_t stream, const float *a, const float *b, int64_t count, float *out);

/* to[i] = from[i]. */
void launch_copy(cudaStream_t stream, const float *from, int64_t count, float *to);

/* Sets count words to a 32-bit pattern. */
void launch_fill(cudaStream_t stream, uint32_t pattern, int64_t count, void *to);

/* From batch x tokens x width to batch x width: row token of each sample; and back, all other rows 0. */
void launch_select(cudaStream_t stream, const float *x, int64_t batch, int64_t tokens, int64_t width, int64_t token,
                   float *y);
void launch_select_gradient(cudaStream_t stream, const float *dy, int64_t batch, int64_t tokens, int64_t width,
                            int64_t token, float *dx);

#ifdef __cplusplus
}
#endif

#endif
