/* What the other policies make of a network for which `optimal` plans. */
#ifndef REMATCH_POLICIES_RIVALS_H
#define REMATCH_POLICIES_RIVALS_H

#include "policies/policy.h"
#include "search/budget.h"

/* Offers to optimum, before it is solved, what every policy without a budget makes of its network, with all values of
 * its switches and choices and numbers up to OTHERS_MOST and every choice of what relus keep (policy.h): where a stage
 * is too long for all subsets of its nodes to be looked at, or groups divide one. The front then is nowhere behind
 * those schedules. */
enum { OTHERS_MOST = 64 };
enum status rivals_offer(struct optimum *optimum);

/* Both halves, for the whole front. */
enum status rivals_solve(const struct network *network, enum rng_mode rng, struct optimum **optimum);

/* After `optimal` refused a budget, which leaves limit bytes for the arena: ST_SPEC with its message, and at its end
 * the fastest plan that another policy finds with nothing set but the budget, where one keeps it. */
enum status rivals_refuse(const struct network *network, const struct budget *budget, size_t limit,
                          const struct policy_settings *settings);

#endif
