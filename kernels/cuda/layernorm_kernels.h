/* Layer normalisation of rows; the formulas are with the layer's definition.
 *
 * Contract: a row's sums are made by one warp or block in an order that depends on its width alone, in two passes, so
 * that the variance does not cancel. The backward goes through x and dy once, for all gradients; those of the
 * parameters are summed over pieces of rows, and the pieces as reductions.h says. */
#ifndef REMATCH_KERNELS_CUDA_LAYERNORM_KERNELS_H
#define REMATCH_KERNELS_CUDA_LAYERNORM_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NORM_WIDTH_MOST = 1 << 14 }; /* wider rows are to be refused */

struct norm_shape {
    int64_t rows, width;
    float epsilon;
};

/* Of a row; the saved tensors is one for each. */
struct norm_statistics {
    float mean, rstd;
};

/* statistics NULL: not wanted. y may be x. */
void launch_norm(cudaStream_t stream, struct norm_shape shape, const float *x, const float *w, const float *b,
                 struct norm_statistics *statistics, float *y);

struct norm_operands {
    const float *x, *dy, *w;
    const struct norm_statistics *statistics;
    void *scratch;  /* of as many bytes as norm_scratch() says */
    bool add;       /* to dw and db */
    float *dw, *db; /* NULL: neither is wanted */
    float *dx;      /* NULL: not wanted; may be dy */
};

void launch_norm_gradients(cudaStream_t stream, struct norm_shape shape, struct norm_operands operands);
size_t norm_scratch(struct norm_shape shape);

#ifdef __cplusplus
}
#endif

#endif
