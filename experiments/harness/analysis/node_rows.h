/* A row a node of a plan: what becomes of its tensors between forward and backward, and why. */
#pragma once

#include "analysis/json_tree.h"
#include "plan/plan_data.h"

/* An array of {name, layer, shape, action, bytes, output_bytes, gradient_bytes, recomputations, recompute_flops, why}.
 * action: "store", where bytes of it live on when the forward ends, "recompute", or "drop", where no later op reads it.
 * Where nodes are timed by their file, recompute_time stands for recompute_flops, in its unit. */
json_t *node_rows(const struct plan_data *data, bool timed, struct region *region);
