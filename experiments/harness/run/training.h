/* Trains a job from its first step to its last and writes its result file. */
#pragma once

#include "result/record.h"

enum { REPORT_PATH = 1024, REPORT_LOSSES = 5 };

/* A report of a run to the program that started it; plain bytes, in memory that both share. */
struct run_report {
    char path[REPORT_PATH]; /* of the result file; until it is finished, path and ".part" */
    bool finished;
    int stopped; /* the signal that stopped it, 0: none */
    int64_t steps;
    int64_t state;                        /* steps that a next process need not compute again, 0: it begins anew */
    float loss[REPORT_LOSSES], last_loss; /* of the first steps, and of the last */
    float accuracy;                       /* of the last evaluation, NaN: none */
    uint64_t step_ns;                     /* median of the steps after the first */
    uint64_t best_case_ns;                /* timing_best_case() */
    struct run_summary summary;
};

struct training_options {
    const char *variant; /* "baseline" or "variant" */
    bool quiet;          /* no step lines */
    bool resume;         /* goes on from the state file of the same run, if there is one */
    bool temporary;      /* its files are: it writes no state */
    int64_t steps;       /* the run is interrupted after so many, 0: it is not */
    int descriptor;      /* of the report */
};

/* Writes a struct run_report to the descriptor when the result file has a name, and at the end. *stopped: the signal
 * that stopped the run, which is no error, or 0. */
enum status training_run(struct job *job, const struct training_options *options, int *stopped);
