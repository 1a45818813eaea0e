/* A training step on the device: queued call by call, or captured as a graph and launched as one. */
#ifndef REMATCH_KERNELS_CUDA_GRAPH_CAPTURE_H
#define REMATCH_KERNELS_CUDA_GRAPH_CAPTURE_H

#include "cuda.h"

/* Rows of struct backend_kind. */
enum status cuda_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self);
enum status cuda_wait(struct backend *backend);

/* Frees the captured graph; called before memory that it uses is freed. */
void capture_forget(struct backend *backend);

#endif
