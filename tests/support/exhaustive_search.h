/* Shortest paths over all states of an abstract chain: what is live, how far the backward has come. Written from the
 * meaning of a chain alone; shares no code with planning. */
#ifndef REMATCH_TESTS_SUPPORT_EXHAUSTIVE_SEARCH_H
#define REMATCH_TESTS_SUPPORT_EXHAUSTIVE_SEARCH_H

#include "backend/abstract_chain.h"

enum { EXHAUSTIVE_STAGES_MAX = 8 };

/* Which schedules are looked at.
 * ANY: all there are.
 * PERSISTENT: a value dies as soon as the next stage has read it, or stays until the backward that reads it; a saved
 * set stays until its backward. IN_TURN: of those, where forwards go on from the newest value there is: nothing is made
 * again before it is its turn. */
enum schedules { ANY, PERSISTENT, IN_TURN };

/* The least time (whole numbers) of one that never has more than budget bytes live, -1: there is none. */
int64_t exhaustive_time(const struct abstract_stage *stage, int stages, int64_t budget, enum schedules among);

#endif
