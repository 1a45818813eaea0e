#include "probe.h"

#include "kernels/cuda/device.cuh"

static __device__ uint32_t step;

static __global__ void set(float *out, float value, int count)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x))
        out[i] = value;
}

static __global__ void sum(float *__restrict__ out, const float *__restrict__ x, int columns)
{
    __shared__ float part[THREADS / WARP];
    float s = 0;
    for (int c = (int)threadIdx.x; c < columns; c += THREADS) s += x[(int64_t)blockIdx.x * columns + c];
    for (int lane = WARP / 2; lane > 0; lane /= 2) s += __shfl_xor_sync(0xffffffff, s, lane);
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = s;
    __syncthreads();
    for (int half = THREADS / WARP / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

static __global__ void where_blocks(int *where)
{
    const unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.y == 1) where[b] = (int)((blockIdx.z * 100 + blockIdx.y) * 100 + blockIdx.x);
}

static __global__ void turn(int *out, int barrier)
{
    __shared__ int given[64];
    const unsigned t = threadIdx.x;
    given[t] = -1;
    if (barrier) __syncthreads();
    given[t] = (int)t;
    if (barrier) __syncthreads();
    out[t] = given[(t + 1) % 64];
}

static __global__ void diverge(int shuffle)
{
    if (threadIdx.x < 16) return;
    if (shuffle)
        (void)__shfl_xor_sync(0xffffffff, 1.0f, 1);
    else
        __syncthreads();
}

static __global__ void read_step(uint32_t *out) { *out = step; }

void probe_set(float *out, float value, int count, unsigned blocks, cudaStream_t stream)
{
    LAUNCH(set, blocks, THREADS, stream, out, value, count);
}

void probe_sum(float *out, const float *x, int rows, int columns, cudaStream_t stream)
{
    LAUNCH(sum, (unsigned)rows, THREADS, stream, out, x, columns);
}

void probe_where(int *where, cudaStream_t stream) { LAUNCH(where_blocks, dim3(3, 4, 5), dim3(8, 2), stream, where); }
void probe_turn(int *out, int barrier, cudaStream_t stream) { LAUNCH(turn, 1, 64, stream, out, barrier); }
void probe_diverge(int shuffle, cudaStream_t stream) { LAUNCH(diverge, 1, WARP, stream, shuffle); }
cudaError_t probe_step(uint32_t **address) { return cudaGetSymbolAddress((void **)address, step); }
void probe_read_step(uint32_t *out, cudaStream_t stream) { LAUNCH(read_step, 1, 1, stream, out); }
