/* Checks a file: its plan by the simulator, its lower bounds by computing them again, its steps by running its spec
 * again. */
#pragma once

#include "analysis/compare.h"
#include "analysis/resolved_spec.h"
#include "job/run_id.h"
#include "plan/plan_data.h"
#include "result/provenance.h"
#include "result/result_read.h"
#include "spec/spec.h"

enum steps_found { STEPS_NOT_ASKED, STEPS_NONE, STEPS_NOT_RUN, STEPS_SAME, STEPS_DIFFER, STEPS_CLOSE };

/* What is asked of verify_file(). */
struct verify_request {
    bool plan_only;
    /* Other kernels round differently, and later steps amplify that. With elsewhere, a run with other kernels is not
     * wrong where its first loss has at most VERIFY_FIRST_LOSS as relative difference; where the file's plan is not for
     * them, the policy plans anew; a run on other data counts as not run; and a baseline is run again as one. */
    bool elsewhere;
    const char *results; /* the folder for the second run's file; NULL: a temporary one */
};
#define VERIFY_FIRST_LOSS 1e-5

/* Findings so far; texts are in the file's region. NULL: nothing is wrong. */
struct verification {
    const struct verify_request *request;
    struct result *result;
    const char *path;           /* absolute */
    struct resolved_spec again; /* for the second run */
    struct spec *spec;          /* as it was resolved, with the file's own plan; NULL: it is refused */
    struct plan_data data;
    const char *wrong;        /* in the plan */
    int moved;                /* a buffer that lies elsewhere than in the plan of the hash; -1: none is known */
    size_t placed;            /* its offset there */
    const char *wrong_record; /* in the other numbers of the run */
    const char *wrong_bound;
    const char *bounds_unjudged; /* why they could not be computed again; NULL: they were */
    enum steps_found steps;
    double first_loss; /* STEPS_CLOSE: relative difference */
    bool defined;      /* both runs have kernels of one definition: their bits are the same on every machine */
    int code;          /* of the second run, if it failed */
    struct comparison comparison;
    int differences;                                            /* in the environment */
    struct environment_difference difference[ENVIRONMENT_ROWS]; /* a: when the file was written, b: now */
};

/* Numbers that follow from no other number and from no second run; NULL-terminated. */
extern const char *const verify_not_checked[];

/* The parts of a file's run id. */
enum status verify_run_id(struct result *result, struct run_id_parts *identity);

/* verify_record.c: whether the file's numbers agree with each other: sets wrong_record. */
enum status verify_record(struct verification *verification);

/* Judges the plan and its lower bounds; then the other numbers of the run, and, unless plan_only or there are no steps,
 * a second run. ST_FAILED, ST_MISSING or ST_SPEC: the file cannot be judged. */
enum status verify_plan(struct verification *verification);
enum status verify_rest(struct verification *verification);

/* The exit code for the findings. */
int verify_code(const struct verification *verification);

/* report/verify_print.c. Judges the plan in a plan or result file, its lower bounds and the other numbers of its run;
 * and, unless plan_only or there are no steps, runs the file's resolved spec again with that plan, for as many steps as
 * the file has, in a process and a temporary folder of its own, and compares every bit. Returns the exit code: 0 all is
 * right and the bits are the same; 1 something is wrong, and out names the op and buffer, the bound or number, or the
 * step and tensor, or the run has a planted fault; 4 all that was judged is right, but the bounds could not be judged
 * with the kernels here, or not every bit with other kernels; else the status of reading or running, reported on
 * stderr. Where bits differ or the run cannot be repeated, out lists what has changed since the file was written.
 * numbers: instead of printing on out, becomes one object, NULL where the file cannot be read; or NULL. */
int verify_file(const char *path, const struct verify_request *request, json_t **json, FILE *out);

/* What is never checked. */
void verify_print_not_checked(FILE *out);
