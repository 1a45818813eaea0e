/* Pooling: the maximum and the mean of each window and channel, in either layout, and their gradients.
 *
 * Contract: of equal elements the first in row order is the maximum, and a NaN wins; padding is ignored. One thread
 * sums an element of the gradient over the windows that contain it, in row order. */
#ifndef REMATCH_KERNELS_CUDA_POOLING_KERNELS_H
#define REMATCH_KERNELS_CUDA_POOLING_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pooling_shape {
    int64_t batch, channels, height, width; /* of x */
    int64_t out_height, out_width;          /* of y */
    int64_t kernel, stride, padding;
    bool channels_first;
};

/* Bytes of the index of a window's maximum, which is saved for each element of y: 1 where 8 bits suffice, else 4. */
static inline size_t pooling_index_bytes(int64_t kernel) { return kernel * kernel <= 256 ? 1 : sizeof(int32_t); }

/* indices NULL: not wanted. */
void launch_max_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, void *indices, float *y);
void launch_avg_pool(cudaStream_t stream, struct pooling_shape shape, const float *x, float *y);

/* indices NULL: windows of one place. */
void launch_max_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, const void *indices,
                              float *dx);
void launch_avg_pool_gradient(cudaStream_t stream, struct pooling_shape shape, const float *dy, float *dx);

/* The mean over whole images: of pixels for each of batch x channels; and its gradient. */
struct global_pooling_shape {
    int64_t batch, channels, pixels;
    bool channels_first;
};
void launch_global_avg_pool(cudaStream_t stream, struct global_pooling_shape shape, const float *x, float *y);
void launch_global_avg_pool_gradient(cudaStream_t stream, struct global_pooling_shape shape, const float *dy,
                                     float *dx);

#ifdef __cplusplus
}
#endif

#endif
