/* Layer normalisation of rows; the formulas are with the layer's definition.
 *
 * Contract: one warp or block sums a row in an order that depends on its width alone, in two passes, so that the
 * variance does not cancel. The backward reads x and dy once for all gradients; those of the parameters are summed over
 * pieces of rows, and the pieces as reductions.h says. */
#ifndef REMATCH_KERNELS_CUDA_LAYERNORM_KERNELS_H
#define REMATCH_KERNELS_CUDA_LAYERNORM_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LAYERNORM_WIDTH_MOST = 1 << 14 }; /* callers refuse wider rows */

struct layernorm_shape {
    int64_t rows, width;
    float epsilon;
};

/* Of a row; saved for each row. */
struct layernorm_statistics {
    float mean, rstd;
};

/* statistics NULL: not wanted. y may be x. */
void launch_layernorm(cudaStream_t stream, struct layernorm_shape shape, const float *x, const float *w, const float *b,
                      struct layernorm_statistics *statistics, float *y);

struct layernorm_operands {
    const float *x, *dy, *w;
    const struct layernorm_statistics *statistics;
    void *scratch;  /* of as many bytes as layernorm_scratch() says */
    bool add;       /* to dw and db */
    float *dw, *db; /* NULL: neither is wanted */
    float *dx;      /* NULL: not wanted; may be dy */
};

void launch_layernorm_gradients(cudaStream_t stream, struct layernorm_shape shape, struct layernorm_operands operands);
size_t layernorm_scratch(struct layernorm_shape shape);

#ifdef __cplusplus
}
#endif

#endif
