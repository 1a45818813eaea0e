/* Rows of tables by number: what an embedding reads, and the gradients of its tables.
 *
 * Contract: a row's gradient is the sum of dy over the tokens that read it: in ascending order within runs of
 * EMBEDDING_RUN such tokens, fewer in a row's first and last run, then over runs in a fixed order. The runs depend on
 * the tokens' ids alone. */
#ifndef REMATCH_KERNELS_CUDA_EMBEDDING_KERNELS_H
#define REMATCH_KERNELS_CUDA_EMBEDDING_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EMBEDDING_RUN = 32 };

/* text: value 0, see token_batch.h; tables of so many rows, width floats each. What is no row of its table is row 0. */
struct embedding_shape {
    int64_t batch, tokens, width;
    int64_t words, segments;
};

/* y = word's row + position's row + segment's row. */
void launch_embedding(cudaStream_t stream, struct embedding_shape shape, const float *text, const float *word,
                      const float *position, const float *segment, float *y);

/* gradient = or += for each of rows rows the sum of dy over the tokens whose number in line (TOKEN_IDS,
 * TOKEN_SEGMENTS) is that row. scratch: of as many bytes as embedding_scratch() says. */
void launch_embedding_gradient(cudaStream_t stream, struct embedding_shape shape, const float *text, int line,
                               int64_t rows, const float *dy, bool add, void *scratch, float *gradient);
size_t embedding_scratch(struct embedding_shape shape);

#ifdef __cplusplus
}
#endif

#endif
