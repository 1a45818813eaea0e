/* Attention's softmax and dropout, and their backward, over all heads of a batch; see framework/layers/attention.c.
 * Blocks of scores, probabilities and slopes are batch x heads x tokens x tokens.
 *
 * Contract: one warp or block computes a row from start to end in an order that depends on the number of tokens alone;
 * further outputs change no bit of the result. A probability below exp(-87) of its row's largest is 0. */
#ifndef REMATCH_KERNELS_CUDA_ATTENTION_KERNELS_H
#define REMATCH_KERNELS_CUDA_ATTENTION_KERNELS_H

#include <cuda_runtime_api.h>

#include "numerics/element_draw.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTENTION_TOKENS_MOST = 1 << 14 }; /* callers refuse more */

struct attention_shape {
    int64_t first, batch, heads, tokens; /* first: sample, where these are a part of the batch */
    float scale;                         /* of scores: 1 / sqrt of a head's width */
    float factor;                        /* survivor_factor() */
};

/* From scores Q K^T, not yet scaled, the probabilities p over the keys whose mask is above 0, and what dropout leaves
 * of them; p or dropped may be NULL, where it is not wanted, and either may be scores. text: value 0, see
 * token_batch.h. draw is read where dropped is not NULL. */
void launch_attention_softmax(cudaStream_t stream, struct attention_shape shape, const float *text, const float *scores,
                              float *p, const struct element_draw *draw, float *dropped);

/* slope, dP of what was dropped, becomes dS, and dropped, unless NULL, what dropout leaves of p. draw NULL: nothing is
 * dropped. */
void launch_attention_slope(cudaStream_t stream, struct attention_shape shape, const float *p,
                            const struct element_draw *draw, float *dropped, float *slope);

#ifdef __cplusplus
}
#endif

#endif
