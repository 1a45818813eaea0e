/* Candidates of any class for the front: schedules of DTR's simulation where a stage has several nodes, so that the
 * class of optimum.h is far from all schedules; and, where the network has few enough nodes, of searches over states
 * (state_search.h) and over dropped outputs (drop_search.h). */
#pragma once

#include "search/optimum.h"

/* Adds those of DTR, for limits over the whole range. Before anything is solved. */
void schedule_search_prepare(struct optimum *optimum);

/* Each of these adds candidates to a front that was solved up to their bytes at least.
 * within: for one limit, with a wide beam or in less time. Returns whether the front's fastest schedule within limit
 * bytes is proven the optimum of all schedules. least: for the least memory. front: for limits over the whole range, of
 * a small network for all. */
bool schedule_search_within(struct optimum *optimum, size_t limit, bool wide);
void schedule_search_least(struct optimum *optimum);
void schedule_search_front(struct optimum *optimum);
