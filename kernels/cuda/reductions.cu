#include "device.cuh"
#include "kernels.h"

/* Element i of what is summed, for one kernel over both. */
struct plain {
    const float *x;
    __device__ double operator()(int64_t i) const { return x[i]; }
};

struct layernorm_weight {
    const float *x, *dy;
    const struct layernorm_statistics *statistics;
    int64_t width;
    __device__ double operator()(int64_t i) const
    {
        const struct layernorm_statistics s = statistics[i / width];
        return (double)dy[i] * ((x[i] - s.mean) * s.rstd);
    }
};

/* Where inner is 1, a block sums WARP adjacent units, its warps taking turns at the rows; else it sums one unit, its
 * threads taking turns at the elements of a plane. */
static __host__ __device__ int units_at_once(int64_t inner) { return inner == 1 ? WARP : 1; }

template <class TERM>
__global__ static void sum_units(TERM term, int64_t outer, int64_t units, int64_t inner, float *out)
{
    __shared__ double sums[THREADS];
    const int across = units_at_once(inner), turn = (int)threadIdx.x / across;
    const bool rows = inner == 1;
    const int64_t unit = (int64_t)blockIdx.x * across + threadIdx.x % across;
    double sum = 0;
    for (int64_t o = rows ? turn : 0; unit < units && o < outer; o += rows ? WARPS : 1)
        for (int64_t i = rows ? 0 : turn; i < inner; i += THREADS) sum += term((o * units + unit) * inner + i);
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (turn > 0 || unit >= units) return;
    for (int other = (int)threadIdx.x + across; other < THREADS; other += across) sum += sums[other];
    out[unit] = (float)sum;
}

template <class TERM>
static void launch_sums(cudaStream_t stream, TERM term, int64_t outer, int64_t units, int64_t inner, float *out)
{
    const int64_t across = units_at_once(inner);
    LAUNCH(sum_units<TERM>, (unsigned)((units + across - 1) / across), THREADS, stream, term, outer, units, inner, out);
}

void launch_reduce_units(cudaStream_t stream, const float *x, int64_t outer, int64_t units, int64_t inner, float *out)
{
    launch_sums(stream, plain{x}, outer, units, inner, out);
}

void launch_layernorm_weights(cudaStream_t stream, struct layernorm_shape shape, const float *x,
                              const struct layernorm_statistics *statistics, const float *dy, float *dw)
{
    launch_sums(stream, layernorm_weight{x, dy, statistics, shape.width}, shape.rows, shape.width, 1, dw);
}
