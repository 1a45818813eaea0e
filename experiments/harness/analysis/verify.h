/* Checks a file: its plan by the simulator, its lower bounds by computing them again, its steps by running its spec
 * again. */
#ifndef REMATCH_ANALYSIS_VERIFY_H
#define REMATCH_ANALYSIS_VERIFY_H

#include "analysis/compare.h"
#include "job/run_id.h"
#include "plan/plan_data.h"
#include "result/result.h"
#include "result/surroundings.h"
#include "spec/spec.h"

enum steps_found { STEPS_NOT_ASKED, STEPS_NONE, STEPS_NOT_RUN, STEPS_SAME, STEPS_DIFFER };

/* What was found so far; texts are the file's own region's. */
struct verification {
    struct result *result;
    const char *path;  /* absolute */
    struct spec *spec; /* as it was resolved, with the file's own plan; NULL: it is refused */
    struct plan_data data;
    const char *wrong;           /* with the plan; NULL: nothing */
    int moved;                   /* a buffer that is not where the hash wants it; -1: none is known */
    size_t placed;               /* where that would be */
    const char *wrong_record;    /* with what else the file says of its run; NULL: nothing */
    const char *wrong_bound;     /* NULL: none */
    const char *bounds_unjudged; /* why they could not be found again; NULL: they were */
    enum steps_found steps;
    int code; /* of the second run, where it failed */
    struct comparison comparison;
    int surroundings;
    struct surrounding surrounding[SURROUNDINGS]; /* a: when the file was written, b: now */
};

/* Figures that follow from no other figure and from no second run; NULL-terminated. */
extern const char *const verify_not_checked[];

/* Judges the plan in a plan or result file, the lower bounds stored with it and what else the file says of its run,
 * and, unless plan_only or there are no steps, runs the resolved spec that it holds again, with that plan and as far as
 * the file's steps go, in a process and a temporary folder of its own, and compares every bit. Returns the exit code: 0
 * right and the same bits; 1 something is not, and out says which op and buffer, which bound or figure, or which step
 * and tensor, or the run has a planted fault; what reading or running returned otherwise, told on stderr; 4 all that
 * was judged is right, but the plan could not be judged with the kernels here. Where bits differ or the run cannot be
 * repeated, out names what is not as it was when the file was written. json: out is one object, empty where the file
 * cannot be read. */
int verify_file(const char *path, bool plan_only, bool json, FILE *out);

/* verify_bounds.c: requires the spec's data and the same kernels; sets wrong where the plan is not of the spec with any
 * kernels, and wrong_bound or bounds_unjudged. */
enum status verify_bounds(struct verification *verification);

/* verify_bounds.c, too: the parts of the file's run id. */
enum status verify_run_id(const struct verification *verification, struct run_id_parts *identity);

/* verify_record.c: whether the file's figures agree with each other: sets wrong_record. */
enum status verify_record(struct verification *verification);

/* report/verify_print.c: the status of a run that did not complete; the findings of each part; and all of them. */
void verify_print_run(const struct verification *verification, FILE *out);
void verify_print_plan(const struct verification *verification, FILE *out);
void verify_print_bounds(const struct verification *verification, FILE *out);
void verify_print_record(const struct verification *verification, FILE *out);
void verify_print_steps(const struct verification *verification, FILE *out);
void verify_json(const struct verification *verification, int code, FILE *out);

#endif
