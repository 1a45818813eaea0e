/* /provenance of a result file: from what source, by what compiler, with which libraries, on what machine, on what
 * data. */
#ifndef REMATCH_RESULT_PROVENANCE_H
#define REMATCH_RESULT_PROVENANCE_H

#include "result/h5.h"
#include "job/job.h"

/* The processor's name, "unknown" where the system does not tell; returns text. */
const char *provenance_cpu(char text[256]);

void provenance_write(struct h5 *h5, const struct job *job);

#endif
