/* /provenance of a result file: from what source, by what compiler, with which libraries, on what machine, on what
 * data. */
#ifndef REMATCH_PROVENANCE_H
#define REMATCH_PROVENANCE_H

#include "h5.h"
#include "run.h"

void provenance_write(struct h5 *h5, const struct job *job);

#endif
