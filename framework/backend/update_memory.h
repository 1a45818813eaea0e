/* The memory that an update works on: parameters, gradients and state in a backend's block, and the host's digests. */
#ifndef REMATCH_BACKEND_UPDATE_MEMORY_H
#define REMATCH_BACKEND_UPDATE_MEMORY_H

#include "backend/backend.h"

/* Cuts graph's parameters, then their gradients (not of a fused update), then states copies of each as its state from
 * block, and returns the bytes of all of them. */
size_t update_cut(const struct graph *graph, bool fused, int states, char *block, struct update_tensor *tensor);

/* Allocates the digests of an update that is complete otherwise, and prepares the backend for it. */
enum status update_open(struct update *update, struct backend *backend, struct region *region);

#endif
