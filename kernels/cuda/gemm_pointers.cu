#include "gemm_pointers.h"

#include "launch.h"

__global__ static void fill(struct gemm_pointer_arrays arrays, const float **to)
{
    const int64_t count = arrays.outer * arrays.inner;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        for (int a = 0; a < arrays.arrays; a++)
            to[a * count + i] = arrays.array[a].base + i / arrays.inner * arrays.array[a].outer_stride +
                                i % arrays.inner * arrays.array[a].inner_stride;
}

void launch_gemm_pointers(cudaStream_t stream, struct gemm_pointer_arrays arrays, const float **to)
{
    LAUNCH(fill, blocks_for(arrays.outer * arrays.inner), THREADS, stream, arrays, to);
}
