/* A training step on the device: queued call by call, or recorded as a graph and queued again as one. */
#ifndef REMATCH_KERNELS_CUDA_GRAPH_CAPTURE_H
#define REMATCH_KERNELS_CUDA_GRAPH_CAPTURE_H

#include "cuda.h"

/* Rows of struct backend_kind. */
enum status cuda_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self);
enum status cuda_wait(struct backend *backend);

/* Forgets what was recorded: memory that it works on goes. */
void capture_forget(struct backend *backend);

#endif
