/* Schedules of other policies, as candidates for `optimal`. */
#ifndef REMATCH_POLICIES_RIVALS_H
#define REMATCH_POLICIES_RIVALS_H

#include "policies/policy.h"
#include "search/budget.h"

/* optimum_prepare(), with the schedules of every policy without a budget as candidates, with all values of its switches
 * and choices and numbers up to RIVALS_NUMBER_MAX: where a stage is too long for all subsets of its nodes to be
 * examined, or groups divide one. No such schedule then beats the front. */
enum { RIVALS_NUMBER_MAX = 64 };
struct optimum *rivals_prepare(const struct network *network, enum rng_mode rng);

/* After `optimal` refused a budget, which leaves limit bytes for the arena: ST_SPEC with its message, followed by the
 * fastest plan of another policy that keeps the budget with its other settings at their defaults, where there is one.
 */
enum status rivals_refuse(const struct policy_input *input, const struct budget *budget, size_t limit);

#endif
