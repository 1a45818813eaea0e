/* An abstract machine that runs a plan on symbols instead of numbers. Its memory is the arena itself, 256 bytes a cell,
 * at the planned offsets; a cell holds the name of what was written there. It takes what an op must read from the graph
 * and the footprints, and shares no code with the lowering that it judges.
 *
 * It refuses a plan in which an op reads anything but the newest incarnation of what it should, memory is used before
 * its birth or after its death, two live buffers overlap, an output takes a place it may not, a node's backward is not
 * run exactly once in reverse order, gradients are summed in another order, the saved set or a mask is read before it
 * is written, something is kept longer than it is used or saved for nobody, a replay is dead (under drop_dead), or the
 * live bytes are not those claimed. */
#ifndef REMATCH_TEST_SIMULATE_H
#define REMATCH_TEST_SIMULATE_H

#include "plan.h"

/* NULL where the plan is right, else what is wrong and at which op; the text lives in the plan's region. */
const char *simulate(const struct plan *plan, const struct plan_options *options);

#endif
