/* Random schedules of slices: every one that may be written. */
#pragma once

#include "plan/schedule.h"
#include "planned_networks.h"

/* Appends a valid schedule: forwards and backwards of slices in any order that is allowed, of several or of all at once
 * where they are at the same node, with recomputations between them. */
void sliced_schedule_draw(struct source *source, const struct slicing *slicing, struct schedule *schedule);

/* Divides the batch of a finished graph, with one node in whole kept whole (0: none), and those that mix samples, and
 * prepares nothing. */
void sliced_graph(struct graph *graph, int64_t slices, uint32_t whole, struct source *source);
