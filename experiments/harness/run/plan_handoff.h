/* The plan of a job for the process that runs it, which then does not search for it again: schedule, places of buffers,
 * and what planning found. Both processes are of one program and prepare the same spec, which the parent checks by its
 * digest; the child lowers the schedule itself, and refuses a plan whose hash is not the parent's. */
#pragma once

#include "job/job.h"

/* Writes the training plan of a planned job to the file, which is empty. ST_FAILED with the message set. */
enum status plan_handoff_write(const struct job *job, int descriptor);

/* Gives a prepared job, whose costs are set, the plan in the file. ST_FAILED: it is not a plan of this job. */
enum status plan_handoff_take(struct job *job, int descriptor);
