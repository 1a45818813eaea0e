/* Sums over the units of a value (struct units), in double and in an order that depends on the shape alone.
 *
 * Where inner is 1, a block sums WARP adjacent units, its warps taking turns at the rows; else it sums one unit, its
 * threads taking turns at the elements of a plane. */
#pragma once

#include "device.cuh"
#include "kernels.h"

/* A term: element i itself. */
struct plain {
    const float *x;
    __device__ double operator()(int64_t i) const { return x[i]; }
};

static __host__ __device__ inline int units_at_once(int64_t inner) { return inner == 1 ? WARP : 1; }

static inline unsigned blocks_for_units(struct units u)
{
    const int64_t across = units_at_once(u.inner);
    return (unsigned)((u.units + across - 1) / across);
}

/* Of this thread; not less than u.units where it has none. */
__device__ static inline int64_t unit_of(struct units u)
{
    const int across = units_at_once(u.inner);
    return (int64_t)blockIdx.x * across + threadIdx.x % across;
}

/* Whether this thread is the one that writes its unit's results. */
__device__ static inline bool writes_unit(struct units u)
{
    return (int)threadIdx.x < units_at_once(u.inner) && unit_of(u) < u.units;
}

/* The sum of term(i) over the elements i of this thread's unit; called by all threads of a block, which share sums. */
template <class TERM> __device__ static inline double unit_sum(TERM term, struct units u, double sums[THREADS])
{
    const int across = units_at_once(u.inner), turn = (int)threadIdx.x / across;
    const bool rows = u.inner == 1;
    const int64_t unit = unit_of(u);
    double sum = 0;
    for (int64_t o = rows ? turn : 0; unit < u.units && o < u.outer; o += rows ? WARPS : 1)
        for (int64_t i = rows ? 0 : turn; i < u.inner; i += THREADS) sum += term((o * u.units + unit) * u.inner + i);
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int other = (int)threadIdx.x % across; other < THREADS; other += across) sum += sums[other];
    return sum;
}
