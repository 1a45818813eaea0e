/* A grid: every combination of the values of the spec's `sweep:`, one after the other, each run in a process of its
 * own; at the end a table and a CSV file. */
#ifndef REMATCH_SWEEP_H
#define REMATCH_SWEEP_H

#include "experiment.h"

/* `rematch run` of a spec with a sweep; a key that an override sets is not swept. Destroys the spec. Returns the exit
 * code of the worst point: a point that fails does not stop the others, a signal does. */
int sweep_run(const struct request *request, struct spec *spec);

#endif
