/* Device code of our kernels: loads of four floats, divisions by constants of a launch, sums over a warp or a block.
 *
 * Contract: a sum's order depends on the number of its operands alone. */
#ifndef REMATCH_DEVICE_CUH
#define REMATCH_DEVICE_CUH

#include "launch.h"

/* Division of numbers below 2^31 by d, as a product (Granlund and Montgomery, 1994). */
struct divisor {
    uint32_t d, factor, shift;
};

static inline struct divisor divisor_of(int64_t value)
{
    const uint32_t d = (uint32_t)value;
    uint32_t shift = 0;
    while (((uint64_t)1 << shift) < d) shift++;
    const uint64_t factor = ((((uint64_t)1 << shift) - d) << 32) / d + 1;
    return {d, (uint32_t)factor, shift};
}

__device__ static inline int64_t quotient(int64_t n, struct divisor by)
{
    if (n >> 31 != 0) return n / by.d;
    const uint32_t small = (uint32_t)n, high = (uint32_t)((uint64_t)by.factor * small >> 32);
    return (high + small) >> by.shift;
}

/* n = quotient * d + rest. */
struct divided {
    int64_t quotient, rest;
};

__device__ static inline struct divided divide(int64_t n, struct divisor by)
{
    const int64_t q = quotient(n, by);
    return {q, n - q * by.d};
}

/* Elements [i, i + 4) of count; missing ones are 0. */
struct quad {
    float v[QUAD];
};

__device__ static inline bool quads_aligned(const void *x) { return ((uintptr_t)x & 15) == 0; }

/* i is a multiple of 4. */
__device__ static inline struct quad quad_load(const float *x, int64_t i, int64_t count)
{
    struct quad q = {};
    if (i + QUAD <= count && quads_aligned(x)) {
        const float4 all = *(const float4 *)(x + i);
        q.v[0] = all.x, q.v[1] = all.y, q.v[2] = all.z, q.v[3] = all.w;
    } else {
        for (int j = 0; j < QUAD; j++)
            if (i + j < count) q.v[j] = x[i + j];
    }
    return q;
}

__device__ static inline void quad_store(float *x, int64_t i, int64_t count, struct quad q)
{
    if (i + QUAD <= count && quads_aligned(x)) {
        *(float4 *)(x + i) = float4{q.v[0], q.v[1], q.v[2], q.v[3]};
    } else {
        for (int j = 0; j < QUAD; j++)
            if (i + j < count) x[i + j] = q.v[j];
    }
}

/* This thread's place among all of the launch, and how many there are. */
__device__ static inline int64_t thread_first(void) { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ static inline int64_t thread_stride(void) { return (int64_t)gridDim.x * blockDim.x; }

/* Over the lanes of a warp: all get the result. */
template <typename T> __device__ static inline T warp_sum(T x)
{
    for (int step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ static inline float warp_most(float x)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, step);
        x = other > x ? other : x;
    }
    return x;
}

/* Over a block of THREADS threads: all get the result. room: WARPS elements of shared memory, free again after it. */
template <typename T> __device__ static inline T block_sum(T x, T *room)
{
    x = warp_sum(x);
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = x;
    __syncthreads();
    T sum = 0;
    for (int w = 0; w < WARPS; w++) sum += room[w];
    __syncthreads();
    return sum;
}

/* The largest over a block of THREADS threads. */
__device__ static inline float block_most(float x, float *room)
{
    x = warp_most(x);
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = x;
    __syncthreads();
    float most = room[0];
    for (int w = 1; w < WARPS; w++) most = room[w] > most ? room[w] : most;
    __syncthreads();
    return most;
}

/* The threads that work on a row together: a warp or a block, thread t on quads t, t + LANES and so on. room: WARPS
 * floats of shared memory, for a block. */
template <int LANES> __device__ static inline float row_sum(float x, float *room)
{
    return LANES == WARP ? warp_sum(x) : block_sum(x, room);
}

template <int LANES> __device__ static inline float row_most(float x, float *room)
{
    return LANES == WARP ? warp_most(x) : block_most(x, room);
}

template <int LANES> __device__ static inline int64_t row_first(void)
{
    return (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
}

template <int LANES> __device__ static inline int64_t row_stride(void)
{
    return (int64_t)gridDim.x * (THREADS / LANES);
}

/* Blocks of a launch: with lanes threads a row, that strides over rows; with a block for each piece of some. */
static inline unsigned blocks_for_rows(int64_t rows, int lanes) { return blocks_for(rows * lanes); }
static inline unsigned blocks_for_pieces(int64_t pieces, int) { return (unsigned)pieces; }

/* Launches kernel<LANES, QUADS> with as many quads a thread as rows of width elements need, at most ROW_MOST, in
 * blocks(count, LANES) blocks. */
enum { ROW_MOST = 1 << 14 };

#define LAUNCH_AS(kernel, lanes, quads, blocks, count, stream, ...)                                                    \
    LAUNCH((kernel<lanes, quads>), blocks(count, lanes), THREADS, stream, __VA_ARGS__)
#define LAUNCH_BY_WIDTH(kernel, blocks, count, width, stream, ...)                                                     \
    ((width) <= WARP * QUAD * 1      ? LAUNCH_AS(kernel, WARP, 1, blocks, count, stream, __VA_ARGS__)                  \
     : (width) <= WARP * QUAD * 2    ? LAUNCH_AS(kernel, WARP, 2, blocks, count, stream, __VA_ARGS__)                  \
     : (width) <= WARP * QUAD * 4    ? LAUNCH_AS(kernel, WARP, 4, blocks, count, stream, __VA_ARGS__)                  \
     : (width) <= WARP * QUAD * 6    ? LAUNCH_AS(kernel, WARP, 6, blocks, count, stream, __VA_ARGS__)                  \
     : (width) <= WARP * QUAD * 8    ? LAUNCH_AS(kernel, WARP, 8, blocks, count, stream, __VA_ARGS__)                  \
     : (width) <= THREADS * QUAD * 4 ? LAUNCH_AS(kernel, THREADS, 4, blocks, count, stream, __VA_ARGS__)               \
                                     : LAUNCH_AS(kernel, THREADS, 16, blocks, count, stream, __VA_ARGS__))

#endif
