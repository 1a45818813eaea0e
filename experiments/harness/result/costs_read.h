/* Measured times of a network's passes, from the result file of a run of the same model.
 *
 * Each op of the run counts with its least time over the steps after the first. A recomputation takes the time of the
 * run's recomputations of that node, or of its first forward where the run has none; nodes of one kind take the least
 * of all of them, so that equal stages stay equal. The model must be the same and have the same kernels; policy,
 * schedule, saved tensors and update may differ. */
#pragma once

#include "job/job.h"

/* Reads the file of the job's spec, and sets the costs of its network. ST_SPEC: it is no such file, or of another
 * model; the message names what differs, and how to make one. */
enum status costs_read(struct job *job);
