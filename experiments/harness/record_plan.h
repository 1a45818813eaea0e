/* /plan and /memory of a result file: all that was known before the first step. */
#ifndef REMATCH_RECORD_PLAN_H
#define REMATCH_RECORD_PLAN_H

#include "h5.h"
#include "run.h"

void record_plan(struct h5 *h5, const struct job *job);

/* The categories of memory, static ones first, and what the plan predicts for each at its peak. */
enum { MEMORY_CATEGORIES = (int)STATICS + (int)CATEGORIES };
void record_memory(struct h5 *h5, const struct plan *plan);

#endif
