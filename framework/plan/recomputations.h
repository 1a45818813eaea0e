/* How a plan departs from one that stores everything: what it recomputes, and in which order its slices run. */
#pragma once

#include "plan/plan_data.h"

/* Data that plan_data_check() accepts. */

/* What a backward needs of what a recomputation writes, itself or through other recomputations. */
enum { LIVE_OUTPUT = 1, LIVE_SAVED = 2 };

/* Sets live[op] of every op; 0: it is no recomputation, a dead one, or a flatten over its own input, which does
 * nothing. Returns how many are not 0. */
int recomputations_live(const struct plan_data *data, unsigned char *live);

/* Whether slices run in another order than in turn at each node, all of them before the next node runs. */
bool recomputations_by_slice(const struct plan_data *data);

/* Whether no forward is repeated, in that order. */
bool recomputations_none(const struct plan_data *data);
