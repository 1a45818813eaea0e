/* Shortest paths over all states of an abstract chain: what is live, how far the backward has come. Written from the
 * meaning of a chain alone; shares no code with planning. */
#ifndef REMATCH_TEST_EXHAUSTIVE_H
#define REMATCH_TEST_EXHAUSTIVE_H

#include "abstract.h"

enum { EXHAUSTIVE_STAGES_MAX = 8 };

/* The least time (whole numbers) of a schedule that never has more than budget bytes live, -1: there is none.
 * persistent: a value dies as soon as the next stage has read it, or stays until the backward that reads it; a saved
 * set stays until its backward; a backward is run as soon as all that it reads is there, and until then forwards are
 * run from the newest value that is there. */
int64_t exhaustive_time(const struct abstract_stage *stage, int stages, int64_t budget, bool persistent);

#endif
