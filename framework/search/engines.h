/* The engines that fill a pool (pool.h). Each adds the schedules that it finds; none depends on what another one found,
 * but that a search for a faster schedule ends early where the pool has one that cannot be beaten.
 *
 * - chain: the programme on stages (optimum.h).
 * - dtr: DTR's simulation, under the limit, and others above and below it; msps: the same by another score.
 * - drops: outputs that are recomputed once, by kind and one by one (drops.h).
 * - states: beams over states of live values (state_search.h), on up to STATE_NODES_MAX nodes.
 * - windows: the fastest of those, improved window by window by the same beam (improve.h).
 *
 * Schedules of slices are added before them (slices.h), and those of other policies (policies/rivals.h). */
#pragma once

#include "search/pool.h"

/* Adds what does not depend on a limit. Once, before the others. */
void engines_prepare(struct pool *pool);

/* Adds schedules for at most limit live bytes. Returns whether the fastest of all schedules of that is in the pool. */
bool engines_within(struct pool *pool, size_t limit);

/* Adds schedules of least memory. */
void engines_least(struct pool *pool);

/* Adds schedules for limits over the whole range, of a small network for all. */
void engines_front(struct pool *pool);

/* Adds schedules until one takes at most time; of those of least memory first, so that little is solved. */
void engines_in_time(struct pool *pool, double time);
