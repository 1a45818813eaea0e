/* Every policy on every network: what tests of plans go through. */
#ifndef REMATCH_TESTS_SUPPORT_POLICY_CASES_H
#define REMATCH_TESTS_SUPPORT_POLICY_CASES_H

#include "backend/network.h"
#include "plan/schedule.h"

/* Calls visit with every schedule that a row of policies.def gives for a net of nets[] on `ref`, under every setting
 * and with relus kept as outputs and as bits; what names net and policy. Each policy gives some. */
void words_visit(void visit(const struct network *network, const struct schedule *schedule, const char *what));

#endif
