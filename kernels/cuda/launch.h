/* Launches of our own kernels (.cu).
 *
 * Kernels use threadIdx, blockIdx, blockDim, gridDim, static __shared__ arrays, __syncthreads() and
 * __shfl_xor_sync() with all lanes of a warp, and nothing else of CUDA, so that the tests can run them on a host. No
 * atomics: a sum's order is fixed. */
#ifndef REMATCH_LAUNCH_H
#define REMATCH_LAUNCH_H

#include <stdint.h>

#ifndef LAUNCH /* the tests' host device defines its own */
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, stream, ...) kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#endif

#ifndef BLOCKS_MOST /* fewer on the tests' host device, so that small tests stride */
#define BLOCKS_MOST (1 << 16)
#endif

/* LAUNCH with a grid of at most BLOCKS_MOST blocks: the kernel strides over its work by gridDim.x * blockDim.x. */
enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP, QUAD = 4 };

static inline unsigned blocks_for(int64_t threads)
{
    const int64_t blocks = (threads + THREADS - 1) / THREADS;
    const int64_t most = BLOCKS_MOST;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

#endif
