/* An abstract machine that runs a plan on symbols instead of numbers and judges what the plan claims. It reads plan
 * data only, derives from the nodes' footprints what an op must read, and shares no code with the lowering and the
 * placement that it judges (tests/rooms).
 *
 * It refuses a plan whose ops differ from its schedule; where an op reads another incarnation than the newest, or saved
 * tensors or a mask before they are written; where a buffer is used outside its lifetime, outlives its last use,
 * overlaps a live one, differs from its operand in size, category or node, or is overwritten by an output that may not;
 * where backwards do not run exactly once in reverse order or gradients are summed in another order; where saved
 * tensors are never read or, under drop_dead, a recomputation is dead; or where a number or the hash is wrong. */
#pragma once

#include "plan/plan_data.h"

/* ST_OK: the plan is right. ST_DIFFERS: it is not; the message names op, node and buffer and what was expected. The
 * data is not trusted. */
enum status simulate(const struct plan_data *data);
