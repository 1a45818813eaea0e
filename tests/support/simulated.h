/* A plan under the product's own simulator. */
#ifndef REMATCH_TESTS_SUPPORT_SIMULATED_H
#define REMATCH_TESTS_SUPPORT_SIMULATED_H

#include "check/simulate.h"
#include "plan/plan.h"

/* As simulate(), of the plan's data. */
enum status simulate_plan(const struct plan *plan);

#endif
