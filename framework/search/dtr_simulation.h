/* Simulates a training step that evicts and rematerialises under a memory limit, as an online runtime would, and writes
 * it down as a schedule. */
#pragma once

#include "search/dtr_residency.h"

/* Appends the step to an empty schedule; returns its most live bytes, at most the limit, or 0 where an event does not
 * fit or recomputations have no end. Bytes are counted as by lowering, except that lowering frees a storage that is
 * evicted at its last read already, and keeps a mask that no backward reads while its node will be recomputed. */
size_t dtr_simulate(const struct step_model *model, enum dtr_score score, size_t limit, struct schedule *schedule);
