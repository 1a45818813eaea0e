/* Biases and activations over whole values, and the derivatives of activations.
 *
 * Contract: every element is computed alone. All pointers are the device's; work is queued on the stream. Where
 * pointers are multiples of 16 bytes, 16 bytes are moved at once. */
#ifndef REMATCH_CUDA_ACTIVATIONS_H
#define REMATCH_CUDA_ACTIVATIONS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the sign bits of count elements: bit i % 8 of byte i / 8 is 1 where element i is above 0. */
static inline size_t sign_bytes(int64_t count) { return (size_t)((count + 7) / 8); }

/* Which bias belongs to element i of a value: number i / inner % units. Rows of units and images N H W C have inner 1,
 * images N C H W have H * W. */
struct bias {
    const float *values; /* NULL: none */
    int64_t units, inner;
};

/* to = activation(from + bias), activation as enum activation of layer.h; writes the sign bits of to unless NULL. to
 * may be from. */
void launch_activation(cudaStream_t stream, const float *from, struct bias bias, int activation, int64_t count,
                       float *to, uint8_t *signs);

/* dx = dy times the activation's derivative: a relu's from signs, or from its output y where signs is NULL; tanh's
 * from y. dx may be dy. */
void launch_activation_derivative(cudaStream_t stream, const float *dy, const float *y, const uint8_t *signs,
                                  int activation, int64_t count, float *dx);

/* y = gelu(x), y may be x; dx = dy times gelu's derivative at x, dx may be dy. */
void launch_gelu(cudaStream_t stream, const float *x, bool by_tanh, int64_t count, float *y);
void launch_gelu_derivative(cudaStream_t stream, const float *dy, const float *x, bool by_tanh, int64_t count,
                            float *dx);

#ifdef __cplusplus
}
#endif

#endif
