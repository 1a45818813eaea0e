/* Whether a plan's memory can be had where its backend works, and what fits instead where it cannot. */
#ifndef REMATCH_JOB_MEMORY_FIT_H
#define REMATCH_JOB_MEMORY_FIT_H

#include "job/job.h"
#include "job/machine.h"

/* What a run may still take: of the device's memory, or of the machine's. */
struct machine_memory memory_left(struct backend *backend);

/* ST_FAILED where measuring the network's nodes would take more than is left: bytes. */
enum status memory_fit_measuring(const struct network *network, size_t bytes);

#endif
