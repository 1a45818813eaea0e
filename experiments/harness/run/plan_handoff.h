/* The plan of a job for another process, or for later, so that it is not searched for again: schedule, places of
 * buffers, and what planning found. It is for the same program and the same spec, as its digest shows; who takes it
 * lowers the schedule, and refuses a plan whose hash is another. */
#pragma once

#include "job/job.h"

struct plan_handoff {
    const void *data; /* NULL: none */
    size_t bytes;
};

/* The training plan of a planned job; lives in region. */
struct plan_handoff plan_handoff_of(const struct job *job, struct region *region);

/* Gives it to a prepared job, whose costs are set. ST_FAILED: it is not a plan of this job. */
enum status plan_handoff_take(struct job *job, const struct plan_handoff *handoff);
