/* An abstract machine that runs a plan on symbols instead of numbers and judges what the plan claims. It works from an
 * data alone, takes what an op must read from the nodes' footprints, and shares no code with the lowering and the
 * placing that it judges (tests/layering.awk sees to that).
 *
 * It refuses a plan that does not follow its schedule, in which an op reads anything but the newest incarnation of what
 * it should, memory is used before its birth or after its death, two live buffers overlap, a size is not the node's, a
 * buffer is called after other things than are first written there, an output takes a place it may not, a node's
 * backward is not run exactly once in reverse order, gradients are summed in another order, the saved tensors or a mask
 * is read before it is written, something is kept longer than it is used or saved for nobody, a recomputation is dead
 * (under drop_dead), or a figure or the hash is not what comes out. */
#ifndef REMATCH_CHECK_SIMULATE_H
#define REMATCH_CHECK_SIMULATE_H

#include "plan/plan_data.h"

/* ST_OK: the plan is right. ST_DIFFERS: it is not; the message names op, node and buffer and what was expected. Nothing
 * in the data is believed. ST_FAILED: no memory. */
enum status simulate(const struct plan_data *data);

#endif
