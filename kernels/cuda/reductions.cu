#include "kernels.h"
#include "unit_sums.cuh"

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

template <class TERM> __global__ static void sum_units(TERM term, struct units shape, float *out)
{
    __shared__ double sums[THREADS];
    const double sum = unit_sum(term, shape, sums);
    if (writes_unit(shape)) out[unit_of(shape)] = (float)sum;
}

template <class TERM> static void launch_sums(cudaStream_t stream, TERM term, struct units shape, float *out)
{
    LAUNCH(sum_units<TERM>, blocks_for_units(shape), THREADS, stream, term, shape, out);
}

void launch_reduce_units(cudaStream_t stream, const float *x, int64_t outer, int64_t units, int64_t inner, float *out)
{
    launch_sums(stream, plain{x}, {outer, units, inner}, out);
}

void launch_layernorm_weights(cudaStream_t stream, struct layernorm_shape shape, const float *x,
                              const struct layernorm_statistics *statistics, const float *dy, float *dw)
{
    launch_sums(stream, layernorm_weight{x, dy, statistics, shape.width}, {shape.rows, shape.width, 1}, dw);
}
