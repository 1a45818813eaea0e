/* Every policy on every network: the cases of tests of plans. */
#pragma once

#include "backend/network.h"
#include "plan/schedule.h"

/* Calls visit with every schedule of every policy for every net of nets[] on `ref`, with every setting, relus keeping
 * outputs and sign bits; what names net and policy. Each policy gives some. */
void schedules_visit(void visit(const struct network *network, const struct schedule *schedule, const char *what));

/* The same with schedules of slices of the batch, of policies and random ones, of networks in 2 and 3 slices, some of
 * whose nodes are whole, and with updates fused with the backward and without. */
void sliced_schedules_visit(void visit(const struct network *network, const struct schedule *schedule,
                                       const char *what));
