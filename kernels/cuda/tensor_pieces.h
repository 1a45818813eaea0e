/* Work on many tensors at once, cut into pieces of 64 KiB: digests, sums of squares, optimizers. The number of launches
 * does not depend on the number of tensors; a team or a block works on a piece.
 *
 * Contract: sums of squares are sum_of_squares()'s and digests digest_tensor()'s in every bit; an element is updated as
 * element_optimizer.h says. */
#ifndef REMATCH_KERNELS_CUDA_TENSOR_PIECES_H
#define REMATCH_KERNELS_CUDA_TENSOR_PIECES_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "numerics/element_optimizer.h"
#include "numerics/element_xxh3.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PIECE_BYTES = 64 * 1024, PIECE_FLOATS = PIECE_BYTES / 4, PIECES_AT_ONCE = 2048 };

static inline int64_t pieces_of(int64_t bytes) { return bytes / PIECE_BYTES + (bytes % PIECE_BYTES != 0); }

/* Bytes of the device's memory, at a multiple of 8. */
struct tensor_piece {
    const void *data;
    int64_t bytes;
};

/* Count pieces: those of a table in device memory or, where that is NULL, the pieces of whole. */
struct tensor_pieces {
    const struct tensor_piece *table;
    struct tensor_piece whole;
    int64_t count;
};

/* A piece of a parameter, its gradient and its state. */
struct update_piece {
    float *parameter, *state;
    const float *gradient;
    int64_t copy; /* floats from a copy of the state to the next */
    int32_t elements, numbers;
};

/* Whether and how to update, as the gradients decide. */
struct verdict {
    float scale; /* of gradients */
    int32_t go;  /* 0: no update */
};

/* The verdict's inputs and outputs: all in device memory but clip. */
struct judgement {
    double clip;
    const float *loss;
    double *squares;     /* of all gradients */
    int32_t *not_finite; /* the last tensor whose gradient is not finite, -1: none */
    struct verdict *verdict;
};

enum update_rule { UPDATE_SGD, UPDATE_MOMENTUM, UPDATE_ADAM };

/* All pointers are to device memory. */

/* One XXH3-128 a piece, in canonical form or as numbers; and its sum of squares as of floats, squares NULL: none. */
void launch_digests(cudaStream_t stream, struct tensor_pieces pieces, int canonical, struct xxh3 *digest,
                    double *squares);

/* Static device memory for the results of PIECES_AT_ONCE pieces. */
cudaError_t piece_results_addresses(struct xxh3 **digest, double **squares);

/* The sums of squares of count tensors, of which the i-th has the pieces from first[i] to first[i + 1]. */
void launch_squares(cudaStream_t stream, int count, const int64_t *first, const double *squares, double *sum);

/* Adds count sums in descending order and decides. */
void launch_judgement(cudaStream_t stream, int count, const double *sum, struct judgement judgement);

/* Updates count pieces if the verdict is to go. */
void launch_update(cudaStream_t stream, enum update_rule rule, int64_t count, const struct update_piece *piece,
                   const struct optimizer_numbers *numbers, const struct verdict *verdict);

#ifdef __cplusplus
}
#endif

#endif
