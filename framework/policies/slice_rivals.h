/* Schedules of slices, as candidates for `optimal`. */
#ifndef REMATCH_POLICIES_SLICE_RIVALS_H
#define REMATCH_POLICIES_SLICE_RIVALS_H

#include "search/visit_options.h"

/* For a network whose batch has slices, adds to optimum's candidates:
 * - where every node is sliced: one slice after the other, each by a schedule of the front of a network that has the
 *   slice as its batch. So micro-batches, with recomputation or without.
 * - else, for some cuts of the stages before the first whole node: the nodes before the cut keep nothing but their
 *   output, and are computed again and differentiated at the end; they and the nodes behind the cut by schedules of
 *   their fronts, and all of it slice by slice where no whole node is between (schedule_append_by_slice()). */
void slice_rivals_add(struct optimum *optimum, enum rng_mode rng);

#endif
