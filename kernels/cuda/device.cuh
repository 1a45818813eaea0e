/* Launches of our own kernels and their common device code.
 *
 * Kernels use threadIdx, blockIdx, blockDim, gridDim, static __shared__ arrays, __syncthreads() and
 * __shfl_xor_sync() with all lanes of a warp, and nothing else of CUDA, so that the tests can run them on a host. No
 * atomics: a sum's order is fixed. */
#pragma once

#include <stdint.h>

#ifndef LAUNCH /* the tests' host device defines its own */
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, stream, ...) kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#endif

#ifndef BLOCKS_MOST /* fewer on the tests' host device, so that small tests stride */
#define BLOCKS_MOST (1 << 16)
#endif

#define ALL_LANES 0xffffffffu

enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP };

/* Blocks of a launch whose kernel strides over its work: an element a thread, or a row a warp. */
static inline unsigned blocks_for(int64_t threads)
{
    const int64_t blocks = (threads + THREADS - 1) / THREADS, most = BLOCKS_MOST;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}
static inline unsigned blocks_for_rows(int64_t rows) { return blocks_for(rows * WARP); }

/* This thread's place among all of the launch, and how many there are; its warp's, and its place in that. */
__device__ static inline int64_t thread_first(void) { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ static inline int64_t thread_stride(void) { return (int64_t)gridDim.x * blockDim.x; }
__device__ static inline int64_t warp_first(void) { return thread_first() / WARP; }
__device__ static inline int64_t warp_stride(void) { return thread_stride() / WARP; }
__device__ static inline int lane(void) { return (int)threadIdx.x % WARP; }

/* Over the lanes of a warp: all get the result. */
template <typename T> __device__ static inline T warp_sum(T x)
{
    for (int step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}
