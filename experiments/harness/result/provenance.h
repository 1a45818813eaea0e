/* /provenance of a result file: from what source, by what compiler, with which libraries, on what machine, on what
 * data. */
#ifndef REMATCH_RESULT_PROVENANCE_H
#define REMATCH_RESULT_PROVENANCE_H

#include "job/job.h"
#include "result/h5.h"

void provenance_write(struct h5 *h5, const struct job *job);

#endif
