/* What the other policies make of a network for which `optimal` plans. */
#ifndef REMATCH_OTHERS_H
#define REMATCH_OTHERS_H

#include "budget.h"
#include "policy.h"

/* After `optimal` refused a budget, which leaves limit bytes for the arena: ST_SPEC with its message, and at its end
 * the fastest plan that another policy finds with nothing set but the budget, where one keeps it. */
enum status others_refuse(const struct network *network, const struct budget *budget, size_t limit,
                          const struct policy_settings *settings);

#endif
