/* The memory that an update works on: parameters, gradients and state in a backend's block, and the host's digests. */
#pragma once

#include "backend/network.h"

/* Cuts graph's parameters, then the gradients of those that are trained (not of a fused update), then states copies of
 * each of these as its state from block, and returns the bytes of all of them. tensor: by parameter. */
size_t update_cut(const struct graph *graph, bool fused, int states, char *block, struct update_tensor *tensor);

/* Of node's k-th parameter, what a part of a fused update (from 1; 0: all) covers, where gradients are those of the
 * node's parameters, one after the other: of the first a part's elements, of the others all, in the first part. */
struct update_part update_part_of(const struct network *network, int node, int part, float *gradients, int k);

/* Allocates the digests of an update that is complete otherwise, and prepares the backend for it. */
enum status update_open(struct update *update, struct backend *backend, struct region *region);
