/* Schedules of other policies, as candidates for `optimal`. */
#pragma once

#include "policies/policy.h"
#include "search/budget.h"

/* optimum_prepare(), with the schedules of every policy without a budget as candidates, with all values of its switches
 * and choices and numbers up to RIVALS_NUMBER_MAX, and those of DTR: unless every stage is a single node, or
 * there are more than RIVALS_NODES_MAX. No such schedule then beats the front. */
enum { RIVALS_NUMBER_MAX = 64, RIVALS_NODES_MAX = 1000 };
/* The stages that `optimal` plans, and of which a whole front is found beside other policies: time and memory grow with
 * the square of their number. */
enum { OPTIMAL_STAGES_MAX = 1 << 14, FRONT_STAGES_MAX = 1 << 12 };
struct optimum *rivals_prepare(const struct network *network, enum rng_mode rng);

/* Adds the schedules of the other policies with a budget for that of input; of one that does not keep it, its least. */
void rivals_with_budget(struct optimum *optimum, const struct policy_input *input);

/* rivals_prepare() with the whole front solved and searched. */
struct optimum *rivals_front(const struct network *network, enum rng_mode rng);
