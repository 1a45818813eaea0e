/* Small kernels that test the host device itself; launchers for C. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out[i] = value, of count, over a grid of blocks. */
void probe_set(float *out, float value, int count, unsigned blocks, cudaStream_t stream);

/* out[row] = sum of a row's columns, one block of 256 threads a row, by shuffles and shared memory. */
void probe_sum(float *out, const float *x, int rows, int columns, cudaStream_t stream);

/* where[b] = blockIdx of block number b as (z * 100 + y) * 100 + x, of a grid of 3 x 4 x 5. */
void probe_where(int *where, cudaStream_t stream);

/* Threads read their neighbours' writes, with a barrier between or without. */
void probe_turn(int *out, int barrier, cudaStream_t stream);

/* Half of the threads never reach the barrier, or the shuffle. */
void probe_diverge(int shuffle, cudaStream_t stream);

/* A variable of the device: its address, and a kernel that copies it. */
cudaError_t probe_step(uint32_t **step);
void probe_read_step(uint32_t *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
