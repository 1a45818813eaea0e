/* Digests, squares and updates on the device: rows of struct backend_kind. */
#ifndef REMATCH_KERNELS_CUDA_PARAMETER_UPDATE_H
#define REMATCH_KERNELS_CUDA_PARAMETER_UPDATE_H

#include "cuda.h"

/* Of memory of the device at a multiple of 8 bytes. */
double cuda_squares(struct backend *backend, const float *x, size_t count);
struct digest cuda_digest(struct backend *backend, const void *data, size_t bytes);

extern const struct update_kind cuda_update;

#endif
