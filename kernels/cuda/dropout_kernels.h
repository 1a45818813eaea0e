/* Dropout of whole values, its mask, and positions in the sequential stream.
 *
 * Contract: the decisions are rng_keep()'s, whatever the layout. */
#ifndef REMATCH_KERNELS_CUDA_DROPOUT_KERNELS_H
#define REMATCH_KERNELS_CUDA_DROPOUT_KERNELS_H

#include <cuda_runtime_api.h>

#include "numerics/element_draw.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value of batch samples: channels x pixels each where the image lies N C H W, else in logical order, and pixels
 * is 1. */
struct dropout_shape {
    int64_t batch, channels, pixels;
};

/* to = from * factor where an element survives, else 0; to may be from. */
void launch_dropout(cudaStream_t stream, struct dropout_shape shape, const struct element_draw *draw, float factor,
                    const float *from, float *to);

/* As rng_mask_fill(): sets mask to the bits of draw, whose own mask is not read. */
void launch_dropout_mask(cudaStream_t stream, const struct element_draw *draw, int64_t elements, int64_t batch,
                         uint8_t *mask);

/* *to = *base + offset. */
void launch_stream_position(cudaStream_t stream, const uint64_t *base, uint64_t offset, uint64_t *to);

#ifdef __cplusplus
}
#endif

#endif
