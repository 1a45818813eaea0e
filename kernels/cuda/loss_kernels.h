/* The loss softmax cross-entropy.
 *
 * Contract: one warp sums a sample in double, the batch is summed in a fixed order. */
#ifndef REMATCH_KERNELS_CUDA_LOSS_KERNELS_H
#define REMATCH_KERNELS_CUDA_LOSS_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = {mean loss, correct predictions} of batch x classes; scratch: cross_entropy_scratch() bytes. A label that is
 * not a class makes the loss a NaN, since a kernel cannot report an error. */
void launch_cross_entropy(cudaStream_t stream, const float *x, const int32_t *labels, int64_t batch, int64_t classes,
                          void *scratch, float *y);
static inline size_t cross_entropy_scratch(int64_t batch) { return (size_t)batch * 2 * sizeof(double); }

/* dx = (softmax of x - 1 at the label) / batch. */
void launch_cross_entropy_gradient(cudaStream_t stream, const float *x, const int32_t *labels, int64_t batch,
                                   int64_t classes, float *dx);

#ifdef __cplusplus
}
#endif

#endif
