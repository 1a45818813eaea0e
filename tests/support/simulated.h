/* A plan under the product's own simulator. */
#pragma once

#include "check/simulate.h"
#include "plan/plan.h"

/* As simulate(), of the plan's data. */
enum status simulate_plan(const struct plan *plan);
