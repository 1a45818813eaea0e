/* Arrays of pointers on the device, for batches of products whose matrices have two strides: a sample's and a head's.
 */
#ifndef REMATCH_KERNELS_CUDA_GEMM_POINTERS_H
#define REMATCH_KERNELS_CUDA_GEMM_POINTERS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GEMM_POINTER_ARRAYS_MOST = 12 };

/* One array: its element i points at base + i / inner * outer_stride + i % inner * inner_stride. */
struct gemm_pointer_array {
    const float *base;
    int64_t outer_stride, inner_stride; /* floats */
};

struct gemm_pointer_arrays {
    struct gemm_pointer_array array[GEMM_POINTER_ARRAYS_MOST];
    int arrays;
    int64_t outer, inner; /* an array has outer * inner elements */
};

/* Writes the arrays one after the other. */
void launch_gemm_pointers(cudaStream_t stream, struct gemm_pointer_arrays arrays, const float **to);

#ifdef __cplusplus
}
#endif

#endif
