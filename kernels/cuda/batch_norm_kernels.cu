#include "kernels.h"
#include "unit_sums.cuh"

__device__ static double values_of(const struct units &u) { return (double)u.outer * (double)u.inner; }

/* A term: the square of element i's distance from the mean of the thread's unit. */
struct square {
    const float *x;
    double mean;
    __device__ double operator()(int64_t i) const { return (x[i] - mean) * (x[i] - mean); }
};

__device__ static void move(float *running, double momentum, double batch)
{
    *running = (float)((1 - momentum) * *running + momentum * batch);
}

__global__ static void measure(struct units u, const float *x, struct batch_norm_statistics s)
{
    __shared__ double sums[THREADS];
    const double mean = unit_sum(plain{x}, u, sums) / values_of(u);
    const double variance = unit_sum(square{x, mean}, u, sums) / values_of(u);
    if (!writes_unit(u)) return;
    const int64_t c = unit_of(u);
    if (s.once != NULL) {
        s.once[c] = (float)mean;
        s.once[u.units + c] = (float)(1 / sqrt(variance + s.epsilon));
    }
    if (s.running_mean == NULL) return;
    move(&s.running_mean[c], s.momentum, mean);
    move(&s.running_variance[c], s.momentum, variance * s.unbias);
}

void launch_batch_norm_statistics(cudaStream_t stream, struct units shape, const float *x,
                                  struct batch_norm_statistics statistics)
{
    LAUNCH(measure, blocks_for_units(shape), THREADS, stream, shape, x, statistics);
}

__device__ static float rstd_of(const struct batch_norm_scaling &s, int64_t c)
{
    return s.rstd != NULL ? s.rstd[c] : (float)(1 / sqrt(s.variance[c] + s.epsilon));
}

__device__ static float scale_of(const struct batch_norm_scaling &s, int64_t c)
{
    return s.weight != NULL ? rstd_of(s, c) * s.weight[c] : rstd_of(s, c);
}

/* The output before the relu. */
__device__ static float scaled(const struct batch_norm_scaling &s, int64_t c, float x)
{
    const float v = (x - s.mean[c]) * scale_of(s, c);
    return s.bias != NULL ? v + s.bias[c] : v;
}

__device__ static int64_t channel_of(const struct units &u, int64_t i) { return i / u.inner % u.units; }

__device__ static int64_t count_of(const struct units &u) { return u.outer * u.units * u.inner; }

__global__ static void normalise(struct units u, struct batch_norm_scaling s, const float *x, float *y)
{
    for (int64_t i = thread_first(); i < count_of(u); i += thread_stride()) {
        const float v = scaled(s, channel_of(u, i), x[i]);
        y[i] = s.relu && v <= 0 ? 0 : v;
    }
}

static unsigned blocks_for_elements(struct units shape) { return blocks_for(shape.outer * shape.units * shape.inner); }

void launch_batch_norm(cudaStream_t stream, struct units shape, struct batch_norm_scaling scaling, const float *x,
                       float *y)
{
    LAUNCH(normalise, blocks_for_elements(shape), THREADS, stream, shape, scaling, x, y);
}

/* dy before the relu, whose output is computed as the forward did. */
__device__ static float slope(const struct batch_norm_scaling &s, int64_t c, float x, float dy)
{
    return !s.relu || scaled(s, c, x) > 0 ? dy : 0;
}

/* Terms: dy', and dy' h. */
struct slope_term {
    struct units u;
    struct batch_norm_scaling s;
    const float *x, *dy;
    __device__ double operator()(int64_t i) const { return slope(s, channel_of(u, i), x[i], dy[i]); }
};

struct product_term {
    struct slope_term slope;
    __device__ double operator()(int64_t i) const
    {
        const int64_t c = channel_of(slope.u, i);
        return slope(i) * ((slope.x[i] - slope.s.mean[c]) * slope.s.rstd[c]);
    }
};

__global__ static void sum(struct slope_term term, float *means, float *dw, float *db)
{
    __shared__ double sums[THREADS];
    const double slopes = unit_sum(term, term.u, sums), products = unit_sum(product_term{term}, term.u, sums);
    if (!writes_unit(term.u)) return;
    const int64_t c = unit_of(term.u);
    means[c] = (float)(slopes / values_of(term.u));
    means[term.u.units + c] = (float)(products / values_of(term.u));
    if (dw != NULL) dw[c] = (float)products;
    if (db != NULL) db[c] = (float)slopes;
}

void launch_batch_norm_sums(cudaStream_t stream, struct units shape, struct batch_norm_scaling scaling, const float *x,
                            const float *dy, float *means, float *dw, float *db)
{
    const struct slope_term term = {shape, scaling, x, dy};
    LAUNCH(sum, blocks_for_units(shape), THREADS, stream, term, means, dw, db);
}

__global__ static void combine(struct units u, struct batch_norm_scaling s, const float *x, const float *dy,
                               const float *means, float *dx)
{
    for (int64_t i = thread_first(); i < count_of(u); i += thread_stride()) {
        const int64_t c = channel_of(u, i);
        const float h = (x[i] - s.mean[c]) * s.rstd[c];
        dx[i] = scale_of(s, c) * (slope(s, c, x[i], dy[i]) - means[c] - h * means[u.units + c]);
    }
}

void launch_batch_norm_gradient(cudaStream_t stream, struct units shape, struct batch_norm_scaling scaling,
                                const float *x, const float *dy, const float *means, float *dx)
{
    LAUNCH(combine, blocks_for_elements(shape), THREADS, stream, shape, scaling, x, dy, means, dx);
}
