/* /provenance of a result file: source, compiler, libraries, machine, data. */
#ifndef REMATCH_RESULT_PROVENANCE_H
#define REMATCH_RESULT_PROVENANCE_H

#include "job/job.h"
#include "result/h5.h"

void provenance_write(struct h5 *h5, const struct job *job);

#endif
