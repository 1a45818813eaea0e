/* The largest batch that fits, for every policy. */
#pragma once

#include "analysis/policy_grid.h"

/* Of the spec's policy as the spec sets it, then of each policy: the largest batch with which one of its plans takes at
 * most memory bytes and at most a slowdown (INFINITY: any), the figures of the one with the least peak, and what stops
 * the next batch. notes: texts on what else was found. */
enum status largest_batch_find(const struct job *job, uint64_t memory, double slowdown, struct region *region,
                               json_t *rows, json_t *notes);
