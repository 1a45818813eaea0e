/* Schedules of slices, as candidates for `optimal` on a network whose batch has slices. */
#pragma once

#include "search/pool.h"

/* Whether every node of the network is sliced, so that a slice may run alone from the first node to the last. */
bool slices_are_batches(const struct network *network);

/* There: one slice after the other, each by a schedule of the front of slice, which was solved for the network that has
 * a slice as its batch (network_of_slice()). So micro-batches, with recomputation or without. With a fused update also
 * micro-batches of one phase of the network after the other, since gradients of parameters live from a phase's first
 * slice to its last. */
void slices_add_batches(struct pool *pool, const struct pool *slice);

/* Elsewhere: for some stretches of sliced stages, from the start or from a whole node to any cut, the stretch keeps
 * nothing but its input and its output, and is computed again and differentiated when its turn comes; it and the nodes
 * around it by schedules of their fronts, and all of it slice by slice where no whole node is between
 * (schedule_append_by_slice()). */
void slices_add_stretches(struct pool *pool);
