/* The rule of what counts as a proof that recomputation changes no bit, for run, compare, verify and bundles. */
#pragma once

#include "plan/plan_data.h"
#include "result/result_read.h"

/* By their plans, equal files prove something where one stores everything (the baseline), and the other (the variant)
 * has a plan of another hash, which recomputes something that a backward reads, or runs slices in another order.
 * name: of each file in texts. *reason: the reason's name, NULL: they are a proof; *text: in a's region. ST_FAILED: a
 * plan cannot be read. Of a file that another program recorded, what that program says of itself stands for the plan:
 * *claim says so; NULL: both files have plans. */
enum status proof_rule(struct result *a, struct result *b, const char *const name[2], const char **reason,
                       const char **text, const char **claim);

/* The reason why the run of a plan that simulate() accepts is no baseline; NULL: it is one. */
const char *proof_no_baseline(const char *policy, const struct plan_data *plan, struct region *region);
