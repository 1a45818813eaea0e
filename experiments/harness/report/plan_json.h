/* The parts of a plan's JSON that any plan has. */
#ifndef REMATCH_REPORT_PLAN_JSON_H
#define REMATCH_REPORT_PLAN_JSON_H

#include <jansson.h>

#include "analysis/plan_summary.h"

/* Sets bytes, times, recomputations, the schedule and the hash in the object all. */
void plan_figures_json(const struct plan *plan, json_t *all);

/* Lower bounds, with how far above them the plan is. */
json_t *plan_bounds_json(const struct bounds *bounds, const struct plan *plan);

/* The op that sets the peak and what is alive there; every op with its live bytes. */
json_t *plan_peak_json(const struct plan *plan, const struct tensor_row *tensor, int count);
json_t *plan_ops_json(const struct plan *plan);

#endif
