/* Shortest paths over all states of an abstract chain: the live tensors and the progress of the backward. Written from
 * the definition of a chain; shares no code with planning. */
#pragma once

#include "backend/abstract_graph.h"

enum { EXHAUSTIVE_STAGES_MAX = 8 };

/* The schedules examined.
 * ANY: all.
 * PERSISTENT: a value dies as soon as the next stage has read it, or stays until the backward that reads it; saved
 * tensors stay until their backward. IN_TURN: those of them whose forwards continue from the newest live value: nothing
 * is recomputed ahead of its turn. */
enum schedules { ANY, PERSISTENT, IN_TURN };

/* The least time (whole numbers) of one that never has more than budget bytes live, -1: there is none. */
int64_t exhaustive_time(const struct abstract_stage *stage, int stages, int64_t budget, enum schedules among);
