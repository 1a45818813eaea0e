/* A job trained from its first step to its last, with its result file written on the way. */
#ifndef REMATCH_RUN_TRAINING_H
#define REMATCH_RUN_TRAINING_H

#include "job/job.h"

enum { REPORT_PATH = 1024, REPORT_LOSSES = 5 };

/* What whoever started the run wants to know of it; plain bytes, so that it can go through a pipe. */
struct run_report {
    char path[REPORT_PATH];    /* of the result file; until it is finished, path and ".part" */
    bool finished, not_finite; /* not_finite: it ended because a loss, output or gradient was not */
    int stopped;               /* by this signal, 0: none */
    int64_t steps;
    float loss[REPORT_LOSSES], last_loss; /* of the first steps, and of the last */
    float accuracy;                       /* of the last evaluation, NaN: none */
    uint64_t live_peak, high_water, start_rss;
    uint64_t device_start, device_used; /* as in struct run_summary */
    uint64_t step_ns, wall_ns;          /* step_ns: median of the steps after the first */
    uint64_t best_case_ns;              /* timing_best_case() */
};

/* Called twice: when the result file has a name, and at the end. */
struct report_listener {
    void (*tell)(void *self, const struct run_report *report);
    void *self;
};

/* variant: "baseline" or "variant". quiet: no step lines. steps: the run is interrupted after so many, 0: it is not. A
 * signal to stop is no error: report.stopped says so. */
enum status training_run(struct job *job, const char *variant, bool quiet, int64_t steps,
                         const struct report_listener *listener);

#endif
