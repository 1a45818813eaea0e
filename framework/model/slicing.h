/* Slices of the batch: a step may compute a network, or a part of it, for some consecutive samples at a time. A node is
 * sliced, so that its batch is computed by one call of a kernel a slice in every schedule, or whole. So the arithmetic
 * is a property of the slicing, not of a schedule: outputs of a sliced node have the same bits whichever nodes run in
 * between, and the gradient of its parameters is the sum of its slices' in ascending order. */
#pragma once

#include "model/graph.h"

/* A slice's number is from 0; WHOLE_BATCH: none, the tensor or the op is of the whole batch. */
enum { WHOLE_BATCH = -1 };

/* What schedules need to know of a network. */
struct slicing {
    int nodes, slices;
    const bool *whole; /* by node; NULL: every node, where slices is 1 */
};

static inline bool slicing_whole(const struct slicing *slicing, int node)
{
    return !slicing->whole || slicing->whole[node];
}

/* The calls of a kernel that compute the batch of a node. */
static inline int slicing_calls(const struct slicing *slicing, int node)
{
    return slicing_whole(slicing, node) ? 1 : slicing->slices;
}

struct slicing graph_slicing(const struct graph *graph);

/* Most nodes times slices, whose ops must be countable. */
enum { SLICED_NODES_MAX = 1 << 24 };

/* Rows of a slice, and bytes of weights, from which on a product takes longer to read its weights than to compute: such
 * a layer is kept whole. */
enum { SLICING_FEW_ROWS = 32, SLICING_WEIGHT_BYTES = 8 << 20 };

/* Divides the batch of a finished graph into so many slices of consecutive samples; 1: none. Nodes with keep_whole stay
 * whole; where keep_few, so do linear layers with more than SLICING_WEIGHT_BYTES of parameters and fewer than
 * SLICING_FEW_ROWS rows in a slice. ST_SPEC: slices do not divide the batch or are too many, or a layer mixes its
 * samples: node *mixing, which else is -1. */
enum status graph_slice(struct graph *graph, int64_t slices, bool keep_few, int *mixing);

/* The graph of one slice, as a backend's kernels for sliced nodes see it: batch / slices samples, the same nodes; in
 * the graph's region. */
struct graph *graph_of_slice(const struct graph *graph);
